use super::*;
use std::path::Path;

/// Runs statements on a database of SQLite, which is made if it is not there.
pub(crate) fn sqlite(path: &Path, sql: &str) {
    use sqlx::Connection;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

fn address(text: &str) -> Address {
    Address::parse(text, None).unwrap()
}

fn fault(text: &str) -> String {
    let e = Address::parse(text, None).unwrap_err();
    format!("{} / {}", e.message(), e.hints().join(" / "))
}

#[test]
fn addresses_are_read_and_shown_without_secrets() {
    let a = address("postgresql://ann%40x:p%2Fw@db.example:5433/shop?sslmode=require");
    assert_eq!((a.user.as_deref(), a.password.as_deref()), (Some("ann@x"), Some("p/w")));
    assert_eq!(a.shown(), "postgres://db.example:5433/shop");
    assert_eq!(a.options, [("sslmode".to_owned(), "require".to_owned())]);
    assert_eq!(address("mariadb://u@[::1]/d").shown(), "mysql://[::1]:3306/d");
    assert_eq!(address("mysql://u:a@b:c@h/d").password.as_deref(), Some("a@b:c"));
    assert_eq!(address("sqlite:./a%20b.db").shown(), "sqlite:a b.db");
    assert_eq!(address("sqlite:///x/a.db").database, "/x/a.db");
    assert!(is_address("sqlite:a") && is_address("postgres://h/d"));
    assert!(!is_address("postgres.ndjson") && !is_address("dir/sqlite:a") && !is_address("mysql:a"));
}

#[test]
fn no_error_of_an_address_shows_a_password() {
    for text in [
        "postgres://u:canary@h:port/d",
        "postgres://u:can/canary@h/d",
        "postgres://u:1/canary@h/d",
        "postgres://u:canary@h",
        "postgres://u:canary@h/d?pasword=canary",
        "mysql://u:canary@h/d/e",
    ] {
        assert!(!fault(text).contains("canary"), "{}", fault(text));
    }
    assert!(fault("sqlite:").contains("names no file"));
    assert!(fault("postgres://h/d?sslmod=require").contains("sslmode"));
}

#[test]
fn a_password_is_taken_out_of_whatever_the_database_says() {
    let a = Address::parse("postgres://u:can%40ary@h/d", Some("second")).unwrap();
    assert_eq!(a.redacted("x can%40ary can@ary second y"), "x *** *** *** y");
    assert_eq!(a.password.as_deref(), Some("second"));
    assert_eq!(format!("{a:?}"), "Address(postgres://h:5432/d)");
}

#[test]
fn names_are_quoted() {
    assert_eq!(statement::quoted("a\"b; DROP", '"'), "\"a\"\"b; DROP\"");
    assert_eq!(statement::quoted("a`b", '`'), "`a``b`");
}

#[test]
fn values_are_exact() {
    use asofdb_storage::value::Value;
    use value::{Kind, single, value};
    assert_eq!(value(Kind::Int, "9223372036854775807"), Value::Int(i64::MAX));
    let big = Value::Decimal { unscaled: 18446744073709551615, scale: 0 };
    assert_eq!(value(Kind::Int, "18446744073709551615"), big);
    let money = Value::Decimal { unscaled: -12345678901234567890, scale: 2 };
    assert_eq!(value(Kind::Decimal, "-123456789012345678.90"), money);
    assert_eq!(value(Kind::Decimal, "NaN"), Value::Text("NaN".into()));
    assert_eq!(single(0.1), Value::Float(0.1));
    assert_eq!(value(Kind::Instant, "1970-01-01 00:00:00.000001+00"), Value::Instant(1));
    assert_eq!(value(Kind::Timestamp, "1970-01-01 00:00:01"), Value::Timestamp(1_000_000));
    assert_eq!(value(Kind::Timestamp, "infinity"), Value::Text("infinity".into()));
    assert_eq!(value(Kind::Date, "0000-00-00"), Value::Text("0000-00-00".into()));
    assert_eq!(value(Kind::Hex, "00ff"), Value::Bytes(vec![0, 255]));
}
