//! Data of all kinds in all shapes, with NaNs and without them: what the device finishes
//! against what core makes of the states of the same elements, equal bits.

use super::numbers::check;
use crate::common::Random;
use crate::common::data::DRAWN;
use crate::common::machine::device_of_this_machine;
use crate::common::views::{Layout, Sample};
use crate::thorough::{self, up_to};
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{Kind, Op};
use warpfold_cuda::engine::{Engine, ForcedWalk, Number, Shape};
use warpfold_cuda::{Device, Sim};
use warpfold_ptx::machine::{Checks, Options, Schedule};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::BF16, DType::F16];
/// Of integers there are no kinds of data, and fewer are drawn.
const INTEGERS: [DType; 5] = [DType::I8, DType::U16, DType::I32, DType::U64, DType::I64];
const EVERY: usize = 6;

/// Engines that take any walk, and rows and columns as such, with few blocks and as many as
/// there are.
fn engines(device: &Arc<dyn Device>) -> Vec<Engine> {
    let tables = Shape { walk: Some(ForcedWalk::Tables), ..Shape::default() };
    let views = Shape { walk: Some(ForcedWalk::Views), blocks: Some(3), ..Shape::default() };
    let all = [Shape::default(), tables, Shape { blocks: Some(2), ..tables }, views];
    all.map(|shape| Engine::with_shape(Arc::clone(device), shape)).into()
}

fn drawn(device: &Arc<dyn Device>, seed: u64, rounds: usize, most: usize) {
    let engines = engines(device);
    let mut random = Random(thorough::seed(seed));
    for round in 0..rounds {
        let (of, pattern) = (round / EVERY % INTEGERS.len(), DRAWN[round / 4 % DRAWN.len()]);
        let dtype = if round % EVERY == 0 { INTEGERS[of] } else { FLOATS[round % 4] };
        let lens = [1, 2, 7, 16, 33, 100, 257, 1000, 2100];
        let mut len = || lens[random.below(lens.len() as u64) as usize];
        let long = len();
        let other = len().min(most.div_ceil(long));
        let (shape, reduced) = match random.below(6) {
            // Rows, columns, both at once, and what lies between.
            0 | 1 => (vec![other, long], vec![false, true]),
            2 | 3 => (vec![long, other], vec![true, false]),
            4 => (vec![3, other.div_ceil(3), 1 + long / 5], vec![true, false, true]),
            _ => (vec![long, other], vec![true, true]),
        };
        let size = dtype.size();
        let layout = match random.below(3) {
            0 => Layout::random(&shape, size, &mut random),
            _ => Layout::contiguous(&shape, size),
        };
        let sample = Sample::new(dtype, layout, pattern, &mut random);
        let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.supports(dtype)).collect();
        let known = |op: &Op| Engine::finishes(*op, dtype);
        let ops: Vec<Op> = ops.into_iter().filter(known).collect();
        for omits_nan in [false, true, true] {
            // Sums are what can go wrong.
            let often = [Op::Sum, Op::Mean, Op::Var, Op::Norm2];
            let op = match random.below(2) {
                0 => often[random.below(4) as usize],
                _ => ops[random.below(ops.len() as u64) as usize],
            };
            let omits_nan = omits_nan && dtype.is_float();
            let engine = &engines[random.below(engines.len() as u64) as usize];
            let note = format!("{pattern}, round {round}");
            let elements: usize =
                shape.iter().zip(&reduced).filter(|(_, is)| **is).map(|(n, _)| n).product();
            // Of some outputs there is no variance.
            let ddof = match random.below(4) {
                _ if op.kind() != Kind::Moments => 0,
                0 => 0,
                1 | 2 => 1,
                _ => elements.min(300) as u32 + random.below(3) as u32 - 1,
            };
            check(engine, Number { op, omits_nan, ddof }, &sample, &reduced, &note);
        }
    }
}

#[test]
fn drawn_data() {
    let options = Options { checks: Checks::ALL, ..Options::default() };
    drawn(&(Arc::new(Sim::new(options)) as Arc<dyn Device>), 35, up_to(2000, 80), 9000);
}

#[test]
fn drawn_data_in_random_order() {
    let schedule = Schedule::Random { seed: 35 };
    let options = Options { schedule, checks: Checks::ALL, ..Options::default() };
    drawn(&(Arc::new(Sim::new(options)) as Arc<dyn Device>), 36, up_to(400, 40), 3000);
}

#[test]
fn drawn_data_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    drawn(&device, 37, up_to(4000, 160), 300_000);
}

/// What compute-sanitizer looks at.
#[test]
fn sanitized_drawn_data_on_the_device() {
    let Some(device) = device_of_this_machine() else { return };
    drawn(&device, 38, 80, 20_000);
}
