//! The `source` block: table, times, and the position in the source's log.

use crate::change::{SourceRef, Token};
use crate::format::block::Block;
use crate::format::json::{Member, Raw, RawText};
use crate::format::scratch::Scratch;

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
        for part in [connector, "/", name, "/", server_id, "/", detail] {
            out.push_str(part);
        }
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
    let committed = block.raw("sequence").and_then(|raw| first_of_two(&raw)).or_else(|| {
        let sequence = block.text("sequence", scratch)?;
        let [first, _] = serde_json::from_str::<[Option<String>; 2]>(sequence).ok()?;
        first?.parse().ok()
    });
    let committed = committed.unwrap_or(lsn);
    let ordered = |n: i64| ((n as u64) ^ (1 << 63)).to_be_bytes();
    put(position, &[&ordered(committed), &ordered(lsn)])
}

/// The first of two numbers in quotes, as the connector writes them into a text; `None` if they may be
/// written otherwise.
fn first_of_two(raw: &Raw<'_>) -> Option<i64> {
    let Raw::Text(RawText { text, escaped: true }) = raw else { return None };
    let (first, second) = text.strip_prefix(r#"[\""#)?.strip_suffix(r#"\"]"#)?.split_once(r#"\",\""#)?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(first) && digits(second)).then(|| first.parse().ok()).flatten()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json;
    use crate::format::scratch::ScratchBuffer;

    #[test]
    fn sequences_of_postgresql_are_read_alike_however_they_are_written() {
        let cases = [
            (r#""[\"12\",\"34\"]""#, 12),
            (r#""[ \"12\",\"34\"]""#, 12),
            (r#""[\"12\", \"34\"]""#, 12),
            (r#""[null,\"34\"]""#, 34),
            (r#""[\"\",\"34\"]""#, 34),
            (r#""[\"12\",\"34\",\"5\"]""#, 34),
            (r#""[\"99999999999999999999\",\"34\"]""#, 34),
            (r#""[\"-3\",\"34\"]""#, -3),
            (r#""[\"\u0031\",\"34\"]""#, 1),
            (r#""[\"12\",\"34\"""#, 34),
            ("null", 34),
        ];
        for (sequence, committed) in cases {
            let text = format!(r#"{{"connector":"postgresql","lsn":34,"sequence":{sequence}}}"#);
            let mut members = Vec::new();
            json::members(&text, &mut members).expect("JSON");
            let mut buffer = ScratchBuffer::default();
            let origin = origin(&members, &mut buffer.scratch(4096));
            let ordered = |n: i64| ((n as u64) ^ (1 << 63)).to_be_bytes();
            let position = [ordered(committed), ordered(34)].concat();
            let token = origin.token.expect("a position");
            assert_eq!((token.position, token.server), (&position[..], "postgresql///"), "{sequence}");
        }
    }
}
