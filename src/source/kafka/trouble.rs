//! What goes wrong between us and the brokers, and whether waiting helps.

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What an error of librdkafka asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It passes: librdkafka tries again.
    Wait,
    /// The offset is not there any more.
    Gap,
    /// The topic or the partition is not there.
    Gone,
    /// It does not pass by itself.
    Fatal,
}

/// Judges a code. One that is not known is waited out: librdkafka reports those that end it as fatal.
pub(super) fn judge(code: RDKafkaErrorCode) -> Judgement {
    use RDKafkaErrorCode as Code;
    match code {
        Code::AutoOffsetReset | Code::OffsetOutOfRange | Code::LogTruncation | Code::NoOffset => {
            Judgement::Gap
        }
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => Judgement::Gone,
        Code::Authentication
        | Code::SaslAuthenticationFailed
        | Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::UnsupportedSASLMechanism
        | Code::SSL
        | Code::BadMessage
        | Code::BadCompression
        | Code::UnsupportedCompressionType
        | Code::UnsupportedFeature
        | Code::UnsupportedVersion
        | Code::InvalidTopic
        | Code::SecurityDisabled
        | Code::Fatal => Judgement::Fatal,
        _ => Judgement::Wait,
    }
}

/// The code within an error, if it has one.
pub(super) fn code_of(e: &KafkaError) -> Option<RDKafkaErrorCode> {
    e.rdkafka_error_code()
}

/// What the threads of librdkafka tell ours.
#[derive(Debug, Default)]
pub(super) struct Watch {
    woken: Mutex<bool>,
    wake: Condvar,
    trouble: Mutex<Option<Trouble>>,
}

/// The brokers are away.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    /// Since when.
    pub since: Instant,
    /// What librdkafka said last.
    pub reason: String,
    /// Set if waiting does not help.
    pub fatal: bool,
}

impl Watch {
    /// Something may be there to be read.
    pub fn notify(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_one();
    }

    /// Waits until something may be there, at most so long.
    pub fn wait(&self, timeout: Duration) {
        let woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut woken, _) = self
            .wake
            .wait_timeout_while(woken, timeout, |woken| !*woken)
            .unwrap_or_else(PoisonError::into_inner);
        *woken = false;
    }

    /// What is wrong now.
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A broker answered.
    pub fn clear(&self) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Something is wrong.
    pub fn note(&self, reason: String, fatal: bool) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let since = trouble.as_ref().map_or_else(Instant::now, |t| t.since);
        let fatal = fatal || trouble.as_ref().is_some_and(|t| t.fatal);
        *trouble = Some(Trouble { since, reason, fatal });
    }
}

impl ClientContext for Watch {
    fn log(&self, _level: RDKafkaLogLevel, _fac: &str, _message: &str) {
        // Errors come as events too; the rest is of use with the property `debug` only.
    }

    fn error(&self, e: KafkaError, reason: &str) {
        let Some(code) = code_of(&e) else { return };
        match (code, judge(code)) {
            (RDKafkaErrorCode::PartitionEOF, _) => {}
            // Those of a partition come with its messages and are dealt with there.
            (_, Judgement::Gap | Judgement::Gone) => {}
            (_, judgement) => self.note(said(reason), judgement == Judgement::Fatal),
        }
    }
}

impl ConsumerContext for Watch {}

/// A reason as librdkafka gives it, in one line.
pub(super) fn said(reason: &str) -> String {
    reason.lines().next().unwrap_or("").trim().to_owned()
}
