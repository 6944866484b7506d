//! What the manifest knows of a run, and what stands in the sidecar file beside it.

use super::derive::Derivations;
use super::error::RunError;
use crate::event::Op;
use crate::id::TableId;
use crate::time::CommitSeq;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bytes of a run file that one digest covers. A block is checked before a byte of it is parsed.
pub const DIGEST_BLOCK_BYTES: usize = 256 * 1024;

/// Form of the runs that are written: in the second, columns of a chunk may follow from others
/// ([`Derivations`]), and decimals may stand in columns of 64 bits. Those of the first are read too.
pub const RUN_FORM: u32 = 2;

/// Rows between two keys of the sparse key index of a run, and of a page of a Parquet file: a look-up of one
/// key reads a page of each column.
pub const SPARSE_ROWS: usize = 512;

/// How a run file is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunFormat {
    /// Uncompressed Arrow IPC: scanned without decoding.
    Ipc,
    /// Parquet with zstd: small.
    Parquet,
}

impl RunFormat {
    /// Bytes of the digest of a block.
    pub(crate) fn digest_bytes(self) -> usize {
        match self {
            RunFormat::Ipc => 16,
            RunFormat::Parquet => 32,
        }
    }

    /// Appends the digest of a block: XXH3 (128 bits) of files that are soon merged, and that the log
    /// still has all of; SHA-256 of those that stay.
    pub(crate) fn put_digest(self, out: &mut Vec<u8>, block: &[u8]) {
        match self {
            RunFormat::Ipc => out.extend_from_slice(&xxhash_rust::xxh3::xxh3_128(block).to_be_bytes()),
            RunFormat::Parquet => out.extend_from_slice(&Sha256::digest(block)),
        }
    }

    /// Extension of the file name.
    pub fn extension(self) -> &'static str {
        match self {
            RunFormat::Ipc => "arrow",
            RunFormat::Parquet => "parquet",
        }
    }
}

/// The value of a column that is the same in every row of a run; such columns are not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Constant {
    /// NULL in every row.
    Null,
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
}

/// Columns with one value throughout, by physical name.
pub type Constants = BTreeMap<String, Constant>;

/// Least and greatest value, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinMax<T> {
    /// The least value.
    pub min: T,
    /// The greatest value.
    pub max: T,
}

impl<T: Ord + Copy> MinMax<T> {
    /// The least span of both.
    pub fn join(self, other: MinMax<T>) -> MinMax<T> {
        MinMax { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Spans of the time columns of a chunk or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSpans {
    /// Effective valid time.
    pub valid_from: MinMax<i64>,
    /// Own valid end.
    pub valid_to: MinMax<i64>,
    /// System time.
    pub system: MinMax<i64>,
    /// Commit number.
    pub commit: MinMax<u64>,
}

impl TimeSpans {
    /// The least spans that cover both.
    pub fn join(self, o: TimeSpans) -> TimeSpans {
        TimeSpans {
            valid_from: self.valid_from.join(o.valid_from),
            valid_to: self.valid_to.join(o.valid_to),
            system: self.system.join(o.system),
            commit: self.commit.join(o.commit),
        }
    }
}

/// Which kinds of events a run holds, so that readers can leave out what they need not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFlags {
    /// Bit n = rows whose [`Op`] has number n.
    pub ops: u8,
    /// Rows that do not author every column.
    pub partial: bool,
    /// Rows with placeholders (rule B6).
    pub placeholders: bool,
    /// Rows with an own valid end (rule B13).
    pub bounded: bool,
    /// Rows whose mask goes beyond 64 columns.
    pub mask_rest: bool,
    /// Rows with sequence tie-breaks.
    pub ties: bool,
    /// Rows with a previous key (rule B8).
    pub previous: bool,
    /// Rows that say the old key's deletes do not count.
    pub previous_deleted: bool,
    /// Rows that write some column leaf by leaf.
    #[serde(default)]
    pub leaves: bool,
}

impl RunFlags {
    /// Whether rows with this operation are present.
    pub fn has(&self, op: Op) -> bool {
        self.ops >> op as u8 & 1 == 1
    }

    /// What either has.
    pub fn join(self, o: RunFlags) -> RunFlags {
        RunFlags {
            ops: self.ops | o.ops,
            partial: self.partial | o.partial,
            placeholders: self.placeholders | o.placeholders,
            bounded: self.bounded | o.bounded,
            mask_rest: self.mask_rest | o.mask_rest,
            ties: self.ties | o.ties,
            previous: self.previous | o.previous,
            previous_deleted: self.previous_deleted | o.previous_deleted,
            leaves: self.leaves | o.leaves,
        }
    }
}

/// What the manifest knows of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMeta {
    /// Number of the run; never reused in a store.
    pub id: u64,
    /// The table whose events it holds.
    pub table: TableId,
    /// Encoding of the file.
    pub format: RunFormat,
    /// See [`RUN_FORM`].
    #[serde(default = "first_form")]
    pub form: u32,
    /// 0 for runs written from memory, higher for merged ones; the writer's caller decides.
    pub level: u8,
    /// Version of the table's schema that the image columns have.
    pub schema_version: u32,
    /// Physical rows.
    pub rows: u64,
    /// Distinct keys, the empty key of truncates among them; key numbers are `0..keys`.
    pub keys: u64,
    /// Events: rows without the old sides of key changes.
    pub events: u64,
    /// Spans of times and commits; `None` if the run is empty.
    pub spans: Option<TimeSpans>,
    /// Least key that is not empty, as bytes; empty if there is none.
    #[serde(with = "hex_bytes")]
    pub key_min: Vec<u8>,
    /// Greatest key.
    #[serde(with = "hex_bytes")]
    pub key_max: Vec<u8>,
    /// Kinds of events.
    pub flags: RunFlags,
    /// Columns that are not in the file because they have one value.
    pub constants: Constants,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of the sidecar file, which holds the digests of the blocks of the run file.
    #[serde(with = "hex_bytes")]
    pub digest: Vec<u8>,
}

/// Runs did not always say their form.
fn first_form() -> u32 {
    1
}

impl RunMeta {
    /// Name of the run file within its directory.
    pub fn file_name(&self) -> String {
        file_name(self.id, self.format)
    }

    /// Name of the sidecar file within its directory.
    pub fn sidecar_name(&self) -> String {
        sidecar_name(self.id)
    }

    /// The greatest commit in the run, 0 if it is empty.
    pub fn commit_max(&self) -> CommitSeq {
        CommitSeq(self.spans.map_or(0, |s| s.commit.max))
    }
}

pub(crate) fn file_name(id: u64, format: RunFormat) -> String {
    format!("run-{id:012}.{}", format.extension())
}

pub(crate) fn sidecar_name(id: u64) -> String {
    format!("run-{id:012}.sum")
}

/// The number of the run that a file belongs to, temporary files included; `None` for other names.
pub fn run_of_file(name: &str) -> Option<u64> {
    name.strip_prefix("run-")?.split('.').next()?.parse().ok()
}

/// One chunk of a run: a record batch of an IPC file or a row group of a Parquet file. Chunks begin
/// at the first row of a key unless that key alone is larger than a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkMeta {
    /// Number of its first row within the run.
    pub first_row: u64,
    /// Rows of the chunk.
    pub rows: u64,
    /// Key of its first row.
    #[serde(with = "hex_bytes")]
    pub first_key: Vec<u8>,
    /// Key number of its first row.
    pub first_key_no: u32,
    /// The first row's key began in the chunk before: no place to divide a scan by keys.
    pub continues: bool,
    /// Spans of times and commits.
    pub spans: TimeSpans,
    /// How columns are had that follow from others in this chunk.
    #[serde(default, skip_serializing_if = "Derivations::is_empty")]
    pub derived: Derivations,
    /// A bit for each image column that has the value that the key has in every row that writes it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keyed: u64,
    /// Where the filter of its keys is in the run file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterPlace>,
}

/// Where bytes are in a run file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterPlace {
    /// The first byte.
    pub at: u64,
    /// How many.
    pub bytes: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Key of one row of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseKey {
    /// Number of the row within the run.
    pub row: u64,
    /// Its key.
    #[serde(with = "hex_bytes")]
    pub key: Vec<u8>,
}

/// The sidecar of a run: what a reader needs before it touches the run file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// Number of the run.
    pub id: u64,
    /// Length of the run file.
    pub bytes: u64,
    /// Bytes that one digest covers.
    pub block_bytes: u64,
    /// Chunks in row order.
    pub chunks: Vec<ChunkMeta>,
    /// Every [`SPARSE_ROWS`]th row of each chunk with its key, the chunk's first row included.
    #[serde(with = "super::sparse")]
    pub keys: Vec<SparseKey>,
    /// Digest of each block of the run file, one after the other: SHA-256 of a Parquet file, XXH3 with 128
    /// bits, big-endian, of an IPC file.
    #[serde(with = "hex_bytes")]
    pub digests: Vec<u8>,
}

impl Sidecar {
    /// The bytes of the file and their digest.
    pub(crate) fn encode(&self) -> Result<(Vec<u8>, Vec<u8>), RunError> {
        let bytes = serde_json::to_vec(self).map_err(|e| RunError::NotEvents(e.to_string()))?;
        let digest = Sha256::digest(&bytes).to_vec();
        Ok((bytes, digest))
    }

    /// Checks the digest that the manifest gives, then parses.
    pub(crate) fn decode(bytes: &[u8], meta: &RunMeta, path: &Path) -> Result<Sidecar, RunError> {
        let damaged = |what: String| RunError::Damaged { file: PathBuf::from(path), what };
        if Sha256::digest(bytes)[..] != meta.digest[..] {
            return Err(damaged("its SHA-256 is not the one in the manifest".into()));
        }
        let s: Sidecar = serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()))?;
        let blocks = s.bytes.div_ceil(s.block_bytes.max(1));
        if s.id != meta.id
            || s.bytes != meta.bytes
            || s.digests.len() as u64 != blocks * meta.format.digest_bytes() as u64
        {
            return Err(damaged(format!("it describes another run than run {}", meta.id)));
        }
        Ok(s)
    }
}

/// Bytes as hexadecimal text, for JSON.
pub(crate) mod hex_bytes {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let text: String = bytes
            .iter()
            .flat_map(|b| [DIGITS[(b >> 4) as usize] as char, DIGITS[(b & 15) as usize] as char])
            .collect();
        s.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        let digit = |b: u8| (b as char).to_digit(16).map(|n| n as u8);
        if text.len() % 2 != 0 {
            return Err(D::Error::custom("odd number of hexadecimal digits"));
        }
        text.as_bytes()
            .chunks_exact(2)
            .map(|p| Some(digit(p[0])? << 4 | digit(p[1])?))
            .collect::<Option<Vec<u8>>>()
            .ok_or_else(|| D::Error::custom("not hexadecimal digits"))
    }
}
