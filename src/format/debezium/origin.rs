//! The `source` block: table, times, and the position in the source's log.

use crate::change::{SourceRef, Token};
use crate::format::block::Block;
use crate::format::json::{Member, Raw};
use crate::format::scratch::Scratch;
use std::fmt::Write;

/// What the `source` block says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// Server, database, schema, table.
    pub source: SourceRef<'a>,
    /// Source commit time in microseconds.
    pub time: Option<i64>,
    /// Read by a snapshot.
    pub snapshot: bool,
    /// Log position.
    pub token: Option<Token<'a>>,
    /// Transaction.
    pub transaction_id: Option<&'a str>,
}

/// Reads the `source` block.
pub fn origin<'a>(members: &[Member<'a>], scratch: &mut Scratch<'a>) -> Origin<'a> {
    let block = Block(members);
    let snapshot = match block.raw("snapshot") {
        Some(Raw::Bool(v)) => v,
        Some(Raw::Text(t)) => !matches!(t.text, "false" | ""),
        _ => false,
    };
    let source = SourceRef {
        server: block.text("name", scratch),
        db: block.text("db", scratch),
        schema: block.text("schema", scratch),
        table: block.text("table", scratch),
    };
    let gtid = block.text("gtid", scratch);
    let transaction_id = block.digits("txId").filter(|t| !t.is_empty()).or(gtid);
    let token = if snapshot { None } else { token(&block, &source, scratch) };
    let time = block.time("ts_us", "ts_ms", "ts_ns");
    Origin { source, time, snapshot, token, transaction_id }
}

/// The log position, by the connector's own rules. Positions of snapshots, positions that are empty
/// or zero, and those of connectors whose order is not known, are none.
fn token<'a>(block: &Block<'_, 'a>, source: &SourceRef<'a>, scratch: &mut Scratch<'a>) -> Option<Token<'a>> {
    let connector = block.text("connector", scratch)?;
    let mut position = [0u8; 96];
    let (length, detail) = match connector {
        "mysql" | "mariadb" => binlog(block, &mut position, scratch)?,
        "postgresql" => (postgres(block, &mut position, scratch)?, ""),
        "sqlserver" => (sql_server(block, &mut position)?, source.db.unwrap_or("")),
        "oracle" => (oracle(block, &mut position)?, ""),
        "mongodb" => (mongodb(block, &mut position)?, block.text("rs", scratch).unwrap_or("")),
        _ => return None,
    };
    let server_id = block.digits("server_id").unwrap_or("");
    let name = source.server.unwrap_or("");
    let server = scratch.put_str(|out| {
        let written = write!(out, "{connector}/{name}/{server_id}/{detail}");
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    });
    Some(Token { server, position: scratch.put(&position[..length]) })
}

/// Puts parts one after the other; `None` if they do not fit.
fn put(position: &mut [u8], parts: &[&[u8]]) -> Option<usize> {
    let mut at = 0;
    for part in parts {
        position.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}

/// The number at the end of the file's name, the position and the row, as integers. The rest of the
/// file's name belongs to the server.
fn binlog<'a>(
    block: &Block<'_, 'a>,
    position: &mut [u8],
    scratch: &mut Scratch<'a>,
) -> Option<(usize, &'a str)> {
    let file = block.text("file", scratch)?;
    let (base, number) = file.rsplit_once('.')?;
    let number: u64 = number.parse().ok()?;
    let pos = u64::try_from(block.integer("pos")?).ok().filter(|p| *p > 0)?;
    let row = u64::try_from(block.integer("row").unwrap_or(0)).ok()?;
    let parts = [number.to_be_bytes(), pos.to_be_bytes(), row.to_be_bytes()];
    Some((put(position, &[&parts[0], &parts[1], &parts[2]])?, base))
}

/// The position of the last commit before the transaction, then the event's own: transactions
/// interleave in the log, so the event's position alone does not order them.
fn postgres<'a>(block: &Block<'_, 'a>, position: &mut [u8], scratch: &mut Scratch<'a>) -> Option<usize> {
    let lsn = block.integer("lsn").filter(|n| *n > 0)?;
    let sequence =
        block.text("sequence", scratch).and_then(|s| serde_json::from_str::<[Option<String>; 2]>(s).ok());
    let committed = sequence.and_then(|[first, _]| first?.parse().ok()).unwrap_or(lsn);
    let ordered = |n: i64| ((n as u64) ^ (1 << 63)).to_be_bytes();
    put(position, &[&ordered(committed), &ordered(lsn)])
}

/// Commit, change and serial number; the first two are hexadecimal digits of fixed width.
fn sql_server(block: &Block<'_, '_>, position: &mut [u8]) -> Option<usize> {
    let lsn = |name| block.digits(name).filter(|t| t.len() == 22);
    let serial = u64::try_from(block.integer("event_serial_no").unwrap_or(0)).ok()?;
    put(position, &[lsn("commit_lsn")?.as_bytes(), lsn("change_lsn")?.as_bytes(), &serial.to_be_bytes()])
}

/// The time of the entry in the log of the replica set and its number within that second. The changes of a
/// transaction share both: they are told apart by their number among those.
fn mongodb(block: &Block<'_, '_>, position: &mut [u8]) -> Option<usize> {
    let number = |name| block.integer(name).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    put(position, &[&number("ts_ms")?.to_be_bytes(), &number("ord")?.to_be_bytes()])
}

/// Commit SCN, the change's own SCN, the redo record and the statement within it. Changes may share
/// all of them: they are told apart by their number among those.
fn oracle(block: &Block<'_, '_>, position: &mut [u8]) -> Option<usize> {
    let scn = |name| block.digits(name)?.parse().ok().filter(|n: &u128| *n > 0).map(u128::to_be_bytes);
    let record = block.digits("rs_id").unwrap_or("").trim();
    let statement = u64::try_from(block.integer("ssn").unwrap_or(0)).ok()?;
    put(position, &[&scn("commit_scn")?, &scn("scn")?, record.as_bytes(), b"\0", &statement.to_be_bytes()])
}
