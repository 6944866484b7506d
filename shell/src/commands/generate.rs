//! What is made from the command line itself: completions and manual pages.

use super::{Manner, print};
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::outcome::{Failure, Outcome};
use clap::{Command, CommandFactory};
use std::path::Path;

/// Writes the completions of a shell to stdout.
pub fn completions(args: &CompletionsArgs) -> Outcome {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "asof", &mut out);
    print(&String::from_utf8_lossy(&out))
}

/// Writes manual pages: one for `asof`, one for every command.
pub fn man(args: &ManArgs, manner: Manner) -> Outcome {
    let failed = |e: &std::io::Error| Failure::io(&format!("cannot write to {}", args.dir.display()), e);
    std::fs::create_dir_all(&args.dir).map_err(|e| failed(&e))?;
    let written = pages(&command(), &args.dir).map_err(|e| failed(&e))?;
    manner.say(&format!("{written} pages in {0}; try: man -l {0}/asof.1", args.dir.display()));
    Ok(())
}

/// The command line without what is not supported yet.
fn command() -> Command {
    let mut all = Cli::command();
    all.build();
    let shown: Vec<Command> = all.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    let mut kept = Command::new("asof")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown.into_iter().filter(|c| c.get_name() != "help"));
    if let Some(about) = all.get_about() {
        kept = kept.about(about.clone());
    }
    if let Some(after) = all.get_after_help() {
        kept = kept.after_help(after.clone());
    }
    kept.args(all.get_arguments().filter(|a| !["help", "version"].contains(&a.get_id().as_str())).cloned())
}

fn pages(command: &Command, dir: &Path) -> std::io::Result<usize> {
    let mut written = 0;
    let mut write = |name: String, command: Command| {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        written += 1;
        std::fs::write(dir.join(format!("{name}.1")), page)
    };
    write("asof".to_owned(), command.clone())?;
    for sub in command.get_subcommands() {
        let name = format!("asof-{}", sub.get_name());
        write(name, sub.clone())?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_offered_has_a_page_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let written = pages(&command(), dir.path()).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), written);
        let all = Cli::command();
        let mut expected: Vec<String> = all
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(|c| format!("asof-{}.1", c.get_name()))
            .chain(["asof.1".to_owned()])
            .collect();
        expected.sort();
        assert_eq!(names, expected);
        let ingest = std::fs::read_to_string(dir.path().join("asof-ingest.1")).unwrap();
        assert!(ingest.contains(".TH asof-ingest 1") && ingest.contains("\\-\\-valid\\-end"), "{ingest}");
    }

    #[test]
    fn completions_offer_what_there_is() {
        for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut command(), "asof", &mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("ingest") && text.contains("read-uncommitted"), "{shell}");
            assert!(!text.contains("retention"), "{shell}");
        }
    }
}
