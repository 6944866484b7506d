//! Files and names of the simulated disk: what programs see, what is durable, what waits.

use super::super::error::DiskOp;
use super::super::lock::LockHolder;
use super::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(super) enum FileOp {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
}

impl FileOp {
    pub(super) fn apply(&self, to: &mut Vec<u8>) {
        match self {
            FileOp::Write { offset, bytes } => {
                let start = *offset as usize;
                let end = start + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[start..end].copy_from_slice(bytes);
            }
            FileOp::SetLen(len) => to.resize(*len as usize, 0),
        }
    }
}

/// A file: visible bytes, durable bytes, and the changes that would make one the other.
#[derive(Clone, Debug, Default)]
pub(super) struct SimInode {
    pub visible: Vec<u8>,
    pub durable: Vec<u8>,
    pub waiting: Vec<FileOp>,
}

#[derive(Clone, Debug)]
pub(super) enum NameOp {
    Link { path: PathBuf, id: u64 },
    Unlink { path: PathBuf },
    Move { from: PathBuf, to: PathBuf, id: u64 },
}

impl NameOp {
    pub(super) fn apply(&self, to: &mut BTreeMap<PathBuf, u64>) {
        match self {
            NameOp::Link { path, id } => {
                to.insert(path.clone(), *id);
            }
            NameOp::Unlink { path } => {
                to.remove(path);
            }
            NameOp::Move { from, to: target, id } => {
                if to.get(from) == Some(id) {
                    to.remove(from);
                }
                to.insert(target.clone(), *id);
            }
        }
    }

    /// Whether a sync of `dir` makes this change durable: it touches a name in `dir`.
    fn is_in(&self, dir: &Path) -> bool {
        match self {
            NameOp::Link { path, .. } | NameOp::Unlink { path } => path.parent() == Some(dir),
            NameOp::Move { to, .. } => to.parent() == Some(dir),
        }
    }
}

/// Names of files.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub visible: BTreeMap<PathBuf, u64>,
    pub durable: BTreeMap<PathBuf, u64>,
    pub waiting: Vec<NameOp>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub files: BTreeMap<u64, SimInode>,
    pub names: Names,
    pub dirs: BTreeSet<PathBuf>,
    /// Directories whose own name is durable.
    pub dirs_durable: BTreeSet<PathBuf>,
    pub locks: BTreeMap<PathBuf, LockHolder>,
    pub operations: u64,
    pub trace: Vec<(DiskOp, PathBuf)>,
    pub fault: Option<Fault>,
    pub faults_fired: u64,
    pub power_until: Option<u64>,
    pub lost_write: Option<u64>,
    pub lying: bool,
    pub capacity: Option<u64>,
    next_id: u64,
}

impl State {
    pub(super) fn is_dir(&self, path: &Path) -> bool {
        self.dirs.contains(path) || path.parent().is_none_or(|p| p.as_os_str().is_empty())
    }

    pub(super) fn has_parent(&self, path: &Path) -> bool {
        path.parent()
            .is_none_or(|p| p.as_os_str().is_empty() || p.parent().is_none() || self.dirs.contains(p))
    }

    pub(super) fn new_file(&mut self) -> u64 {
        self.next_id += 1;
        self.files.insert(self.next_id, SimInode::default());
        self.next_id
    }

    pub(super) fn create_dir(&mut self, dir: &Path) {
        self.dirs.insert(dir.to_path_buf());
    }

    pub(super) fn change_file(&mut self, id: u64, op: FileOp) {
        let file = self.files.get_mut(&id).expect("open handles have a file");
        op.apply(&mut file.visible);
        file.waiting.push(op);
    }

    pub(super) fn change_names(&mut self, op: NameOp) {
        op.apply(&mut self.names.visible);
        self.names.waiting.push(op);
    }

    pub(super) fn sync_file(&mut self, id: u64) {
        let file = self.files.get_mut(&id).expect("open handles have a file");
        for op in file.waiting.drain(..) {
            op.apply(&mut file.durable);
        }
    }

    /// The system gives up on the waiting writes: still visible, never to become durable.
    pub(super) fn lose_waiting(&mut self, path: &Path) {
        if let Some(id) = self.names.visible.get(path)
            && let Some(file) = self.files.get_mut(id)
        {
            file.waiting.clear();
        }
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let names = &mut self.names;
        let (now, later) = names.waiting.drain(..).partition::<Vec<_>, _>(|op| op.is_in(dir));
        now.iter().for_each(|op| op.apply(&mut names.durable));
        names.waiting = later;
        let inside = self.dirs.iter().filter(|d| d.parent() == Some(dir)).cloned();
        self.dirs_durable.extend(inside);
    }

    pub(super) fn put_durable(&mut self, path: &Path, bytes: Vec<u8>) {
        let id = match self.names.visible.get(path) {
            Some(id) => *id,
            None => self.new_file(),
        };
        self.names.visible.insert(path.to_path_buf(), id);
        self.names.durable.insert(path.to_path_buf(), id);
        let file = SimInode { visible: bytes.clone(), durable: bytes, waiting: Vec::new() };
        self.files.insert(id, file);
    }
}
