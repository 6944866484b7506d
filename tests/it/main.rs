//! End-to-end tests of the library.

mod bench;
mod corpus;
mod corpus_avro;
mod corpus_detect;
mod corpus_mongodb;
mod corpus_mysql;
mod corpus_postgres;
mod corpus_wrapped;
mod expect;
mod export;
mod faults;
mod flows;
mod format_docs;
mod gap;
mod intake;
mod memory;
mod named_columns;
mod quarantine;
mod rows;
mod shapes;
mod sql;
mod stored;
mod tidy;
