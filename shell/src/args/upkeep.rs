//! `asof status`, `compact`, `verify`, `rebuild`, `quarantine` and `export`.

use super::store::StoreArg;
use asofdb::export::ExportLayout;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `asof status`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  asof status shop.asof\n  asof status shop.asof --json")]
pub struct StatusArgs {
    #[command(flatten)]
    pub store: StoreArg,
}

const COMPACT_EXAMPLES: &str = "\
Examples:
  asof compact shop.asof               least space: runs are the only copy of the events in them
  asof compact shop.asof --keep-log    the log keeps every event too, at several times the space

Once merged runs have the events of a sealed log segment, the segment gives up its rows. It keeps
the hash chain and what it takes to make every row again from the runs, to the byte.";

/// `asof compact`
#[derive(Debug, Args)]
#[command(after_help = COMPACT_EXAMPLES)]
pub struct CompactArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Do not shrink the log
    #[arg(long)]
    pub keep_log: bool,
}

const REBUILD_EXAMPLES: &str = "\
Examples:
  asof rebuild shop.asof               runs, manifest and index again from the log
  asof rebuild shop.asof --salvage     for a damaged log of which there is no copy

--salvage cuts the log at its first damage and says what is lost. What is cut goes to the
directory salvaged-1 of the store first, and a commit records it. It refuses where nothing is
damaged, and where runs have what would be cut.";

/// `asof rebuild`
#[derive(Debug, Args)]
#[command(after_help = REBUILD_EXAMPLES)]
pub struct RebuildArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Cut a damaged log at the first damage: commits behind it are lost, and kept aside as they are
    #[arg(long)]
    pub salvage: bool,
}

const ACCEPT_GAP_EXAMPLES: &str = "\
Examples:
  asof accept-gap shop.asof dbserver1.orders/0

An intake stops where a stream has lost messages that the store had not taken yet, or is another one
than it was. Accepting that makes a commit, and the next intake goes on with what there is.";

/// `asof accept-gap`
#[derive(Debug, Args)]
#[command(after_help = ACCEPT_GAP_EXAMPLES, override_usage = "asof accept-gap [OPTIONS] STORE STREAM")]
pub struct AcceptGapArgs {
    /// The store, then the name of the stream
    #[arg(value_name = "STORE STREAM", required = true, num_args = 1..=2)]
    pub places: Vec<String>,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  asof verify shop.asof                checksums, hash chain, runs
  asof verify shop.asof --full         also every row of log and runs, against the chain too
  asof verify shop.asof --head 9f3c... proves that history up to that head is the history that was";

/// `asof verify`
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Recompute everything from the log
    #[arg(long)]
    pub full: bool,
    /// A head of the hash chain noted earlier
    #[arg(long, value_name = "HEAD")]
    pub head: Option<String>,
}

const TAIL_EXAMPLES: &str = "\
Examples:
  asof tail shop.asof orders
  asof tail shop.asof orders --from 7 --follow | kafkacat -P -t orders.changes
  asof tail shop.asof orders --from 2026-11-01

One JSON object for each change of the latest state, in the order of commits: the columns of the
table, then _change_type (insert, update_preimage, update_postimage, delete), _commit_version and
_commit_timestamp. To go on where you stopped, give the last _commit_version plus one. SIGINT and
SIGTERM end --follow with exit code 0.";

/// `asof tail`
#[derive(Debug, Args)]
#[command(after_help = TAIL_EXAMPLES, override_usage = "asof tail [OPTIONS] STORE TABLE")]
pub struct TailArgs {
    /// The store, then the table
    #[arg(value_name = "STORE TABLE", required = true, num_args = 1..=2)]
    pub places: Vec<String>,
    /// The first commit: a number, or a time [default: the first there is]
    #[arg(long, value_name = "COMMIT")]
    pub from: Option<String>,
    /// Wait for further commits
    #[arg(short, long)]
    pub follow: bool,
}

const QUARANTINE_EXAMPLES: &str = "\
Examples:
  asof quarantine shop.asof               the same as: asof quarantine list shop.asof
  asof quarantine show shop.asof 3
  asof quarantine replay shop.asof --table orders --key id";

const REPLAY_EXAMPLES: &str = "\
Examples:
  asof quarantine replay shop.asof --op-map x=delete
  asof quarantine replay shop.asof 3 7 --valid changed_at:ms

Without numbers all messages that wait are tried. What can be taken now goes into a new commit,
under the position it always had; the rest stays. A message that was settled is never taken again.";

/// `asof quarantine`; without a command it lists.
#[derive(Debug, Args)]
#[command(after_help = QUARANTINE_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct QuarantineArgs {
    #[command(subcommand)]
    pub command: Option<QuarantineCommand>,
    /// The store whose waiting messages are listed
    #[arg(value_name = "STORE")]
    pub store: Option<PathBuf>,
    /// Also those that were settled since
    #[arg(long)]
    pub all: bool,
}

/// What to do with the quarantine.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List the messages that wait, with place and reason
    List {
        #[command(flatten)]
        store: StoreArg,
        /// Also those that were settled since
        #[arg(long)]
        all: bool,
    },
    /// Show one message as it came
    #[command(override_usage = "asof quarantine show [OPTIONS] STORE NUMBER")]
    Show {
        /// The store, then the number of the message in the list
        #[arg(value_name = "STORE NUMBER", required = true, num_args = 1..=2)]
        places: Vec<String>,
    },
    /// Take the messages again: with the options they came with, and those given now over them
    #[command(override_usage = "asof quarantine replay [OPTIONS] STORE [NUMBER...]", after_help = REPLAY_EXAMPLES)]
    Replay(Box<super::IngestArgs>),
}

/// What an export holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// Every event.
    History,
    /// Interval rows of all beliefs.
    Intervals,
    /// The rows at a point.
    Current,
}

impl From<Layout> for ExportLayout {
    fn from(layout: Layout) -> ExportLayout {
        match layout {
            Layout::History => ExportLayout::History,
            Layout::Intervals => ExportLayout::Intervals,
            Layout::Current => ExportLayout::Current,
        }
    }
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  asof export shop.asof orders out/
  asof export shop.asof orders lake/ --layout history --by-operation --compression snappy
  asof export shop.asof orders now/ --layout current --valid 2026-11-01 --where \"status = 'open'\"
  asof export shop.asof orders parts/ --partition-by 'valid_date, region'

The files are in DEST/TABLE, their list with digests in DEST/TABLE.manifest.json. An earlier export
is replaced in one step when the new one is complete. NULL in a time column is an open end: rows at
(v, s) are those with __START_AT <= v (or NULL), __END_AT > v (or NULL), and so for __SYSTEM_....";

/// `asof export`
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES, override_usage = "asof export [OPTIONS] STORE TABLE DEST")]
pub struct ExportArgs {
    /// The store, the table and the directory to write to
    #[arg(value_name = "STORE TABLE DEST", required = true, num_args = 2..=3)]
    pub places: Vec<String>,
    /// What to write
    #[arg(long, value_enum, default_value = "intervals")]
    pub layout: Layout,
    /// Partition directories: processed_date (the default of the history), valid_date, year_month, none,
    /// or SQL expressions with or without a name
    #[arg(long, value_name = "EXPR")]
    pub partition_by: Option<String>,
    /// Separate directories for each operation; history only
    #[arg(long)]
    pub by_operation: bool,
    /// Compression of the files: zstd, snappy, gzip or none
    #[arg(long, value_name = "CODEC", default_value = "zstd")]
    pub compression: String,
    /// Order of rows: key, or time (interval rows: skips more when asked about the past, is sorted first)
    #[arg(long, value_name = "ORDER", default_value = "key")]
    pub order: String,
    /// Only rows for which this is true
    #[arg(long = "where", value_name = "EXPR")]
    pub filter: Option<String>,
    /// Valid time of the rows
    #[arg(long, value_name = "TIME")]
    pub valid: Option<String>,
    /// System time of the rows
    #[arg(long, value_name = "TIME")]
    pub system: Option<String>,
    /// Commit of the rows: a number or a time
    #[arg(long, value_name = "COMMIT")]
    pub commit: Option<String>,
}
