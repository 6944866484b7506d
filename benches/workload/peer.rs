//! DuckDB on the same input: `benches/peers/duckdb_log.py` in a Python that has the package `duckdb`.

use crate::Outcome;
use crate::children::through;
use crate::data;
use crate::figures::{digits, peer_answer, peer_number};
use crate::measure::{Cost, Line};
use crate::plan::Plan;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The questions that both are asked.
pub const QUESTIONS: [&str; 4] = ["count", "sum", "count+sum", "group by"];

/// A peer that is there.
pub struct Peer<'p> {
    plan: &'p Plan,
    script: PathBuf,
    parts: PathBuf,
    db: PathBuf,
    pub version: String,
}

/// An answer of the script and what its process cost.
pub struct Answer {
    said: Json,
    cost: Cost,
}

impl Answer {
    pub fn number(&self, path: &[&str]) -> Outcome<f64> {
        Ok(peer_number(&self.said, path)?)
    }

    fn line(&self, step: &str, figure: String) -> Line {
        Line { cost: Some(self.cost), ..Line::note(step, "DuckDB", figure) }
    }

    fn wrong(&self) -> Outcome<usize> {
        Ok(self.number(&["wrong"])? as usize)
    }
}

impl<'p> Peer<'p> {
    /// The peer, if it is there; says so where it is not.
    pub fn find(plan: &'p Plan) -> Outcome<Option<Peer<'p>>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/duckdb_log.py");
        let mut command = Command::new(&plan.python);
        let asked = command.arg(&script).arg("version").stderr(Stdio::null()).output();
        let version = asked.ok().filter(|o| o.status.success()).and_then(|o| {
            let said = peer_answer(&String::from_utf8_lossy(&o.stdout)).ok()?;
            Some(said["version"].as_str()?.to_owned())
        });
        let Some(version) = version else {
            println!(
                "DuckDB is not here: {} has no package duckdb (--python, ASOF_PYTHON); no ratios\n",
                plan.python.display()
            );
            return Ok(None);
        };
        let parts = data::parts(&plan.dir())?;
        Ok(Some(Peer { plan, script, parts, db: plan.dir().join("peer.duckdb"), version }))
    }

    fn run(&self, phase: &str, more: &[&str]) -> Outcome<Answer> {
        let mut command = through(self.plan, &self.plan.python);
        command.arg(&self.script).arg(phase).arg("--db").arg(&self.db).arg("--parts").arg(&self.parts);
        command.arg("--probes").arg(self.plan.dir().join("probes.ndjson"));
        command.arg("--labels").arg(crate::labels::file(self.plan)).args(more);
        let from = Instant::now();
        let done = command.stderr(Stdio::inherit()).output()?;
        let wall_s = from.elapsed().as_secs_f64();
        if !done.status.success() {
            return Err(format!("DuckDB, {phase}: left with {}", done.status).into());
        }
        let said = peer_answer(&String::from_utf8_lossy(&done.stdout))?;
        let number = |name: &str| peer_number(&said, &[name]);
        let cost = Cost {
            wall_s,
            cpu_s: number("cpu_s")?,
            peak_mb: number("peak_mb")?,
            own_mb: number("own_mb")?,
            mapped_mb: number("mapped_mb")?,
        };
        Ok(Answer { said, cost })
    }

    /// Log and current state, anew; messages a second without and with the current state, and bytes.
    pub fn intake(&self) -> Outcome<(Line, [f64; 3])> {
        self.clear()?;
        let answer = self.run("intake", &[])?;
        let (log_s, fold_s) = (answer.number(&["log_s"])?, answer.number(&["fold_s"])?);
        let n = self.plan.messages() as f64;
        if answer.number(&["events"])? != n {
            return Err(format!("DuckDB took {} messages, not {n}", answer.number(&["events"])?).into());
        }
        let (log, whole) = (n / log_s, n / (log_s + fold_s));
        let bytes = answer.number(&["bytes"])?;
        let figure = format!(
            "{log:.0} messages/s log only, {whole:.0} with the current state; {:.1} bytes an event, {:.1} log only",
            bytes / n,
            answer.number(&["log_bytes"])? / n
        );
        Ok((answer.line("intake, NDJSON", figure), [log, whole, bytes]))
    }

    /// The timed questions, warm: milliseconds in the order of [`QUESTIONS`], and wrong answers.
    pub fn ask(&self) -> Outcome<(Vec<Line>, Vec<f64>, usize)> {
        let answer = self.run("ask", &[])?;
        let times = QUESTIONS.iter().map(|q| answer.number(&["ms", q])).collect::<Outcome<Vec<_>>>()?;
        let shown: Vec<String> =
            QUESTIONS.iter().zip(&times).map(|(q, t)| format!("{q} {}", digits(*t))).collect();
        let line = answer.line("AS OF, warm, ms", shown.join(", "));
        Ok((vec![line], times, answer.wrong()?))
    }

    /// One question in a new process, its file advised out of the page cache: milliseconds.
    pub fn first(&self, question: &str) -> Outcome<(Line, f64, usize)> {
        data::cool(&self.db)?;
        let answer = self.run("first", &["--question", question])?;
        let ms = answer.number(&["ms"])?;
        let figure = format!("{} ms from opening to the last row", digits(ms));
        Ok((answer.line(&format!("AS OF {question}, first of a process"), figure), ms, answer.wrong()?))
    }

    /// Look-ups of keys: milliseconds, and wrong answers.
    pub fn keys(&self) -> Outcome<(Line, f64, usize)> {
        let answer = self.run("keys", &[])?;
        let (ms, p99) = (answer.number(&["ms"])?, answer.number(&["p99_ms"])?);
        let figure =
            format!("median {} ms, p99 {} ms, of {}", digits(ms), digits(p99), answer.number(&["reads"])?);
        Ok((answer.line("key look-up, SQL", figure), ms, answer.wrong()?))
    }

    /// The join by point in time: seconds, and wrong answers.
    pub fn labels(&self) -> Outcome<(Line, f64, usize)> {
        let answer = self.run("labels", &[])?;
        let seconds = answer.number(&["s"])?;
        let found: Vec<i64> =
            answer.said["answer"].as_array().into_iter().flatten().filter_map(Json::as_i64).collect();
        let wrong = usize::from(found != crate::labels::answer(self.plan)?);
        Ok((answer.line("point-in-time join", format!("{seconds:.2} s")), seconds, wrong))
    }

    /// Takes its file away.
    pub fn clear(&self) -> Outcome<()> {
        data::clear(&self.db)?;
        data::clear(&self.db.with_extension("duckdb.wal"))
    }

    /// Takes all of its files away.
    pub fn end(&self) -> Outcome<()> {
        self.clear()?;
        data::clear(&self.parts)
    }
}
