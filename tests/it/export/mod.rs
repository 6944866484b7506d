//! Exports: what they answer, their files, and exports at an interval.

mod asof;
mod files;
mod fixture;
mod partitions;
mod rounds;
