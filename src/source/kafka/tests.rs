//! Topics of a mock cluster, and of a real broker where there is one, through whole stores.

mod broker;
mod cluster;
mod faults;
mod flows;
mod taking;
