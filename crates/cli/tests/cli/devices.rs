//! `--device`: the same bits from the interpreter as from the CPU.

use crate::common::{Dir, noise};

/// Operations that a device has, and one array of them.
const OPS: &str =
    "sum,mean,norm1,min,max,minmax,range,norm-inf,any,all,count,count-nonzero,count-nan";

/// Runs a line on the CPU and on the interpreter: what both print.
#[track_caller]
fn alike(dir: &Dir, line: &str) -> String {
    let here = dir.prints(&format!("{line} --device cpu"));
    assert_eq!(dir.prints(&format!("{line} --device sim")), here, "{line}");
    here
}

#[test]
fn files_of_every_kind() {
    let dir = Dir::new();
    let values = noise(40_001);
    dir.f64s("a.npy", &[values.len()], &values).f64s("b.npy", &[7, 90], &values[..630]);
    let rows: String = values[..3000].iter().map(|x| format!("{x},{}\n", x * 3.0)).collect();
    dir.file("t.csv", format!("x,y\n{rows}"));
    dir.file("raw.bin", values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
    for line in ["a.npy", "a.npy a.npy -j 3", "-c y t.csv", "--dtype f32 raw.bin"] {
        let answers = alike(&dir, &format!("reduce --op {OPS} --hex {line}"));
        assert_eq!(answers.lines().count(), 13, "{answers}");
    }
    alike(&dir, "reduce --op and,or,xor --dtype i16 raw.bin");
    for axes in ["0", "1", "0,1", "-1 --keepdims"] {
        alike(&dir, &format!("reduce --op {OPS} -f json b.npy -a {axes}"));
    }
}

#[test]
fn numbers_on_a_pipe() {
    let dir = Dir::new();
    let lines: String = noise(5000).iter().map(|x| format!("{x}\n")).collect();
    let sum = |device: &str| dir.pipe(&format!("sum --hex --device {device}"), &lines).success();
    assert_eq!(sum("sim"), sum("cpu"));
    assert_eq!(dir.pipe("sum --device sim", "1e16\n1\n-1e16\n").success(), "1\n");
    assert_eq!(dir.pipe("sum --device sim", "").success(), "0\n");
    assert!(dir.pipe("min --device sim", "").failure(1).contains("min of no elements"));
}

#[test]
fn rules_are_those_of_the_cpu() {
    let dir = Dir::new();
    let mut values = noise(5000);
    values[4321] = f64::NAN;
    dir.f64s("a.npy", &[5000], &values).npy("i.npy", "<i8", &[2], &[0x7f; 16]);
    alike(&dir, "reduce --op sum,mean,max,count a.npy");
    alike(&dir, "reduce --op sum,mean,max --nan omit --hex --out f32 a.npy");
    alike(&dir, "sum --wrap i.npy");
    for line in ["sum --nan error a.npy", "sum i.npy", "sum -a 3 a.npy", "xor a.npy"] {
        let here = dir.fails(1, &format!("{line} --device cpu"));
        assert_eq!(dir.fails(1, &format!("{line} --device sim")), here);
    }
}

#[test]
fn rows_without_values() {
    let dir = Dir::new();
    let row = |i: i32| if i % 7 == 3 { ",1\n".into() } else { format!("{i},1\n") };
    let rows: String = (0..3000).map(row).collect();
    dir.file("g.csv", format!("x,y\n{rows}"));
    let line = "reduce --op sum,count,max -c x -f json g.csv";
    assert!(alike(&dir, line).contains("\"missing\":"));
}

/// States of a device and of the CPU are pieces of one whole.
#[test]
fn states_of_both_merge() {
    let dir = Dir::new();
    let values = noise(20_000);
    dir.f64s("all.npy", &[values.len()], &values);
    let mut states = String::new();
    for (i, cut) in [0..777, 777..9000, 9000..20_000].into_iter().enumerate() {
        let (start, device) = (cut.start, ["sim", "cpu", "sim"][i]);
        dir.f64s("piece.npy", &[cut.len()], &values[cut]);
        let line = format!("partial {OPS} --start {start} piece.npy");
        dir.prints(&format!("{line} --device {device} -o {i}.state"));
        dir.prints(&format!("{line} --device cpu -o cpu.state"));
        let bytes = |name: &str| std::fs::read(dir.path(name)).unwrap();
        assert!(bytes(&format!("{i}.state")) == bytes("cpu.state"), "the state's bytes");
        states += &format!(" {i}.state");
    }
    let single = dir.prints(&format!("reduce --op {OPS} --hex all.npy"));
    assert_eq!(dir.prints(&format!("merge --hex{states}")), single);
}

/// No machine has a million devices; on most there is no driver either.
#[test]
fn a_device_that_is_not_there() {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    for line in ["sum", "stats", "sum -a 0", "reduce --op min,max", "partial sum -o s.state"] {
        let complaint = dir.fails(1, &format!("{line} --device cuda:1000000 a.npy"));
        assert!(complaint.starts_with("error: no CUDA device: "), "{complaint}");
        assert!(complaint.contains("hint: ") && complaint.contains("--device cpu"), "{complaint}");
        assert!(!complaint.contains("a.npy"), "no file is to blame: {complaint}");
    }
    assert_eq!(dir.list(), ["a.npy"], "nothing is half-written");
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let dir = Dir::new();
    let values = noise(1_200_000);
    dir.f64s("a.npy", &[1000, 1200], &values);
    let run = dir.run(&format!("reduce --op {OPS} --hex --device cuda a.npy"));
    if run.status != 0 && std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() {
        println!("SKIPPED: {}", run.err);
        return;
    }
    assert_eq!(run.success(), dir.prints(&format!("reduce --op {OPS} --hex --device cpu a.npy")));
    for line in ["sum -a 0 --hex a.npy", "stats --hex a.npy", "sum -a 1 -j 2 a.npy"] {
        let device = dir.prints(&format!("{line} --device cuda:0"));
        assert_eq!(device, dir.prints(&format!("{line} --device cpu")), "{line}");
    }
    let doctor = dir.prints("doctor -v");
    assert!(doctor.contains("cuda:0") && doctor.contains("opens in"), "{doctor}");
}

/// The lines that a command explains.
#[track_caller]
fn explained(dir: &Dir, line: &str) -> Vec<String> {
    let run = dir.run(line);
    assert_eq!(run.status, 0, "{line}: {}", run.err);
    let lines = run.err.lines().filter_map(|line| line.strip_prefix("explain: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn reductions_explain_themselves() {
    let dir = Dir::new();
    let values = noise(12_000);
    dir.f64s("a.npy", &[12_000], &values).f64s("b.npy", &[60, 200], &values);
    // One line for each walk and kernel, and answers that stay as they are.
    let lines = |line: &str| explained(&dir, &format!("{line} --explain"));
    let [whole] = &lines("sum --device sim a.npy")[..] else { panic!("one kernel") };
    assert!(whole.starts_with("sim: whole: sum_f64, 1 launch of "), "{whole}");
    assert!(whole.contains(" in flight, ") && whole.contains("limited by the launch"), "{whole}");
    let two = lines("reduce --op sum,max --device sim a.npy");
    assert_eq!(two.len(), 2, "{two:?}");
    let [rows] = &lines("max --device sim -a 1 b.npy")[..] else { panic!("one kernel") };
    assert!(rows.contains(": short rows: row_extremes_f64, "), "{rows}");
    let [view] = &lines("sum --device sim -a 1 b.npy")[..] else { panic!("one kernel") };
    assert!(view.contains(": view: strided_sums_f64, "), "{view}");
    let columns = lines("range --device sim -a 0 b.npy");
    assert!(columns.iter().any(|line| line.contains(": rows: extrema_f64, ")), "{columns:?}");
    let states = lines("sum --nan omit --device sim -a 1 b.npy");
    assert!(states.iter().any(|line| line.contains(": rows: sum_f64, ")), "{states:?}");
    assert_eq!(lines("sum --device cpu -a 1 b.npy"), ["cpu: rows where they lie"]);
    assert_eq!(lines("sum --device cpu -a 0 b.npy"), ["cpu: columns where they lie"]);
    let whole = "cpu: runs of elements, into a state of each thread";
    assert_eq!(lines("stats a.npy"), [whole]);
    assert_eq!(lines("partial sum a.npy -o p"), [whole]);
    let two = lines("reduce --op sum,max --device cpu -a 0 b.npy");
    assert_eq!(two, ["cpu: columns where they lie"]);
    assert_eq!(lines("range --device cpu -a 0 b.npy"), ["cpu: columns where they lie"]);
    let states = lines("any --nan error --device cpu -a 0 b.npy");
    assert_eq!(states, ["cpu: a state for each output"]);
    assert_eq!(explained(&dir, "sum --device sim -a 1 b.npy"), [""; 0]);
    let answer = dir.prints("sum -a 1 b.npy");
    assert_eq!(dir.run("sum -a 1 b.npy --explain").out, answer);
}
