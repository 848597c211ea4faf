//! Bare values, for shells.
//!
//! One number stands alone. Several are told apart by what precedes them: the
//! array's name, the operation, both, with tabs between. Arrays are printed a
//! row on each line with a blank line between slices, as NumPy's `savetxt`
//! does.

use crate::number::Style;
use crate::printable::printable;
use crate::report::{Array, Field, Indices, OpAnswer, Report};
use std::io::{Result, Write};

pub(super) fn write(report: &Report, hex: bool, out: &mut dyn Write) -> Result<()> {
    let style = Style::text(hex);
    for array in &report.arrays {
        // A line end in a name would make two lines of one.
        let name = printable(&array.name);
        for (i, answer) in array.answers.iter().enumerate() {
            let mut keys = Vec::new();
            if report.is_named() {
                keys.push(&*name);
            }
            if array.answers.len() > 1 {
                keys.push(answer.op.name());
            }
            if array.shape.is_empty() {
                keys.iter().try_for_each(|key| write!(out, "{key}\t"))?;
                writeln!(out, "{}", values(answer, 0, style))?;
            } else {
                if !keys.is_empty() {
                    if i > 0 {
                        writeln!(out)?;
                    }
                    writeln!(out, "# {}", keys.join(" "))?;
                }
                write_array(array, answer, style, out)?;
            }
        }
        if report.as_record && array.missing > 0 {
            if report.is_named() {
                write!(out, "{name}\t")?;
            }
            writeln!(out, "missing\t{}", array.missing)?;
        }
    }
    Ok(())
}

/// The number of output `index`, or both of two.
fn values(answer: &OpAnswer, index: usize, style: Style) -> String {
    let text = |field: Field<'_>| field.text(index, style).unwrap_or_else(|| "-".into());
    answer.fields().map(text).collect::<Vec<_>>().join(" ")
}

/// A row on each line. The two numbers of a pair make a row of their own, as
/// if they were a last axis.
fn write_array(array: &Array, answer: &OpAnswer, style: Style, out: &mut dyn Write) -> Result<()> {
    let paired = answer.fields().count() > 1;
    let mut previous: Option<Vec<usize>> = None;
    let row_axes = array.shape.len() - usize::from(!paired);
    for (place, index) in Indices::of(&array.shape).enumerate() {
        let row = &index[..row_axes];
        if let Some(previous) = previous {
            let slice = row_axes.saturating_sub(1);
            if previous[..slice] != row[..slice] {
                out.write_all(b"\n\n")?;
            } else if previous[..row_axes] != *row {
                out.write_all(b"\n")?;
            } else {
                out.write_all(b" ")?;
            }
        }
        out.write_all(values(answer, place, style).as_bytes())?;
        previous = Some(index);
    }
    if previous.is_some() { writeln!(out) } else { Ok(()) }
}
