//! What is there of topics in a build that cannot read them.

use super::super::PlacedSink;
use super::super::position::{SourceError, SourcePosition};
use super::{KafkaOptions, Reach, Resume};
use crate::error::{Error, Result};
use crate::format::{Format, FormatOptions};
use crate::intake::StreamStart;
use std::time::Duration;

/// Reads no topics: nobody has one.
#[derive(Debug)]
pub enum TopicReader {}

impl TopicReader {
    /// Always fails.
    ///
    /// # Errors
    /// `Usage`.
    pub fn open(
        _options: KafkaOptions,
        _name: Option<&str>,
        _declared: Option<Format>,
        _format_options: FormatOptions,
        _resume: &dyn Fn(&str) -> Resume,
    ) -> Result<TopicReader> {
        Err(Error::usage("this build cannot read topics").hint("build with the cargo feature kafka"))
    }

    /// Nobody can call it.
    pub fn starts(&mut self) -> Vec<StreamStart> {
        match *self {}
    }

    /// Nobody can call it.
    ///
    /// # Errors
    /// None.
    pub fn go_to(&mut self, _next: &dyn Fn(&str) -> (Option<u64>, u32)) -> Result<()> {
        match *self {}
    }

    /// Nobody can call it.
    ///
    /// # Errors
    /// None.
    pub fn read(&mut self, _room: usize, _sink: &mut PlacedSink<'_>) -> Result<Reach, SourceError> {
        match *self {}
    }

    /// Nobody can call it.
    pub fn positions(&mut self) -> Vec<SourcePosition> {
        match *self {}
    }

    /// Nobody can call it.
    pub fn formats_found(&mut self) -> Vec<(String, Format)> {
        match *self {}
    }

    /// Nobody can call it.
    pub fn lag(&self) -> u64 {
        match *self {}
    }

    /// Nobody can call it.
    pub fn away(&self) -> Option<(Duration, String)> {
        match *self {}
    }
}
