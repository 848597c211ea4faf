//! Numbers finished on the device, on the interpreter with all checks on and on
//! the GPU if there is one, against what core makes of the states of the same
//! elements: equal bits.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::data::{PATTERNS, from_f64};
use crate::common::machine::device_of_this_machine;
use crate::common::views::{Layout, Placed, Sample, reference, shape};
use crate::thorough::{self, up_to};
use num_bigint::BigInt;
use std::sync::Arc;
use warpfold_core::element::{bf16, f16};
use warpfold_core::op::{AnyState, Kind, NanPolicy, Numbers, Op, Rules, Value};
use warpfold_core::{DType, Element, Scalar, with_element};
use warpfold_cuda::engine::{Engine, ForcedWalk, Number, Shape};
use warpfold_cuda::{Buffer, Device, Limits, Sim, Stream};
use warpfold_ptx::machine::{Checks, Options, Schedule};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::BF16, DType::F16];

/// The operations that devices finish, and mostly without payloads.
const OPS: [Op; 17] = [
    Op::Sum,
    Op::Mean,
    Op::Norm1,
    Op::Min,
    Op::Max,
    Op::Count,
    Op::CountNonzero,
    Op::CountNan,
    Op::Any,
    Op::All,
    Op::ArgMin,
    Op::ArgMax,
    Op::Range,
    Op::NormInf,
    Op::And,
    Op::Or,
    Op::Xor,
];

/// Those that ask where.
const POSITIONS: [Op; 2] = [Op::ArgMin, Op::ArgMax];

/// Those whose answers the ends of a type make.
const ENDS: [Op; 5] = [Op::Range, Op::NormInf, Op::And, Op::Or, Op::Xor];

/// Those of squares, which are finished from payloads where rows are long: a
/// block for each output.
const SQUARES: [Op; 4] = [Op::SumSq, Op::Norm2, Op::Var, Op::Std];

/// One of these operations that is for the type.
fn one_of(ops: &[Op], dtype: DType, random: &mut Random) -> Op {
    loop {
        let op = ops[random.below(ops.len() as u64) as usize];
        if op.supports(dtype) {
            return op;
        }
    }
}

/// All operations for a case, or one, by its number.
fn some_of(ops: &[Op], number: usize) -> &[Op] {
    if thorough::thorough() { ops } else { &ops[number % ops.len()..][..1] }
}

fn interpreter(schedule: Schedule) -> Sim {
    Sim::new(Options { schedule, checks: Checks::ALL, ..Options::default() })
}

fn sim(schedule: Schedule) -> Arc<dyn Device> {
    Arc::new(interpreter(schedule))
}

/// An engine whose rows and columns go to their own kernels, small tables too.
fn tables(device: Arc<dyn Device>) -> Engine {
    let shape = Shape { walk: Some(ForcedWalk::Tables), ..Shape::default() };
    Engine::with_shape(device, shape)
}

/// What core answers; `None` if some output has no answer.
fn finished(Number { op, omits_nan, ddof }: Number, states: &[AnyState]) -> Option<Vec<Scalar>> {
    let nan = if omits_nan { NanPolicy::Omit } else { NanPolicy::Propagate };
    let rules = Rules::default().nan(nan).ddof(ddof.into());
    let finish = |s: &AnyState| s.finish(op, &rules).ok().map(Value::first);
    states.iter().map(finish).collect()
}

pub(super) fn check(
    engine: &Engine,
    number: impl Into<Number>,
    sample: &Sample,
    reduced: &[bool],
    note: &str,
) {
    let device = &**engine.device();
    let number @ Number { op, omits_nan, ddof } = number.into();
    let states = reference([Some(sample), None], reduced, op.kind(), 0);
    let expected = finished(number, &states);
    let placed = Placed::in_junk(device, sample);
    // SAFETY: the array was placed here, and nobody writes to it.
    let got = unsafe { engine.numbers_of_view(&[number], &placed.view, reduced, Stream::DEFAULT) };
    let got = got.map(|mut all| all.remove(0));
    let (dtype, layout) = (sample.dtype, &sample.layout);
    let omit = if omits_nan { " without NaNs" } else { "" };
    let note =
        || format!("{op} of {dtype}{omit}, ddof {ddof}, {layout:?} over {reduced:?}, {note}");
    let got = match got {
        Ok(got) => got,
        Err(error) => panic!("{error}: {}", note()),
    };
    let Some(expected) = expected.filter(|e| !e.is_empty() && !sample.layout.shape.contains(&0))
    else {
        assert!(got.is_none(), "{}", note());
        return;
    };
    let got = got.unwrap_or_else(|| panic!("no numbers: {}", note()));
    assert_eq!(got.dtype(), op.answer_type(sample.dtype), "{}", note());
    assert_eq!(got.len(), expected.len(), "{}", note());
    for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert!(got == *expected, "output {i}: {got:?}, not {expected:?}, {}", note());
    }
}

const LENS: [usize; 16] = [0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 129, 256, 513];
const MOST: usize = 5000;

/// Random arrays of so many elements at most, each over every set of its axes.
fn sweep(engines: &[Engine], seed: u64, rounds: usize, most: usize, ops: &[Op]) {
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let shape = shape(&mut random, &LENS, 4, most);
        let layout = if random.below(2) == 0 {
            Layout::contiguous(&shape, dtype.size())
        } else {
            Layout::random(&shape, dtype.size(), &mut random)
        };
        let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        for set in 0..1u32 << shape.len() {
            let reduced: Vec<bool> = (0..shape.len()).map(|i| set >> i & 1 == 1).collect();
            let engine = &engines[random.below(engines.len() as u64) as usize];
            let op = one_of(ops, dtype, &mut random);
            check(engine, op, &sample, &reduced, &format!("{pattern}, round {round}"));
        }
    }
}

/// Rows of every length that lanes share differently, at every alignment, with
/// and without gaps.
fn rows(engine: &Engine, seed: u64, keep: impl Fn(usize) -> bool) {
    let mut random = Random(thorough::seed(seed));
    let mut turn = 0usize;
    for dtype in DType::ALL {
        let size = dtype.size();
        let vector = 16 / size;
        let around = [vector, 2 * vector, 4 * vector, 8 * vector, 32 * vector, 128 * vector];
        let lens = around.into_iter().flat_map(|n| [n - 1, n, n + 1]).chain([1, 2, 3, 5, 7, 100]);
        // Rows that a warp reads in several parts, and one that is too long for that.
        let lens = lens.chain([132 * vector, 200 * vector + 3, 512 * vector, 512 * vector + 1]);
        for len in lens.filter(|&n| n > 0) {
            for _ in 0..3 {
                turn += 1;
                if !keep(turn) {
                    continue;
                }
                let most = (6000 / len).clamp(2, 150) as u64;
                let shape = [1 + random.below(most) as usize, len];
                let gap = [0, 0, 0, 1, vector, 3][random.below(6) as usize];
                let before = random.below(2 * vector as u64) as usize;
                let layout = Layout::table(shape, size, before, gap);
                let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
                let sample = Sample::new(dtype, layout, pattern, &mut random);
                for ops in [&OPS[..], &SQUARES] {
                    let op = one_of(ops, dtype, &mut random);
                    check(engine, op, &sample, &[false, true], pattern);
                }
            }
        }
    }
}

#[test]
fn short_rows() {
    rows(&tables(sim(Schedule::Lockstep)), 21, |turn| turn % up_to(1, 13) == 0);
}

#[test]
fn short_rows_in_random_order() {
    let engine = tables(sim(Schedule::Random { seed: 9 }));
    rows(&engine, 22, |turn| turn % up_to(9, 71) == 0);
}

/// Tables of few columns and many, around strips, tiles and the rows of a chunk,
/// at every alignment, with and without gaps, alone or side by side, and with
/// rows along two axes.
fn columns(engines: &[Engine], seed: u64, keep: impl Fn(usize) -> bool) {
    const ROWS: [usize; 18] =
        [2, 3, 5, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 257, 300, 2000, 9000];
    let mut random = Random(thorough::seed(seed));
    let mut turn = 0usize;
    for dtype in DType::ALL {
        let size = dtype.size();
        let vector = 16 / size;
        let counts = (1..70).step_by(3).chain((1..4).map(|n| n * vector));
        let around = [16 * vector, 32 * vector, 33 * vector, 64 * vector];
        for count in counts.chain(around.into_iter().flat_map(|n| [n - 1, n, n + 1])) {
            turn += 1;
            if !keep(turn) {
                continue;
            }
            let most = (9000 / count).max(2);
            let rows = ROWS[random.below(ROWS.len() as u64) as usize].min(most);
            let before = [0, 0, 1, vector, 3][random.below(5) as usize];
            let gap = [0, 0, 0, 1, vector, 3][random.below(6) as usize];
            let few = 1 + random.below(3) as usize;
            let (shape, reduced) = match random.below(6) {
                0 => (vec![few, rows, count], vec![false, true, false]),
                1 => (vec![2 + rows / 9, few, 7, count], vec![true, false, true, false]),
                2 => (vec![few, 2, rows.div_ceil(3), count], vec![false, false, true, false]),
                _ => (vec![rows, count], vec![true, false]),
            };
            let layout = Layout::columns(&shape, size, before, gap);
            let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
            let sample = Sample::new(dtype, layout, pattern, &mut random);
            let engine = &engines[random.below(engines.len() as u64) as usize];
            // Sums are what can go wrong.
            let some = if random.below(2) == 0 { 3 } else { OPS.len() };
            let op = one_of(&OPS[..some], dtype, &mut random);
            check(engine, op, &sample, &reduced, pattern);
            if dtype.is_float() {
                let op = one_of(&SQUARES, dtype, &mut random);
                check(engine, op, &sample, &reduced, pattern);
            }
        }
    }
}

/// Columns of different scales side by side, scales that change on the way down
/// or from row to row; in every second column the largest elements cancel.
fn scales_of_columns(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, binades: i32, make: impl Fn(f64) -> T) {
        let mut random = Random(0x5ca1e);
        // In the first one a thread has several chunks, and blocks share columns
        // where there are more.
        for shape in [[800, 256 / size_of::<T>()], [150, 9], [14, 300], [40, 70]] {
            let [rows, columns] = shape;
            let scales: [&dyn Fn(usize, usize) -> i32; 5] = [
                &|_, c| binades * (c as i32 % 3 - 1),
                &|r, _| if r < rows / 2 { -binades } else { binades },
                &|r, _| if r < rows / 2 { binades } else { -binades },
                &|r, _| binades / 3 * (r as i32 % 7 - 3),
                &|r, c| if r % 64 == c % 64 { binades } else { 0 },
            ];
            for (way, scale) in scales.iter().enumerate() {
                // The widest table takes long: every scale has one of its ways there.
                if rows == 800 && way != binades as usize % 5 && !thorough::thorough() {
                    continue;
                }
                let mut items = vec![0.0; rows * columns];
                for c in 0..columns {
                    let most = (0..rows).map(|r| scale(r, c)).max().unwrap_or(0);
                    // One that is still to be taken back.
                    let mut open: Option<f64> = None;
                    for r in 0..rows {
                        let mut x = (random.unit() - 0.5) * 2f64.powi(scale(r, c));
                        if c % 2 == 0 && way > 0 && scale(r, c) == most {
                            (x, open) = match open {
                                Some(before) => (-before, None),
                                None => (x, Some(x)),
                            };
                        }
                        items[r * columns + c] = x;
                    }
                }
                let items: Vec<T> = items.into_iter().map(&make).collect();
                let sample = Sample::of(Layout::table(shape, size_of::<T>(), 0, 0), &items);
                for op in [Op::Sum, one_of(&SQUARES, T::DTYPE, &mut random)] {
                    check(engine, op, &sample, &[true, false], &format!("scales, way {way}"));
                }
            }
        }
    }
    ask(engine, 60, |x| x as f32);
    ask(engine, 25, |x| x as f32);
    ask(engine, 300, |x| x);
    ask(engine, 30, |x| x);
    ask(engine, 60, bf16::from_f64);
    ask(engine, 9, f16::from_f64);
}

/// Where the blocks of a column meet, nothing is left for those that come
/// later.
fn columns_again(engine: &Engine) {
    let mut random = Random(0xa9a1);
    for (number, dtype) in DType::ALL.into_iter().enumerate() {
        // Fourteen strips, so that there are enough rows for several blocks.
        let layout = Layout::table([600, 14 * 16 / dtype.size()], dtype.size(), 0, 0);
        // One of them for each type, or both.
        let patterns = ["signed", "random bits"].into_iter().skip(number % up_to(1, 2));
        for pattern in patterns.step_by(up_to(1, 2)) {
            let sample = Sample::new(dtype, layout.clone(), pattern, &mut random);
            let ops = [Op::ArgMin, Op::Sum, Op::Max, Op::ArgMax, Op::CountNonzero, Op::Min];
            let more = [Op::NormInf, Op::Or, Op::And, Op::Xor, Op::Or];
            let squares = SQUARES.into_iter().filter(|_| dtype.is_float());
            let ops = ops.into_iter().chain(more).chain(squares).filter(|op| op.supports(dtype));
            for op in ops.skip(number % up_to(1, 4)).step_by(up_to(1, 4)) {
                check(engine, op, &sample, &[true, false], "again");
            }
        }
    }
}

/// What tests of squares want to know of a float.
#[derive(Clone, Copy)]
struct Squared {
    /// The largest number below 2.
    full: f64,
    /// How many binades below the largest of the first rows an element may be
    /// that a window holds.
    apart: i32,
    /// How much larger than those below 2 elements may be that it holds, too.
    grown: f64,
    /// A number whose square is halfway between two neighbours.
    tie: f64,
}

/// Calls `ask` with all floats.
macro_rules! for_floats {
    ($ask:ident, $of:expr) => {
        let [d, f, b, h] = [53, 24, 8, 11].map(|bits| 2.0 - 2f64.powi(1 - bits));
        $ask::<f64>($of, Squared { full: d, apart: 17, grown: 32.0, tie: 94_906_267.0 });
        $ask::<f32>($of, Squared { full: f, apart: 20, grown: 32.0, tie: 4097.0 });
        $ask::<bf16>($of, Squared { full: b, apart: 32, grown: 2048.0, tie: 17.0 });
        $ask::<f16>($of, Squared { full: h, apart: 12, grown: 4096.0, tie: 47.0 });
    };
}

/// Columns whose sums of squares are halfway between two neighbours but for one
/// element that is so many binades below the others, in any row: it has to count
/// however far that is. Where rows are 40, blocks share them.
fn squares_of_far_scales(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, Squared { tie, .. }: Squared) {
        let mut random = Random(0xfa4);
        for rows in [2, 9, 16, 17, 40, 70] {
            let columns = 100;
            let mut items = vec![0.0; rows * columns];
            for c in 0..columns {
                let (tied, other) = (random.place(rows), random.place(rows - 1));
                items[tied * columns + c] = tie;
                items[(other + usize::from(other >= tied)) * columns + c] =
                    1.5 * 2f64.powi(4 - c as i32);
            }
            let items: Vec<T> = items.into_iter().map(from_f64).collect();
            let sample = Sample::of(Layout::table([rows, columns], size_of::<T>(), 0, 0), &items);
            for op in SQUARES {
                check(engine, op, &sample, &[true, false], "far scales");
            }
        }
    }
    for_floats!(ask, engine);
}

/// Columns of equal elements, each of a scale of its own, side by side: their
/// variance is exactly 0, whatever window they share, and whatever scale the
/// first rows have, which are zeros in some columns.
fn equal_elements_side_by_side(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, Squared { full, apart, .. }: Squared) {
        let columns = 64;
        for rows in [3, 16, 100, 300] {
            for step in [1, apart - 8, apart - 1, apart, apart + 1, apart + 9] {
                let items: Vec<T> = (0..rows * columns)
                    .map(|i| {
                        let (r, c) = (i / columns, (i % columns) as i32);
                        let scale = if c % 3 == 0 { 0 } else { -step + c % 5 };
                        let there = c % 7 != 0 || r >= 10;
                        from_f64(if there { full * 2f64.powi(scale) } else { 0.0 })
                    })
                    .collect();
                let layout = Layout::table([rows, columns], size_of::<T>(), 0, 0);
                let sample = Sample::of(layout, &items);
                for op in [Op::Var, Op::Norm2] {
                    check(engine, op, &sample, &[true, false], &format!("{step} binades"));
                }
            }
        }
    }
    for_floats!(ask, engine);
}

/// Infinities and NaNs in any rows of columns, near each other and far apart.
fn specials_of_columns(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, Squared { tie, .. }: Squared) {
        let mut random = Random(0x5bec);
        let kinds = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, tie, 0.0];
        for rows in [3, 16, 40, 120, 400] {
            let columns = 48;
            let mut items = vec![1.25; rows * columns];
            // Columns with nothing special among them.
            for c in (0..columns).filter(|c| c % 5 != 0) {
                for _ in 0..1 + random.below(3) {
                    items[random.place(rows) * columns + c] = kinds[random.place(kinds.len())];
                }
            }
            let items: Vec<T> = items.into_iter().map(from_f64).collect();
            let sample = Sample::of(Layout::table([rows, columns], size_of::<T>(), 0, 0), &items);
            for op in SQUARES {
                check(engine, op, &sample, &[true, false], "specials");
            }
        }
    }
    for_floats!(ask, engine);
}

/// One block for all rows, of which the later ones are as large as their first
/// leave room for, so that totals fill their words; and so many rows that these
/// times their number would not.
fn many_rows_of_squares(device: &Arc<dyn Device>) {
    fn ask<T: Element>(engine: &Engine, Squared { full, grown, .. }: Squared) {
        let of = |rows: usize, columns: usize, large: f64, op: Op| {
            // There may be 256 groups of threads: each begins with small ones, and
            // adds up to little.
            let item = |i: usize| {
                let row = i / columns;
                let sign = if (row / 256).is_multiple_of(2) { 1.0 } else { -1.0 };
                sign * if row < 4096 { full } else { full * large }
            };
            let items: Vec<T> = (0..rows * columns).map(|i| from_f64(item(i))).collect();
            let sample = Sample::of(Layout::table([rows, columns], size_of::<T>(), 0, 0), &items);
            check(engine, op, &sample, &[true, false], "many rows");
        };
        for op in if thorough::thorough() { &SQUARES[..] } else { &[Op::Var] } {
            of(33_000, 2, grown, *op);
            of(9000, 17, grown, *op);
        }
        if T::DTYPE == DType::F16 || thorough::thorough() {
            of(140_000, 2, grown, Op::Norm2);
        }
        if T::DTYPE == DType::F32 && thorough::thorough() {
            of(1 << 20, 2, 5.0, Op::Std);
        }
    }
    let shape = Shape { threads: None, blocks: Some(1), walk: Some(ForcedWalk::Tables) };
    let engine = Engine::with_shape(Arc::clone(device), shape);
    for_floats!(ask, &engine);
}

/// Columns are reduced where they are, in one launch: squares whatever a block has, extremes
/// transposed where it has too little shared memory.
#[test]
fn columns_take_one_launch() {
    let new = |change: fn(&mut Limits)| {
        let sim = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
        let device = Arc::new(Altered::new(sim, change));
        (tables(Arc::clone(&device) as Arc<dyn Device>), device)
    };
    let usual = new(|_| ());
    let little = new(|limits| limits.shared_per_block = 2 << 10);
    let mut random = Random(0x1a);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        #[rustfmt::skip]
        let cases: [(&[usize], &[bool]); 5] = [
            (&[16, 300], &[true, false]), (&[900, 40], &[true, false]), (&[1, 900], &[true, false]),
            (&[3, 70, 20], &[false, true, false]), (&[30, 2, 5, 24], &[true, false, true, false]),
        ];
        for (shape, reduced) in cases {
            let layout = Layout::columns(shape, dtype.size(), 1, 3);
            let sample = Sample::new(dtype, layout, "signed", &mut random);
            let squares = some_of(&SQUARES, shape[0] + dtype.size());
            for op in squares.iter().copied().chain([Op::Max]) {
                let launches = [&usual, &little].map(|(engine, device)| {
                    let before = device.launches();
                    check(engine, op, &sample, reduced, "launches");
                    device.launches() - before
                });
                assert_eq!(launches[0], 1, "{op} of {dtype} {shape:?}");
                let transposed = launches[1] > 1 || shape[0] == 1;
                assert!(
                    if op == Op::Max { transposed } else { launches[1] == 1 },
                    "{op} of {dtype} {shape:?}"
                );
            }
        }
    }
}

/// More blocks than a thread of the last one folds at once, in a tile of the
/// most columns: the first of equal elements is in the one block or the other.
fn columns_of_many_blocks(device: &Arc<dyn Device>) {
    let shape = Shape { threads: None, blocks: Some(40), walk: Some(ForcedWalk::Tables) };
    let engine = Engine::with_shape(Arc::clone(device), shape);
    let (rows, columns) = (40 * 8 * 16, 64);
    let mut items = vec![0i64; rows * columns];
    for c in 0..columns {
        // Two of a column, or one.
        for r in [c * rows / columns, (c * 37 % 70) * rows / columns] {
            if r < rows {
                items[r * columns + c] = -1;
            }
        }
    }
    let sample = Sample::of(Layout::table([rows, columns], 8, 0, 0), &items);
    check(&engine, Op::ArgMin, &sample, &[true, false], "many blocks");
}

#[test]
fn columns_side_by_side() {
    let engines = engines(&sim(Schedule::Lockstep));
    columns(&engines, 31, |turn| turn % up_to(1, 13) == 0);
}

#[test]
fn columns_that_blocks_share() {
    let engines = engines(&sim(Schedule::Lockstep));
    scales_of_columns(&engines[1]);
    columns_again(&engines[2]);
    columns_of_many_blocks(engines[0].device());
}

#[test]
fn squares_of_columns() {
    let engines = engines(&sim(Schedule::Lockstep));
    for (i, engine) in engines.iter().enumerate() {
        // Each in one shape, or in all of them.
        let asks = [squares_of_far_scales, equal_elements_side_by_side, specials_of_columns];
        for (j, ask) in asks.into_iter().enumerate() {
            if i == j || thorough::thorough() {
                ask(engine);
            }
        }
    }
    many_rows_of_squares(engines[0].device());
}

/// Squares of f64 whose sum is off a tie by the last bit of one of their errors, which lies below the steps
/// of the levels that hold squares. A thread takes the second eight elements by a lane's window.
#[test]
fn last_bits_of_errors_decide() {
    let engines = walkers(&sim(Schedule::Lockstep));
    let unit = 2f64.powi(-39);
    // 2^25 - 1 is the sum of these squares: with 2^-78 of the first square they make half of an ulp.
    let even = [5791, 134, 25, 13].map(|f| f64::from((1 << 25) + f) * unit);
    let first = 2f64.powi(-14) + 2f64.powi(-65);
    let odd = f64::from((1 << 25) + (1 << 13)) * unit;
    let outputs = 600;
    let items: Vec<f64> = (0..outputs)
        .flat_map(|o| {
            let mut items = [0.0; 16];
            items[0] = 1.0;
            items[8] = first;
            items[9..13].copy_from_slice(&even);
            items[13] = if o % 2 == 0 { 0.0 } else { odd };
            items
        })
        .collect();
    for op in SQUARES {
        check_both(&engines[1], op, outputs, &items, "last bits of errors");
    }
}

/// Columns whose elements are far apart, all the way down, and infinite or NaN here and there: tall ones, and
/// many short ones, a thread for each strip.
fn columns_of_far_elements(device: &Arc<dyn Device>, keep: impl Fn(usize) -> bool) {
    fn ask<T: Element>(engine: &Engine, op: Op, most: i32) {
        let mut random = Random(0xfa5);
        let strip = 16 / size_of::<T>();
        let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for [rows, columns] in [[700, 32 * strip - 1], [60, 260 * strip - strip / 2]] {
            let items: Vec<T> = (0..rows * columns)
                .map(|i| {
                    let rare = i % columns % 3 == 0 && random.below(rows as u64) == 0;
                    let exponent = random.below(2 * most as u64) as i32 - most;
                    let number = (random.unit() - 0.5) * 2f64.powi(exponent);
                    from_f64(if rare { special[random.place(3)] } else { number })
                })
                .collect();
            let sample = Sample::of(Layout::table([rows, columns], size_of::<T>(), 0, 0), &items);
            check(engine, op, &sample, &[true, false], &format!("{most} binades"));
        }
    }
    let shape = Shape { threads: None, blocks: Some(1), walk: Some(ForcedWalk::Tables) };
    let engine = &Engine::with_shape(Arc::clone(device), shape);
    let mut turn = 0;
    for op in [Op::Sum, Op::Var, Op::Norm2] {
        let all: [&dyn Fn(); 5] = [
            &|| ask::<f32>(engine, op, 60),
            &|| ask::<f64>(engine, op, 60),
            &|| ask::<bf16>(engine, op, 60),
            &|| ask::<f64>(engine, op, 500),
            &|| ask::<f16>(engine, op, 14),
        ];
        for ask in all {
            turn += 1;
            if keep(turn) {
                ask();
            }
        }
    }
}

#[test]
fn columns_of_elements_far_apart() {
    columns_of_far_elements(&sim(Schedule::Lockstep), |turn| turn % up_to(1, 4) == 0);
}

#[test]
fn columns_in_random_order() {
    let engines = engines(&sim(Schedule::Random { seed: 4 }));
    columns(&engines, 32, |turn| turn % up_to(7, 71) == 0);
    if thorough::thorough() {
        specials_of_columns(&engines[2]);
    }
}

/// Elements of which many are the same: the ends of the type, zeros of both
/// signs, and NaNs of both signs and of several payloads, rarely or often.
fn repeated<T: Element>(n: usize, random: &mut Random) -> Vec<T> {
    let sign = 1u64 << (8 * size_of::<T>() - 1);
    let infinity: T = from_f64(f64::INFINITY);
    let infinity = infinity.bits();
    let numbers = match T::DTYPE.is_float() {
        true => vec![0, sign, infinity, infinity | sign, infinity - 1, 1],
        false => vec![0, u64::MAX, sign, sign - 1, 1, 2],
    };
    let nans = [infinity + 1, (infinity + 1) | sign, sign - 1, u64::MAX];
    let mut number = || numbers[random.below(numbers.len() as u64) as usize];
    let (usual, other) = (number(), number());
    // How many others there are among the usual ones, and NaNs.
    let rare = [1, 3, 50, 1000, u64::MAX];
    let mut rarely = || rare[random.below(rare.len() as u64) as usize];
    let (others, not_numbers) = (rarely(), if T::DTYPE.is_float() { rarely() } else { u64::MAX });
    let mut one = || {
        if not_numbers > 1 && random.below(not_numbers) == 0 {
            nans[random.below(4) as usize]
        } else if random.below(others) == 0 {
            other
        } else {
            usual
        }
    };
    (0..n).map(|_| T::from_bits(one())).collect()
}

/// Positions and the like in rows and columns of repeated elements, short and
/// tall, that lie anywhere; where blocks and groups share rows, each has its own
/// first one.
fn ties(engines: &[Engine], seed: u64, keep: impl Fn(usize) -> bool) {
    let mut random = Random(thorough::seed(seed));
    let mut turn = 0usize;
    for dtype in DType::ALL {
        let size = dtype.size();
        let vector = 16 / size;
        #[rustfmt::skip]
        let shapes: [(&[usize], &[bool]); 18] = [
            // Short rows, some that are read in parts, and one that is too long for that.
            (&[40, 3], &[false, true]),             (&[70, vector], &[false, true]),
            (&[9, 5 * vector + 1], &[false, true]), (&[5, 128 * vector], &[false, true]),
            (&[3, 129 * vector], &[false, true]),   (&[6, 2, vector], &[false, true, true]),
            (&[5, 300 * vector + 1], &[false, true]), (&[2, 520 * vector], &[false, true]),
            // Columns that a thread walks alone, that groups share, and blocks.
            (&[7, 3 * vector], &[true, false]),     (&[16, 300], &[true, false]),
            (&[60, 5], &[true, false]),             (&[200, 2 * vector + 1], &[true, false]),
            (&[900, 14 * vector], &[true, false]),  (&[1500, 1], &[true, false]),
            (&[900, vector - 1], &[true, false]),   (&[2, 70, 9], &[false, true, false]),
            // Two axes whose rows lie along both.
            (&[9, 2, 30, 2 * vector], &[true, false, true, false]),
            (&[40, 2, 11, 3], &[true, false, true, false]),
        ];
        for (shape, reduced) in shapes {
            turn += 1;
            if !keep(turn) {
                continue;
            }
            let before = [0, 0, 1, 3][random.below(4) as usize];
            let gap = [0, 0, 1, vector][random.below(4) as usize];
            let layout = Layout::columns(shape, size, before, gap);
            let sample = with_element!(dtype, T => {
                Sample::of(layout.clone(), &repeated::<T>(layout.bytes / size, &mut random))
            });
            let engine = &engines[random.below(engines.len() as u64) as usize];
            for op in POSITIONS.into_iter().chain([one_of(&ENDS, dtype, &mut random)]) {
                check(engine, op, &sample, reduced, "repeated elements");
            }
        }
    }
}

#[test]
fn the_first_of_equal_elements() {
    ties(&engines(&sim(Schedule::Lockstep)), 51, |turn| turn % up_to(1, 7) == 0);
}

#[test]
fn the_first_of_equal_elements_in_random_order() {
    ties(&engines(&sim(Schedule::Random { seed: 5 })), 52, |turn| turn % up_to(5, 23) == 0);
}

/// Checks the rows of a table, and the same as columns.
fn check_both<T: Element>(engine: &Engine, op: Op, rows: usize, items: &[T], note: &str) {
    let len = items.len() / rows;
    let sample = Sample::of(Layout::table([rows, len], size_of::<T>(), 0, 0), items);
    check(engine, op, &sample, &[false, true], note);
    let across: Vec<T> = (0..items.len()).map(|i| items[i % rows * len + i / rows]).collect();
    let sample = Sample::of(Layout::table([len, rows], size_of::<T>(), 0, 0), &across);
    check(engine, op, &sample, &[true, false], note);
}

/// Rows whose range is about as wide as is certified, with full significands on
/// both sides, and rows that are wider than a window.
fn ranges(engine: &Engine) {
    let mut random = Random(0xed9e);
    let from = |big: u32, spread: u32| (f32::from_bits(big), f32::from_bits(big - (spread << 23)));
    for len in [2usize, 4, 16, 32, 100, 512] {
        for spread in (14..30).chain((60..80).step_by(up_to(1, 5))).chain([100]) {
            let mut items = Vec::new();
            for row in 0..9 {
                let (big, small) =
                    from(if row % 2 == 0 { 0x5fff_ffff } else { 0x5f80_0001 }, spread);
                let rare = 1 + random.below(len as u64);
                items.extend((0..len).map(|_| {
                    let x = if random.below(rare) == 0 { small } else { big };
                    if random.below(3) == 0 { -x } else { x }
                }));
            }
            for op in some_of(&[Op::Sum, Op::Mean, Op::Norm1], spread as usize) {
                check_both(engine, *op, 9, &items, &format!("{spread} binades"));
            }
        }
    }
    for len in [2usize, 3, 8, 64, 256] {
        for spread in (35..50).chain([60, 100, 200, 2000]) {
            let small = 2f64.powi(900 - spread) * (2.0 - f64::EPSILON);
            let big = 2f64.powi(900) * (2.0 - f64::EPSILON);
            let items: Vec<f64> = (0..9 * len)
                .map(|_| {
                    let x = if random.below(3) == 0 { small } else { big };
                    if random.below(3) == 0 { -x } else { x }
                })
                .collect();
            for op in some_of(&[Op::Sum, Op::Mean, Op::Norm1], spread as usize) {
                check_both(engine, *op, 9, &items, &format!("{spread} binades"));
            }
        }
    }
}

/// As many elements as a plain sum of 53 bits has room for, and one bit more:
/// without it, the sum is halfway between two neighbours. Two small elements
/// differ by that bit and come close to each other, so that only the last adds
/// could lose it.
fn the_last_bit(engine: &Engine) {
    for log in 4..10 {
        let len = 1usize << log;
        for spread in 26 - log..33 - log {
            let mut items = Vec::new();
            // The certificate compares significands too: it is at its edge if
            // the big ones are no larger than the small ones, and the sum at
            // its own if it just reaches the next power of two.
            for over in [(1i64 << (26 - log)), (1 << 23) - 8] {
                let big = (1i64 << 23) + over;
                // In units of the last bit of the big ones: halfway is this
                // much above a multiple of twice as much.
                let half = 1i64 << (log - 1);
                let rest = (len as i64 - 3) * big;
                let last = (1i64 << 23) - 2 * half;
                let last = last + (half - (rest + last)).rem_euclid(2 * half);
                for next in [0, 2 * half] {
                    let unit = 2f64.powi(-spread);
                    let small = (big + 2) as f64 * unit;
                    let ends = [small + unit, -small, (last - next) as f64];
                    let row: Vec<f64> = (3..len).map(|_| big as f64).chain(ends).collect();
                    items.extend(row.iter().map(|&x| x as f32));
                    items.extend(row.iter().map(|&x| -x as f32));
                }
            }
            check_both(engine, Op::Sum, 8, &items, &format!("2^{log}, {spread} binades"));
        }
    }
}

/// Sums and means of elements whose largest two make a tie, which others far below decide, or nothing does.
fn sums_beside_ties(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, digits: i32, below: i32, make: fn(f64) -> T) {
        let mut random = Random(0x71e5);
        for len in [3, 4, 8, 16, 24, 44, 64] {
            let rows = 40;
            let mut items = vec![0.0; rows * len];
            for row in items.chunks_mut(len) {
                let scale = 2f64.powi(random.below(8) as i32);
                let sign = |random: &mut Random| if random.below(2) == 0 { -scale } else { scale };
                let places: [usize; 3] = core::array::from_fn(|i| (i * len / 3 + len / 7) % len);
                row[places[0]] = sign(&mut random) * (1.0 + 2f64.powi(1 - digits));
                row[places[1]] = sign(&mut random) * 2f64.powi(-digits);
                row[places[2]] = sign(&mut random) * 2f64.powi(-below) * random.below(2) as f64;
            }
            let items: Vec<T> = items.into_iter().map(make).collect();
            for op in [Op::Sum, Op::Mean] {
                check_both(engine, op, rows, &items, "beside ties");
            }
        }
    }
    ask(engine, 53, 400, |x| x);
    ask(engine, 24, 120, |x| x as f32);
    ask(engine, 8, 120, bf16::from_f64);
    ask(engine, 11, 24, f16::from_f64);
}

/// Sums of f64 beyond the format, and of elements as large that cancel beside some of any size.
fn sums_of_large_elements(engine: &Engine) {
    let mut random = Random(0x1a26e);
    for (rows, len) in [(40, 5), (40, 30), (9, 200), (3, 3000)] {
        for cancels in [false, true] {
            let mut items = Vec::with_capacity(rows * len);
            while items.len() < rows * len {
                let large = random.unit() * 2f64.powi(1023 - random.below(3) as i32);
                let sign = if random.below(2) == 0 { -1.0 } else { 1.0 };
                let other = sign * 2f64.powi(random.place(2090) as i32 - 1070);
                items.extend([large, if cancels { -large } else { other }, other]);
            }
            items.truncate(rows * len);
            for op in [Op::Sum, Op::Mean, Op::Norm1] {
                check_both(engine, op, rows, &items, "large");
            }
        }
    }
}

#[test]
fn sums_that_lie_beside_ties() {
    let device = sim(Schedule::Lockstep);
    engines(&device).iter().for_each(sums_beside_ties);
}

#[test]
fn sums_of_large_numbers() {
    let device = sim(Schedule::Lockstep);
    engines(&device).iter().for_each(sums_of_large_elements);
    let shared = Shape { blocks: Some(7), ..Shape::default() };
    sums_of_large_elements(&Engine::with_shape(device, shared));
}

/// Sums that f32 cannot tell from a tie of the 16-bit formats.
fn ties_of_short_formats(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, last: i32, least: i32, make: impl Fn(f64) -> T) {
        let mut items = Vec::new();
        for sign in [1.0, -1.0] {
            for even in [1.0, 1.0 + 2f64.powi(1 - last)] {
                for beside in [0.0, 1.0, -1.0] {
                    let row = [even, 2f64.powi(-last), beside * 2f64.powi(least), 0.0];
                    items.extend(row.map(|x| make(sign * x)));
                }
            }
        }
        for op in [Op::Sum, Op::Mean] {
            check_both(engine, op, items.len() / 4, &items, "ties");
        }
    }
    ask(engine, 11, -24, f16::from_f64);
    ask(engine, 8, -30, bf16::from_f64);
}

/// Ends of the formats: sums that round to infinity or do not, subnormals, and
/// ties.
fn ends(engine: &Engine) {
    let ask = |items: &[f64], n: usize| {
        let short: Vec<f32> = items.iter().map(|&x| x as f32).collect();
        for op in [Op::Sum, Op::Mean, Op::Norm1] {
            check_both(engine, op, items.len() / n, items, "ends of f64");
            check_both(engine, op, items.len() / n, &short, "ends of f32");
        }
    };
    let (max, ulp) = (f64::MAX, 2f64.powi(970));
    let (max32, ulp32) = (f64::from(f32::MAX), 2f64.powi(103));
    let tiny = 2f64.powi(-1074);
    let tiny32 = 2f64.powi(-149);
    #[rustfmt::skip]
    ask(&[
        max, ulp / 2.0, 0.0,        max, ulp, 0.0,              max, ulp, -tiny,
        -max, -ulp, tiny,           1e308, 1e308, -1e308,       max, max, f64::NEG_INFINITY,
        1.0, 2f64.powi(-53), 0.0,   1.0, 2f64.powi(-53), tiny,  1.0, 2f64.powi(-53), -tiny,
        tiny, tiny, tiny,           tiny, -tiny, -0.0,          -0.0, -0.0, -0.0,
        max32, ulp32 / 2.0, 0.0,    max32, ulp32, 0.0,          max32, ulp32, -tiny32,
        1.0, 2f64.powi(-24), 0.0,   1.0, 2f64.powi(-24), tiny32, 1.0, 2f64.powi(-24), -tiny32,
        1.0, 3.0 * 2f64.powi(-24), 0.0, tiny32, tiny32, 0.0,    2f64.powi(-1022), -tiny, 0.0,
        f64::NAN, 1.0, 2.0,         -f64::NAN, f64::INFINITY, 1.0, f64::INFINITY, f64::NEG_INFINITY, 0.0,
    ], 3);
}

/// Differences of two elements that round hard: one of them is about as large as
/// the last bit of the other, or half of it.
fn differences(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, fraction: u32) {
        let mut random = Random(0xd1ff);
        let infinity: T = from_f64(f64::INFINITY);
        let (infinity, sign) = (infinity.bits(), 1u64 << (8 * size_of::<T>() - 1));
        let mut items = Vec::new();
        for _ in 0..400 {
            let large = random.next() % infinity;
            let below = (u64::from(fraction) + random.below(5)).saturating_sub(1);
            let exponent = (large >> fraction).saturating_sub(below);
            let rest = [0, 0, 1, (1 << fraction) - 1, random.next() % (1 << fraction)];
            let small = exponent << fraction | rest[random.below(5) as usize];
            for bits in [large, small] {
                items.push(T::from_bits(if random.below(2) == 0 { bits } else { bits | sign }));
            }
        }
        let layout = Layout::table([400, 2], size_of::<T>(), 0, 0);
        check(engine, Op::Range, &Sample::of(layout, &items), &[false, true], "differences");
    }
    ask::<f16>(engine, 10);
    ask::<bf16>(engine, 7);
    ask::<f32>(engine, 23);
    ask::<f64>(engine, 52);
}

#[test]
fn ranges_and_ends_on_the_interpreter() {
    let engine = tables(sim(Schedule::Lockstep));
    ranges(&engine);
    the_last_bit(&engine);
    ties_of_short_formats(&engine);
    ends(&engine);
    differences(&engine);
}

/// What one walk tells, or none of the others.
const TOGETHER: [&[Op]; 8] = [
    &[Op::Max, Op::Min],
    &[Op::ArgMin, Op::ArgMax],
    &[Op::Max, Op::Range, Op::Min],
    &[Op::CountNan, Op::CountNonzero, Op::Any],
    &[Op::Sum, Op::Var, Op::Mean],
    &[Op::Mean, Op::Norm1, Op::Std, Op::Max],
    &[Op::Norm2, Op::Var],
    &[Op::Mean, Op::Std],
];

/// Several numbers at once, of arrays that lie elsewhere each time, so that a question is known the second time.
fn together(engines: &[Engine], seed: u64, rounds: usize) {
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let ops = TOGETHER[random.place(TOGETHER.len())];
        // The totals of integers may not fit.
        let totals = ops.contains(&Op::Sum) || ops.contains(&Op::Norm1);
        let dtype = if totals { FLOATS[round % 4] } else { DType::ALL[round % DType::ALL.len()] };
        let lens = &LENS[1..];
        let shape = shape(&mut random, lens, 3, if round % 4 == 0 { 60_000 } else { 1500 });
        let layout = Layout::random(&shape, dtype.size(), &mut random);
        let pattern = PATTERNS[random.place(PATTERNS.len())];
        let reduced: Vec<bool> = shape.iter().map(|_| random.below(2) == 0).collect();
        for _ in 0..2 {
            let sample = Sample::new(dtype, layout.clone(), pattern, &mut random);
            check_together(&engines[round % engines.len()], ops, &sample, &reduced, pattern);
        }
    }
    // Rows that leave payloads are long.
    let long = DType::ALL.into_iter().flat_map(|dtype| TOGETHER.map(|ops| (dtype, ops)));
    for (dtype, ops) in long.step_by(up_to(1, 5)) {
        let totals = ops.contains(&Op::Sum) || ops.contains(&Op::Norm1);
        if dtype.is_float() || !totals {
            let layout = Layout::table([2, (50 << 10) / dtype.size()], dtype.size(), 0, 0);
            let sample = Sample::new(dtype, layout, "signed", &mut random);
            check_together(&engines[0], ops, &sample, &[false, true], "long rows");
        }
    }
}

fn check_together(engine: &Engine, ops: &[Op], sample: &Sample, reduced: &[bool], note: &str) {
    let (device, dtype) = (engine.device(), sample.dtype);
    let expected = ops.iter().map(|&op| {
        let states = reference([Some(sample), None], reduced, op.kind(), 0);
        finished(op.into(), &states).expect("answers")
    });
    let expected: Vec<_> = expected.collect();
    let outputs = expected[0].len();
    let placed = Placed::in_junk(&**device, sample);
    let room = Buffer::new(device, (8 * ops.len() * outputs) as u64).expect("room");
    let place = |i: usize| (8 * outputs * i) as u64;
    let to: Vec<u64> = (0..ops.len()).map(|i| room.address() + place(i)).collect();
    let numbers: Vec<Number> = ops.iter().map(|&op| op.into()).collect();
    // SAFETY: the array was placed here, and there is room for all answers.
    let made = unsafe { engine.each_into(&numbers, &placed.view, reduced, &to, Stream::DEFAULT) };
    let note = || format!("{ops:?} of {dtype}, {:?} over {reduced:?}, {note}", sample.layout);
    assert!(made.is_ok_and(|made| !made.contains(&false)), "{}", note());
    for (i, (op, expected)) in ops.iter().zip(&expected).enumerate() {
        let out = op.answer_type(dtype);
        let mut bytes = vec![0; outputs * out.size()];
        room.copy_out(Stream::DEFAULT, place(i), &mut bytes).expect("a copy");
        for (got, expected) in bytes.chunks_exact(out.size()).zip(expected) {
            let mut word = [0; 8];
            word[..out.size()].copy_from_slice(got);
            let got = Scalar::from_bits(out, u64::from_le_bytes(word));
            assert!(got == *expected, "{op}: {got:?}, not {expected:?}, {}", note());
        }
    }
}

#[test]
fn several_numbers_on_the_interpreter() {
    let device = sim(Schedule::Lockstep);
    let mut all = engines(&device);
    all.extend(walkers(&device));
    together(&all, 371, up_to(160, 39));
}

/// One number among NaNs of both signs, wherever it is.
fn extremes_among_nans(engine: &Engine) {
    let mut rows = Vec::new();
    for at in 0..8 {
        for x in [f32::NEG_INFINITY, -0.0, 0.0, f32::INFINITY] {
            for other in [f32::NAN, -f32::NAN, x, 1.0, -1.0] {
                let mut row = [x; 8];
                row[at] = other;
                rows.extend(row);
            }
        }
    }
    let counts = [Op::CountNan, Op::CountNonzero, Op::Any, Op::All];
    let ends = [Op::Min, Op::Max, Op::Range, Op::NormInf];
    for op in ends.into_iter().chain(POSITIONS).chain(counts) {
        check_both(engine, op, rows.len() / 8, &rows, "NaNs");
    }
}

#[test]
fn extremes_among_nans_on_the_interpreter() {
    extremes_among_nans(&tables(sim(Schedule::Lockstep)));
}

/// Rows of equal elements, whose variance is exactly 0, and such of which one
/// differs by its last bit.
fn deviations(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine, random: &mut Random) {
        let sign = 1u64 << (8 * size_of::<T>() - 1);
        let [one, infinity]: [T; 2] = [1.0, f64::INFINITY].map(from_f64);
        let mut usual = vec![0, 1, one.bits(), sign, sign - 1, u64::MAX];
        if T::DTYPE.is_float() {
            usual.extend([infinity.bits() - 1, infinity.bits(), infinity.bits() + 1]);
        }
        for len in [1, 2, 3, 7, 32, 200] {
            let mut items: Vec<T> = Vec::new();
            for x in usual.iter().copied().chain([random.next(), random.next()]) {
                let at = random.place(len);
                let row = |i| T::from_bits(x ^ u64::from(i == at));
                items.extend(vec![T::from_bits(x); len]);
                items.extend((0..len).map(row));
            }
            for op in SQUARES {
                check_both(engine, op, items.len() / len, &items, "deviations");
            }
        }
    }
    let mut random = Random(0xd0e5);
    for dtype in DType::ALL {
        with_element!(dtype, T => ask::<T>(engine, &mut random));
    }
    // The largest totals that are taken as a word, and one element more.
    for len in [1 << 15, (1 << 15) + 1] {
        let [low, high] = [(0, u16::MAX), (1 << 15, u16::MAX >> 1)].map(|(least, most)| {
            (0..len).map(|i| if i % 2 == 0 { least } else { most }).collect::<Vec<u16>>()
        });
        let signed: Vec<i16> = high.iter().map(|x| x.cast_signed()).collect();
        for op in SQUARES {
            check_both(engine, op, 1, &low, "large totals");
            check_both(engine, op, 1, &signed, "large totals");
        }
    }
}

/// Rows of floats whose squares, norms, variances or deviations
/// are ties, or nearly; elements that are just not too small beside the largest,
/// and such as are; and ends of the formats.
fn squares_of_short_rows(engine: &Engine) {
    /// `tie` has a square that is halfway between two numbers, `root` two squares
    /// with such a norm, `high` such a half if it is one larger; `least` is the power
    /// of two that the smallest number is.
    struct Ties {
        tie: f64,
        root: [f64; 2],
        high: f64,
        least: i32,
    }
    fn ask<T: Element>(engine: &Engine, ties: &Ties, make: impl Fn(f64) -> T) {
        let Ties { tie, root: [p, q], high, least } = *ties;
        let mut rows = Vec::new();
        for scale in [1.0, -1.0, 2f64.powi(-3), 2f64.powi(2)] {
            for beside in [0.0, 2f64.powi(-2), 2f64.powi(-6), 2f64.powi(-10), 2f64.powi(-20)] {
                rows.push([tie, 0.0, beside, 0.0].map(|x| x * scale));
                rows.push([p, q, beside, 0.0].map(|x| x * scale));
                rows.push([tie, 0.0, tie, 0.0].map(|x| (x + beside) * scale));
                rows.push([high, -1.0, high, beside - 1.0].map(|x| x * scale));
            }
        }
        for far in 20..40 {
            let small = 2f64.powi(-far);
            rows.push([1.0, small, -small, 0.0]);
            rows.push([1.75, -1.75, 1.5 * small, small]);
            rows.push([small, small, 1.0, 1.0 + small]);
        }
        let (large, tiny) = (2f64.powi(-least / 2), 2f64.powi(least));
        rows.push([large, -large, large, tiny]);
        rows.push([tiny, -tiny, 0.0, -0.0]);
        rows.push([tiny, 3.0 * tiny, 5.0 * tiny, -tiny]);
        rows.push([1e38, -1e38, 3e38, 1e-38]);
        rows.push([f64::NAN, 1.0, tiny, 1.0]);
        rows.push([f64::INFINITY, tiny, 1.0, 1.0]);
        rows.push([f64::NEG_INFINITY, f64::NAN, 1.0, 1.0]);
        let pairs: Vec<T> = rows.iter().flat_map(|r| [make(r[0]), make(r[1])]).collect();
        let items: Vec<T> = rows.as_flattened().iter().map(|&x| make(x)).collect();
        for op in SQUARES {
            check_both(engine, op, rows.len(), &items, "squares");
            check_both(engine, op, rows.len(), &pairs, "pairs");
        }
    }
    // 4097^2, 16779425 and 2^24 + 1 have a bit too many for f32, and so on.
    let root = [5793.0, 16_779_424.0];
    ask(engine, &Ties { tie: 4097.0, root, high: 16_777_216.0, least: -149 }, |x| x as f32);
    let root = [1475.0, 1428.0];
    ask(engine, &Ties { tie: 47.0, root, high: 2048.0, least: -24 }, f16::from_f64);
    let root = [255.0, 32.0];
    ask(engine, &Ties { tie: 17.0, root, high: 256.0, least: -133 }, bf16::from_f64);
    let root = [134_217_729.0, 9_007_199_388_958_720.0];
    let high = 9_007_199_254_740_992.0;
    ask(engine, &Ties { tie: 94_906_267.0, root, high, least: -1074 }, |x| x);
    // As many elements as a row has at most, all as large as they can be.
    for len in [256, 255] {
        for x in [f64::from_bits(0x3fff_ffff_ffff_ffff), -f64::MAX, 1e-308] {
            let mut items = vec![x; 3 * len];
            items[len..2 * len].iter_mut().step_by(2).for_each(|x| *x = -*x);
            items[2 * len] = x * 2f64.powi(-29);
            for op in SQUARES {
                check_both(engine, op, 3, &items, "long rows");
            }
        }
    }
    for len in [512, 511, 64] {
        for x in [f32::from_bits(0x3fff_ffff), -f32::MAX, f32::from_bits(0x00ff_ffff)] {
            let mut items = vec![x; 3 * len];
            items[len..2 * len].iter_mut().step_by(2).for_each(|x| *x = -*x);
            items[2 * len] = x * 2f32.powi(-29);
            for op in SQUARES {
                check_both(engine, op, 3, &items, "long rows");
            }
        }
    }
}

/// Squares that add up to just what fits, and one more.
fn ends_of_integers(engine: &Engine) {
    fn ask<T: Element>(engine: &Engine) {
        let signed = T::DTYPE.is_signed_int();
        let all = u64::MAX >> (64 - 8 * size_of::<T>());
        let (largest, mut rest) =
            if signed { (all >> 1, i64::MAX as u64) } else { (all, u64::MAX) };
        let mut full = Vec::new();
        while rest > 0 {
            let x = rest.isqrt().min(largest);
            rest -= x * x;
            // Negative elements have the same squares.
            full.push(T::from_bits(if signed && full.len() % 2 == 1 {
                x.wrapping_neg()
            } else {
                x
            }));
        }
        assert!(full.len() < 20);
        full.resize(20, T::from_bits(0));
        let mut over = full.clone();
        over[19] = T::from_bits(1);
        for op in SQUARES {
            check_both(engine, op, 3, &[&full[..], &full, &full].concat(), "a full total");
            check_both(engine, op, 3, &[&full[..], &over, &full].concat(), "one over");
        }
        // Totals that wrap around to something that fits.
        let ends = [all, largest, largest.wrapping_add(1)].map(T::from_bits);
        for len in [1, 2, 4, 5, 100] {
            let rows: Vec<T> = ends.iter().flat_map(|&x| vec![x; len]).collect();
            for op in SQUARES {
                check_both(engine, op, ends.len(), &rows, "ends");
                for row in rows.chunks(len) {
                    check_both(engine, op, 1, row, "an end");
                }
            }
        }
    }
    ask::<i32>(engine);
    ask::<u32>(engine);
    ask::<i64>(engine);
    ask::<u64>(engine);
}

#[test]
fn deviations_on_the_interpreter() {
    let engine = tables(sim(Schedule::Lockstep));
    deviations(&engine);
    squares_of_short_rows(&engine);
    ends_of_integers(&engine);
}

const SHAPES: [Option<(u32, u32)>; 3] = [None, Some((32, 1)), Some((64, 3))];

/// Engines of several shapes.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shape = |s: Option<(u32, u32)>, walk| Shape {
        threads: s.map(|s| s.0),
        blocks: s.map(|s| s.1),
        walk,
    };
    let tables = SHAPES.map(|s| shape(s, Some(ForcedWalk::Tables)));
    let all = tables.into_iter().chain([Shape::default()]);
    all.map(|shape| Engine::with_shape(Arc::clone(device), shape)).collect()
}

/// Engines that walk whatever they can as a view: with few blocks and with many, so
/// that these share outputs.
fn walkers(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shape = |blocks| Shape { threads: None, blocks, walk: Some(ForcedWalk::Views) };
    [None, Some(1), Some(3), Some(9)]
        .map(|blocks| Engine::with_shape(Arc::clone(device), shape(blocks)))
        .into_iter()
        .collect()
}

#[test]
fn views_of_any_layout() {
    let all = walkers(&sim(Schedule::Lockstep));
    exponentials(&all, 208, up_to(28, 8), up_to(MOST, 600));
    sweep(&all, 205, up_to(39, 13), up_to(MOST, 1500), &OPS);
    sweep(&all, 206, up_to(26, 13), up_to(MOST, 600), &POSITIONS);
    sweep(&all, 207, up_to(39, 13), up_to(MOST / 4, 500), &SQUARES);
}

/// Engines that have several outputs a thread wherever these have few elements.
fn abreast(device: &Arc<dyn Device>) -> Vec<Engine> {
    let shape = Shape { walk: Some(ForcedWalk::Abreast), ..Shape::default() };
    vec![Engine::with_shape(Arc::clone(device), shape)]
}

/// Outputs of few elements, of any layout, and many enough for rows of outputs that are
/// cut into full and other places.
fn few_elements(engines: &[Engine], seed: u64, rounds: usize) {
    let lens = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16];
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let (few, many) = (lens[random.place(lens.len())], 1 + random.place(300));
        let inner = [1, 1, 2, 3, 40][random.place(5)];
        let shape = [[few, many, inner], [many, few, inner], [inner, many, few]][random.place(3)];
        let reduced = shape.map(|n| n == few && n != many);
        let layout = if random.below(2) == 0 {
            Layout::contiguous(&shape, dtype.size())
        } else {
            Layout::random(&shape, dtype.size(), &mut random)
        };
        let pattern = PATTERNS[random.place(PATTERNS.len())];
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        for ops in [&OPS[..], &POSITIONS, &SQUARES, &[Op::Prod]] {
            // Products of integers are exact: states have them.
            let made = |op: &Op| op.supports(dtype) && (*op != Op::Prod || dtype.is_float());
            if !ops.iter().any(made) {
                continue;
            }
            let op = one_of(ops, dtype, &mut random);
            let number = Number { omits_nan: random.place(3) == 0, ..op.into() };
            check(&engines[0], number, &sample, &reduced, &format!("{pattern}, round {round}"));
        }
    }
}

/// Few floats whose answers lie in the middle between two numbers or beside it, which
/// cancel, or lie far apart: what accumulators of few floats must not be too sure of.
fn few_floats(engines: &[Engine], seed: u64, keep: impl Fn(usize) -> bool) {
    let patterns = [
        "few digits",
        "neighbours",
        "far from zero",
        "cancelling",
        "squares halfway",
        "wide",
        "specials",
        "finite bits",
        "one huge",
        "half NaN",
        "decades and NaN",
    ];
    let ops = [Op::Sum, Op::Mean, Op::Norm1, Op::SumSq, Op::Norm2, Op::Var, Op::Std, Op::Prod];
    let mut random = Random(thorough::seed(seed));
    let mut turn = 0;
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        for pattern in patterns {
            for few in [2, 3 + random.place(14)] {
                let many = 300 + random.place(200);
                let layout = Layout::contiguous(&[few, many], dtype.size());
                let sample = Sample::new(dtype, layout, pattern, &mut random);
                for op in ops {
                    turn += 1;
                    let number = Number { omits_nan: pattern.ends_with("NaN"), ..op.into() };
                    if keep(turn) {
                        check(&engines[0], number, &sample, &[true, false], pattern);
                    }
                }
            }
        }
    }
}

/// What `few_f64` draws outputs of.
const MAGNITUDES: [&str; 14] = [
    "subnormal",
    "subnormal of few digits",
    "subnormal or zero",
    "zero at first",
    "about the least normal",
    "squares about the least normal",
    "squares above the largest",
    "about the largest",
    "equal",
    "two by turns",
    "odd differences",
    "few digits of any size",
    "far apart",
    "one infinite",
];

/// The elements of an output.
fn of_magnitude(name: &str, n: usize, random: &mut Random) -> Vec<f64> {
    // 2^e, which may be subnormal.
    let power = |e: i32| 2f64.powi(e / 2) * 2f64.powi(e - e / 2);
    // From 2^e on, in so many binades, of either sign.
    let near = |random: &mut Random, e: i32, binades: usize| {
        let x = (1.0 + random.unit()) * power(e + random.place(binades) as i32);
        if random.below(2) == 0 { x } else { -x }
    };
    let (e, few) = (random.place(2092) as i32 - 1072, random.place(3) as i32);
    let (a, b) = (near(random, e, 1), near(random, e, 3));
    (0..n)
        .map(|i| match name {
            "subnormal" => f64::from_bits(random.next() >> (12 + random.place(52))),
            "subnormal of few digits" => f64::from_bits(random.next() & 0x3f),
            "subnormal or zero" => f64::from_bits((random.next() >> 12) * random.below(2)),
            "zero at first" if i + 1 < n && i < 3 + n / 2 => [0.0, -0.0][random.place(2)],
            "zero at first" => near(random, e.min(-400), 1),
            "about the least normal" => near(random, -1024 + few, 4),
            "squares about the least normal" => near(random, -540 + (e & 31), 3),
            "squares above the largest" => near(random, 508 + (e & 3), 1),
            "about the largest" => near(random, 1022 - few, 2),
            "equal" => a,
            "two by turns" => [a, b][i % 2],
            "odd differences" => near(random, few, 1),
            "few digits of any size" => random.below(9) as f64 * power(e),
            "far apart" => near(random, -1072, 2092),
            _ if i == n / 2 => f64::INFINITY,
            _ => a,
        })
        .collect()
}

/// So many outputs of few f64, along the first axis: each of the next magnitude of these.
fn outputs_of(names: &[&str], few: usize, many: usize, random: &mut Random) -> Sample {
    let mut items = vec![0.0; few * many];
    for o in 0..many {
        let output = of_magnitude(names[o % names.len()], few, random);
        for (e, x) in output.into_iter().enumerate() {
            items[e * many + o] = x;
        }
    }
    Sample::of(Layout::contiguous(&[few, many], 8), &items)
}

/// Squares of few f64 of any magnitude, each output of which has a scale of its own.
fn few_f64(engines: &[Engine], seed: u64, rounds: usize) {
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let few = if round % 3 == 0 { 2 } else { 1 + random.place(16) };
        let sample = outputs_of(&MAGNITUDES, few, 20 * MAGNITUDES.len(), &mut random);
        for op in SQUARES {
            for ddof in 0..=u32::from(matches!(op, Op::Var | Op::Std)) {
                let number = Number { op, omits_nan: false, ddof };
                check(&engines[0], number, &sample, &[true, false], &format!("round {round}"));
            }
        }
    }
}

/// Rows whose elements are further apart than the first sums of a row hold: of forty decades, of all, such that cancel but for
/// what is far below, ties and what is next to them, and with an infinity among them.
fn rows_far_apart(engine: &Engine, seed: u64, keep: impl Fn(usize) -> bool) {
    fn ask<T: Element>(engine: &Engine, len: usize, random: &mut Random, make: impl Fn(f64) -> T) {
        let near = |random: &mut Random, e: i32, binades: usize| {
            let x = (1.0 + random.unit()) * 2f64.powi(e + random.place(binades) as i32);
            if random.below(2) == 0 { x } else { -x }
        };
        // Bits of a significand, and a number whose square is halfway between two.
        let (bits, tie) = match T::DTYPE.size() {
            2 => (8, 17.0),
            4 => (24, 4097.0),
            _ => (53, 94_906_267.0),
        };
        let rows: Vec<Vec<f64>> = (0..49)
            .map(|r| {
                let mut row: Vec<f64> = match r % 7 {
                    0 => (0..len).map(|_| near(random, -70, 133)).collect(),
                    1 => (0..len).map(|_| near(random, -120, 240)).collect(),
                    2 => (0..len).map(|_| near(random, -20, 45).abs()).collect(),
                    // Half a unit of the last place, with or without something far below.
                    3 | 6 => vec![
                        2f64.powi(-100 * (random.below(2) as i32 + 1))
                            * random.below(3) as f64;
                        len
                    ],
                    _ => (0..len).map(|_| near(random, -100, 200)).collect(),
                };
                match r % 7 {
                    3 => (row[0], row[1], row[len - 1]) = (1.0, 2f64.powi(-bits), 0.0),
                    4 => {
                        let half = len / 2;
                        (0..half).for_each(|i| row[half + i] = -row[i]);
                        row[len - 1] = 2f64.powi(-110);
                    }
                    6 => row[r % len] = tie,
                    5 if r % 4 == 1 => row[len / 2] = f64::INFINITY,
                    _ => {}
                }
                row
            })
            .collect();
        let items: Vec<T> = rows.as_slice().concat().into_iter().map(make).collect();
        let sample = Sample::of(Layout::contiguous(&[rows.len(), len], T::DTYPE.size()), &items);
        for op in [Op::Sum, Op::Mean, Op::Norm1].into_iter().chain(SQUARES) {
            check(engine, op, &sample, &[false, true], "far apart");
        }
    }
    let mut random = Random(thorough::seed(seed));
    for (turn, len) in [17, 44, 64, 100, 129, 250, 256, 500].into_iter().enumerate() {
        if keep(turn) {
            ask(engine, len, &mut random, |x| x);
            ask(engine, 2 * len, &mut random, |x| x as f32);
            ask(engine, len, &mut random, bf16::from_f64);
        }
    }
}

#[test]
fn short_rows_far_apart() {
    rows_far_apart(&tables(sim(Schedule::Lockstep)), 441, |turn| turn % up_to(1, 3) == 0);
}

#[test]
fn few_f64_of_any_magnitude() {
    few_f64(&abreast(&sim(Schedule::Lockstep)), 431, up_to(30, 6));
}

/// Accumulators of few floats are sure of nearly all of these, and elements are loaded once.
#[test]
fn few_f64_are_loaded_once() {
    let sim = Arc::new(Sim::new(Options { counters: true, ..Options::default() }));
    let device: Arc<dyn Device> = Arc::<Sim>::clone(&sim);
    let engines = abreast(&device);
    let mut random = Random(thorough::seed(441));
    let names = ["odd differences", "subnormal", "subnormal of few digits", "about the largest"];
    for (few, name) in [2, 4, 16].into_iter().flat_map(|few| names.map(|name| (few, name))) {
        let sample = outputs_of(&[name], few, 256, &mut random);
        for op in SQUARES {
            sim.take_reports();
            check(&engines[0], op, &sample, &[true, false], name);
            let reports = sim.take_reports();
            let counted = reports[0].outcome.counters.as_ref().unwrap().total();
            let (loaded, bytes) = (counted.global_loads.bytes_asked, 8 * 256 * few as u64);
            assert!(loaded <= bytes + bytes / 16, "{op} of {few}, {name}: {loaded} of {bytes}");
        }
    }
}

/// Elements far below the largest one are cut off, and do not bring all of them once more to superaccumulators.
#[test]
fn far_floats_are_loaded_once() {
    let sim = Arc::new(Sim::new(Options { counters: true, ..Options::default() }));
    let device: Arc<dyn Device> = Arc::<Sim>::clone(&sim);
    let mut random = Random(thorough::seed(451));
    // Of packs, threads have whole batches: behind the last element, they load another one once more.
    let shapes = [[8, 300], [100, 40], [3000, 10]];
    let of_packs = [[16, 300], [128, 40], [3072, 12]];
    let squares = [Op::Norm2, Op::Var, Op::Std];
    for (dtype, reach, in_packs) in
        [(DType::F64, 499, false), (DType::F32, 123, false), (DType::F32, 123, true)]
    {
        // Blocks share the last ones.
        for [len, outputs] in if in_packs { of_packs } else { shapes } {
            let (count, shared) = (len * outputs, len > 1000);
            let sample = with_element!(dtype, T => {
                let one = |random: &mut Random| {
                    let exponent = random.below(2 * reach) as i32 - reach as i32;
                    from_f64((random.unit() - 0.5) * 2f64.powi(exponent))
                };
                let items: Vec<T> = (0..count).map(|_| one(&mut random)).collect();
                Sample::of(Layout::contiguous(&[len, outputs], dtype.size()), &items)
            });
            let sums = if shared { [Op::Norm1; 2] } else { [Op::Sum, Op::Mean] };
            let ops = match (dtype, in_packs) {
                (_, true) => sums.to_vec(),
                (DType::F32, _) => squares.to_vec(),
                _ => [&sums[..], &squares].concat(),
            };
            for op in ops {
                sim.take_reports();
                check(&walkers(&device)[1], op, &sample, &[true, false], "far apart");
                let reports = sim.take_reports();
                let counted = reports[0].outcome.counters.as_ref().unwrap().total();
                let (loaded, bytes) =
                    (counted.global_loads.bytes_asked, (count * dtype.size()) as u64);
                // A chunk of packs that is not exact comes once more.
                let more = match (in_packs, shared) {
                    (true, _) => bytes + bytes / 16,
                    (_, true) => bytes / 3,
                    _ => bytes / 16,
                };
                assert!(loaded <= bytes + more, "{op} of {dtype}, {len}: {loaded} of {bytes}");
            }
        }
    }
}

/// Variances of elements that are all alike, or all but one, cancel, and are known.
#[test]
fn constants_are_loaded_once() {
    let sim = Arc::new(Sim::new(Options { counters: true, ..Options::default() }));
    let device: Arc<dyn Device> = Arc::<Sim>::clone(&sim);
    let mut random = Random(thorough::seed(453));
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16] {
        // Blocks share the last ones.
        for [len, outputs] in [[24, 304], [128, 40], [3072, 16]] {
            for differs in [false, true] {
                let sample = with_element!(dtype, T => {
                    let all: T = from_f64(1.0 + random.unit());
                    let mut items = vec![all; len * outputs];
                    if differs {
                        (0..outputs).for_each(|i| items[random.place(len) * outputs + i] = from_f64(1.0 + random.unit()));
                    }
                    Sample::of(Layout::contiguous(&[len, outputs], dtype.size()), &items)
                });
                for op in [Op::Var, Op::Std] {
                    sim.take_reports();
                    check(&walkers(&device)[1], op, &sample, &[true, false], "alike");
                    let reports = sim.take_reports();
                    let counted = reports[0].outcome.counters.as_ref().unwrap().total();
                    let bytes = (len * outputs * dtype.size()) as u64;
                    let (loaded, more) =
                        (counted.global_loads.bytes_asked, bytes / if len > 1000 { 3 } else { 16 });
                    assert!(
                        loaded <= bytes + more,
                        "{op} of {dtype}, {len}, {differs}: {loaded} of {bytes}"
                    );
                }
            }
        }
    }
}

#[test]
fn few_floats_are_not_too_sure() {
    let engines = abreast(&sim(Schedule::Lockstep));
    let rounds = up_to(4, 1);
    for seed in 0..rounds {
        few_floats(&engines, 421 + seed as u64, |turn| turn % up_to(1, 3) == 0);
    }
}

#[test]
fn outputs_abreast() {
    let engines = abreast(&sim(Schedule::Lockstep));
    few_elements(&engines, 401, up_to(130, 26));
    sweep(&engines, 402, up_to(26, 13), up_to(MOST / 4, 500), &OPS);
    hard_floats(&engines, 403, up_to(28, 8), up_to(8, 4));
}

#[test]
fn views_in_random_order() {
    for seed in 0..up_to(2, 1) {
        let all = walkers(&sim(Schedule::Random { seed }));
        exponentials(&all, 215 + seed, up_to(12, 4), up_to(MOST, 300));
        sweep(&all, 211 + seed, up_to(26, 13), up_to(MOST, 600), &OPS);
        sweep(&all, 213 + seed, 13, up_to(MOST / 4, 300), &SQUARES);
    }
}

/// Elements that are some apart, with others between, which do not count: backwards, too.
fn steps(engines: &[Engine], seed: u64, rounds: usize, most: usize) {
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let (step, size) = ([2, 4, 8, 3][random.place(4)], dtype.size());
        let shape = [1 + random.place(6), 1 + random.place(most)];
        let before = random.place(2 * 16 / size);
        let mut layout = Layout::table([shape[0], shape[1] * step], size, before, random.place(3));
        layout.shape[1] = shape[1];
        layout.strides[1] = (step * size).cast_signed();
        if random.place(3) == 0 {
            layout.offset += (shape[1] - 1) * step * size;
            layout.strides[1] = -layout.strides[1];
        }
        let pattern = PATTERNS[random.place(PATTERNS.len())];
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        for reduced in [[true, true], [false, true]] {
            let engine = &engines[random.place(engines.len())];
            for ops in [&OPS[..], &SQUARES] {
                let number = Number {
                    omits_nan: random.place(3) == 0,
                    ..one_of(ops, dtype, &mut random).into()
                };
                check(engine, number, &sample, &reduced, &format!("{pattern}, {step} apart"));
            }
        }
    }
}

/// Outputs side by side, of shorter floats: rows of a pack or more that lie anywhere, with a gap behind each, and whose last pack
/// has some of the one before; chunks that are exact, that have something special, and that are neither, in turn.
fn packs(engines: &[Engine], seed: u64, rounds: usize, most: usize) {
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let dtype = [DType::F32, DType::BF16, DType::F16][round % 3];
        let (size, vector) = (dtype.size(), 16 / dtype.size());
        let columns = [vector, 2 * vector, 2 * vector + 1 + random.place(6 * vector)];
        let rows = [1 + random.place(9), 1 + random.place(most)][random.place(2)];
        let shape = [1 + random.place(3), rows, columns[random.place(3)]];
        let before = random.place(2 * vector);
        let gap = [0, 0, 1, vector / 2, vector][random.place(5)];
        let layout = Layout::columns(&shape, size, before, gap);
        let sample = with_element!(dtype, T => {
            let mut items: Vec<T> = (0..layout.bytes / size).map(|_| from_f64(random.unit() - 0.25)).collect();
            // Down some columns, from some row on, elements of a kind.
            let step = layout.strides[1] as usize / size;
            for _ in 0..random.place(4) {
                let kind = LOST[random.place(LOST.len())];
                let n = (1 + random.place(rows)).max(3).min(rows);
                let column = layout.offset / size + random.place(shape[2]) + random.place(rows - n + 1) * step;
                for (i, x) in lost::<T>(kind, n, &mut random).into_iter().enumerate() {
                    items[column + i * step] = x;
                }
            }
            Sample::of(layout.clone(), &items)
        });
        for reduced in [[false, true, false], [true, true, false]] {
            let engine = &engines[random.place(engines.len())];
            for op in [Op::Sum, [Op::Mean, Op::Norm1][random.place(2)], SQUARES[random.place(4)]] {
                let number = Number { omits_nan: random.place(3) == 0, ..op.into() };
                check(engine, number, &sample, &reduced, &format!("round {round}"));
            }
        }
    }
}

/// More blocks than merge the parts of packs at once, with an output whose total is lost when all parts are together.
fn packs_of_many_blocks(device: &Arc<dyn Device>) {
    let shape = Shape { threads: None, blocks: Some(40), walk: Some(ForcedWalk::Views) };
    let engine = Engine::with_shape(Arc::clone(device), shape);
    let mut random = Random(thorough::seed(452));
    let (rows, columns) = (4800, 64);
    for (dtype, op) in [(DType::F16, Op::Var), (DType::BF16, Op::Sum), (DType::F32, Op::Sum)] {
        let sample = with_element!(dtype, T => {
            let mut items: Vec<T> = (0..rows * columns).map(|_| from_f64(random.unit() - 0.25)).collect();
            for (column, kind) in [(3, Lost::Cancelling), (4, Lost::Far), (5, Lost::Special)] {
                for (i, x) in lost::<T>(kind, rows, &mut random).into_iter().enumerate() {
                    items[i * columns + column] = x;
                }
            }
            Sample::of(Layout::table([rows, columns], dtype.size(), 0, 0), &items)
        });
        check(&engine, op, &sample, &[true, false], "many blocks");
    }
}

#[test]
fn outputs_in_packs() {
    let device = sim(Schedule::Lockstep);
    packs(&walkers(&device), 218, up_to(900, 60), 300);
    packs(&walkers(&sim(Schedule::Random { seed: 6 })), 219, up_to(90, 12), 100);
    packs_of_many_blocks(&device);
}

#[test]
fn elements_that_are_some_apart() {
    steps(&walkers(&sim(Schedule::Lockstep)), 217, up_to(390, 65), 300);
}

/// Sums of exponentials of any views: all in one cell, in some neighbouring ones, in
/// many, and with special elements.
fn exponentials(engines: &[Engine], seed: u64, rounds: usize, most: usize) {
    let mut random = Random(thorough::seed(seed));
    let floats: Vec<DType> = DType::ALL.into_iter().filter(|d| d.is_float()).collect();
    for round in 0..rounds {
        let dtype = floats[round % floats.len()];
        let shape = shape(&mut random, &LENS, 4, most);
        let mut layout = Layout::random(&shape, dtype.size(), &mut random);
        let spread = [1.0, 20.0, 60.0, 150.0, 4e3, 6e4][round / floats.len() % 6];
        let middle = spread * (random.unit() - 0.5) * [0.0, 1.0, 4.0][random.place(3)];
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 16.0, -16.0];
        let often = [0, 0, 0, 50, 5][random.place(5)];
        let sample = with_element!(dtype, T => {
            // Whole elements, of which the last may be cut off.
            let bytes = layout.bytes;
            layout.bytes = bytes.next_multiple_of(dtype.size());
            let items: Vec<T> = (0..layout.bytes / dtype.size())
                .map(|_| match often {
                    1.. if random.below(often) == 0 => from_f64(special[random.place(6)]),
                    _ => from_f64(middle + spread * (random.unit() - 0.5)),
                })
                .collect();
            let mut sample = Sample::of(layout, &items);
            sample.layout.bytes = bytes;
            sample
        });
        for set in 0..1u32 << shape.len() {
            let reduced: Vec<bool> = (0..shape.len()).map(|i| set >> i & 1 == 1).collect();
            let engine = &engines[random.below(engines.len() as u64) as usize];
            check(engine, Op::LogSumExp, &sample, &reduced, &format!("{spread}, round {round}"));
        }
    }
}

/// Floats whose exponents come from all over the format, from a part of it, or with a
/// few special ones: what moves a window, fills it, or is lost to it.
fn hard_floats(engines: &[Engine], seed: u64, rounds: usize, rows: usize) {
    let mut random = Random(thorough::seed(seed));
    let floats: Vec<DType> = DType::ALL.into_iter().filter(|d| d.is_float()).collect();
    for round in 0..rounds {
        let dtype = floats[round % floats.len()];
        let widest = [3, 20, 60, 90, 140, 300, 2000][round / floats.len() % 7];
        let [rows, columns] = [1 + random.place(rows), 1 + random.place(10 * rows)];
        let special = [0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
        let often = [0, 0, 0, 50, 5][random.place(5)];
        let limit = match dtype {
            DType::F64 => 1023,
            DType::F16 => 14,
            _ => 126,
        };
        let middle = random.below(2 * limit + 1) as i64 - limit as i64;
        let item = |random: &mut Random| {
            if often > 0 && random.below(often) == 0 {
                return special[random.place(5)];
            }
            let exponent = middle + random.below(widest) as i64 - widest as i64 / 2;
            let field = (exponent.clamp(-1023, limit as i64) + 1023) as u64;
            f64::from_bits(random.next() & !(0x7ff << 52) | field << 52)
        };
        // Side by side, or every second or fourth one.
        let step = [1, 2, 4][round % 3];
        let count = rows * columns * step;
        let mut layout = Layout::contiguous(&[rows, columns * step], dtype.size());
        layout.shape[1] = columns;
        layout.strides[1] *= step.cast_signed();
        let sample = with_element!(dtype, T => {
            let items: Vec<T> = (0..count).map(|_| from_f64(item(&mut random))).collect();
            Sample::of(layout, &items)
        });
        for reduced in [[true, true], [true, false], [false, true]] {
            let engine = &engines[random.below(engines.len() as u64) as usize];
            for ops in [&[Op::Sum, Op::Mean, Op::Norm1][..], &SQUARES] {
                let op = one_of(ops, dtype, &mut random);
                check(engine, op, &sample, &reduced, &format!("{widest} binades, round {round}"));
            }
        }
    }
}

#[test]
fn views_of_hard_floats() {
    let rounds = up_to(112, 14);
    hard_floats(&walkers(&sim(Schedule::Lockstep)), 221, rounds, 3);
}

/// The kinds of elements that outputs of no window have; of some of these windows hold
/// everything, for types and questions of a short range.
#[derive(Clone, Copy, Debug)]
enum Lost {
    /// Of any exponent.
    Far,
    /// Of any exponent, and a half of them subnormal.
    Subnormal,
    /// With NaNs, infinities and zeros among them.
    Special,
    /// Nearly equal, where squares leave the windows: variances cancel.
    Neighbours,
    /// Whose sums cancel but for what is far below.
    Cancelling,
    /// Whose variance, by as many as a power of two, is beside the middle between two numbers.
    SquaredTie,
    /// Whose sum is beside the middle.
    Tie,
    /// Powers of two: sums of few digits that are not 0.
    Powers,
    /// What windows do hold.
    Near,
}

const LOST: [Lost; 9] = [
    Lost::Far,
    Lost::Subnormal,
    Lost::Special,
    Lost::Neighbours,
    Lost::Cancelling,
    Lost::SquaredTie,
    Lost::Tie,
    Lost::Powers,
    Lost::Near,
];

/// The `n` elements of such an output.
fn lost<T: Element>(kind: Lost, n: usize, random: &mut Random) -> Vec<T> {
    let infinity = from_f64::<T>(f64::INFINITY).without_sign();
    let one = from_f64::<T>(1.0).bits();
    let (digits, least, most) = match T::DTYPE {
        DType::F64 => (53, -1000, 1000),
        DType::F32 => (24, -120, 120),
        DType::BF16 => (8, -120, 120),
        _ => (11, -14, 14),
    };
    let power = |e: i32| 2f64.powi(e.clamp(least, most));
    let far = |random: &mut Random| loop {
        let x = T::from_bits(random.next());
        if x.without_sign() < infinity {
            return x;
        }
    };
    let negated = |x: T| T::from_bits(x.bits() ^ from_f64::<T>(-0.0).bits());
    let sign = |random: &mut Random| [1.0, -1.0][random.place(2)];
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
    let end = [least, most][random.place(2)];
    let mut items: Vec<T> = match kind {
        Lost::Far => (0..n).map(|_| far(random)).collect(),
        Lost::Subnormal => {
            let one = |random: &mut Random| match random.below(2) {
                0 => T::from_bits(random.next() & ((1 << (digits - 1)) - 1)),
                _ => far(random),
            };
            (0..n).map(|_| one(random)).collect()
        }
        Lost::Special => {
            let one = |random: &mut Random| match random.below(20) {
                0 => from_f64(special[random.place(5)]),
                _ => far(random),
            };
            (0..n).map(|_| one(random)).collect()
        }
        Lost::Neighbours => {
            let apart = [1, 4, 1 << (digits / 2)][random.place(3)];
            let one = from_f64::<T>(power(end)).bits();
            (0..n).map(|_| T::from_bits(one + random.below(apart))).collect()
        }
        Lost::Cancelling => {
            let first: Vec<T> = (0..n / 2).map(|_| far(random)).collect();
            let others = first.iter().map(|x| negated(*x));
            let left = from_f64(sign(random) * power(least) * random.unit());
            first.iter().copied().chain(others).chain([left]).take(n).collect()
        }
        Lost::SquaredTie => {
            // An odd number whose square has one digit more than there are.
            let ends = [digits, digits + 1].map(|e| 2f64.powi(e).sqrt());
            let tie = (ends[0] + random.unit() * (ends[1] - ends[0])) as u64 | 1;
            let below = sign(random) * power([-700, -90, -40][random.place(3)]);
            [tie as f64, below].into_iter().map(from_f64).collect()
        }
        Lost::Tie => {
            let first = T::from_bits(one | random.next() & ((1 << (digits - 1)) - 1));
            let half = sign(random) * 2f64.powi(-digits);
            let below = sign(random) * power([-900, -110][random.place(2)]);
            [first, from_f64(half), from_f64(below)].into()
        }
        Lost::Powers => {
            let reach = (most - least).unsigned_abs().into();
            (0..n)
                .map(|_| from_f64(sign(random) * power(least + random.below(reach) as i32)))
                .collect()
        }
        Lost::Near => (0..n).map(|_| from_f64(random.unit() - 0.25)).collect(),
    };
    items.resize(n, T::from_bits(0));
    for i in (1..n).rev() {
        items.swap(i, random.place(i + 1));
    }
    items
}

/// Many outputs of a block whose totals no window holds, of any data, with NaNs and
/// without: more than there are superaccumulators in its shared memory, and not a multiple.
fn lost_outputs(engines: &[Engine], seed: u64, rounds: usize, most: usize) {
    let mut random = Random(thorough::seed(seed));
    let dtypes = [DType::F64, DType::F32, DType::F64, DType::BF16, DType::F64, DType::F32];
    let ops = [Op::Sum, Op::Mean, Op::Norm1, Op::SumSq, Op::Norm2, Op::Var, Op::Std];
    for round in 0..rounds {
        let dtype = match round {
            _ if round % 40 == 39 => DType::F16,
            _ => dtypes[round % dtypes.len()],
        };
        // Every now and then so long that blocks share them.
        let shared = round % 13 == 12;
        let (len, outputs) = match shared {
            true => (1100, 1 + random.place(24)),
            false => {
                let len = [1, 2, 3, 4, 8, 16, 33, 64, 300][random.place(9)];
                (len, (1 + random.place(300)).min(most.div_ceil(len)))
            }
        };
        // One kind, or any, and then few or all of them lost. Of shared ones first such that blocks
        // leave parts that are cut off, of which there is no answer.
        let of = match shared {
            true => [5, 0, 6, 2, 4, 10][round / 13 % 6],
            false => (round / dtypes.len()) % (LOST.len() + 2),
        };
        let sample = with_element!(dtype, T => {
            let all: Vec<Vec<T>> = (0..outputs)
                .map(|_| {
                    let kind = match random.below(8) {
                        0 if of > LOST.len() => LOST[random.place(LOST.len())],
                        _ if of > LOST.len() => Lost::Near,
                        _ => LOST.get(of).copied().unwrap_or(LOST[random.place(LOST.len())]),
                    };
                    lost(kind, len, &mut random)
                })
                .collect();
            // Side by side.
            let items: Vec<T> = (0..len).flat_map(|e| all.iter().map(move |o| o[e])).collect();
            let columns = Sample::of(Layout::contiguous(&[len, outputs], dtype.size()), &items);
            let rows = Sample::of(Layout::contiguous(&[outputs, len], dtype.size()), &all.concat());
            [(columns, [true, false]), (rows, [false, true])]
        });
        for (sample, reduced) in sample {
            let drawn = [ops[random.place(ops.len())]];
            let all = [Op::Sum, Op::Norm1, Op::SumSq, Op::Var];
            for op in if shared { &all[..] } else { &drawn[..] } {
                let engine = &engines[random.place(engines.len())];
                let moments = matches!(op, Op::Var | Op::Std);
                let ddof = if moments { [1, 1, 0, 2, 300][random.place(5)] } else { 0 };
                let omits_nan = random.below(3) == 0;
                let note = format!("{:?}, round {round}", LOST.get(of));
                check(engine, Number { op: *op, omits_nan, ddof }, &sample, &reduced, &note);
            }
        }
    }
}

#[test]
fn outputs_that_are_lost() {
    let device = sim(Schedule::Lockstep);
    lost_outputs(&walkers(&device), 241, up_to(660, 66), up_to(6000, 600));
    lost_outputs(&abreast(&device), 242, up_to(330, 66), up_to(6000, 600));
}

#[test]
fn outputs_that_are_lost_in_random_order() {
    let device = sim(Schedule::Random { seed: 4 });
    lost_outputs(&walkers(&device), 243, up_to(132, 22), up_to(1000, 300));
    lost_outputs(&abreast(&device), 244, up_to(132, 22), up_to(1000, 300));
}

/// Columns so long that a block brings what it has given up, beside parts of other blocks that are exact, with errors that one tells
/// from the sum.
fn lost_parts(device: &Arc<dyn Device>) {
    let mut random = Random(0x9a27);
    let rows = 132_000;
    let far = |random: &mut Random| {
        let large = random.unit() * 2f64.powi(900);
        [large, -large, random.unit()]
    };
    let mut column: Vec<f64> = (0..rows / 3).flat_map(|_| far(&mut random)).collect();
    let (front, back) = column[rows / 2..].split_at_mut(rows / 4);
    for (one, other) in front.iter_mut().zip(back) {
        *one = random.unit() * 2f64.powi(30);
        *other = -*one;
    }
    let items: Vec<f64> = column.iter().flat_map(|&x| [x, -2.0 * x]).collect();
    let sample = Sample::of(Layout::table([rows, 2], 8, 0, 0), &items);
    for blocks in [4, 7] {
        let shape =
            Shape { walk: Some(ForcedWalk::Views), blocks: Some(blocks), ..Shape::default() };
        let engine = Engine::with_shape(Arc::clone(device), shape);
        for op in [Op::Sum, Op::Mean] {
            check(&engine, op, &sample, &[true, false], "lost parts");
        }
    }
}

#[test]
fn parts_that_are_lost() {
    lost_parts(&sim(Schedule::Lockstep));
}

/// What is copied together comes whole, though it be one output with a long state.
#[test]
fn a_long_row_that_is_misaligned() {
    let engine = tables(sim(Schedule::Lockstep));
    let mut random = Random(17);
    for (dtype, op) in [(DType::F64, Op::Var), (DType::F64, Op::Sum), (DType::F32, Op::Std)] {
        let mut layout = Layout::contiguous(&[100, 200], dtype.size());
        layout.offset += 1;
        layout.bytes += 1;
        let sample = Sample::new(dtype, layout, "signed", &mut random);
        check(&engine, op, &sample, &[true, true], "misaligned");
    }
}

#[test]
fn any_axes_of_any_layout() {
    let all = engines(&sim(Schedule::Lockstep));
    sweep(&all, 5, up_to(39, 13), up_to(MOST, 1500), &OPS);
    sweep(&all, 6, up_to(26, 13), up_to(MOST, 600), &POSITIONS);
    sweep(&all, 7, up_to(39, 13), MOST / 16, &SQUARES);
}

#[test]
fn any_axes_in_random_order() {
    for seed in 0..up_to(2, 1) {
        let all = engines(&sim(Schedule::Random { seed }));
        sweep(&all, 11 + seed, 13, up_to(MOST, 600), &OPS);
        sweep(&all, 13 + seed, 13, MOST / 16, &SQUARES);
    }
}

/// What floats have one number of: products, and sums of exponentials.
const ROOTS: [Op; 2] = [Op::Prod, Op::LogSumExp];

/// Rows of every length that lanes share differently, at every alignment, with and
/// without gaps; a few that are columns.
fn root_rows(device: &Arc<dyn Device>, seed: u64, keep: impl Fn(usize) -> bool) {
    const LONG: usize = 4096;
    let mut random = Random(thorough::seed(seed));
    let mut turn = 0usize;
    let engines = [None, Some(3), Some(1)].map(|blocks| {
        Engine::with_shape(
            Arc::clone(device),
            Shape { threads: None, blocks, walk: Some(ForcedWalk::Tables) },
        )
    });
    for dtype in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let vector = 16 / dtype.size();
        let around = [vector, 2 * vector, 4 * vector, 64, 128, 256, 320];
        let lens = around.into_iter().flat_map(|n| [n - 1, n, n + 1]);
        let long = [LONG - 1, LONG, LONG + 1, 3 * LONG + 70, 6 * LONG];
        for len in lens.chain([1, 3, 7, 1000]).chain(long).filter(|&n| n > 0) {
            for op in ROOTS {
                turn += 1;
                if !keep(turn) {
                    continue;
                }
                let engine = &engines[random.place(engines.len())];
                let rows = 1 + random.below((9000 / len).clamp(3, 150) as u64);
                let gap = [0, 0, 0, 1, vector, 3][random.below(6) as usize];
                let before = random.below(2 * vector as u64) as usize;
                let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
                let (shape, reduced) = match random.below(5) {
                    0 => ([len, rows as usize], [true, false]),
                    _ => ([rows as usize, len], [false, true]),
                };
                let layout = Layout::table(shape, dtype.size(), before, gap);
                let sample = Sample::new(dtype, layout, pattern, &mut random);
                check(engine, op, &sample, &reduced, pattern);
            }
        }
    }
}

/// The same over any axes.
fn any_root_rows(engines: &[Engine], seed: u64, rounds: usize) {
    let mut random = Random(thorough::seed(seed));
    let floats: Vec<DType> = DType::ALL.into_iter().filter(|d| d.is_float()).collect();
    for round in 0..rounds {
        let dtype = floats[round % floats.len()];
        let shape = shape(&mut random, &LENS, 4, 5000);
        let layout = Layout::random(&shape, dtype.size(), &mut random);
        let pattern = PATTERNS[random.below(PATTERNS.len() as u64) as usize];
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        for set in 0..1u32 << shape.len() {
            let reduced: Vec<bool> = (0..shape.len()).map(|i| set >> i & 1 == 1).collect();
            let elements: usize =
                (0..shape.len()).filter(|&i| reduced[i]).map(|i| shape[i]).product();
            if elements > 4096 {
                continue;
            }
            let engine = &engines[random.below(engines.len() as u64) as usize];
            let op = ROOTS[random.place(ROOTS.len())];
            let note = format!("{pattern}, round {round}");
            check(engine, op, &sample, &reduced, &note);
        }
    }
}

/// Logarithms of sums of any size, and none; products at the formats' ends.
fn roots_at_the_ends(engine: &Engine) {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    #[rustfmt::skip]
    let rows = [
        [0.0, 0.0, 0.0, 0.0], [-0.0, -0.0, -inf, -inf], [-inf; 4], [inf, 1.0, -inf, 2.0],
        [nan, 1.0, 1.0, 1.0], [inf, nan, 0.0, 0.0], [256.0, 256.0, -inf, 255.0], [257.0, 256.0, 1.0, 0.0],
        [-256.0; 4], [-257.0, -256.5, -300.0, -900.0], [6e4, -6e4, 6e4, 0.0], [-1.0, -1.5, -2.0, -2.5],
        [-1.3862943611198906; 4], [1e-3, -37.0, -37.0, -37.0], [700.0, -700.0, 1.0, 1.0], [-0.69, -0.7, -50.0, -80.0],
        [2e-5, 2e-5, 1.0, 1.0], [-3e-8, 1.0, 1.0, 0.5], [inf, 0.0, 1.0, 1.0], [-inf, 2.0, 3.0, -1.0],
        [-0.0, 5.0, 5.0, 5.0], [6e4, 6e4, 6e4, 6e4], [1.5, 1.5, 1.5, 1.5], [1.0 / 3.0; 4],
    ];
    for op in ROOTS {
        fn ask<T: Element>(engine: &Engine, op: Op, rows: &[[f64; 4]], make: impl Fn(f64) -> T) {
            let items: Vec<T> = rows.as_flattened().iter().map(|&x| make(x)).collect();
            check_both(engine, op, rows.len(), &items, "ends");
        }
        ask(engine, op, &rows, |x| x);
        ask(engine, op, &rows, |x| x as f32);
        ask(engine, op, &rows, f16::from_f64);
        ask(engine, op, &rows, bf16::from_f64);
    }
    nearly_ties(engine);
}

/// Logarithms so close to halfway between two numbers of f32 that a rough one does
/// not tell which is the nearer.
fn nearly_ties(engine: &Engine) {
    let mut random = Random(0x71e5);
    let mut items = Vec::new();
    while items.len() < 2 * 24 {
        let sum = core::f64::consts::SQRT_2 * (0.995 + 0.01 * random.unit());
        let part = 0.1 + 0.8 * random.unit();
        let pair = [part, 1.0 - part].map(|p| (p * sum).ln() as f32);
        let logarithm = pair.map(|x| f64::from(x).exp()).iter().sum::<f64>().ln();
        // In units of its last bit.
        let rest = (logarithm * 2f64.powi(25)).fract();
        if (rest - 0.5).abs() < 1e-5 {
            items.extend(pair);
        }
    }
    check_both(engine, Op::LogSumExp, items.len() / 2, &items, "nearly ties");
}

/// Few long rows have these numbers, too; integers have neither.
fn what_has_roots(device: &Arc<dyn Device>) {
    let engine = tables(Arc::clone(device));
    let mut random = Random(8);
    for (dtype, shape) in [(DType::F32, [1, 5000]), (DType::I32, [30, 20]), (DType::U8, [3, 9])] {
        let sample =
            Sample::new(dtype, Layout::table(shape, dtype.size(), 0, 0), "signed", &mut random);
        let placed = Placed::in_junk(&**device, &sample);
        for op in ROOTS {
            if dtype.is_float() {
                check(&engine, op, &sample, &[false, true], "a long row");
                continue;
            }
            // SAFETY: the array was placed here, and nobody writes to it.
            let got = unsafe {
                engine.numbers_of_view(&[op.into()], &placed.view, &[false, true], Stream::DEFAULT)
            };
            assert_eq!(got.unwrap(), [None], "{op} of {dtype}");
            let reduced = [false, true];
            let got = engine.numbers_of_host_view(&[op], &sample.view(), &reduced, Stream::DEFAULT);
            assert_eq!(got.unwrap(), None, "{op} of {dtype} on the host");
        }
    }
}

#[test]
fn rows_of_roots() {
    let device = sim(Schedule::Lockstep);
    let engine = tables(Arc::clone(&device));
    root_rows(&device, 41, |turn| turn % up_to(1, 9) == 0);
    roots_at_the_ends(&engine);
    what_has_roots(&device);
}

#[test]
fn rows_of_roots_in_random_order() {
    root_rows(&sim(Schedule::Random { seed: 6 }), 42, |turn| turn % up_to(7, 51) == 0);
    any_root_rows(&engines(&sim(Schedule::Random { seed: 7 })), 43, up_to(12, 4));
}

/// Rows of columns side by side, each of its own kind, which mostly changes from
/// 4096 rows to 4096 rows: around the ends of cells and of those that are kept, of
/// any size, of no size, and with what is no number.
fn mixed_columns<T: Element>([rows, columns]: [usize; 2], random: &mut Random) -> Vec<T> {
    let infinity: T = from_f64(f64::INFINITY);
    let kinds: Vec<u64> = (0..columns).map(|_| random.below(14)).collect();
    let changes = random.below(3) != 0;
    let (at, period) = (random.place(rows), 4096);
    let mut items = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        for (c, &kind) in kinds.iter().enumerate() {
            // Of most columns one period alone is special.
            let here = !changes || row / period == (at + c * period) % rows / period;
            let signed = random.unit() * 4.0 - 2.0;
            items.push(match if here { kind } else { 0 } {
                // Around the ends of cells, and at both sides of what is dropped.
                1 => from_f64(271.0 + 2.0 * random.unit()),
                2 => from_f64(-15.0 - 2.0 * random.unit()),
                3 => from_f64(if row == at { 15.5 } else { -79.0 - 2.0 * random.unit() }),
                4 => from_f64(if row == at { 300.0 } else { 191.5 + random.unit() }),
                5 => from_f64(f64::NEG_INFINITY),
                6 if row == at => from_f64(f64::NAN),
                7 if row == at => infinity,
                8 => T::from_bits(random.next()),
                9 => from_f64(signed * 2f64.powi(random.below(121) as i32 - 60)),
                10 => T::from_bits(random.next() & 0x3f),
                11 if row == at => from_f64(-0.0),
                12 => T::from_bits(infinity.bits() - 1 - random.below(3)),
                13 => from_f64(-600.0 - random.unit()),
                _ => from_f64(signed),
            });
        }
    }
    items
}

/// Columns of these numbers: short and tall, with ragged ends,
/// side by side in any number, alone or in several tables, at every alignment, with
/// and without gaps, and with rows along two axes. Each takes one launch, whose
/// number `launches` counts if it can.
fn root_columns(
    device: &Arc<dyn Device>,
    launches: &dyn Fn() -> u64,
    seed: u64,
    keep: impl Fn(usize) -> bool,
) {
    const TALL: usize = 4096;
    const ROWS: [usize; 24] = [
        1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 257, 1000, 4095, 4096,
        4097, 8193,
    ];
    const LONG: [usize; 4] = [3 * TALL + 70, 7 * TALL, 33 * TALL + 1, 64 * TALL];
    let mut random = Random(thorough::seed(seed));
    let mut turn = 0usize;
    let engines = [None, Some(1), Some(5)].map(|blocks| {
        Engine::with_shape(
            Arc::clone(device),
            Shape { threads: None, blocks, walk: Some(ForcedWalk::Tables) },
        )
    });
    for dtype in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let size = dtype.size();
        let vector = 16 / size;
        let counts = [2, vector - 1, vector, vector + 1, 3 * vector, 7 * vector + 1, 8 * vector];
        let more = [8 * vector + 1, 16 * vector, 33 * vector - 1, 260 * vector];
        for rows in ROWS.into_iter().chain(LONG) {
            for op in ROOTS {
                turn += 1;
                if !keep(turn) {
                    continue;
                }
                let most = if rows > TALL { 40_000 } else { 12_000 };
                let count = counts.into_iter().chain(more).filter(|&n| n > 1 && n * rows <= most);
                let count: Vec<usize> = count.collect();
                let count = if count.is_empty() { 2 } else { count[random.place(count.len())] };
                let most = (most / (rows * count)).clamp(1, 5) as u64;
                let tables = 1 + random.below(most) as usize;
                let (before, gap) = ([0, 0, 0, 1, vector, 3][random.place(6)], random.place(6));
                let gap = [0, 0, 0, 1, vector, 3][gap];
                let (shape, reduced) = match random.below(5) {
                    0 => (vec![tables, rows, count], vec![false, true, false]),
                    1 if rows % 2 == 0 => {
                        (vec![2, tables, rows / 2, count], vec![true, false, true, false])
                    }
                    _ => (vec![rows, count], vec![true, false]),
                };
                let layout = Layout::columns(&shape, size, before, gap);
                let plain = random.below(3) == 0;
                let pattern = PATTERNS[random.place(PATTERNS.len())];
                let (pattern, sample) = if plain {
                    (pattern, Sample::new(dtype, layout, pattern, &mut random))
                } else {
                    // The layout's gaps come out of the rows' elements.
                    let lines = (layout.bytes / size).div_ceil(count);
                    let items = with_element!(dtype, T => {
                        let mut items = mixed_columns::<T>([lines, count], &mut random);
                        items.truncate(layout.bytes / size);
                        Sample::of(layout, &items)
                    });
                    ("mixed", items)
                };
                let engine = &engines[random.place(engines.len())];
                let before = launches();
                check(engine, op, &sample, &reduced, pattern);
                assert!(launches() - before <= 1, "{op} of {dtype} {:?}", sample.layout);
            }
        }
    }
}

#[test]
fn columns_of_roots() {
    let counted = Arc::new(Altered::new(interpreter(Schedule::Lockstep), |_| ()));
    let device: Arc<dyn Device> = counted.clone();
    root_columns(&device, &|| counted.launches(), 61, |turn| turn % up_to(1, 5) == 0);
}

#[test]
fn columns_of_roots_in_random_order() {
    let device = sim(Schedule::Random { seed: 8 });
    root_columns(&device, &|| 0, 62, |turn| turn % up_to(7, 35) == 0);
}

/// Arrays in the host's memory have the numbers of the same arrays on the device,
/// however many boxes they come in, or none.
fn of_host_views(engine: &Engine, seed: u64, rounds: usize) {
    let mut random = Random(thorough::seed(seed));
    let device = &**engine.device();
    for round in 0..rounds {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let ops: &[Op] = match round % 4 {
            0 => &[Op::Sum],
            // Elements in one order, and in both.
            1 => &[Op::ArgMax, Op::ArgMin],
            2 => &[Op::Mean, Op::ArgMin, Op::Range],
            3 if dtype.is_float() => &[Op::LogSumExp, Op::Min],
            _ => &[Op::Mean, Op::Max, Op::CountNonzero],
        };
        let shape = shape(&mut random, &[0, 1, 2, 5, 16, 33, 129, 700], 4, up_to(60_000, 20_000));
        let layout = Layout::random(&shape, dtype.size(), &mut random);
        let sample = Sample::new(dtype, layout, "signed", &mut random);
        let reduced: Vec<bool> = shape.iter().map(|_| random.below(2) == 0).collect();
        let placed = Placed::in_junk(device, &sample);
        let numbers: Vec<Number> = ops.iter().map(|&op| op.into()).collect();
        // SAFETY: the array was placed here, and nobody writes to it.
        let expected =
            unsafe { engine.numbers_of_view(&numbers, &placed.view, &reduced, Stream::DEFAULT) };
        let expected: Option<Vec<_>> = expected.unwrap().into_iter().collect();
        let got = engine.numbers_of_host_view(ops, &sample.view(), &reduced, Stream::DEFAULT);
        let got = got.unwrap();
        let len: usize = (0..shape.len()).filter(|&i| reduced[i]).map(|i| shape[i]).product();
        // Where the device has little memory, an output's elements may not fit.
        if got.is_some() || len * dtype.size() < 32 << 10 {
            assert!(got == expected, "{ops:?} of {dtype} {:?} over {reduced:?}", sample.layout);
        }
    }
}

#[test]
fn of_the_hosts_memory() {
    of_host_views(&tables(sim(Schedule::Lockstep)), 51, up_to(39, 13));
    let little = Sim::new(Options { checks: Checks::ALL, ..Options::default() });
    let little = Altered::new(little, |limits| limits.memory = 1);
    of_host_views(&tables(Arc::new(little)), 52, up_to(39, 13));
}

/// The kernels for devices before Ampere, which differ where instructions are newer.
#[test]
fn on_a_turing_device() {
    let old = |limits: &mut warpfold_cuda::Limits| limits.capability = (7, 5);
    let device: Arc<dyn Device> = Arc::new(Altered::new(interpreter(Schedule::Lockstep), old));
    let all = engines(&device);
    sweep(&all, 91, up_to(39, 13), up_to(MOST, 900), &OPS);
    sweep(&all, 92, 13, up_to(MOST, 400), &SQUARES);
    ties(&all, 93, |turn| turn % up_to(13, 65) == 0);
    columns(&all, 94, |turn| turn % up_to(13, 65) == 0);
    root_rows(&device, 95, |turn| turn % up_to(13, 65) == 0);
    root_columns(&device, &|| 0, 96, |turn| turn % up_to(13, 65) == 0);
    rows(&tables(device), 97, |turn| turn % up_to(13, 65) == 0);
}

/// Samples for compute-sanitizer, which takes long for every kernel that is new to
/// it: one process for each.
#[test]
fn sanitized_arrays_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    sweep(&engines(&device), 77, 13, MOST, &OPS);
}

#[test]
fn sanitized_squares_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    sweep(&engines(&device), 81, 13, MOST, &SQUARES);
}

#[test]
fn sanitized_columns_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    columns(&engines(&device), 78, |turn| turn % 9 == 0);
    columns_of_far_elements(&device, |turn| turn % 2 == 0);
}

#[test]
fn sanitized_rows_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let engine = tables(device);
    rows(&engine, 79, |turn| turn % 12 == 0);
    rows_far_apart(&engine, 442, |turn| turn % 3 == 1);
}

#[test]
fn sanitized_roots_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    root_rows(&device, 80, |turn| turn % 61 == 0);
    root_columns(&device, &|| 0, 83, |turn| turn % 61 == 0);
}

#[test]
fn sanitized_ties_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    ties(&engines(&device), 81, |turn| turn % 7 == 0);
}

#[test]
fn sanitized_views_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let all = walkers(&device);
    sweep(&all, 231, 26, MOST, &OPS);
    steps(&all, 238, 39, 300);
    packs(&all, 239, 45, 300);
    hard_floats(&all, 232, 12, 20);
    together(&all, 233, 40);
}

#[test]
fn sanitized_outputs_abreast_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    few_elements(&abreast(&device), 411, 39);
    few_floats(&abreast(&device), 413, |turn| turn % 5 == 0);
    few_f64(&abreast(&device), 414, 3);
}

#[test]
fn answers_at_the_lower_end_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    at_the_lower_end(&device);
    lost_parts(&device);
}

#[test]
fn outputs_abreast_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    few_elements(&abreast(&device), 412, 1300);
    for seed in 0..40 {
        few_floats(&abreast(&device), 500 + seed, |_| true);
    }
    few_f64(&abreast(&device), 415, 300);
}

#[test]
fn outputs_that_are_lost_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    lost_outputs(&walkers(&device), 245, 1320, 60_000);
    lost_outputs(&abreast(&device), 246, 1320, 60_000);
}

#[test]
fn sanitized_outputs_that_are_lost_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    lost_outputs(&walkers(&device), 247, 66, 4000);
    lost_outputs(&abreast(&device), 248, 66, 4000);
}

/// Large enough for many blocks that share outputs.
#[test]
fn views_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let all = walkers(&device);
    sweep(&all, 233, 390, 50 * MOST, &OPS);
    sweep(&all, 234, 130, 50 * MOST, &POSITIONS);
    sweep(&all, 235, 130, 50 * MOST, &SQUARES);
    steps(&all, 239, 1300, 20_000);
    packs(&all, 240, 900, 20_000);
    hard_floats(&all, 236, 560, 60);
    together(&all, 237, 560);
}

#[test]
fn arrays_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let all = engines(&device);
    sweep(&all, 5, 1300, MOST, &OPS);
    sweep(&all, 6, 650, MOST, &POSITIONS);
    sweep(&all, 7, 650, MOST, &SQUARES);
    of_host_views(&tables(device), 51, 300);
}

#[test]
fn ties_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    (0..6).for_each(|seed| ties(&engines(&device), 41 + seed, |_| true));
}

#[test]
fn columns_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    (0..6).for_each(|seed| columns(&engines(&device), 31 + seed, |_| true));
    let engine = tables(device);
    scales_of_columns(&engine);
    columns_again(&engine);
    columns_of_many_blocks(engine.device());
    packs_of_many_blocks(engine.device());
    squares_of_far_scales(&engine);
    equal_elements_side_by_side(&engine);
    specials_of_columns(&engine);
    many_rows_of_squares(engine.device());
    columns_of_far_elements(engine.device(), |_| true);
}

#[test]
fn rows_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    let engine = tables(device);
    rows(&engine, 21, |_| true);
    ranges(&engine);
    the_last_bit(&engine);
    ties_of_short_formats(&engine);
    sums_beside_ties(&engine);
    sums_of_large_elements(&engine);
    ends(&engine);
    differences(&engine);
    extremes_among_nans(&engine);
    deviations(&engine);
    squares_of_short_rows(&engine);
    ends_of_integers(&engine);
}

#[test]
fn rounding_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    rounding(&device);
    rounding_of_squares(&device);
    misfits(&tables(device));
}

#[test]
fn roots_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    root_rows(&device, 41, |_| true);
    any_root_rows(&engines(&device), 43, 200);
    let engine = tables(device);
    roots_at_the_ends(&engine);
}

#[test]
fn columns_of_roots_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    (0..2).for_each(|seed| root_columns(&device, &|| 0, 61 + seed, |_| true));
}

/// The payload of a sum: limbs, and counters after them.
fn payload(limbs: &[i64], counters: [i64; 4]) -> Vec<u8> {
    limbs.iter().chain(&counters).flat_map(|w| w.to_le_bytes()).collect()
}

/// Limbs that round hard: around every place, halfway and one beside it, of
/// both signs, with carries that are still to move.
fn hard_limbs(count: usize, random: &mut Random) -> Vec<i64> {
    let mut limbs = vec![0i64; count];
    let mut add = |bit: i64, negative: bool| {
        if bit >= 0 {
            // The highest limb has more bits than the others.
            let limb = (bit as usize / 32).min(count - 1);
            let unit = 1i64 << (bit - 32 * limb as i64);
            limbs[limb] += if negative { -unit } else { unit };
        }
    };
    let top = random.below(32 * count as u64 + 29) as i64;
    let negative = random.below(2) == 0;
    add(top, negative);
    match random.below(6) {
        // A tie at some precision, and a bit somewhere below.
        0..=3 => {
            let precision = [8, 11, 24, 53][random.below(4) as usize];
            add(top - precision, negative ^ (random.below(4) == 0));
            if random.below(2) == 0 {
                add(top - precision + 1, negative);
            }
            if random.below(2) == 0 {
                let below = random.below(1 + top as u64) as i64;
                add(top - precision - 1 - below, random.below(2) == 0);
            }
        }
        // All ones, so that rounding carries far.
        4 => (0..top).for_each(|bit| add(bit, negative)),
        _ => (0..top).for_each(|bit| {
            if random.below(2) == 0 {
                add(bit, negative);
            }
        }),
    }
    with_carries(&mut limbs, random);
    limbs
}

/// Makes of limbs others of the same number, with carries that are still to move.
fn with_carries(limbs: &mut [i64], random: &mut Random) {
    for i in 1..limbs.len() {
        let carry = random.below(1 << 20) as i64 - (1 << 19);
        if random.below(3) == 0 {
            limbs[i] -= carry;
            limbs[i - 1] += carry << 32;
        }
    }
}

/// A count that a total could be of, or such that divides badly.
fn count(random: &mut Random) -> i64 {
    4 + (random.next() >> (1 + random.below(62))) as i64 / 2
}

#[test]
fn totals_round_as_core_rounds_them() {
    rounding(&sim(Schedule::Lockstep));
}

fn rounding(device: &Arc<dyn Device>) {
    let engine = tables(Arc::clone(device));
    let mut random = Random(0x40d);
    for dtype in DType::ALL {
        let limbs = limbs(Kind::Sum, dtype)[0];
        let make = |random: &mut Random| {
            let n = count(random);
            let counters =
                [n, special(dtype, random), special(dtype, random), special(dtype, random)];
            payload(&hard_limbs(limbs, random), counters)
        };
        for op in [Op::Sum, Op::Mean] {
            check_payloads(&engine, op, dtype, 3000, &mut random, make);
        }
    }
}

/// How many limbs the superaccumulators of a state have.
fn limbs(kind: Kind, dtype: DType) -> Vec<usize> {
    let words = |kind| AnyState::identity(kind, dtype).unwrap().payload().len() / 8;
    match kind {
        Kind::Moments => {
            let squares = words(Kind::SquareSum);
            vec![words(kind) - squares - 4, squares - 4]
        }
        _ => vec![words(kind) - 4],
    }
}

/// A counter of NaNs or infinities, which is rarely not 0.
fn special(dtype: DType, random: &mut Random) -> i64 {
    i64::from(dtype.is_float() && random.below(100) == 0)
}

/// Finishes so many payloads that are valid, as core does.
fn check_payloads(
    engine: &Engine,
    op: Op,
    dtype: DType,
    count: usize,
    random: &mut Random,
    make: impl Fn(&mut Random) -> Vec<u8>,
) {
    let kind = op.kind();
    let (mut payloads, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (bytes, state) = loop {
            let bytes = make(random);
            if let Ok(state) = AnyState::from_payload(kind, dtype, &bytes) {
                break (bytes, state);
            }
        };
        // Totals that do not fit would hide the others.
        if let Ok(value) = state.finish(op, &Rules::default()) {
            payloads.push(bytes);
            expected.push(value.first());
        }
    }
    let numbers = numbers_of(engine, op, dtype, &payloads).unwrap();
    for ((got, expected), bytes) in numbers.iter().zip(&expected).zip(&payloads) {
        assert!(got == *expected, "{op} of {dtype}: {got:?}, not {expected:?}: {bytes:?}");
    }
}

/// What the device makes of payloads, if all totals fit.
fn numbers_of(engine: &Engine, op: Op, dtype: DType, payloads: &[Vec<u8>]) -> Option<Numbers> {
    let bytes = payloads.concat();
    let mut numbers = Numbers::zeros(op.answer_type(dtype), payloads.len());
    let from = Buffer::new(engine.device(), bytes.len() as u64).unwrap();
    let to = Buffer::new(engine.device(), numbers.bytes().len() as u64).unwrap();
    from.copy_in(Stream::DEFAULT, 0, &bytes).unwrap();
    let (at, stream) = (from.address(), Stream::DEFAULT);
    // SAFETY: the payloads are there, and there is room for the numbers.
    let made = unsafe { engine.finish_into(op, dtype, at, payloads.len(), to.address(), stream) };
    to.copy_out(stream, 0, numbers.bytes_mut()).unwrap();
    from.free().unwrap();
    to.free().unwrap();
    made.unwrap().then_some(numbers)
}

#[test]
fn totals_that_do_not_fit_are_refused() {
    misfits(&tables(sim(Schedule::Lockstep)));
}

/// Totals of integers at the ends of what fits, and as far above and below as
/// limbs reach.
fn misfits(engine: &Engine) {
    let mut random = Random(0xf175);
    for dtype in DType::ALL.into_iter().filter(|d| !d.is_float()) {
        for (op, kind) in [(Op::Sum, Kind::Sum), (Op::SumSq, Kind::SquareSum)] {
            let limbs = limbs(kind, dtype)[0];
            let mut numbers = vec![BigInt::ZERO];
            for bit in [5, 31, 32, 63, 64, 65, 95, 96, 127, 128, 150, 160, 190, 220] {
                let power = BigInt::from(1) << bit;
                numbers.extend([-1, 0, 1].map(|beside| &power + beside));
                numbers.extend([-1, 0, 1].map(|beside| beside - &power));
                numbers.push(&power + i64::MIN);
            }
            for number in numbers {
                let Some(limbs) = limbs_of(&number, limbs, &mut random) else { continue };
                let bytes = payload(&limbs, [7, 0, 0, 0]);
                let Ok(state) = AnyState::from_payload(kind, dtype, &bytes) else { continue };
                let expected = state.finish(op, &Rules::default()).ok();
                let got = numbers_of(engine, op, dtype, &[bytes]).and_then(|n| n.get(0));
                assert_eq!(got, expected.map(Value::first), "{op} of {dtype}: {number}");
            }
        }
    }
}

/// Variances of payloads whose terms cancel, from a few bits to nearly all: leading words are not enough for each.
#[test]
fn variances_of_long_rows_that_cancel() {
    let engine = tables(sim(Schedule::Lockstep));
    let mut random = Random(0x7c3d);
    for bits in [0, 2, 4, 5, 6, 8, 12, 20, 25] {
        let items: Vec<f64> =
            (0..2 * 2100).map(|_| f64::from(1 << bits) + random.unit() - 0.5).collect();
        let sample = Sample::of(Layout::contiguous(&[2, 2100], 8), &items);
        for op in [Op::Var, Op::Std] {
            check(&engine, op, &sample, &[false, true], &format!("{bits} bits"));
        }
    }
}

/// f64 near the lower end of what they can be: quotients and roots that are subnormal, halves of the last bit
/// among them, or hardly normal, of any number of elements and by every walk.
fn at_the_lower_end(device: &Arc<dyn Device>) {
    let mut random = Random(0x10e4);
    let mut engines = abreast(device);
    engines.extend(walkers(device).into_iter().take(2));
    engines.push(tables(Arc::clone(device)));
    for len in [1, 2, 3, 4, 6, 16, 17, 600] {
        let outputs = if len > 20 { 6 } else { 70 };
        for bits in [2, 20, 50, 56, 64, 200] {
            let mut item = || {
                let unit = f64::from_bits(1 + random.below(1 << (bits - 1).min(51)));
                let sign = if random.below(3) == 0 { -1.0 } else { 1.0 };
                sign * unit * f64::exp2(f64::from(bits.max(51) - 51))
            };
            let items: Vec<f64> = (0..len * outputs).map(|_| item()).collect();
            for (shape, reduced) in
                [([outputs, len], [false, true]), ([len, outputs], [true, false])]
            {
                let sample = Sample::of(Layout::contiguous(&shape, 8), &items);
                for op in [Op::Sum, Op::Mean, Op::Norm2, Op::Std] {
                    for engine in &engines {
                        check(engine, op, &sample, &reduced, &format!("{bits} bits"));
                    }
                }
            }
        }
    }
}

#[test]
fn answers_at_the_lower_end() {
    at_the_lower_end(&sim(Schedule::Lockstep));
}

#[test]
fn roots_and_variances_round_as_core_rounds_them() {
    rounding_of_squares(&sim(Schedule::Lockstep));
}

fn rounding_of_squares(device: &Arc<dyn Device>) {
    let engine = tables(Arc::clone(device));
    let mut random = Random(0x5c4a);
    for dtype in DType::ALL {
        let dot = limbs(Kind::SquareSum, dtype)[0];
        let squares = |random: &mut Random| {
            let limbs = match random.below(3) {
                0 => hard_limbs(dot, random),
                _ => loop {
                    let number = hard_number(dot, random);
                    if let Some(limbs) = limbs_of(&number, dot, random) {
                        break limbs;
                    }
                },
            };
            let counters = [count(random), special(dtype, random), special(dtype, random), 0];
            payload(&limbs, counters)
        };
        for op in [Op::SumSq, Op::Norm2] {
            check_payloads(&engine, op, dtype, up_to(2000, 500), &mut random, squares);
        }
        let formats = limbs(Kind::Moments, dtype);
        let moments = |random: &mut Random| {
            let n = count(random);
            let (sum, squares) = loop {
                let (sum, squares) = hard_moments(&formats, n, random);
                let sum = limbs_of(&sum, formats[0], random);
                if let Some(both) = sum.zip(limbs_of(&squares, formats[1], random)) {
                    break both;
                }
            };
            let [nans, positive, negative] = [(); 3].map(|()| special(dtype, random));
            let of_sum = payload(&sum, [n, nans, positive, negative]);
            [of_sum, payload(&squares, [n, nans, positive + negative, 0])].concat()
        };
        for op in [Op::Var, Op::Std] {
            check_payloads(&engine, op, dtype, up_to(2000, 500), &mut random, moments);
        }
    }
}

/// A number that is a tie at some precision or of which the root is, or just
/// beside such a number, with room for it in so many limbs mostly.
fn hard_number(limbs: usize, random: &mut Random) -> BigInt {
    let bits = [8, 11, 24, 53][random.place(4)] + random.below(2);
    let one = BigInt::from(1u64 << bits | random.next() & ((1 << bits) - 1));
    let number = if random.below(2) == 0 { &one * &one } else { one };
    // As wide as a window, or of any width.
    let wide = random.below(4) == 0;
    let window = (126 + random.below(5)).saturating_sub(number.bits());
    let shift = if wide { window } else { random.below(32 * limbs as u64) };
    (number << shift) + ((random.below(3) as i64 - 1) << random.below(3))
}

/// A sum of n elements and a sum of their squares whose variance rounds hard.
fn hard_moments(limbs: &[usize], n: i64, random: &mut Random) -> (BigInt, BigInt) {
    let mut number = |limbs: usize| match random.below(4) {
        0 => BigInt::ZERO,
        1 => number_of(&hard_limbs(limbs, random)),
        _ => hard_number(limbs, random) * (1 - 2 * random.below(2) as i64),
    };
    let (sum, other) = (number(limbs[0]), number(limbs[1]));
    let least: BigInt = (&sum * &sum + (n - 1)) / n;
    match random.below(4) {
        // Mean and variance are whole, or almost so: there are n of the one
        // squared and of the other.
        0 => {
            let mean = sum / n;
            let beside = random.below(3) as i64 - 1;
            (&mean * n, (&mean * &mean + other) * n + beside)
        }
        // All but little cancels; less than nothing is no variance.
        1 => (sum, least + (random.below(5) as i64 - 1)),
        2 => (sum, least + other),
        _ => (sum, other),
    }
}

/// The number that limbs stand for.
fn number_of(limbs: &[i64]) -> BigInt {
    limbs.iter().rev().fold(BigInt::ZERO, |number, &limb| (number << 32) + limb)
}

/// Limbs of a number, with carries that are still to move, if there is room for
/// it.
fn limbs_of(number: &BigInt, count: usize, random: &mut Random) -> Option<Vec<i64>> {
    let mut rest = number.clone();
    let mut limbs = Vec::new();
    for _ in 1..count {
        let above: BigInt = &rest >> 32;
        let digit: BigInt = &rest - (&above << 32);
        limbs.push(i64::try_from(digit).ok()?);
        rest = above;
    }
    // A carry must not leave the highest.
    let highest = i64::try_from(rest).ok().filter(|l| l.unsigned_abs() < 1 << 62)?;
    limbs.push(highest);
    with_carries(&mut limbs, random);
    Some(limbs)
}
