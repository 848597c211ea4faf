//! Aligned tables, for people.

use crate::number::Style;
use crate::printable::printable;
use crate::report::{Array, Field, Indices, Report};
use std::io::{Result, Write};

pub(super) fn write(report: &Report, hex: bool, out: &mut dyn Write) -> Result<()> {
    let style = Style::text(hex);
    let cell = |field: &Field<'_>, place| field.text(place, style).unwrap_or_else(|| "-".into());
    if let [array] = &report.arrays[..]
        && report.is_scalar()
    {
        let mut rows: Vec<_> =
            array.fields().iter().map(|f| vec![f.name.to_string(), cell(f, 0)]).collect();
        if report.as_record && array.missing > 0 {
            rows.push(vec!["missing".into(), array.missing.to_string()]);
        }
        return writeln!(out, "{}", grid(&["op", "value"], rows, 1));
    }
    let dims = report.arrays.iter().map(|a| a.shape.len()).max().unwrap_or(0);
    let with_missing = report.as_record && report.has_missing();
    let mut header: Vec<String> = Vec::new();
    header.extend(report.is_named().then(|| "name".into()));
    header.extend((0..dims).map(|axis| format!("i{axis}")));
    let fields = report.arrays.first().map(Array::fields).unwrap_or_default();
    header.extend(fields.iter().map(|f| f.name.to_string()));
    header.extend(with_missing.then(|| "missing".into()));
    let mut rows = Vec::new();
    for array in &report.arrays {
        let fields = array.fields();
        for (place, index) in Indices::of(&array.shape).enumerate() {
            let mut row = Vec::with_capacity(header.len());
            row.extend(report.is_named().then(|| array.name.clone()));
            row.extend((0..dims).map(|i| index.get(i).map_or_else(String::new, usize::to_string)));
            row.extend(fields.iter().map(|f| cell(f, place)));
            row.extend(with_missing.then(|| array.missing.to_string()));
            rows.push(row);
        }
    }
    writeln!(out, "{}", grid(&header, rows, usize::from(report.is_named())))
}

/// A table whose columns, but for the first `names`, are numbers.
pub(crate) fn grid<S: AsRef<str>>(header: &[S], rows: Vec<Vec<String>>, names: usize) -> String {
    let header: Vec<String> = header.iter().map(|name| printable(name.as_ref()).into()).collect();
    let printed = |row: Vec<String>| row.iter().map(|cell| printable(cell).into()).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(printed).collect();
    let widest = |column: usize| {
        let cells = rows.iter().chain([&header]).filter_map(|row| row.get(column));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(widest).collect();
    let rule = |[left, line, cross, right]: [&str; 4]| {
        let lines: Vec<String> = widths.iter().map(|width| line.repeat(width + 2)).collect();
        left.to_string() + &lines.join(cross) + right
    };
    let line = |row: &Vec<String>| {
        let mut cells = Vec::with_capacity(widths.len());
        for (column, &wide) in widths.iter().enumerate() {
            let cell = row.get(column).map_or("", String::as_str);
            let padding = " ".repeat(wide - width(cell));
            let [before, after] = if column < names { ["", &padding] } else { [&padding, ""] };
            cells.push(format!(" {before}{cell}{after} "));
        }
        format!("│{}│", cells.join("┆"))
    };
    let top = [rule(["┌", "─", "┬", "┐"]), line(&header), rule(["╞", "═", "╪", "╡"])];
    let bottom = rule(["└", "─", "┴", "┘"]);
    let lines: Vec<String> = top.into_iter().chain(rows.iter().map(line)).chain([bottom]).collect();
    lines.join("\n")
}

/// How many columns of a terminal a text takes.
fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match c as u32 {
            // What stands on or beside the character before.
            0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
            // The scripts of East Asia in squares, and pictures.
            0x1100..=0x115f
            | 0x2e80..=0x303e
            | 0x3041..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0xffe0..=0xffe6
            | 0x1f300..=0x1f64f
            | 0x1f900..=0x1f9ff
            | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(String::from).to_vec();
        let rows = vec![row(["日本", "1"]), row(["e\u{301}", "12345"]), vec!["x\ny".into()]];
        let expected = "┌──────┬───────┐\n│ key  ┆ value │\n╞══════╪═══════╡\n│ 日本 ┆     1 │\n\
            │ e\u{301}    ┆ 12345 │\n│ x\\ny ┆       │\n└──────┴───────┘";
        assert_eq!(grid(&["key", "value"], rows, 1), expected);
        assert_eq!(grid(&["op"], Vec::new(), 1), "┌────┐\n│ op │\n╞════╡\n└────┘");
    }
}
