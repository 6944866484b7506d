//! What was asked for on the command line.

use crate::Outcome;
use asofdb::IntakeOptions;
use asofdb::options::Absent;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Messages of a commit.
pub const BATCH: usize = 400_000;

/// Usage, for who asks wrongly.
pub const USAGE: &str = "\
cargo bench --bench workload -- N [DIR] [OPTION...]     the table, for N messages
cargo bench --bench workload -- pipe N... [OPTION...]   intake through a pipe, each N compared with the first
cargo bench --bench workload -- shapes [N]              a hot key, late events and many files
cargo bench --features kafka --bench workload -- kafka N [DIR] --brokers HOST:PORT   through a broker
options:
  --rounds R         rounds of everything that is compared with the peer (3; above 1,000,000 messages 1)
  --python PATH      a Python with the package duckdb; else ASOF_PYTHON, else python3
  --debezium N       messages of Debezium JSON (at most 1,000,000)
  --labels N         rows that are joined by point in time (at most 1,000,000)
  --columns SPEC     as of `asof ingest`
  --topic NAME       kafka: a topic that an earlier run produced
  --through 'CMD..'  words before every measured process, such as 'nice -n -10'";

/// Messages of a step that has fewer than the rest.
const SMALL_MAX: u64 = 1_000_000;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Table,
    Pipe,
    Shapes,
    Kafka,
}

/// Everything that was said.
pub struct Plan {
    pub mode: Mode,
    /// Numbers of messages; the first is that of the table.
    pub sizes: Vec<u64>,
    dir: Option<PathBuf>,
    pub rounds: usize,
    pub python: OsString,
    debezium: u64,
    labels: u64,
    pub columns: Option<String>,
    #[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "of the mode kafka"))]
    pub brokers: Option<String>,
    #[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "of the mode kafka"))]
    pub topic: Option<String>,
    /// Words before every measured process.
    pub through: Vec<String>,
    /// This process is a step of another one: its name and words.
    pub phase: Vec<String>,
    /// As it was given, for child processes.
    pub args: Vec<String>,
}

fn number(text: &str) -> Outcome<u64> {
    text.replace('_', "").parse().map_err(|e| format!("{text}: {e}\n{USAGE}").into())
}

impl Plan {
    pub fn read(args: &[String]) -> Outcome<Plan> {
        let python = std::env::var_os("ASOF_PYTHON").filter(|p| !p.is_empty());
        let mut plan = Plan {
            mode: Mode::Table,
            sizes: Vec::new(),
            dir: None,
            rounds: 0,
            python: python.unwrap_or_else(|| "python3".into()),
            debezium: SMALL_MAX,
            labels: SMALL_MAX,
            columns: None,
            brokers: None,
            topic: None,
            through: Vec::new(),
            phase: Vec::new(),
            args: args.iter().take_while(|a| *a != "--phase").cloned().collect(),
        };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "pipe" => plan.mode = Mode::Pipe,
                "shapes" => plan.mode = Mode::Shapes,
                "kafka" => plan.mode = Mode::Kafka,
                "--brokers" => plan.brokers = Some(value()?.clone()),
                "--topic" => plan.topic = Some(value()?.clone()),
                "--rounds" => plan.rounds = number(value()?)? as usize,
                "--python" => plan.python = value()?.into(),
                "--debezium" => plan.debezium = number(value()?)?,
                "--labels" => plan.labels = number(value()?)?,
                "--columns" => plan.columns = Some(value()?.clone()),
                "--through" => plan.through = value()?.split_whitespace().map(str::to_owned).collect(),
                "--phase" => plan.phase = rest.by_ref().cloned().collect(),
                a if a.starts_with("--") => return Err(format!("{a} is not known\n{USAGE}").into()),
                a if a.starts_with(|c: char| c.is_ascii_digit()) => plan.sizes.push(number(a)?),
                a => plan.dir = Some(a.into()),
            }
        }
        plan.complete()
    }

    fn complete(mut self) -> Outcome<Plan> {
        match (self.mode, self.sizes.is_empty()) {
            (Mode::Shapes, true) => self.sizes.push(SMALL_MAX),
            (_, true) => return Err(format!("how many messages?\n{USAGE}").into()),
            _ => {}
        }
        if self.rounds == 0 {
            self.rounds = if self.sizes[0] > SMALL_MAX { 1 } else { 3 };
        }
        Ok(self)
    }

    /// Messages of the table.
    pub fn messages(&self) -> u64 {
        self.sizes[0]
    }

    pub fn debezium(&self) -> u64 {
        self.debezium.min(self.messages())
    }

    pub fn labels(&self) -> u64 {
        self.labels.min(self.messages())
    }

    /// Where messages, answers and stores are.
    pub fn dir(&self) -> PathBuf {
        let name = match self.mode {
            Mode::Table => format!("workload-{}", self.messages()),
            Mode::Pipe => "workload-pipe".into(),
            Mode::Shapes => "workload-shapes".into(),
            Mode::Kafka => format!("workload-avro-{}", self.messages()),
        };
        self.dir.clone().unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    /// The store of the table.
    pub fn store(&self) -> PathBuf {
        self.dir().join("bench.asof")
    }

    /// How the messages of the workload are taken.
    pub fn options(&self) -> Outcome<IntakeOptions> {
        Ok(IntakeOptions {
            format: Some("json".into()),
            table: Some("w".into()),
            keys: vec!["key1,key2,key3".parse()?],
            op: Some("o".into()),
            valid: Some("valid_time:us".parse()?),
            system: Some("system_time:us".parse()?),
            absent: Some(Absent::Unchanged),
            columns: self.columns.as_deref().map(str::parse).transpose()?,
            batch: Some(BATCH),
            strict: true,
            ..IntakeOptions::default()
        })
    }
}
