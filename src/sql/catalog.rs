//! The catalog of one query: the tables of the store with the session's clocks.

use super::context::{QueryContext, TableBounds};
use super::table::{Shape, TemporalTable};
use asofdb_storage::engine::RangeSpec;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use std::sync::Arc;

/// Name of the one catalog.
pub(crate) const CATALOG: &str = "asof";
/// Name of its one schema.
pub(crate) const SCHEMA: &str = "main";

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct StoreCatalog {
    pub context: Arc<QueryContext>,
}

impl CatalogProviderList for StoreCatalog {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.into()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for StoreCatalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.into()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| Arc::new(self.clone()) as Arc<dyn SchemaProvider>)
    }
}

#[async_trait]
impl SchemaProvider for StoreCatalog {
    fn table_names(&self) -> Vec<String> {
        self.context.reader.catalog().tables.values().map(|t| t.name.clone()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(meta) = self.context.reader.catalog().table(name) else { return Ok(None) };
        // The relation planner puts the clocks in; what is asked of this one is its schema.
        let commit = self.context.schema_commit();
        let bounds = TableBounds { valid: RangeSpec::Latest, system: RangeSpec::Latest, commit };
        let table = TemporalTable::new(self.context.clone(), meta.clone(), bounds, Shape::Bounded);
        Ok(Some(Arc::new(table)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.context.reader.catalog().table(name).is_some()
    }
}
