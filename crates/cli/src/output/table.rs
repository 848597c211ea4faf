//! Aligned tables, for people.

use crate::number::Style;
use crate::printable::printable;
use crate::report::{Array, Field, Indices, Report};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
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
pub(crate) fn grid<S: AsRef<str>>(header: &[S], rows: Vec<Vec<String>>, names: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().map(AsRef::as_ref));
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for column in table.column_iter_mut().skip(names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
