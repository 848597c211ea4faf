//! `ptx run` and `ptx info`: verdicts, exit statuses, arguments in and out.

use crate::common::{Dir, npy};
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;

const CLEAN: i32 = 0;
const FOUND: i32 = 3;

fn kernels() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../ptx/kernels")
}

/// A directory with a sample's PTX and source.
fn sample(name: &str) -> Dir {
    let dir = Dir::new();
    let ptx = kernels().join(format!("ptx/12.0/{name}.90.ptx"));
    dir.file(&format!("{name}.ptx"), std::fs::read(ptx).unwrap());
    dir.file(&format!("{name}.cu"), std::fs::read(kernels().join(format!("{name}.cu"))).unwrap());
    dir
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[track_caller]
fn assert_says(complaint: &str, parts: &[&str]) {
    for part in parts {
        assert!(complaint.contains(part), "{part:?} is not in:\n{complaint}");
    }
}

const TWO_PASS: &str = "ptx run two_pass.ptx -k two_pass_f32 -g 4 -b 256 --arg in:f32:1000=ones \
                        --arg out:f32:4 --arg u64:1000 --show out";

#[test]
fn a_right_kernel_is_clean_under_every_schedule() {
    let dir = sample("two_pass");
    let sums = "\nout: 4 x f32: 256 256 256 232\n";
    let clean = "kernel `two_pass_f32`, grid 4, block 256, lockstep: clean\n";
    assert_eq!(dir.prints(TWO_PASS), format!("{clean}{sums}"));
    for how in ["random --seed 3", "adversarial", "adversarial --seed 7"] {
        let told = dir.prints(&format!("{TWO_PASS} --schedule {how}"));
        assert!(told.ends_with(sums) && told.contains(": clean\n"), "{told}");
    }
    assert!(dir.prints(&format!("{TWO_PASS} --checks none")).contains(": unchecked\n"));
}

/// Sample, launch, kind and exit status; `_fixed` is the same without its fault.
const FAULTS: [(&str, &str, &str, &str); 12] = [
    (
        "fault_missing_barrier",
        "missing_barrier",
        "-g 2 -b 256 --arg in:i32:512=ones --arg out:i32:2",
        "race",
    ),
    (
        "fault_plain_add",
        "plain_add",
        "-g 2 -b 256 --arg in:i32:512=ones --arg out:i32:1=zeros",
        "race",
    ),
    (
        "fault_volatile_tail",
        "volatile_tail",
        "-g 1 -b 256 --arg in:i32:256=range --arg out:i32:1",
        "unordered-volatile",
    ),
    (
        "fault_early_return",
        "early_return",
        "-g 2 -b 256 --arg in:i32:300=ones --arg out:i32:2 --arg u32:300",
        "partial-barrier",
    ),
    (
        "fault_read_past_end",
        "read_past_end",
        "-g 2 -b 256 --arg in:i32:1000=ones --arg out:i32:2 --arg u32:1000",
        "out-of-bounds",
    ),
    (
        "fault_misaligned",
        "misaligned_vector",
        "-g 1 -b 32 --arg in:f32:200=ones --arg out:f32:32 --arg u32:1",
        "misaligned",
    ),
    (
        "fault_uninitialised",
        "uninitialised_shared",
        "-g 2 -b 256 --arg in:i32:300=ones --arg out:i32:2 --arg u32:300",
        "uninitialised",
    ),
    (
        "fault_warp_masks",
        "mask_of_lane_number",
        "-g 1 -b 64 --arg in:i32:64=ones --arg out:i32:2",
        "mask-omits-lane",
    ),
    (
        "fault_warp_masks",
        "mask_of_absent_lanes",
        "-g 1 -b 64 --arg in:i32:64=ones --arg out:i32:64 --arg u32:40",
        "mask-names-ended-lane",
    ),
    (
        "fault_warp_masks",
        "shuffle_from_absent_lane",
        "-g 1 -b 32 --arg in:i32:32=ones --arg out:i32:32",
        "shuffle-from-inactive-lane",
    ),
    ("fault_barriers", "divergent_barrier", "-g 1 -b 64 --arg out:i32:64", "partial-barrier"),
    ("fault_barriers", "other_count", "-g 1 -b 64 --arg out:i32:64", "barrier-mismatch"),
];

#[test]
fn each_kind_of_fault_is_found_and_its_twin_is_clean() {
    for (name, kernel, rest, kind) in FAULTS {
        let dir = sample(name);
        // Remarks are told on request, and change no exit status.
        let remark = ["partial-barrier", "mask-names-ended-lane"].contains(&kind);
        let checks = if remark { "all,strict" } else { "all" };
        let line = |kernel: &str| {
            format!("ptx run {name}.ptx -k {kernel} {rest} --checks {checks} -f json")
        };
        let run = dir.run(&line(kernel));
        let status = if remark { CLEAN } else { FOUND };
        assert_eq!((run.status, run.err.as_str()), (status, ""), "{kernel}: {run:?}");
        let told = json(&run.out);
        assert_eq!(told["clean"], remark);
        let found = told["launches"][0]["findings"].as_array().unwrap();
        let found = found.iter().find(|f| f["kind"] == kind);
        let found = found.unwrap_or_else(|| panic!("{kernel}: no {kind} in {}", run.out));
        assert_eq!(found["remark"], remark);
        assert_eq!(found["file"], format!("{name}.cu"));
        assert!(found["text"].as_str().unwrap().contains("// fault: "), "{found}");
        let run = dir.run(&line(&format!("{kernel}_fixed")));
        assert_eq!(run.status, CLEAN, "{kernel}_fixed: {run:?}");
        assert_eq!(json(&run.out)["clean"], true);
    }
}

#[test]
fn a_finding_names_both_threads_and_their_lines() {
    let dir = sample("fault_missing_barrier");
    let line = "ptx run fault_missing_barrier.ptx -k missing_barrier -g 1 -b 64 --arg in:i32:64=ones --arg out:i32:1";
    let run = dir.run(line);
    assert_eq!(run.status, FOUND);
    assert_says(
        &run.out,
        &[
            "grid 1, block 64, lockstep: ",
            "data race at fault_missing_barrier.cu:11 (PTX line ",
            "  11 |             slots[threadIdx.x] += slots[threadIdx.x + half];",
            "  block 0, warp 0, lane ",
            ": read of 4 bytes of shared memory at 0x",
            "  hint: a barrier is missing",
        ],
    );
    std::fs::remove_file(dir.path("fault_missing_barrier.cu")).unwrap();
    assert!(!dir.run(line).out.contains(" | "), "a source that is not there");
    std::fs::create_dir(dir.path("src")).unwrap();
    let source = kernels().join("fault_missing_barrier.cu");
    std::fs::copy(source, dir.path("src/fault_missing_barrier.cu")).unwrap();
    assert!(dir.run(&format!("{line} --source src")).out.contains("  11 | "));
}

#[test]
fn addresses_are_named_after_buffers() {
    let dir = sample("fault_read_past_end");
    let line = "ptx run fault_read_past_end.ptx -k read_past_end -g 2 -b 256 --arg in:i32:1000=ones --arg out:i32:2 --arg u32:1000";
    assert_says(
        &dir.run(line).out,
        &["read of 4 bytes of global memory at in[1000], right behind"],
    );
    let told = json(&dir.run(&format!("{line} -f json")).out);
    assert_eq!(told["launches"][0]["findings"][0]["access"]["element"], "in[1000]");
}

#[test]
fn checks_can_be_chosen() {
    let dir = sample("fault_missing_barrier");
    let line = "ptx run fault_missing_barrier.ptx -k missing_barrier -g 1 -b 64 --arg in:i32:64=ones --arg out:i32:1 --checks";
    assert_eq!(dir.run(&format!("{line} races")).status, FOUND);
    assert_eq!(dir.run(&format!("{line} masks,barriers,uninitialised")).status, CLEAN);
    assert_eq!(dir.run(&format!("{line} none")).status, CLEAN);
}

#[test]
fn lanes_that_run_ahead_show_what_lockstep_hides() {
    let dir = sample("fault_volatile_tail");
    let line = "ptx run fault_volatile_tail.ptx -k volatile_tail -g 1 -b 256 --arg in:i32:256=range --arg out:i32:1 --show out --checks none";
    assert!(dir.prints(line).contains("out: 1 x i32: 32640\n"));
    assert!(!dir.prints(&format!("{line} --schedule adversarial")).contains(": 32640\n"));
}

#[test]
fn arrays_come_from_files_and_go_to_files() {
    let dir = sample("two_pass");
    let values: Vec<u8> = (0..1000).flat_map(|i| (i as f32).to_le_bytes()).collect();
    dir.npy("in.npy", "<f4", &[10, 100], &values);
    let run = "ptx run two_pass.ptx -k two_pass_f32 -g 4 -b 256 --arg out:f32:4 --arg u64:1000";
    let line = run.replace("--arg out", "--arg in=@in.npy --arg out");
    dir.prints(&format!("{line} --save out=sums.npy"));
    let sums: Vec<u8> = [0, 256, 512, 768]
        .iter()
        .flat_map(|&first| {
            (first..1000.min(first + 256)).map(|i| i as f32).sum::<f32>().to_le_bytes()
        })
        .collect();
    let written = std::fs::read(dir.path("sums.npy")).unwrap();
    assert_eq!(&written[written.len() - 16..], sums);
    assert_eq!(dir.prints("sum sums.npy"), "499500\n");
    let names = ["in.npy", "sums.npy", "two_pass.cu", "two_pass.ptx"];
    assert_eq!(dir.list(), names, "nothing temporary is left");
    // The sums of the first launch are what a second one adds up.
    let second = "ptx run two_pass.ptx -k two_pass_f32 -g 1 -b 32 --arg in=@sums.npy --arg out:f32:1 --arg u64:4 --show out";
    assert!(dir.prints(second).contains("out: 1 x f32: 499500\n"));
}

#[test]
fn other_files_are_read_too() {
    let dir = sample("two_pass");
    dir.file("t.csv", "x,y\n1,2\n3,4\n").file("holes.csv", "x\n1\n\"\"\n");
    let run = |arg: &str| {
        format!(
            "ptx run two_pass.ptx -k two_pass_f32 -g 1 -b 32 --arg {arg} --arg out:f32:1 --arg u64:2 --show in"
        )
    };
    assert!(dir.prints(&run("in=@t.csv:y")).contains("in: 2 x i64: 2 4\n"));
    assert!(dir.prints(&run("in:f64=@t.csv:y")).contains("in: 2 x f64: 2 4\n"));
    assert_says(&dir.fails(1, &run("in=@t.csv")), &["t.csv: which", "x, y", "hint: in=@FILE:NAME"]);
    dir.fails(1, &run("in=@holes.csv"));
}

#[test]
fn nothing_is_saved_of_a_kernel_that_did_not_end() {
    let dir = sample("printing");
    dir.file("in.npy", "as it was");
    let line = "ptx run printing.ptx -k demand -g 1 -b 2 --arg in:i32=1,-1 --save in=in.npy";
    let run = dir.run(line);
    assert_eq!(run.status, 1);
    assert_says(&run.out, &["did not end", "trap"]);
    assert_says(&run.err, &["note: nothing was saved", "error: kernel `demand`: trap at PTX line"]);
    assert_eq!(std::fs::read(dir.path("in.npy")).unwrap(), b"as it was");
    assert!(!dir.run(&format!("{line} -q")).err.contains("note"));
}

#[test]
fn a_kernel_that_hangs_is_told_from_one_that_is_wrong() {
    let dir = sample("two_pass");
    let run = dir.run(&format!("{TWO_PASS} --limit 100"));
    assert_eq!(run.status, 1);
    assert_says(&run.out, &["did not end", "limit of 100 warp instructions", "two_pass.cu:"]);
    assert_says(&run.err, &["error: kernel `two_pass_f32`: the limit of 100", "hint: "]);
    let dir = sample("fault_barriers");
    let run = dir.run("ptx run fault_barriers.ptx -k other_barrier -g 1 -b 64 --arg out:i32:64");
    // What was found says more than that nobody could go on.
    assert_eq!(run.status, FOUND);
    let told =
        ["1 finding, did not end", "deadlock", "warp 1, lanes 0xffffffff at fault_barriers.cu:23"];
    assert_says(&run.out, &told);
    let run = dir.run("ptx run fault_barriers.ptx -k other_barrier -g 1 -b 64 --arg out:i32:64 --checks none -f json");
    assert_eq!(run.status, 1);
    let halt = &json(&run.out)["launches"][0]["halt"];
    assert_eq!(halt["kind"], "deadlock");
    assert_eq!(halt["waiting"].as_array().unwrap().len(), 2);
}

#[test]
fn counters_are_those_of_the_whole_and_of_each_line() {
    let dir = sample("two_pass");
    let told = json(&dir.prints(&format!("{TWO_PASS} --by-line -f json")));
    let launch = &told["launches"][0];
    let total = &launch["counters"];
    assert_eq!(total["global_loads"]["requests"], 32);
    assert_eq!(total["global_loads"]["sectors"], 125);
    assert_eq!(total["global_loads"]["bytes_asked"], 4000);
    assert_eq!(total["global_stores"]["sectors"], 4);
    assert_eq!(total["shared_loads"]["bank_conflicts"], 0);
    assert_eq!(total["instructions"], launch["instructions"]);
    let lines = launch["lines"].as_array().unwrap();
    let sum = |name: &str| lines.iter().map(|l| l["counters"][name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("instructions"), total["instructions"].as_u64().unwrap());
    assert_eq!(sum("branches"), total["branches"].as_u64().unwrap());
    let load =
        lines.iter().find(|l| l["text"].as_str().is_some_and(|t| t.contains("sum += in[i]")));
    assert_eq!(load.unwrap()["counters"]["global_loads"]["sectors"], 125);
    assert_says(
        &dir.prints(&format!("{TWO_PASS} --counters")),
        &["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "global loads: sectors ", "125"],
    );
    let text = dir.prints(&format!("{TWO_PASS} --by-line"));
    assert_says(&text, &["sum += in[i];", "ld sect"]);
}

#[test]
fn json_has_every_member_whatever_was_found() {
    let dir = sample("two_pass");
    let told = json(&dir.prints(&format!("{TWO_PASS} -f json --schedule random --seed 3")));
    let expected = serde_json::json!({
        "file": "two_pass.ptx",
        "clean": true,
        "grid": [4, 1, 1],
        "block": [256, 1, 1],
        "cluster": null,
        "shared": 0,
        "cooperative": false,
        "schedule": "random",
        "seed": 3,
        "checks": ["races", "uninitialised", "barriers", "masks"],
        "launches": [{
            "kernel": "two_pass_f32",
            "from_device": false,
            "instructions": told["launches"][0]["instructions"],
            "lane_instructions": told["launches"][0]["lane_instructions"],
            "halt": null,
            "findings": [],
            "findings_left_out": 0,
            "accesses_forgotten": 0,
            "output": "",
            "counters": null,
            "lines": null,
        }],
        "buffers": [{"name": "out", "dtype": "f32", "count": 4, "values": [256, 256, 256, 232]}],
    });
    assert_eq!(told, expected);
    assert!(told["launches"][0]["instructions"].as_u64().unwrap() > 1000);
}

/// A struct by value, with addresses in it.
#[test]
fn a_struct_is_passed_member_by_member() {
    let dir = Dir::new();
    dir.file(
        "s.ptx",
        ".version 9.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .align 8 .b8 s[32]) {
         .reg .b32 %r<5>; .reg .b64 %d<5>; ld.param.u64 %d1, [s]; ld.param.u32 %r1, [s+8]; ld.param.u64 %d2, [s+16]; ld.param.u8 %r2, [s+24];
         ld.global.u32 %r3, [%d1+4]; mad.lo.u32 %r4, %r1, %r2, %r3; st.global.u32 [%d2], %r4; ret; }",
    );
    let told = dir.prints(
        "ptx run s.ptx -g 1 -b 1 --arg struct:in:i32=1,2,3;u32:10;out:i32:1;u8:7 --show out,in",
    );
    assert_says(&told, &["clean", "out: 1 x i32: 72", "in: 3 x i32: 1 2 3"]);
}

#[test]
fn launches_from_the_device_are_told() {
    let dir = sample("tail_launch");
    let line = "ptx run tail_launch.ptx -k sum_then_fold -g 2 -b 32 --arg in:i32:100=ones --arg partials:i32:2 --arg out:i32:1 --arg u32:100 --show out";
    let told = dir.prints(line);
    assert_says(
        &told,
        &[
            "`sum_then_fold`, grid 2",
            "`fold_partials`, launched by the device",
            "out: 1 x i32: 100\n",
        ],
    );
}

#[test]
fn what_a_kernel_prints_is_part_of_the_answer() {
    let dir = sample("printing");
    let told = dir.prints("ptx run printing.ptx -k greet -g 1 -b 2 --arg i32:5");
    assert!(told.starts_with("block 0 thread 0: 5 times 0.125\nblock 0 thread 1"), "{told}");
}

#[test]
fn wrong_words_are_usage_errors() {
    let dir = sample("two_pass");
    let run = "ptx run two_pass.ptx -g 1 -b 32";
    for (rest, parts) in [
        ("", &["which kernel", "two_pass_f32, two_pass_i32", "hint: "][..]),
        ("-k two_pass_f32 --arg in:f31:4", &["--arg", "\"f31\" is not a type"]),
        ("-k two_pass_f32 --arg in", &["no buffer in"]),
        ("-k two_pass_f32 --arg a:f32:4 --arg a:f32:4", &["two buffers are called a"]),
        ("-k two_pass_f32 --arg a:f32:4 --show b", &["no buffer b; there are a"]),
        ("-k two_pass_f32 --arg a:f32:4 --save a=no/x.npy", &["no directory"]),
        ("-k two_pass_f32 --arg a:bf16:4 --save a=x.npy", &["bf16"]),
        ("-k two_pass_f32 --seed 7", &["--seed", "lockstep", "hint: "]),
        ("-k two_pass_f32 --schedule sideways", &["--schedule", "sideways"]),
        ("-k two_pass_f32 --checks race", &["--checks", "\"race\""]),
        ("-k two_pass_f32 --cluster 1,2,3,4", &["--cluster", "three numbers"]),
        ("-k two_pass_f32 --limit 0", &["--limit"]),
    ] {
        let status = if rest.contains("no/x.npy") { 1 } else { 2 };
        assert_says(&dir.fails(status, &format!("{run} {rest}")), parts);
    }
    assert_says(&dir.fails(2, "ptx run two_pass.ptx -k two_pass_f32"), &["--grid", "--block"]);
    dir.file("d.npy", npy("<f8", &[2], &[0; 16])).file("none.npy", npy("<f8", &[0], &[]));
    let with = |arg: &str| format!("{run} -k two_pass_f32 --arg {arg} --arg out:f32:1 --arg u64:2");
    assert_says(&dir.fails(2, &with("in:f32=@d.npy")), &["holds f64", "of f32", "hint: "]);
    assert_says(&dir.fails(2, &with("in:f64:3=@d.npy")), &["holds 2 elements", "of 3"]);
    assert_says(&dir.fails(1, &with("in=@none.npy")), &["no elements"]);
    assert_says(&dir.fails(1, &with("in=@lost.npy")), &["lost.npy", "No such file"]);
}

#[test]
fn launches_that_cannot_be() {
    let dir = sample("two_pass");
    let args = "--arg in:f32:4=ones --arg out:f32:4 --arg u64:4";
    let run = "ptx run two_pass.ptx -k two_pass_f32";
    for (rest, parts) in [
        (format!("-g 1 -b 32 -k none {args}"), &["no kernel `none`", "two_pass_i32"][..]),
        (format!("-g 0 -b 32 {args}"), &["grid", "[0, 1, 1]", "hint: "]),
        (format!("-g 1 -b 2048 {args}"), &["block", "2048", "1024", "hint: "]),
        (format!("-g 4294967295,65535,65535 -b 1 {args}"), &["grid"]),
        (format!("-g 1 -b 32 --shared 1G {args}"), &["shared memory", "1073745920", "232448"]),
        (format!("-g 3 -b 32 --cluster 2 {args}"), &["cluster", "hint: "]),
        (format!("-g 100000 -b 1024 --cooperative {args}"), &["cooperative", "resident"]),
        ("-g 1 -b 32 --arg in:f32:4".into(), &["1 arguments", "takes 3", "hint: "]),
        (format!("-g 1 -b 32 {args}").replace("u64:4", "u32:4"), &["argument 2", "4 bytes"]),
        (
            format!("-g 1 -b 32 {args}").replace("u64:4", "f64:4"),
            &["argument 2", "argument 2 is f64:4", "is u64", "u64"],
        ),
        (format!("-g 1 -b 32 {args}").replace("in:f32:4", "in:f32:16T"), &["buffer in", "memory"]),
    ] {
        let line = if rest.contains("-k none") { "ptx run two_pass.ptx" } else { run };
        assert_says(&dir.fails(1, &format!("{line} {rest}")), parts);
    }
}

#[test]
fn text_that_is_no_ptx() {
    let dir = sample("two_pass");
    let whole = std::fs::read_to_string(dir.path("two_pass.ptx")).unwrap();
    dir.file("cut.ptx", &whole[..whole.len() / 2])
        .file("noise.ptx", [0xffu8, 1, 2])
        .file("empty.ptx", "")
        .file("odd.ptx", whole.replace("add.f32", "wmma.f32"));
    for verb in ["run", "info"] {
        let line = |file: &str| {
            let launch = if verb == "run" { "-g 1 -b 1" } else { "" };
            format!("ptx {verb} {file} {launch}")
        };
        assert_says(&dir.fails(1, &line("cut.ptx")), &["cut.ptx: ", "PTX line "]);
        assert_says(&dir.fails(1, &line("noise.ptx")), &["noise.ptx: line 1 is not text"]);
        assert_says(&dir.fails(1, &line("empty.ptx")), &["empty.ptx: "]);
        assert_says(&dir.fails(1, &line("lost.ptx")), &["lost.ptx: ", "No such file"]);
        assert_says(&dir.fails(1, &line(".")), &["directory"]);
    }
    // Only a kernel that reaches it stops.
    let launch = "-g 1 -b 32 --arg in:i32:32=ones --arg out:i32:1 --arg u32:32";
    assert_says(&dir.prints(&format!("ptx run odd.ptx -k two_pass_i32 {launch}")), &["clean"]);
    let launch = "-g 1 -b 32 --arg in:f32:32=ones --arg out:f32:1 --arg u64:32";
    let run = dir.run(&format!("ptx run odd.ptx -k two_pass_f32 {launch}"));
    assert_eq!(run.status, 1);
    assert_says(&run.err, &["PTX line ", "`wmma.f32` is not supported", "ptx info"]);
    let run = dir.run("ptx info odd.ptx");
    assert_eq!(run.status, 1);
    assert_says(&run.out, &["wmma.f32", "two_pass.cu:9", "kernel two_pass_i32("]);
    assert_says(&run.err, &["odd.ptx: 2 instructions are not supported"]);
}

/// Kernels of C++ are listed, asked for and told by their names in the source.
#[test]
fn names_of_cpp_are_those_of_the_source() {
    let dir = Dir::new();
    dir.file(
        "cpp.ptx",
        ".version 8.0\n.target sm_90\n.address_size 64\n\
         .visible .entry _Z5scaleIfEvPT_S0_(.param .f32 _Z5scaleIfEvPT_S0__param_0) { ret; }\n\
         .visible .entry _Z5scaleIdEvPT_S0_() { bar.sync 0; trap; }\n",
    );
    let info = dir.prints("ptx info cpp.ptx");
    assert!(info.contains("kernel scale<float>(f32)\n"), "{info}");
    let info = json(&dir.prints("ptx info cpp.ptx -f json"));
    assert_eq!(info["functions"][0]["name"], "_Z5scaleIfEvPT_S0_");
    assert_eq!(info["functions"][0]["signature"], "scale<float>(float*, float)");
    let run = dir.run("ptx run cpp.ptx -g 1 -b 1");
    assert_says(&run.err, &["scale<float>, scale<double>", "hint: ", "--kernel 'scale<float>'"]);
    let run = dir.run("ptx run cpp.ptx -k scale<float> -g 1 -b 1 --arg u32:5");
    assert_says(
        &run.err,
        &["argument 0 is u32:5; parameter `param_0` of kernel `scale<float>` is f32"],
    );
    let run = dir.run("ptx run cpp.ptx -k scale<float> -g 1 -b 1 --arg f32:5");
    assert!(
        run.out.contains("kernel `scale<float>`, grid 1, block 1, lockstep: clean"),
        "{}",
        run.out
    );
    let run = dir.run("ptx run cpp.ptx -k scale<double> -g 1 -b 1");
    assert_says(&run.err, &["kernel `scale<double>`", "trap"]);
}

#[test]
fn info_tells_what_kernels_need() {
    let dir = sample("dynamic_shared");
    let text = dir.prints("ptx info dynamic_shared.ptx");
    assert_says(&text, &["PTX 8.0 for sm_90", "kernel ", "and what the launch gives", "bar.sync"]);
    let dir = sample("two_pass");
    let info = json(&dir.prints("ptx info two_pass.ptx -f json"));
    assert_eq!((&info["version"], &info["target"][0]), (&"8.0".into(), &"sm_90".into()));
    let kernel = &info["functions"][0];
    assert_eq!((&kernel["name"], &kernel["kind"]), (&"two_pass_f32".into(), &"kernel".into()));
    let types: Vec<_> =
        kernel["parameters"].as_array().unwrap().iter().map(|p| &p["type"]).collect();
    assert_eq!(types, ["u64", "u64", "u64"]);
    assert_eq!(
        (&kernel["static_shared"], &kernel["dynamic_shared"]),
        (&4096.into(), &false.into())
    );
    assert_eq!(kernel["opcodes"]["ld.global.f32"], 1);
    assert_eq!(info["unsupported"], serde_json::json!([]));
    let whole = std::fs::read(dir.path("two_pass.ptx")).unwrap();
    assert!(dir.pipe("ptx info -", whole).success().starts_with("stdin: PTX 8.0"));
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_changes_no_verdict() {
    let dir = sample("fault_missing_barrier");
    let line = "ptx run fault_missing_barrier.ptx -k missing_barrier -g 1 -b 64 --arg in:i32:100K=ones --arg out:i32:1 --show in -f json";
    let mut child = dir.command(line).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 16]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(FOUND));
}
