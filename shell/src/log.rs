//! What `ASOF_LOG` asks for: lines on stderr about what the command does.

use std::sync::OnceLock;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Nothing,
    Info,
    Debug,
}

fn level_of(text: &str) -> Level {
    match text.to_ascii_lowercase().as_str() {
        "debug" | "trace" => Level::Debug,
        "info" => Level::Info,
        _ => Level::Nothing,
    }
}

fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| level_of(&std::env::var("ASOF_LOG").unwrap_or_default()))
}

fn tell(at: Level, text: impl FnOnce() -> String) {
    if level() >= at {
        let name = if at == Level::Debug { "debug" } else { "info" };
        crate::terminal::err(&format!("{name}: {}\n", crate::render::escape::visible(&text())));
    }
}

/// Stores that are opened.
pub fn info(text: impl FnOnce() -> String) {
    tell(Level::Info, text);
}

/// Statements that are run.
pub fn debug(text: impl FnOnce() -> String) {
    tell(Level::Debug, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_named() {
        assert_eq!(
            [level_of("DEBUG"), level_of("info"), level_of("")],
            [Level::Debug, Level::Info, Level::Nothing]
        );
    }
}
