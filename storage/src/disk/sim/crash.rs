//! What a power cut may leave behind.

use super::state::{FileOp, SimInode, State};
use std::path::Path;

/// Pages of a write reach the medium each on its own.
const PAGE_BYTES: u64 = 4096;

/// A small repeatable generator (splitmix64); good enough to pick crash variants.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// How a variant treats what was not synced.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Nothing,
    Everything,
    /// A prefix of the writes, the last of them torn at any byte.
    Torn,
    /// Any pages in any order, one of them torn.
    Scattered,
}

pub(super) fn image(state: &State, seed: u64) -> State {
    let mut dice = Dice(seed);
    let fate = match seed {
        0 => Fate::Nothing,
        1 => Fate::Everything,
        _ if dice.below(2) == 0 => Fate::Torn,
        _ => Fate::Scattered,
    };
    let mut names = state.names.durable.clone();
    for op in &state.names.waiting {
        let keep = match fate {
            Fate::Nothing => false,
            Fate::Everything => true,
            _ => dice.below(2) == 0,
        };
        if keep {
            op.apply(&mut names);
        }
    }
    let mut dirs = state.dirs_durable.clone();
    dirs.extend(
        state
            .dirs
            .iter()
            .filter(|_| fate == Fate::Everything || fate != Fate::Nothing && dice.below(2) == 0)
            .cloned(),
    );
    // A name lives only in directories that do.
    let alive = |dirs: &std::collections::BTreeSet<_>, path: &Path| {
        path.ancestors()
            .skip(1)
            .all(|d: &Path| d.parent().is_none() || d.as_os_str().is_empty() || dirs.contains(d))
    };
    let all = dirs.clone();
    dirs.retain(|d| alive(&all, d));
    names.retain(|path, _| alive(&dirs, path));
    let mut image = State::default();
    for (path, id) in &names {
        image.put_durable(path, surviving_bytes(&state.files[id], fate, &mut dice));
    }
    image.dirs_durable = dirs.clone();
    image.dirs = dirs;
    image
}

pub(super) fn settled(state: &State) -> State {
    let mut copy = State::default();
    for (path, id) in &state.names.visible {
        copy.put_durable(path, state.files[id].visible.clone());
    }
    copy.dirs = state.dirs.clone();
    copy.dirs_durable = state.dirs.clone();
    copy
}

fn surviving_bytes(file: &SimInode, fate: Fate, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = file.durable.clone();
    let waiting = &file.waiting;
    match fate {
        Fate::Nothing => {}
        Fate::Everything => waiting.iter().for_each(|op| op.apply(&mut bytes)),
        Fate::Torn if waiting.is_empty() => {}
        Fate::Torn => {
            let kept = dice.below(waiting.len() as u64) as usize;
            waiting[..kept].iter().for_each(|op| op.apply(&mut bytes));
            torn(&waiting[kept], dice).apply(&mut bytes);
        }
        Fate::Scattered => {
            let mut parts: Vec<FileOp> = waiting.iter().flat_map(pages).collect();
            dice.shuffle(&mut parts);
            parts.truncate(dice.below(parts.len() as u64 + 1) as usize);
            if let Some(last) = parts.last_mut() {
                *last = torn(last, dice);
            }
            parts.iter().for_each(|op| op.apply(&mut bytes));
        }
    }
    bytes
}

fn torn(op: &FileOp, dice: &mut Dice) -> FileOp {
    match op {
        FileOp::Write { offset, bytes } => {
            let kept = dice.below(bytes.len() as u64 + 1) as usize;
            FileOp::Write { offset: *offset, bytes: bytes[..kept].to_vec() }
        }
        whole => whole.clone(),
    }
}

fn pages(op: &FileOp) -> Vec<FileOp> {
    let FileOp::Write { offset, bytes } = op else { return vec![op.clone()] };
    let mut parts = Vec::new();
    let (mut at, mut rest) = (*offset, bytes.as_slice());
    while !rest.is_empty() {
        let room = (PAGE_BYTES - at % PAGE_BYTES).min(rest.len() as u64);
        let (page, tail) = rest.split_at(room as usize);
        parts.push(FileOp::Write { offset: at, bytes: page.to_vec() });
        (at, rest) = (at + room, tail);
    }
    parts
}
