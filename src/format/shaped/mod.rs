//! Rows that come with columns about themselves, as JSON, CSV or Parquet: the change data feed of Delta tables,
//! and what Airbyte and Fivetran load with marks of deletes.

mod airbyte;
mod delta;
mod fivetran;
mod json;
mod shape;

pub use json::ShapedJson;
pub use shape::Shape;

#[cfg(test)]
mod tests;
