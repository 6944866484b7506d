//! Names of files and directories: tables, and partitions as Hive and all after it write them.

use crate::error::{Error, Result};
use std::fmt::Write;

/// What stands for NULL in the name of a partition.
const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";

/// Bytes that the name of a file may have on the usual file systems.
const NAME_BYTES_MAX: usize = 255;

/// Characters that have a meaning in paths or patterns, beside control characters.
const SPECIAL: &str = "\"#%'*/:=?\\{}[]^";

/// The name of the directory of one partition, `column=value`.
pub(crate) fn segment(column: &str, value: Option<&str>) -> Result<String> {
    let mut name = String::new();
    escape(column, &mut name);
    name.push('=');
    match value {
        None => name.push_str(NULL_NAME),
        // A text that looks like NULL must not be read as NULL.
        Some(NULL_NAME) => name.push_str("%5F_HIVE_DEFAULT_PARTITION__"),
        Some(value) => escape(value, &mut name),
    }
    if name.len() > NAME_BYTES_MAX {
        let start: String = name.chars().take(40).collect();
        return Err(Error::failed(format!(
            "the partition {start}... has a name of {} bytes, and {NAME_BYTES_MAX} is the most",
            name.len()
        ))
        .hint("partition by something shorter, such as left(column, 20) AS part"));
    }
    Ok(name)
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if c.is_ascii_control() || SPECIAL.contains(c) {
            let _ = write!(out, "%{:02X}", c as u32);
        } else {
            out.push(c);
        }
    }
}

/// The name of a table's directory: names of tables may hold anything, names of files may not.
pub(crate) fn file_stem(table: &str) -> String {
    let mut out = String::new();
    for c in table.chars() {
        match c {
            '.' if out.is_empty() => out.push_str("%2E"),
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') => out.push(c),
            c => {
                let mut bytes = [0; 4];
                for b in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "%{b:02X}");
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_named_as_hive_names_them() {
        let name = |value| segment("c", value).unwrap();
        assert_eq!(name(None), "c=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(name(Some("a/b=c d")), "c=a%2Fb%3Dc d");
        assert_eq!(name(Some("100%\n")), "c=100%25%0A");
        assert_eq!(name(Some("K\u{f6}ln \u{2192}")), "c=K\u{f6}ln \u{2192}");
        assert_ne!(name(Some(NULL_NAME)), name(None));
        assert_eq!(segment("a=b", Some("..")).unwrap(), "a%3Db=..");
    }

    #[test]
    fn names_that_no_file_system_takes_are_refused() {
        let e = segment("c", Some(&"x".repeat(254))).unwrap_err();
        assert!(e.message().contains("256 bytes") && !e.hints().is_empty(), "{e}");
        assert!(segment("c", Some(&"x".repeat(253))).is_ok());
    }

    #[test]
    fn names_of_tables_stay_in_their_directory() {
        assert_eq!(file_stem("../x/y z"), "%2E.%2Fx%2Fy%20z");
        assert_eq!(file_stem("orders"), "orders");
        assert_eq!(file_stem("shop.orders"), "shop.orders");
        assert_eq!(file_stem("m\u{fc}ll"), "m\u{fc}ll");
    }
}
