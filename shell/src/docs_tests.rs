//! Keeps docs/shell.md in step with the command line and the table of meta commands.

use crate::args::Cli;
use crate::repl::meta;
use clap::CommandFactory;
use std::fmt::Write;

const MARK: &str =
    "<!-- generated from the command line and the table of meta commands: do not edit below -->\n";

fn generated() -> String {
    let mut out = String::from(MARK);
    out.push_str("\n## Meta commands\n\n| command | does |\n|---|---|\n");
    for m in &meta::TABLE {
        let also = m.names[1..].iter().map(|n| format!(", `\\{n}`")).collect::<String>();
        let usage = format!("\\{} {}", m.names[0], m.arguments).trim_end().replace('|', "\\|");
        let _ = writeln!(out, "| `{usage}`{also} | {} |", m.help.replace('|', "\\|"));
    }
    out.push_str("\n## Help of every command\n");
    let mut command = Cli::command().term_width(100);
    command.build();
    page(&mut out, &mut command, "asof");
    out
}

fn page(out: &mut String, command: &mut clap::Command, name: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(out, "\n### {name}\n\n```text\n{}\n```\n", lines.join("\n").trim());
    let names: Vec<String> = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
        .map(|c| c.get_name().to_owned())
        .collect();
    for sub in names {
        if let Some(found) = command.find_subcommand_mut(&sub) {
            let mut found = found.clone().term_width(100);
            page(out, &mut found, &format!("{name} {sub}"));
        }
    }
}

/// `ASOF_BLESS=1 cargo test -p asofdb-shell docs` writes the generated part anew.
#[test]
fn the_shell_document_is_in_step() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/shell.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (written, _) = text.split_once(MARK).expect("docs/shell.md has the mark");
    let wanted = format!("{written}{}", generated());
    if std::env::var_os("ASOF_BLESS").is_some() {
        std::fs::write(file, &wanted).unwrap();
    } else {
        assert!(
            text == wanted,
            "docs/shell.md is out of step: run ASOF_BLESS=1 cargo test -p asofdb-shell docs"
        );
    }
}
