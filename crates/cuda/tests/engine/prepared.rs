//! Reductions that come again and again: nothing is allocated, waited for or freed once
//! they were done. And what a stream has is given back.

use crate::common::Random;
use crate::common::altered::Altered;
use crate::common::arrays;
use crate::common::data::make;
use crate::common::views::{Layout, Placed, Sample};
use std::sync::Arc;
use warpfold_core::DType;
use warpfold_core::op::{AnyState, Kind, Op};
use warpfold_cuda::engine::{Engine, ForcedWalk, Input, Prepared, Shape};
use warpfold_cuda::{Buffer, Device, Sim, Stream};

/// A device whose calls are counted, and an engine on it.
fn counted(shape: Shape) -> (Arc<Altered>, Arc<Engine>) {
    let device = Arc::new(Altered::new(Sim::checking(), |_| {}));
    let engine = Engine::with_shape(Arc::<Altered>::clone(&device), shape);
    (device, Arc::new(engine))
}

fn read(buffer: &Buffer<'_>, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    buffer.copy_out(Stream::DEFAULT, 0, &mut found).unwrap();
    found
}

/// Layouts for each of the walks: short rows, long ones, columns that blocks share, outputs
/// in another order than they are walked, elements that are not aligned, any view.
fn layouts(size: usize) -> Vec<(Layout, Vec<bool>)> {
    let dense = |shape: &[usize]| Layout::contiguous(shape, size);
    let mut turned = dense(&[6, 9, 20]);
    turned.strides.swap(0, 1);
    turned.shape.swap(0, 1);
    let mut askew = dense(&[7, 33]);
    (askew.offset, askew.bytes) = (1, askew.bytes + 1);
    let mut apart = dense(&[5, 40, 3]);
    apart.shape[1] = 20;
    apart.strides[1] *= 2;
    vec![
        (dense(&[30, 17]), vec![false, true]),
        (dense(&[3, 700]), vec![false, true]),
        (dense(&[900, 2]), vec![true, false]),
        (turned, vec![false, false, true]),
        (askew, vec![false, true]),
        (apart, vec![true, false, true]),
        (dense(&[2100]), vec![true]),
    ]
}

#[test]
fn prepared_reductions_neither_allocate_nor_wait() {
    let mut random = Random(5);
    let (mut done, mut workspaces) = (0, 0);
    for walk in [None, Some(ForcedWalk::Tables)] {
        let (device, engine) = counted(Shape { walk, blocks: Some(3), ..Shape::default() });
        for dtype in [DType::F32, DType::I64, DType::BF16] {
            for (layout, reduced) in layouts(dtype.size()) {
                let sample = Sample::new(dtype, layout, "few", &mut random);
                let placed = Placed::in_junk(&*device, &sample);
                for op in [Op::Sum, Op::Var, Op::ArgMax, Op::Prod, Op::NormInf] {
                    // SAFETY: the array was placed here, and nobody writes to it.
                    let expected = unsafe {
                        let numbers = [op.into()];
                        engine.numbers_of_view(&numbers, &placed.view, &reduced, Stream::DEFAULT)
                    };
                    let Some(expected) = expected.unwrap().remove(0) else { continue };
                    let held = device.held();
                    let prepared = Prepared::new(&engine, Stream::DEFAULT).unwrap();
                    let own = device.held();
                    let bytes = expected.bytes().len();
                    let room: &dyn Device = &*device;
                    let to = Buffer::new(room, bytes as u64).unwrap();
                    let leave = || {
                        // SAFETY: as above; there is room, which nobody else uses.
                        let left = unsafe {
                            prepared.numbers_into(op, &placed.view, &reduced, to.address())
                        };
                        assert!(left.unwrap(), "{op} of {dtype}");
                    };
                    leave();
                    workspaces += device.held() - own - 1;
                    // From now on no byte is to be had.
                    device.refuse_above(0);
                    let waits = device.waits();
                    let now = device.held();
                    for _ in 0..3 {
                        leave();
                    }
                    assert_eq!((device.waits(), device.held()), (waits, now), "{op} of {dtype}");
                    device.refuse_above(u64::MAX);
                    assert_eq!(read(&to, bytes), expected.bytes(), "{op} of {dtype}");
                    assert!(!prepared.saw_overflow().unwrap());
                    drop((to, prepared));
                    assert_eq!(device.held(), held, "{op} of {dtype}");
                    done += 1;
                }
            }
        }
    }
    // Many of them have work that needs more than the usual memory.
    assert!(done > 100 && workspaces > 20, "{done} questions, {workspaces} workspaces");
}

/// A graph that was captured goes on using memory that is too small for what comes later.
#[test]
fn memory_that_was_outgrown_is_kept() {
    let (device, engine) = counted(Shape { walk: Some(ForcedWalk::Tables), ..Shape::default() });
    let mut random = Random(6);
    let prepared = Prepared::new(&engine, Stream::DEFAULT).unwrap();
    let room: &dyn Device = &*device;
    let to = Buffer::new(room, 4096).unwrap();
    let (before, mut held) = (device.held(), Vec::new());
    for rows in [2, 9, 40] {
        // Rows that are not short leave a state each.
        let layout = Layout::contiguous(&[rows, 700], 4);
        let sample = Sample::new(DType::F32, layout, "few", &mut random);
        let placed = Placed::in_junk(&*device, &sample);
        // SAFETY: the array was placed here, and there is room for the answers.
        let left =
            unsafe { prepared.numbers_into(Op::Sum, &placed.view, &[false, true], to.address()) };
        assert!(left.unwrap());
        room.wait(Stream::DEFAULT).unwrap();
        drop(placed);
        held.push(device.held() - before);
    }
    assert!(held[0] > 0 && held.windows(2).all(|two| two[0] < two[1]), "{held:?}");
    drop(prepared);
    drop(to);
    assert_eq!(device.held(), 0);
}

#[test]
fn a_stream_gives_its_memory_back() {
    let (device, engine) = counted(Shape::default());
    let items: Vec<f32> = make("few", 1000, &mut Random(7));
    let placed = arrays::Placed::new(&*device, &items, 0);
    let stream = device.stream().unwrap();
    let (before, mut sums) = (device.held(), Vec::new());
    for _ in 0..3 {
        // SAFETY: the array was placed here, and nobody writes to it.
        sums.push(unsafe { engine.reduce(Kind::Sum, placed.array, stream) }.unwrap());
        assert!(device.held() > before);
        assert_eq!(engine.release(stream), Ok(true));
        assert_eq!(device.held(), before);
    }
    assert!(sums.iter().all(|sum| sum.payload() == sums[0].payload()));
    // There is nothing to give back twice.
    assert_eq!(engine.release(stream), Ok(true));
}

/// As many kinds as there are, which are more than a slot holds, and few of them.
#[test]
fn kinds_are_reduced_with_one_wait() {
    let (device, engine) = counted(Shape::default());
    let mut random = Random(8);
    for dtype in [DType::F64, DType::I32, DType::U8] {
        let layout = Layout::contiguous(&[5000], dtype.size());
        let sample = Sample::new(dtype, layout, "few", &mut random);
        let placed = Placed::in_junk(&*device, &sample);
        let array = warpfold_cuda::engine::Array { address: placed.view.address, len: 5000, dtype };
        let input = Input { start: 77, ..Input::from(array) };
        let all: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|&kind| Engine::supports(kind, dtype) && !kind.takes_pairs())
            .collect();
        for kinds in [&all[..], &all[..2], &[Kind::ArgExtrema, Kind::Counts], &[]] {
            let waits = device.waits();
            // SAFETY: the array was placed here, and nobody writes to it.
            let states = unsafe { engine.reduce_all(kinds, input, Stream::DEFAULT) }.unwrap();
            let products = kinds.contains(&Kind::Prod) && !dtype.is_float();
            // A copy, and a wait that says what went wrong.
            assert!(products || device.waits() - waits <= 2, "{}", device.waits() - waits);
            let one = |&kind: &Kind| {
                // SAFETY: as above.
                unsafe { engine.reduce(kind, input, Stream::DEFAULT) }.unwrap()
            };
            let expected: Vec<AnyState> = kinds.iter().map(one).collect();
            assert_eq!(states, expected, "{kinds:?} of {dtype}");
            let of_host: Vec<AnyState> = kinds
                .iter()
                .map(|&kind| arrays::state_of(kind, dtype, 77, sample.bytes(), &[]))
                .collect();
            assert_eq!(states, of_host, "{kinds:?} of {dtype}");
        }
    }
}
