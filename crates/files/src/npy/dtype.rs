//! NumPy's type descriptions: `'<f8'`, or a list of fields.

use super::literal::Literal;
use crate::Endian;
use warpfold_core::DType;

/// One element of a type NumPy can describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// The description as in the file.
    pub(crate) text: String,
    /// Bytes of one element.
    pub(crate) size: u64,
    /// The type as we read it, or why we do not.
    pub(crate) read: Result<(DType, Endian), String>,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Where in the record it begins.
    pub(crate) offset: u64,
    pub(crate) scalar: Scalar,
}

/// The type of an array's items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Descr {
    Scalar(Scalar),
    Record { size: u64, fields: Vec<Field> },
}

impl Descr {
    pub(crate) fn from_literal(literal: &Literal) -> Result<Self, String> {
        match literal {
            Literal::Text(text) => Scalar::parse(text).map(Descr::Scalar),
            Literal::Sequence(items) => {
                let (size, fields) = record(items)?;
                Ok(Descr::Record { size, fields })
            }
            _ => Err("'descr' is neither a type nor a list of fields".into()),
        }
    }

    /// Bytes of one item.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Descr::Scalar(scalar) => scalar.size,
            Descr::Record { size, .. } => *size,
        }
    }
}

impl Scalar {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        // The name that ml_dtypes registers.
        if text == "bfloat16" {
            let read = Ok((DType::BF16, Endian::NATIVE));
            return Ok(Scalar { text: text.into(), size: 2, read });
        }
        let unknown = || format!("the type {text:?} is not known");
        let mut chars = text.chars();
        let (order, kind) = match chars.next() {
            Some(c @ ('<' | '>' | '|' | '=')) => (c, chars.next().ok_or_else(unknown)?),
            Some(c) => ('=', c),
            None => return Err(unknown()),
        };
        let endian = match order {
            '<' => Endian::Little,
            '>' => Endian::Big,
            _ => Endian::NATIVE,
        };
        // Dates carry a unit behind the size: M8[ns].
        let rest = chars.as_str();
        let digits = rest.split('[').next().unwrap_or(rest);
        let count: u64 = match digits {
            "" if kind == 'O' => 8,
            d if d.bytes().all(|b| b.is_ascii_digit()) => d.parse().map_err(|_| unknown())?,
            _ => return Err(unknown()),
        };
        let known = match (kind, count) {
            ('b', 1) | ('?', 1) => Ok(DType::Bool),
            ('i', 1) => Ok(DType::I8),
            ('i', 2) => Ok(DType::I16),
            ('i', 4) => Ok(DType::I32),
            ('i', 8) => Ok(DType::I64),
            ('u', 1) => Ok(DType::U8),
            ('u', 2) => Ok(DType::U16),
            ('u', 4) => Ok(DType::U32),
            ('u', 8) => Ok(DType::U64),
            ('f', 2) => Ok(DType::F16),
            ('f', 4) => Ok(DType::F32),
            ('f', 8) => Ok(DType::F64),
            ('f', _) => Err("floats of this width are not supported"),
            ('c', _) => Err("complex numbers are not supported"),
            ('m' | 'M', _) => Err(
                "dates and durations are not numbers: save a.view('i8'), in which NaT is the smallest integer",
            ),
            ('S' | 'a' | 'U', _) => Err("text is not a number"),
            ('V', _) => Err("bytes without a type"),
            ('O', _) => Err("Python objects are pickled, not stored as numbers"),
            _ => return Err(unknown()),
        };
        let size = if kind == 'U' { count.checked_mul(4).ok_or_else(unknown)? } else { count };
        let read = known.map(|d| (d, endian)).map_err(String::from);
        Ok(Scalar { text: text.into(), size, read })
    }
}

/// The fields of a record and its size.
fn record(items: &[Literal]) -> Result<(u64, Vec<Field>), String> {
    let mut size = 0_u64;
    let mut fields = Vec::new();
    for item in items {
        let Literal::Sequence(parts) = item else {
            return Err("a field is not written as (name, type)".into());
        };
        let (name, kind, shape) = match &parts[..] {
            [name, kind] => (name, kind, None),
            [name, kind, shape] => (name, kind, Some(shape)),
            _ => return Err("a field is not written as (name, type)".into()),
        };
        let name = match name {
            Literal::Text(name) => name,
            // (title, name)
            Literal::Sequence(both) => match &both[..] {
                [_, Literal::Text(name)] => name,
                _ => return Err("a field's name is not text".into()),
            },
            _ => return Err("a field's name is not text".into()),
        };
        let mut scalar = match kind {
            Literal::Text(text) => Scalar::parse(text)?,
            Literal::Sequence(inner) => {
                let (size, _) = record(inner)?;
                let read = Err("a record within a record is not supported".into());
                Scalar { text: "record".into(), size, read }
            }
            _ => return Err(format!("the type of field {name:?} is not understood")),
        };
        if let Some(shape) = shape {
            scalar = subarray(scalar, shape)?;
        }
        // Nameless void fields are padding.
        let padding = name.is_empty() && scalar.text.trim_start_matches('|').starts_with('V');
        let offset = size;
        size = size.checked_add(scalar.size).ok_or("the record is too large")?;
        if !padding {
            fields.push(Field { name: name.clone(), offset, scalar });
        }
    }
    Ok((size, fields))
}

/// A field that is an array in itself: skipped over, not read.
fn subarray(element: Scalar, shape: &Literal) -> Result<Scalar, String> {
    let dims = match shape {
        Literal::Int(_) => core::slice::from_ref(shape),
        Literal::Sequence(dims) => dims,
        _ => return Err("a field's shape is not understood".into()),
    };
    let mut size = element.size;
    for dim in dims {
        let Literal::Int(n) = dim else {
            return Err("a field's shape is not understood".into());
        };
        let n = u64::try_from(*n).map_err(|_| format!("a field's shape holds {n}"))?;
        size = size.checked_mul(n).ok_or("a field is too large")?;
    }
    if dims.is_empty() {
        return Ok(element);
    }
    let read = Err("an array within a record is not supported".into());
    Ok(Scalar { text: format!("array of {}", element.text), size, read })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::literal;

    fn descr(text: &str) -> Result<Descr, String> {
        Descr::from_literal(&literal::parse(text).unwrap())
    }

    #[test]
    fn every_number_type_in_both_orders() {
        for (text, dtype, size) in [
            ("b1", DType::Bool, 1),
            ("i1", DType::I8, 1),
            ("i2", DType::I16, 2),
            ("i4", DType::I32, 4),
            ("i8", DType::I64, 8),
            ("u1", DType::U8, 1),
            ("u2", DType::U16, 2),
            ("u4", DType::U32, 4),
            ("u8", DType::U64, 8),
            ("f2", DType::F16, 2),
            ("f4", DType::F32, 4),
            ("f8", DType::F64, 8),
        ] {
            for (order, endian) in
                [("<", Endian::Little), (">", Endian::Big), ("|", Endian::NATIVE)]
            {
                let scalar = Scalar::parse(&format!("{order}{text}")).unwrap();
                assert_eq!((scalar.size, scalar.read), (size, Ok((dtype, endian))), "{text}");
            }
        }
    }

    #[test]
    fn fields_lie_one_after_the_other_over_padding_and_arrays() {
        let text = "[('a', '<f4'), ('', '|V4'), (('title', 'b'), '<i8', (2, 3)), \
                    ('s', [('x', '<f8'), ('y', '<u2')]), ('c', '>u2'), ('u', '<U3'), ('d', '|b1')]";
        let Descr::Record { size, fields } = descr(text).unwrap() else { panic!() };
        let seen: Vec<_> = fields
            .iter()
            .map(|f| (f.name.as_str(), f.offset, f.scalar.size, f.scalar.read.is_ok()))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", 0, 4, true),
                ("b", 8, 48, false),
                ("s", 56, 10, false),
                ("c", 66, 2, true),
                ("u", 68, 12, false),
                ("d", 80, 1, true),
            ]
        );
        assert_eq!(size, 81);
    }

    #[test]
    fn absurd_types_are_refused_without_overflow() {
        for text in [
            "'<q8'",
            "''",
            "'<'",
            "'<f'",
            "'<U9999999999999999999'",
            "'<U9999999999999999999999999'",
            "[('a', '<f8', (9999999999, 9999999999))]",
            "[('a', '|V18446744073709551615'), ('b', '<f8')]",
            "[('a', '<f8', -1)]",
            "[('a',)]",
            "[3]",
            "3",
        ] {
            assert!(descr(text).is_err(), "{text}");
        }
    }
}
