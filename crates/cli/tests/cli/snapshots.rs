//! Help texts and sessions, word for word: `tests/cmd`.
//!
//! After a change that is meant, `TRYCMD=overwrite cargo test -p warpfold-cli`
//! writes them anew.

#[test]
fn sessions() {
    trycmd::TestCases::new().env("COLUMNS", "100").env("NO_COLOR", "1").case("tests/cmd/*.md");
}
