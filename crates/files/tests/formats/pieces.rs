//! Pieces of a text column, merged, against a single pass over all of them.

use crate::common::*;
use crate::random_tables::{KINDS, Kind, cell};
use crate::thorough::cases;
use proptest::prelude::*;
use warpfold::{Error, Op, Partial, Reduction, Threads};
use warpfold_core::DType;
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{ColumnSelector, OpenOptions, open};

/// Operations that floats have, too, and of which some know positions.
const OPS: [Op; 12] = [
    Op::Sum,
    Op::Norm1,
    Op::SumSq,
    Op::Var,
    Op::MinMax,
    Op::ArgMinMax,
    Op::Max,
    Op::Count,
    Op::CountNonzero,
    Op::CountNan,
    Op::Prod,
    Op::LogSumExp,
];
/// Those that only integers have.
const BITS: [Op; 3] = [Op::Sum, Op::Xor, Op::ArgMax];

fn text(cells: &[Option<String>]) -> String {
    let lines = cells.iter().map(|cell| cell.as_deref().unwrap_or("NA").to_string() + "\n");
    "c\n".to_string() + &lines.collect::<String>()
}

/// The states of some cells, the first of which has index `start`, as they come
/// back from their bytes.
fn partial(
    dir: &Dir,
    cells: &[Option<String>],
    ops: &[Op],
    (start, dtype, chunk): (usize, Option<DType>, Option<usize>),
) -> warpfold_files::Result<Partial> {
    let columns = vec![ColumnSelector::Name("c".into())];
    let options = OpenOptions { columns, dtype, chunk, ..OpenOptions::default() };
    let items = open(dir.file("t.csv", text(cells)), &options)?;
    let question = Reduction::new(ops.iter().copied()).threads(Threads::Exactly(2));
    let inputs = Inputs { items, others: Vec::new() };
    let partial = stream::partial(inputs, &question, start as u64, None, &Silent)?;
    let back = Partial::from_bytes(&partial.to_bytes()).unwrap();
    assert_eq!(back, partial);
    Ok(back)
}

/// Merges as the command line does: what does not go with the others yet, later.
fn merged(mut parts: Vec<Partial>) -> warpfold::Result<Partial> {
    let mut merged = parts.remove(0);
    let mut later = Vec::new();
    for part in parts {
        let before = merged.clone();
        match merged.merge(&part) {
            Err(Error::StateMismatch { what: "element type", .. }) => {
                assert_eq!(merged, before, "an error changes nothing");
                later.push(part);
            }
            done => done?,
        }
    }
    later.iter().try_for_each(|part| merged.merge(part))?;
    Ok(merged)
}

/// Cells of which each piece has its own kind.
fn drawn(kinds: &[(Kind, usize)], seed: u64) -> Vec<Vec<Option<String>>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state ^ state >> 29
    };
    let piece = |&(kind, rows): &(Kind, usize)| {
        (0..rows).map(|row| cell(kind, row + 1 == rows, next())).collect()
    };
    kinds.iter().map(piece).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn merged_pieces_are_the_single_pass(
        kinds in prop::collection::vec(
            (prop::sample::select(KINDS.iter().copied().filter(|k| *k != Kind::Text).collect::<Vec<_>>()), 1..30_usize),
            1..5,
        ),
        seed in any::<u64>(),
        order in any::<u64>(),
        bits in any::<bool>(),
        chunk in prop::sample::select(vec![None, Some(20)]),
    ) {
        let dir = Dir::new();
        let ops = if bits { &BITS[..] } else { &OPS[..] };
        let pieces = drawn(&kinds, seed);
        let whole = partial(&dir, &pieces.concat(), ops, (0, None, chunk));
        let mut start = 0;
        let mut parts = Vec::new();
        for cells in &pieces {
            let part = match partial(&dir, cells, ops, (start, None, chunk)) {
                // What its own integers do not fit is refused, unless somebody
                // says that they are floats.
                Err(error) if !bits => {
                    let hint = error.hint().unwrap_or_default();
                    prop_assert!(hint.contains("--dtype f64"), "{} {}", error, hint);
                    partial(&dir, cells, ops, (start, Some(DType::F64), chunk)).unwrap()
                }
                Err(_) => {
                    prop_assert!(whole.is_err());
                    return Ok(());
                }
                Ok(part) => part,
            };
            parts.push(part);
            start += cells.len();
        }
        let turn = order as usize % parts.len();
        parts.rotate_left(turn);
        if order & 1 << 40 != 0 {
            parts.reverse();
        }
        match (whole, merged(parts)) {
            (Ok(whole), Ok(merged)) => prop_assert_eq!(merged.to_bytes(), whole.to_bytes()),
            (Ok(_), Err(error)) => prop_assert!(false, "{}", error),
            // Where somebody said that a piece is of floats, all are.
            (Err(_), Ok(merged)) => prop_assert_eq!(merged.dtype(), DType::F64),
            (Err(_), Err(Error::StateMismatch { .. })) => {}
            (Err(_), Err(error)) => prop_assert!(false, "{}", error),
        }
    }
}

fn cells(list: &str) -> Vec<Option<String>> {
    list.split(' ').map(|cell| (cell != "_").then(|| cell.to_string())).collect()
}

/// Beyond 2^53 a float rounds each integer, which the sum of the integers does
/// not show.
#[test]
fn a_decimal_in_another_piece_rounds_each_integer() {
    let dir = Dir::new();
    let part = |list: &str, start| partial(&dir, &cells(list), &OPS, (start, None, None)).unwrap();
    let whole = part("9007199254740993 9007199254740993 -0 0.5", 0);
    let mut merged = part("9007199254740993 9007199254740993 -0", 0);
    assert_eq!(merged.dtype(), DType::I64);
    merged.merge(&part("0.5", 3)).unwrap();
    assert_eq!(merged, whole);
    assert_eq!(merged.dtype(), DType::F64);
}

#[test]
fn negative_and_large_integers_do_not_merge_without_a_decimal() {
    let dir = Dir::new();
    let part = |list: &str, start| partial(&dir, &cells(list), &OPS, (start, None, None)).unwrap();
    let (negative, large) = (part("-1 5", 0), part("18446744073709551615", 2));
    let mut refused = negative.clone();
    let error = refused.merge(&large).unwrap_err().to_string();
    assert!(error.contains("i64, some negative") && error.contains("u64"), "{error}");
    assert_eq!(refused, negative);
    // A piece with a decimal tells that all are floats.
    let mut settled = part("0.5", 3);
    settled.merge(&large).unwrap();
    settled.merge(&negative).unwrap();
    assert_eq!(settled, part("-1 5 18446744073709551615 0.5", 0));
    // Without a value there is nothing to differ in.
    let mut none = part("_ _", 3);
    assert_eq!(none.dtype(), DType::F64);
    none.merge(&large).unwrap();
    assert_eq!(none.dtype(), DType::U64);
}

/// A column of a known type settles the others, or refuses them.
#[test]
fn settled_states_take_what_they_can_hold() {
    let dir = Dir::new();
    let part =
        |list: &str, start, dtype| partial(&dir, &cells(list), &OPS, (start, dtype, None)).unwrap();
    let open = part("1 2", 0, None);
    for (dtype, fits) in
        [(DType::I64, true), (DType::U64, true), (DType::F64, true), (DType::F32, false)]
    {
        let settled = part("3", 2, Some(dtype));
        let (mut left, mut right) = (open.clone(), settled.clone());
        assert_eq!(left.merge(&settled).is_ok(), fits, "{dtype}");
        assert_eq!(right.merge(&open).is_ok(), fits, "{dtype}");
        if fits {
            assert_eq!((left.dtype(), &left), (dtype, &right));
            assert_eq!(left, part("1 2 3", 0, Some(dtype)), "{dtype}");
        }
    }
    let mut negative = part("-1", 0, None);
    assert!(negative.merge(&part("3", 1, Some(DType::U64))).is_err());
}

/// Every cut and every changed byte of the longer form is an error.
#[test]
fn damage_is_noticed() {
    let dir = Dir::new();
    for list in ["1 2", "_", "18446744073709551615"] {
        let bytes = partial(&dir, &cells(list), &[Op::Sum, Op::ArgMax], (0, None, None))
            .unwrap()
            .to_bytes();
        let open = bytes.windows(4).position(|w| w == b"OPEN").unwrap();
        for at in 0..bytes.len() {
            // Without what may be otherwise, the states are those of a type that is known.
            assert_eq!(Partial::from_bytes(&bytes[..at]).is_ok(), at == open, "{list} cut to {at}");
            for bit in [1, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= bit;
                assert!(Partial::from_bytes(&bad).is_err(), "{list} changed at {at}");
            }
        }
        let longer = [&bytes[..], b"x"].concat();
        assert!(Partial::from_bytes(&longer).unwrap_err().to_string().contains("1 bytes follow"));
        let twice = [&bytes[..], &bytes[open..]].concat();
        assert!(Partial::from_bytes(&twice).is_err());
    }
}
