//! What was measured, in Markdown.

use super::record::Trial;
use crate::experiments::Table;

/// Text in which nothing is a mark of Markdown or of a table.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '\n' | '\r' => out.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// A table.
pub(super) fn table(table: &Table) -> String {
    let table = table.without_empty_columns();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(table.columns.iter().map(|name| escaped(name)).collect());
    out += &format!("|{}\n", "---|".repeat(table.columns.len()));
    for row in &table.rows {
        out += &line(row.iter().map(|cell| escaped(&cell.shown())).collect());
    }
    out
}

/// An experiment: what was expected, what came of it, its tables. Charts are
/// pictures, which have their own files.
#[must_use]
pub fn trial_markdown(trial: &Trial) -> String {
    let outcome = &trial.outcome;
    let mut out = format!("## {}\n\n{}.\n\n", escaped(&trial.experiment), escaped(&trial.title));
    out += &format!("- expected: {}\n", escaped(&trial.expectation));
    for (word, texts) in
        [("found", &outcome.findings), ("skipped", &outcome.skipped), ("wrong", &outcome.wrong)]
    {
        for text in texts {
            out += &format!("- {word}: {}\n", escaped(text));
        }
    }
    for numbers in &outcome.tables {
        out += &format!("\n{}\n\n{}", escaped(&numbers.title), table(numbers));
    }
    for drawing in &outcome.drawings {
        out += &format!("\n```text\n{}\n```\n", drawing.trim_end());
    }
    out
}
