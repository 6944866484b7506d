//! The examples of `docs/sql.md` are run: every `sql` block must be answered, every `sql-error` block
//! must fail with the message that follows it as a comment.

use super::fixture::Fixture;
use asofdb::sql::split_script;

fn blocks<'d>(document: &'d str, kind: &str) -> Vec<&'d str> {
    let open = format!("```{kind}\n");
    document.split(open.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_examples_of_the_document_run() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sql.md");
    let document = std::fs::read_to_string(path).unwrap();
    let f = Fixture::new();
    let good = blocks(&document, "sql");
    let mut statements = 0;
    for block in good {
        for statement in split_script(block, 1 << 20).unwrap() {
            f.rows(&statement.text);
            statements += 1;
        }
        f.rows("RESET ALL");
    }
    assert!(statements > 25, "only {statements} examples were found");
    let bad = blocks(&document, "sql-error");
    assert!(bad.len() > 3);
    for block in bad {
        let (sql, message) =
            block.trim().rsplit_once("\n-- error: ").unwrap_or_else(|| panic!("no message: {block}"));
        assert_eq!(f.error(sql).message, message.lines().next().unwrap(), "{sql}");
    }
}

/// The lists of the document are those of the code.
#[test]
fn the_document_names_every_function_and_setting() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sql.md");
    let document = std::fs::read_to_string(path).unwrap();
    let f = Fixture::new();
    for setting in f.rows("SHOW ALL") {
        let name = setting.split('|').next().unwrap();
        assert!(document.contains(&format!("`{name}`")), "{name}");
    }
    let hint = f.error("SELECT * FROM zzzzzz()").hint.unwrap();
    for function in hint.trim_start_matches("there are: ").split(", ") {
        assert!(document.contains(&format!("`{function}(")), "{function}");
    }
    for column in f
        .runtime
        .block_on(f.session.run("SELECT * FROM history('person')", &Default::default()))
        .unwrap()
        .schema
        .fields()
        .iter()
        .skip(2)
    {
        assert!(document.contains(column.name()), "{column}");
    }
}
