//! The examples of `docs/formats` run: their files are written, their commands are typed.

use std::path::Path;
use std::process::Command;

/// The lines of every block of a console in a document.
fn consoles(document: &str) -> Vec<Vec<&str>> {
    let mut out = Vec::new();
    let mut lines = document.lines();
    while lines.any(|line| line == "```console") {
        out.push(lines.by_ref().take_while(|line| *line != "```").collect());
    }
    out
}

/// Writes what `cat` shows and types the other commands; what they said.
fn run(console: &[&str], dir: &Path) -> Vec<String> {
    let mut said = Vec::new();
    let mut lines = console.iter().peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}"));
        let mut rest = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            rest.push(*line);
        }
        if let Some(file) = command.strip_prefix("cat ") {
            let path = dir.join(file);
            path.parent().map(std::fs::create_dir_all).transpose().unwrap();
            std::fs::write(path, rest.join("\n") + "\n").unwrap();
            continue;
        }
        let typed = std::iter::once(command).chain(rest).collect::<Vec<_>>().join("\n");
        let typed = typed.replace("asof ", concat!("'", env!("CARGO_BIN_EXE_asof"), "' "));
        let output = Command::new("sh").arg("-ec").arg(&typed).current_dir(dir).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{typed}\n{stderr}");
        said.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    said
}

#[test]
fn examples_of_formats_run_and_put_nothing_aside() {
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats");
    let mut ran = 0;
    for entry in std::fs::read_dir(documents).unwrap() {
        let path = entry.unwrap().path();
        for console in consoles(&std::fs::read_to_string(&path).unwrap()) {
            let dir = tempfile::tempdir().unwrap();
            let said = run(&console, dir.path());
            assert!(!said.is_empty(), "{}: an example without a command", path.display());
            for text in said {
                assert!(
                    text.contains(" 0 quarantined") || !text.contains("delivered"),
                    "{}: {text}",
                    path.display()
                );
            }
            ran += 1;
        }
    }
    assert!(ran >= 3, "{ran} examples");
}
