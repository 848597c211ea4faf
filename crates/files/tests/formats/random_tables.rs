//! Tables of every kind against what their cells say, read in one pass.

use crate::common::*;
use crate::thorough::cases;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use warpfold::{Op, Partial, Reduction, Rules, Scalar, Threads, Value};
use warpfold_core::DType;
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{ColumnSelector, Format, OpenOptions, open};

const TOKENS: [&str; 6] = ["", "NA", "N/A", "NULL", "null", "<NA>"];
const OPS: [Op; 7] = [Op::Sum, Op::Var, Op::Min, Op::Max, Op::ArgMin, Op::ArgMax, Op::CountNan];

/// What a column is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Small,
    Signed,
    Natural,
    Huge,
    Decimal,
    LateDecimal,
    Zeros,
    Missing,
    Text,
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind::Small,
    Kind::Signed,
    Kind::Natural,
    Kind::Huge,
    Kind::Decimal,
    Kind::LateDecimal,
    Kind::Zeros,
    Kind::Missing,
    Kind::Text,
];

/// The text of a cell; `None` is missing.
pub(crate) fn cell(kind: Kind, last: bool, r: u64) -> Option<String> {
    if r.is_multiple_of(5) && kind != Kind::LateDecimal || kind == Kind::Missing {
        return None;
    }
    let big = r >> 3;
    Some(match kind {
        Kind::Small => format!("{}{}", ["", "+", "-", "00"][(r % 4) as usize], big % 1000),
        Kind::Signed => (r as i64).to_string(),
        Kind::Natural => r.to_string(),
        Kind::Huge => format!("{r}{}", big % 7),
        Kind::Decimal if r.is_multiple_of(7) => big.to_string(),
        Kind::Decimal => format!("{:e}", f64::from_bits(r)),
        Kind::LateDecimal if last => ["0.5", "nan", "inf", "1e3"][(r % 4) as usize].into(),
        Kind::LateDecimal if r % 6 == 1 => "-0".into(),
        Kind::LateDecimal => (big as i64).to_string(),
        Kind::Zeros => ["-0", "0", "+0", "1"][(r % 4) as usize].into(),
        Kind::Missing => unreachable!(),
        Kind::Text => format!("t{}", big % 100),
    })
}

/// How a table is written.
#[derive(Clone, Debug)]
struct Style {
    delimiter: char,
    header: bool,
    crlf: bool,
    bom: bool,
    last_end: bool,
    quotes: u64,
}

fn written(cells: &[Vec<Option<String>>], style: &Style) -> String {
    let mut text = String::from(if style.bom { "\u{feff}" } else { "" });
    let end = if style.crlf { "\r\n" } else { "\n" };
    let (width, rows) = (cells.len(), cells[0].len());
    if style.header {
        let names: Vec<String> = (0..width).map(|i| format!("c{i}")).collect();
        text += &(names.join(&style.delimiter.to_string()) + end);
    }
    let mut state = style.quotes;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 33
    };
    for row in 0..rows {
        for (i, column) in cells.iter().enumerate() {
            if i > 0 {
                text.push(style.delimiter);
            }
            let quoted = !style.quotes.is_multiple_of(3) && next() % 4 == 1;
            let cell = match &column[row] {
                Some(cell) if cell.starts_with('t') && quoted => {
                    format!(
                        "{cell}{}\"\"{}x",
                        style.delimiter,
                        if next() % 2 == 1 { "\n" } else { "" }
                    )
                }
                Some(cell) => cell.clone(),
                None => TOKENS[(next() % 6) as usize].into(),
            };
            // An empty line is a row only under a header.
            let alone = width == 1 && cell.is_empty() && (!style.header || row + 1 == rows);
            text += &if quoted || alone { format!("\"{cell}\"") } else { cell };
        }
        if row + 1 < rows || style.last_end {
            text += end;
        }
    }
    text
}

/// What a column is, by the cells alone.
enum Expected {
    Int(DType, Vec<Option<i128>>),
    Float(Vec<Option<f64>>),
    Refused,
}

fn expected(cells: &[Option<String>]) -> Expected {
    let number = |c: &Option<String>| c.as_ref().map(|c| c.parse::<f64>().unwrap());
    let integer = |c: &Option<String>| c.as_ref().map(|c| c.parse::<i128>().ok()).transpose_ok();
    let integers: Option<Vec<Option<i128>>> = cells.iter().map(integer).collect();
    match integers {
        Some(n) if n.iter().any(Option::is_some) => {
            let (low, high) = n.iter().flatten().fold((0, 0), |(l, h), &x| (x.min(l), x.max(h)));
            if low >= i64::MIN.into() && high <= i64::MAX.into() {
                Expected::Int(DType::I64, n)
            } else if low >= 0 && high <= u64::MAX.into() {
                Expected::Int(DType::U64, n)
            } else {
                Expected::Refused
            }
        }
        _ => Expected::Float(cells.iter().map(number).collect()),
    }
}

trait TransposeOk<T> {
    fn transpose_ok(self) -> Option<Option<T>>;
}

impl<T> TransposeOk<T> for Option<Option<T>> {
    /// A missing cell is fine, one that is no integer is not.
    fn transpose_ok(self) -> Option<Option<T>> {
        match self {
            None => Some(None),
            Some(inner) => inner.map(Some),
        }
    }
}

fn check(column: &[Option<String>], got: &Partial, name: usize) -> Result<(), TestCaseError> {
    let rules = Rules::new().wrap(true);
    let one = |op| got.finish_op(op, &rules).ok();
    let missing = column.iter().filter(|c| c.is_none()).count() as u64;
    prop_assert_eq!(got.missing(), missing, "column {}", name);
    let places = |order: &dyn Fn(usize, usize) -> bool, present: &[usize]| {
        present.iter().copied().reduce(|best, i| if order(i, best) { i } else { best })
    };
    let whole = |reduction: warpfold::Result<Partial>| reduction.unwrap();
    match expected(column) {
        Expected::Refused => prop_assert!(false, "column {} should be refused", name),
        Expected::Int(dtype, values) => {
            prop_assert_eq!(got.dtype(), dtype, "column {}", name);
            let present: Vec<usize> = (0..values.len()).filter(|&i| values[i].is_some()).collect();
            let v = |i: usize| values[i].unwrap();
            let memory = if dtype == DType::I64 {
                let all: Vec<i64> = present.iter().map(|&i| v(i) as i64).collect();
                whole(Reduction::new(OPS).partial(&all, 0))
            } else {
                let all: Vec<u64> = present.iter().map(|&i| v(i) as u64).collect();
                whole(Reduction::new(OPS).partial(&all, 0))
            };
            for op in [Op::Sum, Op::Var, Op::Min, Op::Max, Op::CountNan] {
                prop_assert_eq!(one(op), memory.finish_op(op, &rules).ok(), "{} of {}", op, name);
            }
            let at = [places(&|i, b| v(i) < v(b), &present), places(&|i, b| v(i) > v(b), &present)];
            check_places(got, at, name)?;
        }
        Expected::Float(values) => {
            prop_assert_eq!(got.dtype(), DType::F64, "column {}", name);
            let present: Vec<usize> = (0..values.len()).filter(|&i| values[i].is_some()).collect();
            let v = |i: usize| values[i].unwrap();
            let all: Vec<f64> = present.iter().map(|&i| v(i)).collect();
            let memory = whole(Reduction::new(OPS).partial(&all, 0));
            for op in [Op::Sum, Op::Var, Op::Min, Op::Max, Op::CountNan] {
                let (a, b) = (one(op), memory.finish_op(op, &rules).ok());
                prop_assert_eq!(format!("{a:?}"), format!("{b:?}"), "{} of {}", op, name);
            }
            let at = match present.iter().find(|&&i| v(i).is_nan()) {
                Some(&i) => [Some(i), Some(i)],
                None => {
                    [places(&|i, b| v(i) < v(b), &present), places(&|i, b| v(i) > v(b), &present)]
                }
            };
            check_places(got, at, name)?;
        }
    }
    Ok(())
}

fn check_places(got: &Partial, at: [Option<usize>; 2], name: usize) -> Result<(), TestCaseError> {
    for (op, at) in [Op::ArgMin, Op::ArgMax].into_iter().zip(at) {
        let found = got.states()[0].iter().find_map(|s| s.finish(op, &Rules::default()).ok());
        let expected = at.map(|i| Value::One(Scalar::from_bits(DType::U64, i as u64)));
        prop_assert_eq!(found, expected, "{} of {}", op, name);
    }
    Ok(())
}

/// The columns of joined tables, in one pass; through pipes or from files.
fn reduced(
    dir: &Dir,
    texts: &[String],
    columns: &[usize],
    style: &Style,
    (chunk, threads, pipe): (Option<usize>, usize, bool),
) -> warpfold_files::Result<Vec<Partial>> {
    let selectors = columns.iter().map(|i| ColumnSelector::Range(i + 1, i + 1)).collect();
    let options = OpenOptions {
        // A text without a digit or a line feed is not told from other bytes.
        format: Some(Format::Csv),
        columns: selectors,
        header: Some(style.header),
        delimiter: Some(style.delimiter as u8),
        chunk,
        ..OpenOptions::default()
    };
    let mut arrays: Vec<Inputs> = columns.iter().map(|_| Inputs::default()).collect();
    let mut writers = Vec::new();
    for (i, text) in texts.iter().enumerate() {
        let sources = if pipe {
            let (path, writer, reader) = piped(text);
            let sources = open(&path, &options)?;
            writers.push((writer, reader));
            sources
        } else {
            open(dir.file(&format!("t{i}.csv"), text), &options)?
        };
        arrays.iter_mut().zip(sources).for_each(|(array, source)| array.items.push(source));
    }
    let question = Reduction::new(OPS).threads(Threads::Exactly(threads));
    stream::partials(arrays, &question, 0, None, &Silent)
}

/// A pipe with a name that gives a text.
fn piped(text: &str) -> (String, std::thread::JoinHandle<()>, std::io::PipeReader) {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let text = text.to_owned();
    // Whoever reads may stop early.
    let sender = std::thread::spawn(move || drop(writer.write_all(text.as_bytes())));
    (format!("/dev/fd/{}", reader.as_raw_fd()), sender, reader)
}

fn style() -> impl Strategy<Value = Style> {
    let delimiter = prop::sample::select(vec![',', ';', '\t', '|']);
    (delimiter, any::<[bool; 4]>(), any::<u64>()).prop_map(
        |(delimiter, [header, crlf, bom, last_end], quotes)| Style {
            delimiter,
            header,
            crlf,
            bom,
            last_end,
            quotes,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    #[cfg(target_os = "linux")]
    fn tables_are_what_their_cells_say(
        kinds in prop::collection::vec(prop::sample::select(KINDS.to_vec()), 1..7),
        seeds in prop::collection::vec(any::<u64>(), 1..60),
        style in style(),
        chunk in prop::sample::select(vec![None, Some(1), Some(40), Some(300)]),
        threads in 1..4_usize,
        pipe in any::<bool>(),
        split in 0..60_usize,
    ) {
        let rows = seeds.len();
        let cells: Vec<Vec<Option<String>>> = (0..).zip(&kinds).map(|(i, &kind)| {
            let row = |(row, seed): (usize, &u64)| {
                let r = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15 + 2 * i);
                cell(kind, row + 1 == rows, r ^ r >> 29)
            };
            seeds.iter().enumerate().map(row).collect()
        }).collect();
        let numeric: Vec<usize> = (0..kinds.len()).filter(|&i| kinds[i] != Kind::Text).collect();
        prop_assume!(!numeric.is_empty());
        let at = split.clamp(1, rows);
        let part = |from: usize, to: usize| -> String {
            let some: Vec<Vec<_>> = cells.iter().map(|c| c[from..to].to_vec()).collect();
            written(&some, &style)
        };
        let mut texts = vec![part(0, at)];
        if at < rows {
            texts.push(part(at, rows));
        }
        let dir = Dir::new();
        let how = (chunk, threads, pipe);
        let refused = numeric.iter().any(|&i| matches!(expected(&cells[i]), Expected::Refused));
        match reduced(&dir, &texts, &numeric, &style, how) {
            Ok(partials) => {
                prop_assert!(!refused);
                for (partial, &i) in partials.iter().zip(&numeric) {
                    check(&cells[i], partial, i)?;
                }
            }
            Err(error) => {
                let hint = error.hint().unwrap_or_default();
                prop_assert!(refused, "{} ({})\n{}", error, hint, texts.join("----\n"));
                prop_assert!(hint.contains("--dtype f64"), "{} {}", error, hint);
            }
        }
    }
}
