//! The change data feed of a Delta table. Versions are in order, rows within one are not: deletes and images
//! before an update come first, then inserts and images after it.

use super::shape::{Said, integer, ordered, sent, time};
use crate::change::{Column, Times, Token};
use crate::format::fields::{Reject, shortened};
use crate::format::options::{FormatOptions, OpWord};
use crate::format::scratch::Scratch;
use asofdb_storage::event::Op;
use asofdb_storage::value::Cell;

const WORDS: [(&str, OpWord); 4] = [
    ("insert", OpWord::Op(Op::Insert)),
    ("update_preimage", OpWord::PreImage),
    ("update_postimage", OpWord::Op(Op::Update)),
    ("delete", OpWord::Op(Op::Delete)),
];

/// Whether it is one of the feed.
pub fn is_change_type(word: &str) -> bool {
    WORDS.iter().any(|(w, _)| *w == word)
}

/// What a row says of itself; `None` for the image before an update.
///
/// # Errors
/// If it does not say what happened in which version.
pub fn said<'a>(
    options: &FormatOptions,
    columns: &[Column<'a>],
    scratch: &mut Scratch<'a>,
) -> Result<Option<Said<'a>>, Reject> {
    let Some(&Cell::Text(code)) = sent(columns, "_change_type") else {
        return Err(Reject::new("there is no kind of change (`_change_type`)")
            .hint("this is no row of a change data feed; --format json reads plain rows"));
    };
    let mapped = options.op_map.iter().find(|(word, _)| word == code).map(|(_, op)| *op);
    let op = match mapped.or_else(|| WORDS.iter().find(|(w, _)| *w == code).map(|(_, op)| *op)) {
        Some(OpWord::Op(op)) => op,
        Some(OpWord::PreImage) => return Ok(None),
        None => {
            return Err(Reject::new(format!("unknown kind of change `{}`", shortened(code)))
                .hint("they are insert, update_preimage, update_postimage and delete"));
        }
    };
    let version = integer(columns, "_commit_version").and_then(|v| i64::try_from(v).ok());
    let Some(version) = version.filter(|v| *v >= 0) else {
        return Err(Reject::new("there is no version (`_commit_version`)"));
    };
    let source = time(options, columns, "_commit_timestamp");
    let mut said = Said::new(op, Times { source, ..Times::default() });
    said.code = code;
    let phase = i64::from(op != Op::Delete);
    let mut position = [0; 9];
    position[..8].copy_from_slice(&ordered(version));
    position[8] = phase as u8;
    said.token = Some(Token { server: "delta", position: scratch.put(&position) });
    said.one_per_key = true;
    said.ties = [Some(Cell::Int(version)), Some(Cell::Int(phase))];
    Ok(Some(said))
}
