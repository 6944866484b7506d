//! Random histories for property tests.

use crate::change::{Act, Cell, Change};
use crate::model::Model;
use crate::object::Object;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// What kinds of changes a random history may have, and how many different times. Few different
/// times and values make ties and equal neighbours, which is where rules differ.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of keys, numbered from 0.
    pub keys: u32,
    /// Number of columns.
    pub columns: u32,
    /// Most changes of a history.
    pub changes_max: usize,
    /// Valid and system times are 0 to this, exclusive.
    pub times: i64,
    /// Values are 0 to this, exclusive.
    pub values: i64,
    /// Commits are 1 to this, inclusive.
    pub commits: u64,
    /// Streams are 0 to this, exclusive.
    pub streams: u32,
    /// Upserts may be partial.
    pub partial: bool,
    /// Columns may hold placeholders.
    pub unknown: bool,
    /// Changes may have an end of their own, also one before their start.
    pub bounded: bool,
    /// Truncates occur; some changes have positions in a server's log.
    pub truncates: bool,
    /// Upserts may change the key.
    pub moves: bool,
    /// Changes may have tie-breaks.
    pub ties: bool,
    /// Values may be objects, whole or leaf by leaf.
    pub objects: bool,
}

impl Shape {
    /// Full and partial upserts and deletes of one key, late on both axes.
    pub fn ordinary() -> Shape {
        Shape {
            keys: 1,
            columns: 2,
            changes_max: 10,
            times: 6,
            values: 3,
            commits: 3,
            streams: 2,
            partial: true,
            unknown: false,
            bounded: false,
            truncates: false,
            moves: false,
            ties: false,
            objects: false,
        }
    }

    /// Everything at once, over three keys.
    pub fn everything() -> Shape {
        Shape {
            keys: 3,
            unknown: true,
            bounded: true,
            truncates: true,
            moves: true,
            ties: true,
            ..Shape::ordinary()
        }
    }
}

/// A random table of the given shape.
pub fn model(shape: Shape) -> impl Strategy<Value = Model> {
    (changes(shape), any::<bool>()).prop_map(move |(changes, system_declared)| Model {
        columns: shape.columns,
        system_declared,
        changes,
    })
}

/// Random changes of the given shape in random order; positions are unique within their streams.
pub fn changes(shape: Shape) -> impl Strategy<Value = Vec<Change>> {
    vec(change(shape), 0..=shape.changes_max).prop_map(|mut changes| {
        for (position, change) in changes.iter_mut().enumerate() {
            change.position = position as u64;
        }
        changes
    })
}

/// One random change; its position is 0.
pub fn change(shape: Shape) -> impl Strategy<Value = Change> {
    let times = (0..shape.times, 0..shape.times, option::weighted(0.3, 0..shape.times + 1));
    let place = (1..=shape.commits, 0..shape.streams.max(1), option::of(0u8..3));
    let log = option::of((1u32..3, 0u8..3));
    let previous = (option::weighted(0.4, 0..shape.keys), any::<bool>());
    let what = (act(shape), 0..shape.keys, cells(shape), any::<bool>());
    (times, place, log, previous, what).prop_map(move |(times, place, log, previous, what)| {
        let (act, key, cells, full) = what;
        let upsert = act == Act::Upsert;
        Change {
            act,
            key: if act == Act::Truncate { 0 } else { key },
            previous: previous.0.filter(|_| shape.moves && upsert),
            previous_deleted: previous.1,
            full: upsert && (full || !shape.partial),
            cells: if upsert { cells } else { Default::default() },
            valid: times.0,
            valid_to: times.2.filter(|_| shape.bounded && act != Act::Truncate),
            tie: place.2.filter(|_| shape.ties),
            system: times.1,
            commit: place.0,
            stream: place.1,
            position: 0,
            log: log.filter(|_| shape.truncates),
        }
    })
}

fn act(shape: Shape) -> impl Strategy<Value = Act> {
    let truncates = if shape.truncates { 1 } else { 0 };
    prop_oneof![
        6 => Just(Act::Upsert),
        2 => Just(Act::Delete),
        truncates => Just(Act::Truncate),
    ]
}

fn cells(shape: Shape) -> impl Strategy<Value = std::collections::BTreeMap<u32, Cell>> {
    let unknown = if shape.unknown { 2 } else { 0 };
    let (objects, leaves) = if shape.objects { (2, 12) } else { (0, 0) };
    let cell = prop_oneof![
        6 => (0..shape.values).prop_map(Cell::Int),
        1 => Just(Cell::Null),
        unknown => Just(Cell::Unknown),
        objects => object().prop_map(Cell::Object),
        leaves => object().prop_map(Cell::Leaves),
    ];
    btree_map(0..shape.columns, cell, 0..=shape.columns as usize)
}

/// Objects of few members and values, so that they often meet.
pub fn object() -> impl Strategy<Value = Object> {
    let leaf = || prop_oneof![4 => (0..2u8).prop_map(|v| v.to_string()), 1 => Just("null".to_owned())];
    let inner = members("xy", leaf());
    let value = prop_oneof![2 => leaf(), 3 => inner];
    members("ab", value).prop_map(|text| Object::of(&text))
}

/// The text of an object with some of two members, in either order.
fn members(names: &'static str, value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (vec(value, 2), 0..5usize).prop_map(|(values, which)| {
        let member = |i: usize| format!("\"{}\":{}", &names[i..i + 1], values[i]);
        match which {
            0 => "{}".to_owned(),
            1 | 2 => format!("{{{}}}", member(which - 1)),
            3 => format!("{{{},{}}}", member(0), member(1)),
            _ => format!("{{{},{}}}", member(1), member(0)),
        }
    })
}
