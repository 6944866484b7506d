//! Positions in the binary log.

use crate::change::Token;
use crate::format::block::Block;
use crate::format::scratch::Scratch;
use std::fmt::Write;

/// The position that a message carries if its source is told to send it: the number at the end of the
/// file's name, then the place in the file, both as integers. The rest of the name belongs to the server.
///
/// The number of the transaction (`xid`) is no position: a transaction gets it with its first statement, so
/// that of two that change one row the later one may have the lower number.
pub fn token<'a>(block: &Block<'_, 'a>, scratch: &mut Scratch<'a>) -> Option<Token<'a>> {
    let (file, place) = block.text("position", scratch)?.rsplit_once(':')?;
    let (base, number) = file.rsplit_once('.')?;
    let number: u64 = number.parse().ok()?;
    let place: u64 = place.parse().ok().filter(|p| *p > 0)?;
    let server_id = block.digits("server_id").unwrap_or("");
    let server = scratch.put_str(|out| {
        let written = write!(out, "maxwell/{server_id}/{base}");
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    });
    let mut position = [0; 16];
    position[..8].copy_from_slice(&number.to_be_bytes());
    position[8..].copy_from_slice(&place.to_be_bytes());
    Some(Token { server, position: scratch.put(&position) })
}
