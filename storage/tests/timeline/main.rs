//! The bitemporal core against the naive model of `asofdb-testkit`.

mod bridge;
mod exhaustive;
mod growth;
mod leaves;
mod multiset;
mod properties;
mod vectors;
