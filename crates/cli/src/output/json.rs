//! JSON.
//!
//! An answer is an object: `{"op":"sum","dtype":"f64","shape":[],"value":6}`.
//! `dtype` is the type of the value, `value` is nested as `shape` says, and
//! the two numbers of `minmax` and `argminmax` are an object of their own:
//! `{"min":1,"max":9}`. Several answers are a list, or lines; with several
//! arrays each has a `name`. `missing` counts rows without a value, if there
//! were any. A `stats` record is one object with a member for each operation.
//!
//! Dates and times are strings, as ISO 8601 has them, and their `dtype` is `timestamp[us]`.
//! NaN and infinities, for which JSON has no numbers, are the strings `"NaN"`,
//! `"Infinity"` and `"-Infinity"`; a value that does not exist is `null`.

use crate::number::Style;
use crate::printable::printable_json;
use crate::report::{Array, Field, OpAnswer, Report};
use std::io::{Result, Write};

/// One document.
pub(super) fn write(report: &Report, hex: bool, out: &mut dyn Write) -> Result<()> {
    let objects = objects(report);
    if let [object] = &objects[..] {
        write_object(object, report, hex, out)?;
    } else {
        for (i, object) in objects.iter().enumerate() {
            out.write_all(if i == 0 { b"[" } else { b",\n " })?;
            write_object(object, report, hex, out)?;
        }
        out.write_all(b"]")?;
    }
    writeln!(out)
}

/// One object on each line.
pub(super) fn write_lines(report: &Report, hex: bool, out: &mut dyn Write) -> Result<()> {
    objects(report).iter().try_for_each(|object| {
        write_object(object, report, hex, out)?;
        writeln!(out)
    })
}

/// A string as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    printable_json(&serde_json::Value::from(text).to_string()).into_owned()
}

/// The text of a key: a string, or where it is not UTF-8 `{"hex":"ff00"}`, its bytes.
pub(super) fn key(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => quoted(text),
        Err(_) => {
            let hex: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{{\"hex\":\"{hex}\"}}")
        }
    }
}

/// What becomes an object: a record, or one answer of an array.
type Object<'a> = (&'a Array, Option<&'a OpAnswer>);

fn objects(report: &Report) -> Vec<Object<'_>> {
    if report.as_record {
        return report.arrays.iter().map(|array| (array, None)).collect();
    }
    report
        .arrays
        .iter()
        .flat_map(|array| array.answers.iter().map(move |answer| (array, Some(answer))))
        .collect()
}

fn write_object(
    &(array, answer): &Object<'_>,
    report: &Report,
    hex: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let style = Style::json(hex);
    out.write_all(b"{")?;
    if report.is_named() {
        write!(out, "\"name\":{},", quoted(&array.name))?;
    }
    match answer {
        Some(answer) => write_answer(array, answer, style, out)?,
        None => {
            for (i, field) in array.fields().iter().enumerate() {
                write!(out, "{}\"{}\":", if i == 0 { "" } else { "," }, field.name)?;
                write_nested(*field, &array.shape, &mut 0, style, out)?;
            }
        }
    }
    if array.missing > 0 {
        write!(out, ",\"missing\":{}", array.missing)?;
    }
    out.write_all(b"}")
}

fn write_answer(array: &Array, answer: &OpAnswer, style: Style, out: &mut dyn Write) -> Result<()> {
    let dtype = answer.column.as_ref().map(|column| match &answer.unit {
        Some(unit) if style == Style::Json => unit.type_name(),
        _ => column.numbers.dtype().to_string(),
    });
    write!(out, "\"op\":\"{}\",", answer.op)?;
    if let Some(dtype) = dtype {
        write!(out, "\"dtype\":{},", quoted(&dtype))?;
    }
    let shape: Vec<_> = array.shape.iter().map(usize::to_string).collect();
    write!(out, "\"shape\":[{}],\"value\":", shape.join(","))?;
    let fields: Vec<_> = answer.fields().collect();
    if let [field] = fields[..] {
        return write_nested(field, &array.shape, &mut 0, style, out);
    }
    for (i, field) in fields.into_iter().enumerate() {
        write!(out, "{}\"{}\":", if i == 0 { "{" } else { "," }, field.name)?;
        write_nested(field, &array.shape, &mut 0, style, out)?;
    }
    out.write_all(b"}")
}

/// Numbers nested in lists as `shape` says; `next` is the place of the first.
fn write_nested(
    field: Field<'_>,
    shape: &[usize],
    next: &mut usize,
    style: Style,
    out: &mut dyn Write,
) -> Result<()> {
    let Some((&len, inner)) = shape.split_first() else {
        let text = field.text(*next, style).unwrap_or_else(|| "null".into());
        *next += 1;
        return out.write_all(text.as_bytes());
    };
    out.write_all(b"[")?;
    for i in 0..len {
        if i > 0 {
            out.write_all(b",")?;
        }
        write_nested(field, inner, next, style, out)?;
    }
    out.write_all(b"]")
}
