//! Arrays of any shape and strides in memory that ends where they end: the
//! same states as of their elements in a row. Under a sanitizer or valgrind
//! (`tools/sanitize.sh`), and under Miri, a read beyond the array is found.

use crate::thorough::{cases, seed};
use fastrand::Rng;
use warpfold_core::layout::View;
use warpfold_core::op::{Kind, Op, Rules};
use warpfold_core::{DType, with_element};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Job, Outputs, Threads, Worker};

/// An array in memory of exactly the bytes that it needs.
struct Array {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
    bytes: Box<[u8]>,
}

impl Array {
    /// Axes in any order in memory, reversed, spread out, broadcast or off
    /// their alignment.
    fn new(dtype: DType, shape: &[usize], random: &mut Rng) -> Array {
        let size = dtype.size() as isize;
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        if random.usize(..2) == 0 {
            order.reverse();
        }
        let tame = random.usize(..2) == 0;
        let mut strides = vec![0isize; shape.len()];
        let (mut extent, mut low, mut high) = (size, 0isize, 0isize);
        for axis in order {
            let n = shape[axis] as isize;
            let step = if tame { 1 } else { [1, 1, -1, -1, 2, 0][random.usize(..6)] };
            let odd = isize::from(!tame && random.usize(..8) == 0);
            strides[axis] = (extent + odd) * step;
            let reach = (n - 1).max(0) * strides[axis];
            low += reach.min(0);
            high += reach.max(0);
            extent = (extent + odd) * step.abs().max(1) * n.max(1);
        }
        let len = if shape.contains(&0) { 0 } else { (high - low + size) as usize };
        let bits = random.usize(..3) == 0;
        let bytes = (0..len)
            .map(|i| if bits || i % 8 == 1 { random.u64(..) as u8 } else { (i % 61) as u8 })
            .collect();
        let offset = low.unsigned_abs();
        Array { dtype, shape: shape.to_vec(), strides, offset, bytes }
    }

    fn view(&self) -> View<'_> {
        let Array { dtype, shape, strides, offset, bytes } = self;
        View::strided(*dtype, bytes, *offset, shape, strides).unwrap()
    }

    /// The bytes of the elements in C order.
    fn in_a_row(&self) -> Vec<u8> {
        let count: usize = self.shape.iter().product();
        let mut out = Vec::new();
        for index in 0..count {
            let (mut rest, mut at) = (index, self.offset as isize);
            for (&n, &stride) in self.shape.iter().zip(&self.strides).rev() {
                at += (rest % n) as isize * stride;
                rest /= n;
            }
            out.extend_from_slice(&self.bytes[at as usize..][..self.dtype.size()]);
        }
        out
    }
}

fn kinds(dtype: DType) -> Vec<Kind> {
    let one = |&kind: &Kind| !kind.takes_pairs() && Worker::new(kind, dtype, Isa::BASELINE).is_ok();
    Kind::ALL.into_iter().filter(one).collect()
}

/// The states of every output, as bytes.
fn states(views: [Option<&View<'_>>; 2], reduced: &[bool], kinds: &[Kind], isa: Isa) -> Vec<u8> {
    let job = Job {
        views,
        reduced,
        kinds,
        start: 3,
        initial: None,
        marks: None,
        isa,
        threads: Threads::Exactly(2),
    };
    job.states().unwrap().iter().flatten().flat_map(|state| state.to_bytes()).collect()
}

/// Sums and extremes, many outputs at a time.
fn answers(view: &View<'_>, reduced: &[bool], isa: Isa) -> Vec<u8> {
    let mut out = Vec::new();
    let ops = [(Op::Sum, Kind::Sum), (Op::Mean, Kind::Sum), (Op::Max, Kind::Extrema)];
    for (op, kind) in ops.into_iter().filter(|(op, _)| op.supports(view.dtype())) {
        let (kinds, threads) = ([kind], Threads::Exactly(2));
        let job = Job {
            views: [Some(view), None],
            reduced,
            kinds: &kinds,
            start: 0,
            initial: None,
            marks: None,
            isa,
            threads,
        };
        // Totals of long integers may not fit, and nothing has no maximum.
        let Ok(outputs) = job.values(&[(op, 0)], &Rules::default()) else { continue };
        for output in outputs {
            match output {
                Outputs::Values(values) => {
                    out.extend(values.iter().flat_map(|v| v.first().to_bits().to_le_bytes()));
                }
                Outputs::Numbers { numbers, .. } => {
                    let bits = (0..numbers.len()).filter_map(|i| Some(numbers.get(i)?.to_bits()));
                    out.extend(bits.flat_map(u64::to_le_bytes));
                }
            }
        }
    }
    out
}

fn shape(random: &mut Rng, miri: bool) -> Vec<usize> {
    let long = if miri { [1, 2, 3, 5, 9] } else { [1, 3, 33, 70, 600] };
    let axes = random.usize(..if miri { 3 } else { 4 });
    (0..axes).map(|_| long[random.usize(..long.len())]).collect()
}

#[test]
fn views_have_the_states_of_their_elements_in_a_row() {
    let mut random = Rng::with_seed(seed(0x5eed_5eed));
    for round in 0..cases() as usize {
        let dtype = DType::ALL[round % DType::ALL.len()];
        let mut shape = shape(&mut random, cfg!(miri));
        while shape.iter().product::<usize>() > 40_000 {
            shape.pop();
        }
        if random.usize(..12) == 0 {
            shape.push(0);
        }
        let reduced: Vec<bool> = shape.iter().map(|_| random.usize(..2) == 0).collect();
        let [x, y] = [0, 1].map(|_| Array::new(dtype, &shape, &mut random));
        let [x_row, y_row] = [x.in_a_row(), y.in_a_row()];
        let isas: Vec<Isa> = Isa::available().collect();
        let isa = isas[random.usize(..isas.len())];
        let kinds = kinds(dtype);
        with_element!(dtype, T => {
            let aligned = |bytes: &[u8]| bytes
                .chunks_exact(size_of::<T>())
                .map(bytemuck::pod_read_unaligned::<T>)
                .collect::<Vec<T>>();
            let [x_row, y_row] = [aligned(&x_row), aligned(&y_row)];
            let row = |items| View::from_bytes(dtype, bytemuck::cast_slice(items), &shape).unwrap();
            let [x_row, y_row] = [row(&x_row), row(&y_row)];
            let note = format!("round {round}: {dtype} {shape:?} {:?} {reduced:?} {isa}", x.strides);
            let got = states([Some(&x.view()), None], &reduced, &kinds, isa);
            let expected = states([Some(&x_row), None], &reduced, &kinds, Isa::BASELINE);
            assert!(got == expected, "{note}");
            if Worker::new(Kind::Dot, dtype, isa).is_ok() {
                let got = states([Some(&x.view()), Some(&y.view())], &reduced, &[Kind::Dot], isa);
                let row = [Some(&x_row), Some(&y_row)];
                let expected = states(row, &reduced, &[Kind::Dot], Isa::BASELINE);
                assert!(got == expected, "dot, {note}");
            }
            let expected = answers(&x_row, &reduced, Isa::BASELINE);
            assert!(answers(&x.view(), &reduced, isa) == expected, "answers, {note}");
        });
    }
}

/// What a sanitizer has to find: with `WARPFOLD_PLANT` set, a view that claims
/// one element more than its memory has.
#[test]
fn a_planted_read_beyond_the_end() {
    if std::env::var_os("WARPFOLD_PLANT").is_none() {
        return;
    }
    let x = vec![1.0f64; 1000].into_boxed_slice();
    // SAFETY: none, on purpose: the last element is not there.
    let view = unsafe { View::from_raw(DType::F64, x.as_ptr().cast(), &[1001], &[8]) };
    let bytes = states([Some(&view), None], &[true], &[Kind::Sum], Isa::best());
    println!("a read beyond the end went unnoticed: {} bytes", bytes.len());
}
