//! A reduction over some axes keeps to its memory limit, whatever the operation, the
//! shape and the order: measured by an allocator that counts.

// A link to that of warpfold-ptx, so that the package has it. A file beside this one would be a binary.
#[path = "formats/thorough.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod thorough;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use warpfold::{Op, Reduction, Threads};
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{OpenOptions, open};

/// The system's allocator, which counts what is held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn took(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator as it came; counting allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc`, hence from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MIB: usize = 1 << 20;
const ELEMENTS: usize = 2 * MIB;

fn write_npy(path: &Path, shape: &[usize], fortran: bool) {
    assert_eq!(shape.iter().product::<usize>(), ELEMENTS);
    let order = if fortran { "True" } else { "False" };
    let dims: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let header = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': ({dims}), }}");
    let header = format!("{header:117}\n");
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    for i in 0..ELEMENTS {
        file.write_all(&(1.0 + (i % 1013) as f64 * 1e-9).to_le_bytes()).unwrap();
    }
    file.flush().unwrap();
}

/// What threads, channels, the plan and the answers may take beside the limit.
const BESIDE: usize = 3 * MIB;

#[test]
fn some_axes_keep_to_the_memory_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.npy");
    let limit = 4 * MIB;
    let questions = [
        Reduction::of(Op::Prod),
        Reduction::of(Op::LogSumExp),
        Reduction::of(Op::ArgMax),
        Reduction::new([Op::Var, Op::Prod, Op::ArgMin]),
    ];
    let shapes: [(&[usize], &[&[isize]]); 3] = [
        (&[8192, 256], &[&[0], &[1]]),
        (&[256, 8192], &[&[0], &[1]]),
        (&[32, 512, 128], &[&[1], &[0, 1], &[0, 2]]),
    ];
    let mut drawn = 0;
    for (shape, all_axes) in shapes {
        for fortran in [false, true] {
            write_npy(&path, shape, fortran);
            for question in &questions {
                for axes in all_axes {
                    // No divisor of the numbers of questions and axes: all of them are met.
                    drawn += 1;
                    if drawn % thorough::up_to(1, 5) != 0 {
                        continue;
                    }
                    let question = question.clone().axes(axes.iter().copied());
                    let question = question.threads(Threads::Exactly(2));
                    let items = open(path.to_str().unwrap(), &OpenOptions::default()).unwrap();
                    let inputs = Inputs { items, others: Vec::new() };
                    let before = HELD.load(Ordering::Relaxed);
                    PEAK.store(before, Ordering::Relaxed);
                    stream::reduce(inputs, &question, Some(limit), &Silent).unwrap();
                    let peak = PEAK.load(Ordering::Relaxed) - before;
                    assert!(
                        peak <= limit + BESIDE,
                        "{peak} bytes: {:?} over {axes:?} of {shape:?}, Fortran order: {fortran}",
                        question.ops()
                    );
                }
            }
        }
    }
}
