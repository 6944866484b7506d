//! Console sessions: what people type and what they see. `TRYCMD=overwrite` writes them anew; read
//! the difference before you keep it.

#[test]
fn console_sessions() {
    let cases = trycmd::TestCases::new();
    cases.default_bin_name("asof").env("NO_COLOR", "1").env("ASOF_STORE", "").env("COLUMNS", "100");
    cases.case("tests/cmd/*.md");
    cases.run();
}
