//! Topics as messages: all partitions in turn, from where the store is.

use super::super::PlacedSink;
use super::super::position::{SourceError, SourcePosition};
use super::client::{Client, Marks, gap};
use super::options::{KafkaOptions, Until};
use super::partition::{Formats, Partition, Taken, digest, digits, record_of};
use super::trouble::{Judgement, Watch, code_of, judge};
use super::{Reach, Resume};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, FormatOptions};
use crate::intake::StreamStart;
use rdkafka::Message;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::error::KafkaError;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Messages taken from one partition before it is another's turn.
const TURN: usize = 1_000;
/// How long nothing may come before that is the end of what there is.
const SILENCE: Duration = Duration::from_millis(100);
/// How long messages that come one by one are waited for before they are committed.
const TRICKLE: Duration = Duration::from_secs(1);
/// How often new topics and partitions, and the ends of known ones, are looked for.
const REFRESH: Duration = Duration::from_secs(30);
/// How long such a look may take: meanwhile nothing is read.
const LOOK: Duration = Duration::from_secs(1);

/// Reads topics.
pub struct TopicReader {
    options: KafkaOptions,
    client: Client,
    /// By partition, as `parts`.
    queues: Vec<PartitionQueue<Watch>>,
    parts: Vec<Partition>,
    prefix: String,
    declared: Option<Format>,
    format_options: FormatOptions,
    found: Vec<(String, Format)>,
    told: usize,
    turn: usize,
    /// When the messages that are not committed began to come.
    since: Option<Instant>,
    silent: Duration,
    /// When new partitions were looked for; `None` = it is time to.
    looked: Option<Instant>,
    cluster: Option<String>,
    starts: Vec<StreamStart>,
}

impl TopicReader {
    /// Finds the topics and begins to read their partitions. `resume` says what the store knows of a stream;
    /// streams are named `topic/partition`, behind `name` and a `#` where there is one.
    ///
    /// # Errors
    /// `Usage` for options that make no sense; `Source` if the brokers are not there in time, refuse us, or
    /// know no such topic.
    pub fn open(
        options: KafkaOptions,
        name: Option<&str>,
        declared: Option<Format>,
        format_options: FormatOptions,
        resume: &dyn Fn(&str) -> Resume,
    ) -> Result<TopicReader> {
        options.validate()?;
        let client = Client::new(&options)?;
        let topics = client.topics(&options)?;
        let mut reader = TopicReader {
            cluster: client.cluster(),
            options,
            client,
            queues: Vec::new(),
            parts: Vec::new(),
            prefix: name.map(|n| format!("{n}#")).unwrap_or_default(),
            declared,
            format_options,
            found: Vec::new(),
            told: 0,
            turn: 0,
            since: None,
            silent: Duration::ZERO,
            looked: Some(Instant::now()),
            starts: Vec::new(),
        };
        let mut known = HashMap::new();
        for (topic, number) in topics.iter().flat_map(|(t, all)| all.iter().map(move |n| (t, *n))) {
            let before = reader.add(topic, number, resume)?;
            known.insert(reader.parts.len() - 1, before);
        }
        reader.begin(&known)?;
        Ok(reader)
    }

    /// Adds a partition, and where its stream begins. Returns what the store knows of it.
    fn add(&mut self, topic: &str, number: i32, resume: &dyn Fn(&str) -> Resume) -> Result<Resume> {
        let stream = format!("{}{topic}/{number}", self.prefix);
        let before = resume(&stream);
        let marks = self.client.marks(&self.options, topic, number)?;
        let begin = match before.next {
            Some(_) => None,
            None => Some(self.client.begin(&self.options, topic, number, marks)?),
        };
        let Marks { first, end } = marks;
        let mut part = Partition::new(topic, number, stream.clone(), &before);
        part.next = before.next.or(begin).unwrap_or(first);
        let shorter = before.next.filter(|next| *next > end);
        let replaced = shorter.map(|next| format!("it ends at offset {end}, and the store is at {next}"));
        (part.first, part.end) = (first, end);
        self.starts.push(StreamStart {
            stream,
            first,
            identity: self.cluster.as_ref().map(|id| format!("cluster {id}")),
            replaced,
            begin: begin.filter(|at| *at > first),
        });
        self.parts.push(part);
        Ok(before)
    }

    /// Assigns the partitions, and looks whether the messages that were taken last are still those.
    fn begin(&mut self, known: &HashMap<usize, Resume>) -> Result<()> {
        for part in &self.parts {
            self.queues.push(self.client.queue(&part.topic, part.number)?);
        }
        let mut from: Vec<u64> = self.parts.iter().map(|p| p.next.clamp(p.first, p.end)).collect();
        let mut looks = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let digest = known.get(&at).map(|k| k.digest.clone()).filter(|d| !d.is_empty());
            let there = part.next > part.first && part.next <= part.end;
            if let Some(digest) = digest.filter(|_| there) {
                from[at] = part.next - 1;
                looks.push((at, digest));
            }
        }
        self.client.assign(self.parts.iter().zip(&from).map(|(p, from)| (&*p.topic, p.number, *from)))?;
        for (at, expected) in looks {
            self.look(at, &expected)?;
        }
        for part in &mut self.parts {
            part.next = part.next.clamp(part.first, part.end.max(part.first));
        }
        self.mark_done();
        Ok(())
    }

    /// Reads the message before the next one of a partition and compares it with the one that was taken.
    fn look(&mut self, at: usize, expected: &str) -> Result<()> {
        let patience = self.options.waits();
        let (from, part) = (Instant::now(), &mut self.parts[at]);
        loop {
            self.client.serve();
            match self.queues[at].poll(SILENCE) {
                Some(Ok(m)) => {
                    let record = record_of(&m, &[]);
                    if record.offset >= part.next {
                        // Compaction took the one before away.
                        part.keep(m.detach());
                    } else if digits(digest(&record)) != expected {
                        let what = format!("its message at offset {} is not the one taken", record.offset);
                        self.starts[at].replaced = Some(what);
                    }
                    return Ok(());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(e)) => match code_of(&e).map(judge) {
                    Some(Judgement::Wait) => {}
                    Some(Judgement::Gap) => return Ok(()),
                    _ => return Err(Error::new(ErrorKind::Source, format!("{}: {e}", part.stream))),
                },
                None => {}
            }
            let trouble = self.client.watch().trouble();
            let fatal = trouble.as_ref().is_some_and(|t| t.fatal);
            if fatal || from.elapsed() > patience {
                let reason = trouble.map_or("the broker gave no message".into(), |t| t.reason);
                return Err(Error::new(ErrorKind::Source, format!("{}: {reason}", part.stream)));
            }
        }
    }

    /// Where the streams begin, for the check of gaps. What is said once is not said again.
    pub fn starts(&mut self) -> Vec<StreamStart> {
        let again: Vec<StreamStart> =
            self.starts.iter().map(|s| StreamStart { replaced: None, begin: None, ..s.clone() }).collect();
        std::mem::replace(&mut self.starts, again)
    }

    /// The streams begin where the check of gaps found that they do: a stream that is another one now from
    /// its first message.
    ///
    /// # Errors
    /// `Source` if the brokers do not go there.
    pub fn go_to(&mut self, next: &dyn Fn(&str) -> (Option<u64>, u32)) -> Result<()> {
        for part in &mut self.parts {
            let (taken, generation) = next(&part.stream);
            let another = generation != part.generation;
            part.generation = generation;
            if another {
                part.next = taken.unwrap_or(part.first).max(part.first);
                part.waiting.clear();
                part.done = false;
                self.client.seek(&part.topic, part.number, part.next)?;
            }
        }
        self.mark_done();
        Ok(())
    }

    fn mark_done(&mut self) {
        for part in self.parts.iter_mut().filter(|_| self.options.until == Until::CaughtUp) {
            part.done = part.next >= part.end && part.waiting.is_empty();
        }
    }

    /// Hands over up to `room` messages.
    ///
    /// # Errors
    /// If reading cannot go on, or only after something was done about it. What was handed over counts; the
    /// reader is to be opened again.
    pub fn read(&mut self, room: usize, sink: &mut PlacedSink<'_>) -> Result<Reach, SourceError> {
        self.client.serve();
        if let Some(trouble) = self.client.watch().trouble().filter(|t| t.fatal) {
            return Err(SourceError::new(self.options.topics.join(", "), trouble.reason));
        }
        if self.options.until == Until::Stopped && self.looked.is_none_or(|at| at.elapsed() >= REFRESH) {
            self.refresh().map_err(|e| SourceError::new(self.options.topics.join(", "), e.message()))?;
        }
        self.since.get_or_insert_with(Instant::now);
        let taken = self.round(room, sink)?;
        if taken > 0 {
            self.client.watch().clear();
            self.silent = Duration::ZERO;
        }
        if taken == room {
            return Ok(Reach::More);
        }
        match self.options.until {
            Until::CaughtUp => self.after_caught_up(taken),
            Until::Stopped => self.after_stopped(taken),
        }
    }

    fn after_caught_up(&mut self, taken: usize) -> Result<Reach, SourceError> {
        let open = self.parts.iter().filter(|p| !p.done);
        let blocked = |p: &&Partition| p.blocked.is_some();
        if open.clone().all(|p| blocked(&p)) {
            return self.blocked().map_or(Ok(Reach::End), Err);
        }
        if taken == 0 {
            self.client.watch().wait(SILENCE);
            self.silent += SILENCE;
        }
        if self.silent >= TRICKLE {
            self.silent = Duration::ZERO;
            return Ok(Reach::Idle);
        }
        Ok(Reach::More)
    }

    fn after_stopped(&mut self, taken: usize) -> Result<Reach, SourceError> {
        let long = self.since.is_some_and(|since| since.elapsed() >= TRICKLE);
        if taken == 0 {
            self.client.watch().wait(SILENCE);
            self.silent += SILENCE;
        }
        if self.silent < SILENCE && !long {
            return Ok(Reach::More);
        }
        (self.silent, self.since) = (Duration::ZERO, None);
        self.blocked().map_or(Ok(Reach::End), Err)
    }

    /// Why a partition is not read on, if one is not.
    fn blocked(&self) -> Option<SourceError> {
        self.parts.iter().find_map(|p| p.blocked.clone())
    }

    /// Takes what there is from all partitions in turn.
    fn round(&mut self, room: usize, sink: &mut PlacedSink<'_>) -> Result<usize, SourceError> {
        let (mut left, mut empty) = (room, 0);
        while left > 0 && empty < self.parts.len() {
            let at = self.turn % self.parts.len();
            let taken = self.drain(at, left.min(TURN), sink)?;
            left -= taken;
            empty = if taken == 0 { empty + 1 } else { 0 };
            self.turn = at + 1;
        }
        Ok(room - left)
    }

    fn drain(&mut self, at: usize, room: usize, sink: &mut PlacedSink<'_>) -> Result<usize, SourceError> {
        let (part, queue) = (&mut self.parts[at], &self.queues[at]);
        let caught_up = self.options.until == Until::CaughtUp;
        let mut formats =
            Formats { declared: self.declared, options: &self.format_options, found: &mut self.found };
        let mut taken = 0;
        while taken < room && part.blocked.is_none() && !part.done {
            if part.knows_format(&formats)
                && let Some(message) = part.waiting.pop_front()
            {
                match part.take(&message, &mut formats, sink) {
                    Taken::Yes => taken += 1,
                    Taken::Waits => part.waiting.push_front(message),
                }
            } else {
                match queue.poll(Duration::ZERO) {
                    None => break,
                    Some(Ok(m)) => {
                        if !part.waiting.is_empty() {
                            part.learn(&m, &mut formats);
                        }
                        if part.waiting.is_empty() && part.take(&m, &mut formats, sink) == Taken::Yes {
                            taken += 1;
                        } else {
                            part.keep(m.detach());
                        }
                    }
                    Some(Err(KafkaError::PartitionEOF(_))) => {
                        self.client.watch().clear();
                        if caught_up && part.waiting.is_empty() {
                            part.done = true;
                        } else if caught_up {
                            part.blocked = Some(part.unknown_format());
                        }
                    }
                    Some(Err(e)) => failed(&self.client, part, &e)?,
                }
            }
            part.done |= caught_up && part.next >= part.end && part.waiting.is_empty();
        }
        Ok(taken)
    }

    /// Looks for new topics and partitions, and for the ends of all. If there are new ones, another client
    /// takes over: partitions are assigned once a client.
    fn refresh(&mut self) -> Result<()> {
        self.looked = Some(Instant::now());
        for part in &mut self.parts {
            match self.client.ask_marks(&part.topic, part.number, LOOK) {
                Ok(marks) => {
                    self.client.watch().clear();
                    (part.first, part.end) = (marks.first, marks.end);
                }
                Err(_) => break,
            }
        }
        let quick = KafkaOptions { patience: Some(LOOK), ..self.options.clone() };
        let Ok(topics) = self.client.topics(&quick) else { return Ok(()) };
        let is_new = |topic: &str, n: i32| !self.parts.iter().any(|p| p.topic == topic && p.number == n);
        let all = topics.iter().flat_map(|(topic, numbers)| numbers.iter().map(move |n| (topic, *n)));
        let new: Vec<(String, i32)> =
            all.filter(|(t, n)| is_new(t, *n)).map(|(t, n)| (t.clone(), n)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut client = Client::new(&self.options)?;
        for (topic, number) in &new {
            // What came since the partition was made belongs to us, wherever others began.
            let marks = client.marks(&self.options, topic, *number)?;
            let stream = format!("{}{topic}/{number}", self.prefix);
            let mut part = Partition::new(topic, *number, stream.clone(), &Resume::default());
            (part.first, part.end, part.next) = (marks.first, marks.end, marks.first);
            let identity = self.cluster.as_ref().map(|id| format!("cluster {id}"));
            self.starts.push(StreamStart {
                stream,
                first: marks.first,
                identity,
                replaced: None,
                begin: None,
            });
            self.parts.push(part);
        }
        let mut queues = Vec::new();
        for part in &mut self.parts {
            queues.push(client.queue(&part.topic, part.number)?);
        }
        // Messages that wait here come before those that the new client brings.
        let from = |p: &Partition| p.waiting.back().map_or(p.next, |m| m.offset().max(0) as u64 + 1);
        client.assign(self.parts.iter().map(|p| (&*p.topic, p.number, from(p))))?;
        self.queues = queues;
        self.client = client;
        Ok(())
    }

    /// Positions that changed since the last call; they belong into the commit of the messages handed over
    /// since then.
    pub fn positions(&mut self) -> Vec<SourcePosition> {
        self.parts.iter_mut().filter_map(Partition::position).collect()
    }

    /// Formats that were found since the last call, by topic.
    pub fn formats_found(&mut self) -> Vec<(String, Format)> {
        let new = self.found[self.told..].to_vec();
        self.told = self.found.len();
        new
    }

    /// Looks for new topics and partitions when it reads next.
    #[cfg(test)]
    pub fn look_now(&mut self) {
        self.looked = None;
    }

    /// Messages between where reading is and the ends that are known.
    pub fn lag(&self) -> u64 {
        self.parts.iter().filter(|p| !p.done).map(|p| p.end.saturating_sub(p.next)).sum()
    }

    /// Since when no broker answers, and why.
    pub fn away(&self) -> Option<(Duration, String)> {
        self.client.watch().trouble().map(|t| (t.since.elapsed(), t.reason))
    }
}

/// An error in the place of a message.
fn failed(client: &Client, part: &Partition, e: &KafkaError) -> Result<(), SourceError> {
    let Some(code) = code_of(e) else { return Ok(()) };
    match judge(code) {
        Judgement::Wait => Ok(()),
        Judgement::Gap => {
            let marks = client.ask_marks(&part.topic, part.number, LOOK).ok();
            Err(gap(&part.stream, part.next, marks.map(|m| m.first)))
        }
        Judgement::Gone => Err(SourceError::new(&part.stream, "the partition is gone")
            .hint("if its topic was made anew, begin again: the gap has to be accepted")),
        Judgement::Fatal => Err(SourceError::new(&part.stream, code.to_string())),
    }
}
