//! Topics on the command line, with the letters that kcat has.

use std::path::PathBuf;

/// Topics of Apache Kafka.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Topics of Apache Kafka")]
pub struct KafkaArgs {
    /// Topic to take in to the end it has now, in place of SOURCE; may be repeated, and a star stands for
    /// any letters
    #[arg(short = 't', long = "topic", value_name = "TOPIC")]
    pub topics: Vec<String>,
    /// Brokers to ask first
    #[arg(short = 'b', long, value_name = "HOST:PORT,...", requires = "topics")]
    pub brokers: Option<String>,
    /// File of properties for librdkafka, a NAME=VALUE a line; ${VARIABLE} and @FILE in values are replaced
    #[arg(short = 'F', long, value_name = "FILE", requires = "topics")]
    pub properties: Option<PathBuf>,
    /// Property for librdkafka
    #[arg(short = 'X', long = "property", value_name = "NAME=VALUE", requires = "topics")]
    pub property: Vec<String>,
    /// Where to begin with partitions that nothing was taken from: beginning, end, -N for the last N
    /// messages, or an instant [default: beginning]
    #[arg(long, value_name = "PLACE", requires = "topics", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Take also what transactions wrote that were not committed
    #[arg(long, requires = "topics")]
    pub read_uncommitted: bool,
}
