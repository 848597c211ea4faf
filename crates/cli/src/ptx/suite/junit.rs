//! What a suite gave, as JUnit's XML: a test case for each test and schedule.

use super::document::Suite;
use super::{Case, Outcome};
use std::io::{Result, Write};

pub(super) fn write(suite: &Suite, outcome: &Outcome, out: &mut dyn Write) -> Result<()> {
    let failed = outcome.cases.iter().filter(|c| !c.passed()).count();
    let seconds: f64 = outcome.cases.iter().map(|c| c.seconds).sum();
    let (name, all) = (escaped(&suite.name), outcome.cases.len());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites tests=\"{all}\" failures=\"{failed}\" time=\"{seconds:.3}\">")?;
    writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{all}\" failures=\"{failed}\" errors=\"0\" time=\"{seconds:.3}\">"
    )?;
    for case in &outcome.cases {
        write_case(&name, case, out)?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn write_case(suite: &str, case: &Case, out: &mut dyn Write) -> Result<()> {
    let name = escaped(&format!("{} [{}]", case.test, case.schedule()));
    write!(
        out,
        "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{:.3}\"",
        case.seconds
    )?;
    if case.passed() {
        return writeln!(out, "/>");
    }
    writeln!(out, ">")?;
    for finding in case.faults() {
        let (kind, title) = (escaped(finding.kind), escaped(finding.title));
        let message = escaped(&finding.message);
        writeln!(out, "      <failure type=\"{kind}\" message=\"{title}\">{message}</failure>")?;
    }
    for failure in &case.failures {
        let text = escaped(failure);
        let first = escaped(failure.lines().next().unwrap_or_default());
        writeln!(out, "      <failure type=\"failed-test\" message=\"{first}\">{text}</failure>")?;
    }
    writeln!(out, "    </testcase>")
}

/// Text as XML has it; characters that XML cannot have become question marks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            c if c < ' ' => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_is_escaped() {
        assert_eq!(super::escaped("a<b> & \"c\"\u{1}\n"), "a&lt;b&gt; &amp; &quot;c&quot;?\n");
    }
}
