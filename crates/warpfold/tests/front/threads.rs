//! The same bits from any number of threads and any instruction set.

use crate::arrays::{Pattern, Random, bits_of, element};
use crate::thorough::up_to;
use std::process::Command;
use warpfold::internal::Isa;
use warpfold::{DType, Op, Reduction, Scalar, Threads, View};

/// More than the 2^18 elements that threads take at a time, several times.
const LARGE: usize = (1 << 20) + 4097;
/// Enough for several threads, of which every type has its turn.
const LONG: usize = (1 << 17) + 4097;

/// FNV-1a.
struct Digest(u64);

impl Digest {
    fn take(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn bytes_of(dtype: DType, n: usize, mut next: impl FnMut(usize) -> u64) -> Vec<u8> {
    let size = dtype.size();
    let mut bytes = Vec::with_capacity(n * size);
    for i in 0..n {
        bytes.extend_from_slice(&next(i).to_le_bytes()[..size]);
    }
    bytes
}

fn ops(dtype: DType) -> Vec<Op> {
    Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1).collect()
}

/// The states of all operations over large and small arrays, as bytes.
fn digest(threads: usize) -> u64 {
    let mut random = Random::new(99);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    for dtype in DType::ALL {
        for (pattern, n) in [
            (Pattern::Plain, LONG),
            (Pattern::Finite, LONG / up_to(3, 9)),
            (Pattern::Bits, 20_011),
            (Pattern::Tiny, 10_007),
        ] {
            let bytes = bytes_of(dtype, n, |_| element(dtype, pattern, &mut random));
            let mut other = Random::new(n as u64);
            let other = bytes_of(dtype, n, |_| element(dtype, pattern, &mut other));
            let [x, y] = [&bytes, &other].map(|b| View::from_bytes(dtype, b, &[n]).unwrap());
            let asked = Reduction::new(ops(dtype)).threads(Threads::Exactly(threads));
            digest.take(&asked.partial(&x, 0).unwrap().to_bytes());
            let dot = Reduction::of(Op::Dot).threads(Threads::Exactly(threads)).run_pair(&x, &y);
            digest.take(format!("{dot:?}").as_bytes());
            // In columns of a few: strided, and outputs shared by threads.
            let (rows, columns) = (n / 7, 7);
            let size = dtype.size() as isize;
            let strides = [size * columns as isize, size];
            let table = View::strided(dtype, &bytes, 0, &[rows, columns], &strides).unwrap();
            for axis in [0, 1] {
                let asked = Reduction::new([Op::Norm1, Op::ArgMax, Op::Var, Op::Prod])
                    .axis(axis)
                    .threads(Threads::Exactly(threads));
                if n < 100_000 || axis == 0 {
                    digest.take(&asked.partial(&table, 5).unwrap().to_bytes());
                }
            }
        }
    }
    digest.0
}

const ASKED: &str = "WARPFOLD_TEST_DIGEST_THREADS";

/// Run by the test below in processes of its own.
#[test]
fn digest_for_another_process() {
    if let Ok(threads) = std::env::var(ASKED) {
        println!("active {}", Isa::active().unwrap().name());
        println!("digest {:016x}", digest(threads.parse().unwrap()));
    }
}

#[test]
fn any_instruction_set_and_thread_count_give_the_same_bits() {
    let program = std::env::current_exe().unwrap();
    let mut seen = Vec::new();
    // Each instruction set, and each number of threads on one of them.
    let best = Isa::best();
    let each = Isa::available().map(|isa| (isa, 2));
    let threads = [1, 3, 8][..up_to(3, 1)].iter().map(|&threads| (best, threads));
    for (isa, threads) in each.chain(threads) {
        let output = Command::new(&program)
            .args(["--exact", "threads::digest_for_another_process", "--nocapture"])
            .env("WARPFOLD_CPU", isa.name())
            .env(ASKED, threads.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{isa:?}: {text}");
        assert!(text.contains(&format!("active {}\n", isa.name())), "{text}");
        let at = text.find("digest ").unwrap() + 7;
        seen.push((isa, threads, text[at..at + 16].to_owned()));
    }
    assert!(seen.iter().all(|s| s.2 == seen[0].2), "{seen:?}");
}

#[test]
fn an_unknown_instruction_set_is_an_error() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", "threads::digest_for_another_process", "--nocapture"])
        .env("WARPFOLD_CPU", "abacus")
        .env(ASKED, "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
}

/// Large enough for all threads to work, with totals known by counting.
#[test]
fn large_arrays_have_the_totals_they_were_made_with() {
    for (turn, dtype) in DType::ALL.into_iter().enumerate() {
        // Of bf16 integers up to 256 are exact; of unsigned ones none is below 0.
        let value = |i: usize| {
            let v = ((i * 7919) % 509) as i128 - 254;
            match dtype {
                DType::Bool => i128::from(v > 0),
                DType::I8 => v / 2,
                DType::U8 => v.abs(),
                d if d.is_unsigned_int() => v + 254,
                _ => v,
            }
        };
        // The extremes are tied, and their first places far from the start.
        let values: Vec<i128> = (0..LARGE)
            .map(|i| match i % 300_007 {
                300_000 if dtype == DType::Bool => 1,
                _ => value(i),
            })
            .collect();
        let bytes = bytes_of(dtype, LARGE, |i| bits_of(dtype, values[i] as f64));
        let view = View::from_bytes(dtype, &bytes, &[LARGE]).unwrap();
        let sum: i128 = values.iter().sum();
        let abs: i128 = values.iter().map(|v| v.abs()).sum();
        let squares: i128 = values.iter().map(|v| v * v).sum();
        let nonzero = values.iter().filter(|&&v| v != 0).count() as i128;
        let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        let argmin = values.iter().position(|&v| v == min).unwrap() as i128;
        let argmax = values.iter().position(|&v| v == max).unwrap() as i128;
        let some = [[1, 3], [2, 8]];
        for &threads in up_to(some.as_flattened(), &some[turn % 2]) {
            let get = |op: Op| {
                let asked = Reduction::of(op).threads(Threads::Exactly(threads));
                // f16 could not say it.
                let asked = match op {
                    Op::Sum | Op::Norm1 | Op::SumSq | Op::Min | Op::Max => asked.out(DType::F64),
                    _ => asked,
                };
                match asked.run(&view).unwrap().value().unwrap().first() {
                    Scalar::Int(i, _) => i128::from(i),
                    Scalar::UInt(u, _) => i128::from(u),
                    other => other.to_f64() as i128,
                }
            };
            let note = format!("{dtype}, {threads} threads");
            assert_eq!(get(Op::Sum), sum, "{note}");
            assert_eq!(get(Op::Norm1), abs, "{note}");
            assert_eq!(get(Op::SumSq), squares, "{note}");
            assert_eq!(get(Op::CountNonzero), nonzero, "{note}");
            assert_eq!(get(Op::Min), min, "{note}");
            assert_eq!(get(Op::Max), max, "{note}");
            assert_eq!(get(Op::ArgMin), argmin, "{note}");
            assert_eq!(get(Op::ArgMax), argmax, "{note}");
        }
    }
}

/// Threads finish their pieces in any order: of equal elements the first must
/// win all the same, in arrays walked backwards or across, too.
#[test]
fn ties_across_threads_go_to_the_first() {
    let n = LARGE;
    let mut x = vec![0i32; n];
    for at in [300_000, 600_000, 900_000, n - 1] {
        x[at] = 7;
        x[at - 1] = -7;
    }
    let backwards = View::of_strided(&x, n - 1, &[n], &[-1]).unwrap();
    let (rows, columns) = (1024, n / 1024);
    let across = View::of_strided(&x, 0, &[columns, rows], &[1, columns as isize]).unwrap();
    let first = |want: i32| {
        (0..columns * rows).find(|i| x[i / rows + (i % rows) * columns] == want).unwrap() as u64
    };
    for threads in [1, 2, 3, 8] {
        let asked = Reduction::new([Op::ArgMin, Op::ArgMax]).threads(Threads::Exactly(threads));
        for _ in 0..5 {
            let got = |view: View<'_>| {
                let answer = asked.run(view).unwrap();
                [Op::ArgMin, Op::ArgMax].map(|op| answer.slice::<u64>(op).unwrap()[0])
            };
            assert_eq!(got(View::of(&x)), [299_999, 300_000]);
            assert_eq!(got(backwards.clone()), [1, 0]);
            assert_eq!(got(across.clone()), [first(-7), first(7)]);
        }
    }
}

#[test]
fn absurd_numbers_of_threads_are_not_started() {
    let x = vec![1.0f64; 1 << 20];
    for threads in [0, 5000, usize::MAX] {
        let answer = Reduction::of(Op::Sum).threads(Threads::Exactly(threads)).run(&x).unwrap();
        assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[1048576.0][..]));
    }
}

/// Threads share the outputs, too, and finish them in any order.
#[test]
fn many_outputs_come_back_in_order() {
    let n = 1 << 19;
    let x: Vec<i32> = (0..2 * n).collect();
    let table = View::of_strided(&x, 0, &[n as usize, 2], &[2, 1]).unwrap();
    for threads in [1, 2, 3] {
        let asked = Reduction::of(Op::Sum).axis(1).threads(Threads::Exactly(threads));
        let run = asked.run(&table).unwrap();
        let merged = asked.partial(&table, 0).unwrap().finish(asked.rules()).unwrap();
        for answer in [run, merged] {
            let sums = answer.slice::<i64>(Op::Sum).unwrap();
            assert!((0..i64::from(n)).zip(sums).all(|(i, &s)| s == 4 * i + 1));
        }
    }
}

/// Rows that are long enough to be handed over as they lie, were they aligned.
#[test]
fn long_rows_off_their_alignment_are_copied() {
    let (rows, columns, row) = (5usize, 700usize, 700 * 8 + 3);
    let mut words = vec![0u64; rows * row / 8 + 2];
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    for i in 0..rows * columns {
        let at = i / columns * row + i % columns * 8;
        memory[at..at + 8].copy_from_slice(&(i as f64).to_le_bytes());
    }
    let view = View::strided(DType::F64, memory, 0, &[rows, columns], &[row as isize, 8]).unwrap();
    let answer = Reduction::new([Op::Sum, Op::ArgMax]).run(&view).unwrap();
    let n = rows * columns;
    assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[(n * (n - 1) / 2) as f64][..]));
    assert_eq!(answer.slice::<u64>(Op::ArgMax), Some(&[n as u64 - 1][..]));
}

/// The threads of this process.
#[cfg(target_os = "linux")]
fn alive() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Runs the test `name` alone, in a process of its own that `wrapper` starts.
#[cfg(target_os = "linux")]
fn alone(name: &str, wrapper: &[&str], user: Option<u32>, variable: (&str, &str)) -> Command {
    use std::os::unix::process::CommandExt;
    // By an open file: the folder may be one that the other user may not enter.
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let this = "/proc/self/fd/0";
    let mut command = match wrapper {
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
        [] => Command::new(this),
    };
    if let Some(user) = user {
        command.uid(user);
    }
    command.stdin(file).args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(ALONE, name).env("RUST_BACKTRACE", "0").env(variable.0, variable.1);
    command
}

#[cfg(target_os = "linux")]
const ALONE: &str = "WARPFOLD_TEST_ALONE";

/// Run by the tests below in processes of its own.
#[cfg(target_os = "linux")]
#[test]
fn sums_in_another_process() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let before = alive();
    let small: Vec<f64> = (0..12).map(f64::from).collect();
    assert_eq!(warpfold::sum(&small), 66.0);
    let answer = Reduction::new([Op::Sum, Op::Prod, Op::Var]).run(&small).unwrap();
    assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[66.0][..]));
    assert_eq!(alive(), before, "little work started threads");
    // Three pieces of work.
    let large = vec![1.0f64; 3 << 18];
    assert_eq!(warpfold::sum(&large), f64::from(3 << 18));
    assert!(alive() <= before + 2, "{} threads for three pieces", alive());
    // As many threads as there may be, asked for in the one way or in the other. A thousand threads take seconds of processor time to
    // begin and to wait for work: where they are not refused, one process has them.
    let count = std::env::var("RAYON_NUM_THREADS").unwrap_or_default();
    let all = matches!(&*count, "100000" | "many");
    let most = if all { Threads::All } else { Threads::Exactly(100_000) };
    for threads in [most, Threads::Exactly(8)] {
        let asked = Reduction::new([Op::Sum, Op::LogSumExp, Op::ArgMax]).threads(threads);
        let answer = asked.run(&large).unwrap();
        assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[f64::from(3 << 18)][..]));
        // Of thousands of outputs; each exponential is rounded by itself, which takes its time.
        let table = View::of_strided(&large, 0, &[192, 1 << 12], &[1 << 12, 1]).unwrap();
        assert_eq!(asked.axis(0).run(&table).unwrap().shape(), [1 << 12]);
    }
    println!("summed");
}

#[cfg(target_os = "linux")]
#[test]
fn thousands_of_threads_are_not_started_for_twelve_numbers() {
    for &count in up_to(&["1000", "100000", "0", "many", ""][..], &["100000", "many"]) {
        let variable = ("RAYON_NUM_THREADS", count);
        let output =
            alone("threads::sums_in_another_process", &[], None, variable).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{count}: {text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_are_refused_are_done_without() {
    use std::os::unix::fs::MetadataExt;
    let root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    // The limit does not bind root; nobody else is this user.
    let user = root.then(|| 2_000_000 + std::process::id());
    for limit in ["--nproc=2", "--nproc=3", "--nproc=5"] {
        let wrapper = ["prlimit", limit];
        let variable = ("RAYON_NUM_THREADS", "16");
        let command = alone("threads::sums_in_another_process", &wrapper, user, variable).output();
        let output = match command {
            Ok(output) => output,
            Err(error) => return println!("skipped: prlimit: {error}"),
        };
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{limit}: {text}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("summed"), "{limit}: {text}");
    }
}

/// A process that is forked from one that has a pool, as Python's
/// multiprocessing makes them, has none of its threads.
#[cfg(unix)]
#[test]
fn a_forked_process_works_alone() {
    use std::time::{Duration, Instant};
    unsafe extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn kill(process: i32, signal: i32) -> i32;
    }
    const WITHOUT_WAITING: i32 = 1;
    let x: Vec<f64> = (0..1 << 20).map(|i| f64::from(i % 1000) * 0.001).collect();
    let table = View::of_strided(&x, 0, &[1 << 10, 1 << 10], &[1 << 10, 1]).unwrap();
    let all = || {
        let asked = Reduction::new([Op::Sum, Op::LogSumExp, Op::ArgMax, Op::Var]);
        let asked = asked.threads(Threads::Exactly(4));
        (
            asked.partial(&x, 0).unwrap().to_bytes(),
            asked.axis(0).run(&table).unwrap(),
            warpfold::sum(&x).to_bits(),
        )
    };
    // The pool is there from here on.
    let expected = all();
    // SAFETY: the child runs on the one thread that there is, takes no lock that
    // another thread may have held, and ends without running destructors.
    let child = unsafe { fork() };
    assert!(child >= 0, "no process to be had");
    if child == 0 {
        let same = all() == expected;
        // SAFETY: it only ends the process.
        unsafe { _exit(i32::from(!same)) };
    }
    let begun = Instant::now();
    let mut status = -1;
    // SAFETY: it writes to `status`.
    while unsafe { waitpid(child, &raw mut status, WITHOUT_WAITING) } == 0 {
        if begun.elapsed() > Duration::from_secs(60) {
            // SAFETY: it ends the child, which has not been waited for.
            unsafe { kill(child, 9) };
            panic!("the forked process hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status, 0);
}
