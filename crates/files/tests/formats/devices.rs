//! Files reduced on a device and on the CPU: the states are the same bytes, whatever
//! the format, with gaps, in pieces and over axes. On the interpreter, and on the GPU
//! if there is one.

use crate::common::*;
use crate::thorough::thorough;
use crate::{binary, tables};
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use warpfold::{Device, Op, Reduction, Threads};
use warpfold_core::DType;
use warpfold_files::stream::{self, Inputs, Silent};
use warpfold_files::{OpenOptions, Source};
use zip::CompressionMethod;

/// The operations that a device has over this type.
fn ops(device: Device, dtype: DType, arrays: usize) -> Vec<Op> {
    let has = |op: Op| {
        let question = Reduction::of(op).device(device);
        op.arity() == arrays && question.check_type(dtype, arrays).is_ok()
    };
    Op::ALL.into_iter().filter(|&op| has(op)).collect()
}

/// A file, or one of its arrays: `f.npz:w`, `t.csv:x`.
fn source(path: &str) -> Source {
    one(path, &OpenOptions::default())
}

/// With how many threads the device is asked: one and three, by turns if there is little time.
fn threads(device: Device, turn: usize) -> &'static [usize] {
    match device {
        Device::Sim | Device::Sims(_) if !thorough() => [&[1][..], &[3]][turn % 2],
        _ => &[1, 3],
    }
}

/// Reduces pieces of an array on both, on the device with these numbers of threads.
fn compare(
    device: Device,
    pieces: &[String],
    axes: Option<&[isize]>,
    memory: Option<usize>,
    threads: &[usize],
) {
    let name = &pieces[0];
    let dtype = source(name).dtype;
    let ops = ops(device, dtype, 1);
    assert!(!ops.is_empty(), "{dtype}");
    let run = |ops: &[Op], device: Device, threads: usize| -> Result<Vec<u8>, String> {
        let mut question =
            Reduction::new(ops.iter().copied()).device(device).threads(Threads::Exactly(threads));
        if let Some(axes) = axes {
            question = question.axes(axes.iter().copied());
        }
        let inputs =
            Inputs { items: pieces.iter().map(|p| source(p)).collect(), others: Vec::new() };
        let done = if memory.is_none() {
            stream::partial(inputs, &question, 5, memory, &Silent).map(|p| p.to_bytes())
        } else {
            // States of boxes that are not wanted themselves.
            stream::reduce(inputs, &question, memory, &Silent).map(|outcome| {
                let columns = outcome.answer.columns().iter();
                columns.flat_map(|c| c.numbers.bytes().to_vec()).collect()
            })
        };
        done.map_err(|e| format!("{name}: {e}"))
    };
    // What has no answer, such as a product beyond its type, has the same complaint.
    let (told, untold): (Vec<Op>, Vec<Op>) =
        ops.iter().partition(|&&op| run(&[op], Device::Cpu, 1).is_ok());
    assert!(!told.is_empty(), "{name}");
    for op in untold {
        assert_eq!(run(&[op], device, 1), run(&[op], Device::Cpu, 1), "{op:?}");
    }
    let expected = run(&told, Device::Cpu, 2);
    for &threads in threads {
        assert!(run(&told, device, threads) == expected, "{name}, {told:?}, {threads} threads");
    }
}

fn tables_with_gaps(device: Device) {
    let dir = Dir::new();
    let whole = dir.file(
        "t.parquet",
        tables::parquet(&[4100, 2500], Compression::SNAPPY, WriterVersion::PARQUET_2_0, true),
    );
    let (batches, mut files) = ([tables::batch(0, 4100), tables::batch(4100, 700)], vec![whole]);
    for (name, stream) in [("t.arrow", false), ("t.arrows", true)] {
        files.push(dir.file(name, tables::arrow(&batches, stream, None)));
    }
    let rows: String = (0..6000)
        .map(|i| if i % 11 == 3 { ",1\n".into() } else { format!("{i}e-3,2\n") })
        .collect();
    files.push(dir.file("t.csv", format!("x,y\n{rows}")));
    files.push(dir.file("numbers.txt", (0..7000).map(|i| format!("{i}.25\n")).collect::<String>()));
    for (turn, file) in files.into_iter().enumerate() {
        let columns: &[&str] = match file.rsplit_once('.') {
            Some((_, "csv")) => &[":x", ":y"],
            Some((_, "txt")) => &[""],
            Some((_, "parquet")) => &[":f64", ":i8", ":dense"],
            _ => &[":f64?", ":i32", ":bool?"],
        };
        for (i, column) in columns.iter().enumerate() {
            let threads = threads(device, turn + i);
            compare(device, &[format!("{file}{column}")], None, None, threads);
        }
    }
}

fn arrays_and_archives(device: Device) {
    let dir = Dir::new();
    let data = sample(DType::F32, 6 * 1009);
    let npy = |fortran| npy(1, "'<f4'", fortran, "(2, 3, 1009)", &data);
    let members = [("a.npy", npy(false)), ("b.npy", npy(true))];
    let header = r#"{"w":{"dtype":"F32","shape":[6,1009],"data_offsets":[0,24216]}}"#;
    let stored = dir.file("s.npz", binary::npz(&members, CompressionMethod::Stored, false));
    let deflated = dir.file("d.npz", binary::npz(&members, CompressionMethod::Deflated, false));
    let arrays = [
        dir.file("c.npy", npy(false)),
        dir.file("f.npy", npy(true)),
        format!("{stored}:a"),
        format!("{deflated}:a"),
        format!("{deflated}:b"),
        dir.file("w.safetensors", binary::safetensors(header, &data)),
    ];
    for (turn, array) in arrays.into_iter().enumerate() {
        compare(device, &[array], None, None, threads(device, turn));
    }
}

/// More than one run, of 256 KiB on the interpreter, in pieces.
fn pieces_of_several_runs(device: Device, threads: &[usize]) {
    let dir = Dir::new();
    let mut pieces = Vec::new();
    for (i, rows) in [3_000, 1, 33_001].into_iter().enumerate() {
        let data = sample(DType::F64, rows);
        pieces.push(
            dir.file(&format!("{i}.npy"), npy(1, "'<f8'", false, &format!("({rows},)"), &data)),
        );
    }
    compare(device, &pieces, None, None, threads);
}

fn some_axes_in_boxes(device: Device) {
    let dir = Dir::new();
    for fortran in [false, true] {
        let array = |name: &str, shape: [usize; 3]| {
            let data = sample(DType::I16, shape.iter().product());
            let dims = format!("({}, {}, {})", shape[0], shape[1], shape[2]);
            dir.file(name, npy(1, "'<i2'", fortran, &dims, &data))
        };
        // Where each element is an output, a few of them take as long.
        let (file, small) = (array("a.npy", [5, 7, 11]), array("s.npy", [3, 4, 5]));
        for (i, axes) in [&[0][..], &[1], &[2], &[0, 2], &[]].into_iter().enumerate() {
            let (file, limit) = if axes.is_empty() { (&small, 300) } else { (&file, 2000) };
            for memory in [None, Some(limit)] {
                // Of each axes in each order one of the two, if there is little time.
                if !thorough() && (i + usize::from(fortran)) % 2 == usize::from(memory.is_some()) {
                    continue;
                }
                let threads = threads(device, i / 2 + usize::from(fortran));
                compare(device, core::slice::from_ref(file), Some(axes), memory, threads);
            }
        }
    }
}

fn pairs(device: Device) {
    let dir = Dir::new();
    for (dtype, descr) in [(DType::F64, "'<f8'"), (DType::I32, "'<i4'")] {
        let [a, b] = [0, 1].map(|i| {
            let data = sample(dtype, 9000 + i)[i * dtype.size()..].to_vec();
            dir.file(&format!("{i}.npy"), npy(1, descr, false, "(9000,)", &data))
        });
        let ops = ops(device, dtype, 2);
        let run = |device| {
            let question = Reduction::new(ops.iter().copied()).device(device);
            let inputs = Inputs { items: vec![source(&a)], others: vec![source(&b)] };
            stream::partial(inputs, &question, 0, None, &Silent).map(|p| p.to_bytes()).ok()
        };
        assert_eq!(run(device), run(Device::Cpu), "{dtype}");
    }
}

#[test]
fn tables_on_the_interpreter() {
    tables_with_gaps(Device::Sim);
}

#[test]
fn arrays_on_the_interpreter() {
    arrays_and_archives(Device::Sim);
    pieces_of_several_runs(Device::Sim, threads(Device::Sim, 0));
    pieces_of_several_runs(Device::Sims(2), threads(Device::Sims(2), 1));
}

#[test]
fn axes_and_pairs_on_the_interpreter() {
    some_axes_in_boxes(Device::Sim);
    pairs(Device::Sim);
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let device = Device::Cuda(None);
    match Reduction::of(Op::Sum).device(device).check_type(DType::F64, 1) {
        Ok(()) => {}
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    tables_with_gaps(device);
    arrays_and_archives(device);
    pieces_of_several_runs(device, &[1, 3]);
    some_axes_in_boxes(device);
    pairs(device);
}
