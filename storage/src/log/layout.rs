//! Every on-disk constant of the log. `docs/on-disk-format.md` describes them and carries the hash
//! of this file: whoever changes a byte here changes the document too, and a test checks that.

/// Version of everything below. Readers refuse higher ones.
pub const LOG_FORMAT_VERSION: u32 = 4;
/// Version of a segment that has all its rows.
pub const SEGMENT_WHOLE: u32 = 3;
/// Version of a segment that was shrunk: rows of digested blocks live in runs, and its frames stand at
/// other places than they were written to.
pub const SEGMENT_SHRUNK: u32 = 4;
/// The same two of segments whose rows have no value tags above 14.
pub const SEGMENT_WHOLE_BEFORE: u32 = 1;
pub const SEGMENT_SHRUNK_BEFORE: u32 = 2;

/// File name of a segment: ten digits and this.
pub const SEGMENT_SUFFIX: &str = ".seg";
pub const SEGMENT_DIGITS: usize = 10;
/// What follows the name of a segment while its shrunk form is written.
pub const SHRINKING_SUFFIX: &str = ".tmp";
pub const SEGMENT_MAGIC: [u8; 8] = *b"asofseg\n";
/// Offsets within the segment header.
pub mod segment {
    pub const VERSION: usize = 8;
    pub const HEADER_BYTES: usize = 12;
    pub const STORE_ID: usize = 16;
    pub const ID: usize = 32;
    pub const FIRST_SEQUENCE: usize = 40;
    pub const INSTANT_BEFORE: usize = 48;
    pub const HEAD_BEFORE: usize = 56;
    pub const CRC: usize = 88;
    pub const END: usize = 96;
}

pub const FRAME_MAGIC: [u8; 4] = *b"aFr1";
/// Offsets within the frame header. `LENGTH` counts the bytes after `PREFIX_END`.
pub mod frame {
    pub const HEADER_CRC: usize = 4;
    pub const SEGMENT_ID: usize = 8;
    pub const LENGTH: usize = 16;
    pub const SEQUENCE: usize = 24;
    pub const PREFIX_END: usize = 32;
    pub const CRC: usize = 32;
    pub const KIND: usize = 36;
    pub const FLAGS: usize = 37;
    pub const RESERVED: usize = 38;
    pub const INSTANT: usize = 40;
    pub const SECRET: usize = 48;
    pub const PREVIOUS: usize = 80;
    pub const HEAD: usize = 112;
    pub const SECTIONS: usize = 144;
    pub const BLOCKS: usize = 148;
    pub const BODY: usize = 152;
}

pub const KIND_COMMIT: u8 = 1;
/// Reserved for retention cuts: carries the head and the state that it replaces.
pub const KIND_CHECKPOINT: u8 = 2;
/// The frame has no secret; kept items carry their salts, erased ones their commitments.
pub const FLAG_SPARSE: u8 = 1;

/// Section: kind u8, form u8, zero u16, length u32, then what the form says.
pub const SECTION_HEADER_BYTES: usize = 8;
pub const SECTION_PLAIN: u8 = 0;
pub const SECTION_SALTED: u8 = 1;
pub const SECTION_ERASED: u8 = 2;

/// Row block: form u8, zero u8 x3, table u32, schema version u32, rows u32, kept rows u32, bytes of
/// the length list u32, bytes of the rows u32, then what the form says.
pub const BLOCK_HEADER_BYTES: usize = 28;
pub const BLOCK_ROWS: u8 = 0;
pub const BLOCK_SPARSE: u8 = 1;
pub const BLOCK_DIGESTED: u8 = 2;

/// Upper bound of a whole frame; more is damage. A commit that is larger must be split.
pub const FRAME_BYTES_MAX: u64 = 1 << 30;
/// Size at which a segment is closed, unless set otherwise. One frame may go beyond it.
pub const SEGMENT_BYTES_MAX_DEFAULT: u64 = 256 << 20;

pub const SALT_BYTES: usize = 16;
pub const HASH_BYTES: usize = 32;
/// First byte or bytes of what is hashed, so that no hash can stand for one of another kind.
pub const DOMAIN_SALT_ROWS: u8 = 0x01;
pub const DOMAIN_SALT_SECTIONS: u8 = 0x02;
pub const DOMAIN_BLOCK: &[u8] = b"asofdb rows 1";
pub const DOMAIN_SECTION: &[u8] = b"asofdb section 1";
pub const DOMAIN_FRAME: &[u8] = b"asofdb frame 1";
pub const DOMAIN_GENESIS: &[u8] = b"asofdb chain 1";
