//! How fast a file decodes on one core, without storing anything:
//! `cargo run --release --example decode_rate -- FILE [FORMAT]`.

use asofdb::change::Decoded;
use asofdb::source::{FileOptions, FileSource};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: decode_rate FILE [FORMAT]")?;
    let bytes = std::fs::metadata(&file)?.len();
    let format = args.next().map(|f| f.parse()).transpose()?;
    let mut source = FileSource::open(&[file], FileOptions { format, ..FileOptions::default() }, Vec::new())?;
    let (mut cells, mut messages, mut quarantined) = (0u64, 0u64, 0u64);
    let from = Instant::now();
    let mut more = true;
    while more {
        more = source.read(100_000, &mut |_, decoded| {
            messages += 1;
            match decoded {
                Decoded::Changes(changes) => {
                    cells += changes.iter().map(|c| c.image.len() as u64).sum::<u64>()
                }
                Decoded::Ignored(_) | Decoded::Repeat(_) => {}
                Decoded::Quarantine(_) => quarantined += 1,
            }
        })?;
        source.take_positions();
    }
    let seconds = from.elapsed().as_secs_f64();
    println!(
        "{messages} messages ({quarantined} quarantined), {cells} cells, {:.0} messages/s, {:.0} MB/s",
        messages as f64 / seconds,
        bytes as f64 / seconds / 1e6
    );
    Ok(())
}
