//! What is said of topics to read: brokers and how to reach them, topics, where to begin, when to end.

use crate::error::{Error, ErrorKind, Result};
use crate::near::near_names_hint;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Where to begin with a partition that nothing was taken from. With others the store goes on where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the oldest message there is.
    #[default]
    Beginning,
    /// With the next message that comes.
    End,
    /// So many messages before the end, or as many as there are.
    Last(u64),
    /// With the first message at or after an instant, microseconds since 1970-01-01T00:00:00Z.
    At(i64),
}

impl FromStr for Start {
    type Err = Error;

    /// Reads `beginning`, `end`, `-N`, or an instant of RFC 3339.
    fn from_str(text: &str) -> Result<Start> {
        match text {
            "beginning" | "earliest" => return Ok(Start::Beginning),
            "end" | "latest" => return Ok(Start::End),
            _ => {}
        }
        if let Some(Ok(n)) = text.strip_prefix('-').map(str::parse) {
            return Ok(Start::Last(n));
        }
        let at = chrono::DateTime::parse_from_rfc3339(text.strip_prefix("s@").unwrap_or(text));
        at.map(|at| Start::At(at.timestamp_micros())).map_err(|_| {
            Error::usage(format!("`{text}` is no place to begin in a topic"))
                .hint("write beginning, end, -N for the last N messages, or an instant such as 2026-11-30T08:00:00Z")
        })
    }
}

/// When reading topics ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// At the ends that the partitions had when reading began.
    #[default]
    CaughtUp,
    /// Never: at the end of what there is reading pauses, and goes on when it is asked to.
    Stopped,
}

/// Everything that is said of topics. Values of properties are not shown and not stored: they may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KafkaOptions {
    /// Topics; a star stands for any letters.
    pub topics: Vec<String>,
    /// Where to begin.
    pub start: Start,
    /// When to end.
    pub until: Until,
    /// Read also what transactions wrote that were not committed.
    pub read_uncommitted: bool,
    /// How long to wait for the brokers before giving up; then 30 s.
    pub patience: Option<Duration>,
    pub(super) properties: BTreeMap<String, String>,
}

impl fmt::Debug for KafkaOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaOptions")
            .field("topics", &self.topics)
            .field("start", &self.start)
            .field("until", &self.until)
            .field("properties", &self.properties.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// How long the brokers are waited for when reading begins, unless it is said.
const PATIENCE: Duration = Duration::from_secs(30);

/// Properties that would break what the store promises, and why.
const REFUSED: [(&str, &[&str], &str); 4] = [
    ("enable.auto.commit", &["false"], "offsets are stored in the store, in the commit of their messages"),
    (
        "enable.auto.offset.store",
        &["false"],
        "offsets are stored in the store, in the commit of their messages",
    ),
    ("auto.offset.reset", &["error", "none"], "a gap is never skipped: --from says where to begin"),
    ("enable.partition.eof", &["true"], "ends of partitions say that all was read"),
];

/// Names that clients in Java know and librdkafka does not, with what to write.
const FOREIGN: [(&str, &str); 6] = [
    ("sasl.jaas.config", "write sasl.username and sasl.password"),
    ("key.deserializer", "leave it out: --format says how messages are read"),
    ("value.deserializer", "leave it out: --format says how messages are read"),
    ("ssl.truststore.location", "write ssl.ca.location with a file of PEM certificates"),
    ("ssl.keystore.location", "write ssl.certificate.location and ssl.key.location"),
    ("schema.registry.url", "write --registry"),
];

/// Common properties, for those who misspell one.
const COMMON: [&str; 20] = [
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "debug",
    "fetch.max.bytes",
    "fetch.message.max.bytes",
    "fetch.min.bytes",
    "fetch.wait.max.ms",
    "group.id",
    "isolation.level",
    "queued.max.messages.kbytes",
    "queued.min.messages",
    "sasl.mechanisms",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
];

impl KafkaOptions {
    /// Sets a property of librdkafka. In its value `${NAME}` stands for what `variable` gives for the name, and
    /// a value that begins with an at sign for the content of the file that it names (two at signs: one).
    ///
    /// # Errors
    /// `Usage` for a variable that is not set and a property that would break what the store promises;
    /// `Source` for a file that cannot be read.
    pub fn set(&mut self, name: &str, value: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<()> {
        let (name, value) = (name.trim(), resolved(name.trim(), value.trim(), variable)?);
        if let Some((_, allowed, why)) = REFUSED.iter().find(|(refused, _, _)| *refused == name)
            && !allowed.contains(&value.as_str())
        {
            return Err(Error::usage(format!("{name}={value} cannot be set: {why}")));
        }
        if name == "isolation.level" {
            match value.as_str() {
                "read_committed" => return Ok(()),
                _ if self.read_uncommitted => return Ok(()),
                _ => {
                    return Err(Error::usage(format!(
                        "{name}={value} takes messages of transactions that may be taken back"
                    ))
                    .hint("--read-uncommitted says that this is wanted"));
                }
            }
        }
        if let Some((_, instead)) = FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
            return Err(Error::usage(format!("librdkafka knows no property {name}")).hint(*instead));
        }
        self.properties.insert(name.to_owned(), value);
        Ok(())
    }

    /// Sets the properties of a file's text: a `name=value` a line, `#` begins a comment.
    ///
    /// # Errors
    /// As [`KafkaOptions::set`], with the line; `Usage` for a line that is none of these.
    pub fn set_all(
        &mut self,
        file: &str,
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<()> {
        for (i, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())) {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let (name, value) = line.split_once('=').ok_or_else(|| {
                Error::usage(format!("{file}, line {i}: no name=value"))
                    .hint("a file of properties has lines such as bootstrap.servers=localhost:9092")
            })?;
            self.set(name, value, variable).map_err(|e| e.at(&format!("{file}, line {i}")))?;
        }
        Ok(())
    }

    /// How long to wait for the brokers.
    pub(super) fn waits(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }

    /// Whether a property is set.
    pub fn has(&self, name: &str) -> bool {
        self.properties.contains_key(name)
    }

    /// Checks what can be checked without a broker.
    ///
    /// # Errors
    /// `Usage` if no topic or no broker is named.
    pub fn validate(&self) -> Result<()> {
        if self.topics.is_empty() || self.topics.iter().any(String::is_empty) {
            return Err(Error::usage("no topic is named").hint("name one with -t TOPIC"));
        }
        if !["bootstrap.servers", "metadata.broker.list"].iter().any(|name| self.has(name)) {
            return Err(Error::usage("no broker is named")
                .hint("name one with -b HOST:PORT, or bootstrap.servers in a file of properties"));
        }
        Ok(())
    }

    /// All properties, those of this program over the given ones.
    pub(super) fn all_properties(&self) -> impl Iterator<Item = (&str, &str)> {
        let isolation = if self.read_uncommitted { "read_uncommitted" } else { "read_committed" };
        let given = self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        // `assign` takes a group; nothing is committed to it.
        let group = (!self.has("group.id")).then_some(("group.id", "asofdb"));
        given.chain(group).chain([
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("auto.offset.reset", "error"),
            ("enable.partition.eof", "true"),
            ("allow.auto.create.topics", "false"),
            ("check.crcs", "true"),
            ("isolation.level", isolation),
        ])
    }

    /// What librdkafka says of a property, for people. The value is not in it.
    pub(super) fn property_error(name: &str, what: &str) -> Error {
        let what = what.lines().next().unwrap_or("").trim_end_matches(':');
        let error = Error::usage(format!("the property {name}: {what}"));
        let needs_tls = name.starts_with("ssl.") || name.starts_with("sasl.") || name == "security.protocol";
        if needs_tls && cfg!(not(feature = "kafka-tls")) {
            return error.hint("TLS and most of SASL are in builds with the cargo feature kafka-tls");
        }
        error.hint(near_names_hint(name, COMMON))
    }
}

/// A value with what stands for something else replaced by it.
fn resolved(name: &str, value: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    if let Some(path) = value.strip_prefix('@').filter(|rest| !rest.starts_with('@')) {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Error::new(ErrorKind::Source, format!("the file of {name}, {path}: {e}")))?;
        return Ok(text.trim_end_matches(['\n', '\r']).to_owned());
    }
    let (mut out, mut rest) = (String::new(), value.strip_prefix('@').unwrap_or(value));
    while let Some((before, after)) = rest.split_once("${") {
        let Some((variable_name, behind)) = after.split_once('}') else { break };
        let set = variable(variable_name).ok_or_else(|| {
            Error::usage(format!("{name} names the variable {variable_name}, which is not set"))
        })?;
        out.push_str(before);
        out.push_str(&set);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn places_to_begin_are_read() {
        let read = |text: &str| text.parse::<Start>().map_err(|e| e.to_string());
        assert_eq!(read("beginning"), Ok(Start::Beginning));
        assert_eq!(read("end"), Ok(Start::End));
        assert_eq!(read("-25"), Ok(Start::Last(25)));
        assert_eq!(read("1970-01-01T00:00:01.5Z"), Ok(Start::At(1_500_000)));
        assert_eq!(read("s@1970-01-01T01:00:00+01:00"), Ok(Start::At(0)));
        assert!(read("yesterday").unwrap_err().contains("`yesterday` is no place to begin"));
    }

    #[test]
    fn what_would_lose_messages_cannot_be_set() {
        let mut options = KafkaOptions::default();
        for (name, value) in [
            ("enable.auto.commit", "true"),
            ("auto.offset.reset", "latest"),
            ("isolation.level", "read_uncommitted"),
            ("enable.partition.eof", "false"),
        ] {
            let e = options.set(name, value, &none).unwrap_err();
            assert!(e.to_string().contains(name), "{e}");
        }
        options.set("enable.auto.commit", "false", &none).unwrap();
        options.read_uncommitted = true;
        options.set("isolation.level", "read_uncommitted", &none).unwrap();
        let isolation = options.all_properties().filter(|(name, _)| *name == "isolation.level");
        assert_eq!(isolation.map(|(_, value)| value).collect::<Vec<_>>(), ["read_uncommitted"]);
    }

    #[test]
    fn a_file_of_properties_names_the_line_that_is_wrong() {
        let mut options = KafkaOptions::default();
        let text = "# brokers\n\nbootstrap.servers = a:1,b:2\nsasl.password=p=${SECRET}\n";
        let secret = |name: &str| (name == "SECRET").then(|| "canary".to_owned());
        options.set_all("k.properties", text, &secret).unwrap();
        let set: Vec<_> = options.properties.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(set, [("bootstrap.servers", "a:1,b:2"), ("sasl.password", "p=canary")]);
        assert!(!format!("{options:?}").contains("canary"));
        let wrong =
            |text: &str| options.clone().set_all("k.properties", text, &none).unwrap_err().to_string();
        assert!(wrong("a=1\nnonsense").contains("k.properties, line 2: no name=value"));
        assert!(wrong("sasl.password=${NOT_SET}").contains("line 1"), "{}", wrong("x=${NOT_SET}"));
        assert!(wrong("sasl.jaas.config=x").contains("sasl.jaas.config"));
    }

    #[test]
    fn a_value_may_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        std::fs::write(&file, "canary\n").unwrap();
        let mut options = KafkaOptions::default();
        options.set("sasl.password", &format!("@{}", file.display()), &none).unwrap();
        options.set("sasl.username", "@@me", &none).unwrap();
        assert_eq!(options.properties["sasl.password"], "canary");
        assert_eq!(options.properties["sasl.username"], "@me");
        let missing = options.set("sasl.password", "@/nowhere/at/all", &none).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Source);
    }

    #[test]
    fn topics_and_brokers_have_to_be_named() {
        let mut options = KafkaOptions::default();
        assert!(options.validate().unwrap_err().to_string().contains("topic"));
        options.topics.push("t".into());
        assert!(options.validate().unwrap_err().to_string().contains("broker"));
        options.set("bootstrap.servers", "b:1", &none).unwrap();
        options.validate().unwrap();
    }
}
