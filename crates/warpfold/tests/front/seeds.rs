//! Seeds for the fuzz targets of byte forms: one of each kind and type.

use std::path::Path;
use warpfold::internal::{AnyState, Kind};
use warpfold::{DType, Keys, Op, Reduction, View};

#[test]
#[ignore = "writes fuzz/corpus; run it before fuzzing"]
fn write_seeds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let write = |target: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(corpus.join(target)).unwrap();
        std::fs::write(corpus.join(target).join(name), bytes).unwrap();
    };
    // Zeros, small integers and, seen as floats, tiny and ordinary numbers.
    let words: Vec<u64> = (0..4u64).map(|i| i * 0x3c01_3f80_4000_0101).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    for dtype in DType::ALL {
        let view = View::from_bytes(dtype, bytes, &[2, bytes.len() / dtype.size() / 2]).unwrap();
        for op in Op::ALL.into_iter().filter(|op| op.supports(dtype)) {
            let reduction = Reduction::of(op);
            let partial = if op.arity() == 2 {
                reduction.partial_pair(&view, &view, 5)
            } else {
                reduction.partial(&view, 5)
            };
            let partial = partial.unwrap();
            let state: &AnyState = &partial.states()[0][0];
            let name = format!("{:?}-{dtype}", state.kind());
            write("state", &name, &state.to_bytes());
            // What the target reads as kind, type and payload.
            let kind = Kind::ALL.iter().position(|&k| k == state.kind()).unwrap();
            let code = DType::ALL.iter().position(|&d| d == dtype).unwrap();
            let mut payload = vec![kind as u8, code as u8];
            payload.extend(state.payload());
            write("state", &format!("{name}-payload"), &payload);
            write("partial", &format!("{op}-{dtype}"), &partial.to_bytes());
        }
        let both = Reduction::new([Op::Var, Op::ArgMin]).axis(0).partial(&view, 0).unwrap();
        write("partial", &format!("axes-{dtype}"), &both.to_bytes());
        let rows = bytes.len() / dtype.size();
        let values = View::from_bytes(dtype, bytes, &[rows]).unwrap();
        let numbers: Vec<i32> = (0..rows as i32).map(|row| row % 3 - 1).collect();
        let texts: Vec<Option<&str>> =
            (0..rows).map(|row| ["north", "", "é"].get(row % 4).copied()).collect();
        for op in Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1) {
            let by = Reduction::of(op);
            let groups = by.by((&numbers, &texts)).partial(&values, 5).unwrap();
            write("groups", &format!("{op}-{dtype}"), &groups.to_bytes());
            let dense = by.by(Keys::dense(&vec![1u8; rows], 3)).partial(&values, 0).unwrap();
            write("groups", &format!("dense-{op}-{dtype}"), &dense.to_bytes());
        }
    }
}
