//! Topics of a mock cluster, through whole stores.

mod cluster;
mod faults;
mod taking;
