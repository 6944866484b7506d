//! `asof ingest` and the intake options.

use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  asof ingest shop.asof cdc/                           every file of a directory, new ones next time
  asof ingest shop.asof 'dumps/*.csv' --table orders --key id --op Op --valid changed_at
  asof ingest hr.asof facts.ndjson --table staff --key id --valid from_date --system entered_at
  asof ingest shop.asof cdc/ --key id --export-to lake/ --export-every 30s
  asof ingest shop.asof -b broker:9092 -t shop.public.orders -F kafka.properties
  asof ingest shop.asof postgres://me@db/shop --from-table orders --watermark updated_at
  asof ingest shop.asof sqlite:shop.db --from-table orders --snapshot

A second run takes only what is new. Messages that cannot be taken go to the quarantine and the
rest goes on: see 'asof quarantine list'. Every round of an export is of one commit and takes the
place of the one before in one step; the last comes when everything is taken. SIGINT and SIGTERM finish the batch, commit and leave.";

/// `asof ingest`
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = "asof ingest [OPTIONS] STORE SOURCE...\n       asof ingest [OPTIONS] STORE -b BROKERS -t TOPIC...")]
pub struct IngestArgs {
    /// The store (made if there is none), then files, globs, directories, - for standard input, or one
    /// database: postgres://USER@HOST/DB, mysql://USER@HOST/DB, sqlite:FILE
    #[arg(value_name = "STORE SOURCE", required_unless_present = "topics")]
    pub places: Vec<String>,
    /// Format of the messages; 'auto' finds it out
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub format: String,
    /// Table of all events; without it they go to the table their envelope names
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,
    /// Key columns, a,b or TABLE:a,b; may be repeated
    #[arg(long, value_name = "[TABLE:]COLS")]
    pub key: Vec<String>,
    #[command(flatten)]
    pub operation: OperationArgs,
    #[command(flatten)]
    pub time: TimeArgs,
    #[command(flatten)]
    pub content: ContentArgs,
    #[command(flatten)]
    pub schemas: SchemaArgs,
    #[command(flatten)]
    pub kafka: super::KafkaArgs,
    #[command(flatten)]
    pub flow: FlowArgs,
    #[command(flatten)]
    pub rounds: super::RoundsArgs,
    #[command(flatten)]
    pub pull: super::PullArgs,
}

/// What an event does.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Operations")]
pub struct OperationArgs {
    /// Column with the operation (i/u/d/c/r/t, insert, update, delete, upsert, ... are understood)
    #[arg(long, value_name = "COL")]
    pub op: Option<String>,
    /// More words of that column: i=insert,u=update
    #[arg(long, value_name = "WORD=OP", value_delimiter = ',')]
    pub op_map: Vec<String>,
    /// Operation of events that name none [default: upsert]
    #[arg(long, value_name = "OP")]
    pub default_op: Option<String>,
    /// Condition that makes an event a delete
    #[arg(long, value_name = "EXPR")]
    pub delete_when: Option<String>,
    /// Condition that makes an event a truncate
    #[arg(long, value_name = "EXPR")]
    pub truncate_when: Option<String>,
    /// Column with an id that is unique per operation; a second one is a repeat
    #[arg(long, value_name = "COL")]
    pub operation_id: Option<String>,
}

/// When it holds, and since when that is known.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Column with the valid time; numbers need a unit: s, ms, us or ns
    #[arg(long, value_name = "COL[:unit]")]
    pub valid: Option<String>,
    /// Column with the exclusive end of valid time
    #[arg(long, value_name = "COL[:unit]")]
    pub valid_end: Option<String>,
    /// Columns that order events of one valid time
    #[arg(long, value_name = "COLS", value_delimiter = ',')]
    pub tie_break: Vec<String>,
    /// Column with the system time: when the source knew it [default: the commit's instant]
    #[arg(long, value_name = "COL[:unit]")]
    pub system: Option<String>,
    /// Zone of times that have none [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub zone: Option<String>,
}

/// What it says.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Columns")]
pub struct ContentArgs {
    /// Columns to take: a,b bigint,c or '* except a,b'
    #[arg(long, value_name = "COLS")]
    pub columns: Option<String>,
    /// What an absent column of a plain format, or leaf of an object in one, means: null or unchanged
    #[arg(long, value_name = "null|unchanged")]
    pub absent: Option<String>,
    /// Columns whose NULLs mean unchanged
    #[arg(long, value_name = "all|COLS")]
    pub ignore_null_updates: Option<String>,
    /// Column that lists the columns an event writes
    #[arg(long, value_name = "COL")]
    pub columns_to_update: Option<String>,
    /// Text that means NULL in CSV files
    #[arg(long, value_name = "TEXT")]
    pub null_text: Option<String>,
    /// Names of the columns of CSV files without a header
    #[arg(long, value_name = "COLS", value_delimiter = ',')]
    pub header: Option<Vec<String>>,
}

/// Where the schemas of Avro messages are.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Schemas")]
pub struct SchemaArgs {
    /// File with the schemas that Avro messages name; may be repeated
    #[arg(long, value_name = "FILE")]
    pub schemas: Vec<String>,
    /// Schema registry to ask: http[s]://[NAME:PASSWORD@]HOST[:PORT][/PATH]
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
    /// File with NAME:PASSWORD for the registry [default: the variable ASOF_REGISTRY_AUTH]
    #[arg(long, value_name = "FILE", requires = "registry")]
    pub registry_auth: Option<PathBuf>,
    /// How the id of its schema goes with a message: confluent (4 bytes) or apicurio (8 bytes)
    #[arg(long, value_name = "FRAMING")]
    pub framing: Option<String>,
}

/// How the intake runs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running")]
pub struct FlowArgs {
    /// Name of the stream that standard input is; with it a second run takes only what is new
    #[arg(long, value_name = "NAME")]
    pub source_name: Option<String>,
    /// Keep each message as it came in the history
    #[arg(long)]
    pub keep_raw: bool,
    /// Stop with exit code 5 at the first message that would be quarantined
    #[arg(long)]
    pub strict: bool,
    /// Messages per commit
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
}
