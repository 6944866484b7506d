//! Tests of runs as a whole.
