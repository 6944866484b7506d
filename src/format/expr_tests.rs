use super::*;
use asofdb_storage::value::Cell;

struct Row<'a>(&'a [(&'a str, Cell<'a>)]);

impl Fields for Row<'_> {
    fn field(&mut self, column: &str) -> Cell<'_> {
        self.0.iter().find(|(n, _)| *n == column).map_or(Cell::Unchanged, |(_, c)| *c)
    }
}

fn truth(text: &str) -> bool {
    let row = [
        ("op", Cell::Text("D")),
        ("n", Cell::Int(5)),
        ("price", Cell::Decimal { unscaled: 150, scale: 2 }),
        ("flag", Cell::Bool(true)),
        ("off", Cell::Text("false")),
        ("none", Cell::Null),
        ("order by", Cell::Text("a'b")),
        ("name", Cell::Text("Ann\u{e9}")),
    ];
    text.parse::<Expr>().expect(text).is_true(&mut Row(&row))
}

#[test]
fn conditions_hold_as_in_sql() {
    let cases = [
        ("op = 'D'", true),
        ("op = 'd'", false),
        ("op <> 'D' OR n >= 5", true),
        ("NOT op = 'D'", false),
        ("n = 5.0", true),
        ("price = 1.5", true),
        ("price > 1.49 and price < 1.51", true),
        ("n < 10", true),
        ("flag", true),
        ("off", false),
        ("off = 'true'", false),
        ("off = false", true),
        ("none = 1", false),
        ("none <> 1", false),
        ("not none = 1", false),
        ("none is null", true),
        ("missing IS NULL", true),
        ("op is not null", true),
        ("op in ('D', 'DELETE')", true),
        ("op not in ('I', 'U')", true),
        ("op not in ('I', NULL)", false),
        ("name like 'A%'", true),
        ("name like 'Ann_'", true),
        ("name like '%n'", false),
        ("name not like '_'", true),
        ("\"order by\" = 'a''b'", true),
        ("not (none = 1 and n = 6)", true),
        ("(op = 'X' or op = 'D') and n = 5", true),
        ("op = 'X' or op = 'D' and n = 6", false),
        ("5 = n", true),
        ("4 < n", true),
        ("n = n", true),
    ];
    for (text, expected) in cases {
        assert_eq!(truth(text), expected, "{text}");
    }
}

#[test]
fn broken_conditions_are_refused_in_words() {
    for text in
        ["", "op =", "op = 'D", "op in (a)", "op like n", "(op = 'D'", "op = 'D' x", "a ; b", "n = 1x"]
    {
        assert!(text.parse::<Expr>().is_err(), "{text}");
    }
    let deep = format!("{}op = 'D'{}", "(".repeat(100), ")".repeat(100));
    assert!(deep.parse::<Expr>().is_err());
}
