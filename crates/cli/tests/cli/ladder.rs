//! `warpfold ladder`: the rungs, on the interpreter.

use crate::common::Dir;
use serde_json::Value;

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn every_rung_is_listed_and_can_be_shown() {
    let dir = Dir::new();
    let table = dir.prints("ladder list");
    let rungs = json(&dir.prints("ladder list -f json"));
    let rungs = rungs.as_array().unwrap();
    assert!(rungs.len() >= 38);
    for rung in rungs {
        let id = rung["id"].as_str().unwrap();
        assert!(table.contains(id), "{id}");
        let shown = dir.prints(&format!("ladder show {id}"));
        let told = ["teaches", "change", "expectation", "fault", "blocks"];
        assert_says(&shown, &told.map(|key| rung[key].as_str().unwrap()));
        let code = [
            "blockIdx.x",
            "fn recursive",
            "fn serial",
            "blockDim.x",
            "the library's own",
            "cub.cuh",
        ];
        assert!(code.iter().any(|part| shown.contains(part)), "{shown}");
    }
}

#[test]
fn rungs_are_run_and_checked_without_a_gpu() {
    let dir = Dir::new();
    let run = dir.run("ladder run all --device sim -n 0,1000 --dtype i32 -f json");
    assert_says(&run.err, &["note: ", "no clock"]);
    let rows = json(&run.success());
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 2 * 40, "all but what adds floats alone");
    for row in rows {
        if row["rung"] == "cub" {
            assert!(
                row["skipped"].as_str().is_some_and(|why| why.contains("interpreter")),
                "{row}"
            );
            assert_eq!(row["right"], Value::Null, "what was skipped has not passed");
            continue;
        }
        assert_eq!((&row["right"], &row["median"]), (&true.into(), &Value::Null), "{row}");
        assert_eq!((&row["dtype"], &row["block"]), (&"i32".into(), &256.into()));
        assert_eq!((&row["simulated"], &row["ceiling_gbps"]), (&true.into(), &Value::Null));
        let n = row["n"].as_u64().unwrap();
        let rung = row["rung"].as_str().unwrap();
        if !rung.starts_with("cpu-") && rung != "engine" {
            let part = row["occupancy"].as_f64().unwrap();
            assert!(part > 0.0 && part <= 1.0, "{row}");
            // Bulk copies are no loads.
            let asked = row["counters"]["global_loads"]["bytes_asked"].as_u64().unwrap();
            assert!(asked >= 4 * n || rung == "bulk-copy", "{row}");
        }
        assert!(row["expectation"].as_str().is_some_and(|text| !text.is_empty()));
    }
    let saved = dir.run("ladder run F --device sim -n 100 -q --save saved.json -f json");
    let printed = saved.success();
    assert_eq!(std::fs::read_to_string(dir.path("saved.json")).unwrap(), printed);
    let table =
        dir.prints("ladder run H any-op --device sim -n 500 --block 32,64 --dtype f16,f64 -q");
    assert_eq!(table.matches(" ok ").count(), 4 * 4, "{table}");
    assert!(!table.contains("median"), "nothing was timed: {table}");
    let csv = dir.prints("ladder run any-op --op max --device sim -n 77 --dtype bf16 -f csv -q");
    let (header, row) = csv.trim_end().split_once('\n').unwrap();
    let cell = |name: &str| {
        let at = header.split(',').position(|other| other == name).unwrap();
        row.split(',').nth(at).unwrap().to_owned()
    };
    assert_says(row, &["any-op,bf16,max,77,256,,1 + 1,,,,,,,,warp-shuffle,,,128,0,,1,"]);
    assert_eq!((cell("answer"), cell("bank_conflicts")), ("ok".into(), "0".into()));
    for counter in ["instructions", "sectors_loaded", "barriers"] {
        assert!(cell(counter).parse::<u64>().is_ok_and(|count| count > 0), "{csv}");
    }
    let md = dir.prints("ladder run F --device sim -n 77 -f md -q");
    assert!(md.contains("bank conflicts"));
    assert_eq!(md.lines().filter(|l| l.starts_with('|') && l.ends_with('|')).count(), 2 + 5);
    assert_says(&md, &["|\n\ndevice: simulated device, 9.0"]);
}

#[test]
fn sweeps_go_through_what_a_rung_can_have() {
    let dir = Dir::new();
    let rows = |line: &str| {
        let rows = json(&dir.prints(&format!("ladder run {line} --device sim -f json -q")));
        rows.as_array().unwrap().clone()
    };
    let blocks = rows("interleaved engine --sweep block -n 2000 --dtype i32");
    let of = |id: &str, rows: &[Value], key: &str| -> Vec<u64> {
        rows.iter().filter(|r| r["rung"] == id).filter_map(|r| r[key].as_u64()).collect()
    };
    assert_eq!(of("interleaved", &blocks, "block"), [32, 64, 128, 256, 512, 1024]);
    assert_eq!(of("engine", &blocks, "block").len(), 1);
    let sizes = rows("warp-shuffle --sweep n");
    assert_eq!(of("warp-shuffle", &sizes, "n"), [259, 1027, 4099, 16387]);
    let grids = rows("H warp-shuffle --sweep blocks-per-sm -n 30000 --block 32");
    assert_eq!(of("warp-shuffle", &grids, "per_multiprocessor"), [1, 2, 4, 8, 16, 32]);
    let first = grids.iter().find(|r| r["rung"] == "warp-shuffle").unwrap();
    assert_eq!(first["grid"], serde_json::json!([132, 1]));
    assert!(grids.iter().all(|r| r["right"] == true));
    let table = dir
        .prints("ladder run warp-shuffle --sweep blocks-per-sm -n 1000 --block 32 --device sim -q");
    assert_says(&table, &["blocks per SM"]);
    let fixed = dir.fails(2, "ladder run unroll8 --sweep blocks-per-sm --device sim");
    assert_says(&fixed, &["grid of unroll8", "hint: ", "warp-shuffle"]);
    let profiled = dir.run("ladder run redux --dtype i32 --profile --device sim -n 9");
    assert_says(&profiled.err, &["counts without a profiler"]);
}

/// Those that were named must answer; of a text, those do that can.
#[test]
fn what_cannot_be_asked() {
    let dir = Dir::new();
    let rows =
        json(&dir.prints("ladder run all --device sim -n 9 --dtype bf16 --block 96 -f json -q"));
    assert!(rows.as_array().unwrap().iter().any(|row| row["rung"] == "warp-shuffle"));
    assert!(rows.as_array().unwrap().iter().all(|row| row["rung"] != "interleaved"));
    for (line, parts) in [
        ("run unroll8 --block 96", ["96 threads", "powers of two"]),
        ("run unroll8 --dtype f16", ["f16", "f32"]),
        ("run P --dtype i8", ["i8", "f32"]),
        ("run any-op --op xor", ["xor of f32", "prod"]),
        ("run any-op --op min -n 0", ["min of no elements", "error: "]),
        ("run nothing", ["\"nothing\"", "ladder list"]),
        ("show nothing", ["\"nothing\"", "ladder list"]),
        ("run --device cpu", ["a CPU cannot", "--device sim"]),
        ("run --device gpu", ["'gpu'", "cuda:N"]),
        ("run -n x", ["'x'", "error: "]),
        ("occupancy --cc 2.0 --block 32", ["2.0", "12.1"]),
        ("occupancy --cc 9.0 --block 2000", ["2000", "1024"]),
        ("occupancy --cc 9.0 --block 32 --regs 256", ["256", "255"]),
    ] {
        assert_says(&dir.fails(2, &format!("ladder {line}")), &parts);
    }
    let complaint = dir.fails(1, "ladder run cub --device sim -q");
    assert_says(&complaint, &["error: cub needs what this machine does not have", "hint: "]);
    let complaint = dir.fails(1, "ladder run --device cuda:1000000");
    assert_says(&complaint, &["error: no CUDA device: ", "hint: "]);
}

#[test]
fn what_the_classic_listings_get_wrong_is_shown_at_work() {
    let dir = Dir::new();
    for (id, parts) in [
        (
            "two-pass-warp",
            &[
                "unordered volatile accesses",
                "does not finish",
                "after H 12-2 (The CUDA Handbook, section 12.2), in our words",
            ][..],
        ),
        ("warp-allreduce", &["mask omits a lane", "hint: "]),
        ("unroll8", &["got 1180416, wanted 1288815: wrong", "elements 1537 to 1605 are left out"]),
        ("unroll8-loop", &["takes from 26 / 8", "at += width"]),
        ("block-sum", &["got 192, wanted 325: wrong", "after S block_sum"]),
        ("cpu-serial", &["got 16777216, wanted 16777219: wrong", "fn serial_faulty"]),
        ("nested-nosync", &["data race", "// kernels/texts.cu"]),
        ("nested", &["barrier reached by part of a block", "// kernels/texts_nested.cu"]),
        ("any-op", &["from none of the texts"]),
    ] {
        assert_says(&dir.prints(&format!("ladder show --faulty {id}")), parts);
    }
    assert_says(&dir.fails(2, "ladder show --faulty redux"), &["no fault", "ladder show redux"]);
}

/// PTX needs no compiler: kernels of the library's own samples.
#[test]
fn kernels_of_the_users_are_tried() {
    let dir = Dir::new();
    let head = ".version 8.0\n.target sm_75\n.address_size 64\n";
    // The first thread of each block adds the block's elements, one by one; or forgets the last of them.
    let kernel = |name: &str, compare: &str| {
        format!(
            "{head}.visible .entry {name}(.param .u64 a, .param .u64 b, .param .u32 c) {{
             .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;
             mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra over;
             ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r2, [c];
             cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
             mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mul.lo.u32 %r5, %r3, %r4;
             add.u32 %r6, %r5, %r4; min.u32 %r6, %r6, %r2; mov.u32 %r7, 0;
             next: setp.{compare}.u32 %p2, %r5, %r6; @%p2 bra done;
             mul.wide.u32 %d3, %r5, 4; add.u64 %d4, %d1, %d3; ld.global.u32 %r8, [%d4];
             add.u32 %r7, %r7, %r8; add.u32 %r5, %r5, 1; bra next;
             done: mul.wide.u32 %d5, %r3, 4; add.u64 %d6, %d2, %d5; st.global.u32 [%d6], %r7;
             over: ret; }}"
        )
    };
    dir.file("right.ptx", kernel("right", "ge")).file("wrong.ptx", kernel("wrong", "gt"));
    let text = dir.prints("ladder try right.ptx --device sim -q --block 32,33");
    assert_says(&text, &["right: ", "on the ladder it stands beside ", "yours", "barriers"]);
    let run = dir.run("ladder try wrong.ptx --device sim --block 32");
    assert_eq!(run.status, 3, "{}", run.err);
    assert_says(&run.err, &["note: wrong is run on the interpreter"]);
    assert_says(
        &run.out,
        &[
            "wrong: the smallest case that fails is 1 element in 1 block of 32 threads",
            "out of bounds",
        ],
    );
    dir.file("text.cu", "int main() { return 1 }").file("bytes.cu", [0xff, 0xfe]);
    for (status, line, parts) in [
        (1, "none.cu", ["none.cu", "error: "]),
        (1, "bytes.cu", ["bytes.cu", "error: "]),
        (1, "right.ptx --kernel other", ["\"other\"", "hint: "]),
        (2, "right.ptx --dtype f16", ["f16", "f64"]),
        (2, "right.ptx --block 0", ["0", "error: "]),
    ] {
        assert_says(&dir.fails(status, &format!("ladder try {line}")), &parts);
    }
}

#[test]
fn occupancy_names_what_limits_it() {
    let dir = Dir::new();
    let text = dir.prints("ladder occupancy --cc 9.0 --block 96 --regs 65");
    assert_says(&text, &["9 blocks of 96 threads: 27 of 64 warps (42%), limited by registers"]);
    let found = json(&dir.prints("ladder occupancy --cc 7.5 --block 256 --shared 32K -f json"));
    assert_eq!((&found["blocks"], &found["limited_by"][0]), (&2.into(), &"shared memory".into()));
    assert_eq!((&found["occupancy"], &found["carve_out_kib"]), (&0.5.into(), &64.into()));
    let text = dir.prints("ladder occupancy --cc 9.0 --block 1024 --regs 65");
    assert_says(
        &text,
        &["will not launch on compute capability 9.0, because 1024 threads", "- blocks of"],
    );
    assert!(!text.contains("0 blocks"), "{text}");
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn on_the_device_of_this_machine() {
    let dir = Dir::new();
    for dtype in ["i32", "i64", "f32", "f64", "f16", "bf16"] {
        for block in [32, 256, 1024] {
            let run = dir.run(&format!(
                "ladder run --device cuda -n 1,1000003 --dtype {dtype} --block {block} -f json -q"
            ));
            if run.status == 1 && std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() {
                println!("SKIPPED: {}", run.err);
                return;
            }
            for row in json(&run.success()).as_array().unwrap() {
                if let Some(why) = row["skipped"].as_str() {
                    println!("SKIPPED: {why}");
                    continue;
                }
                assert_eq!(row["right"], true, "{row}");
                assert!(row["median"].as_f64().is_some_and(|t| t > 0.0), "{row}");
                assert!(row["ceiling_gbps"].as_f64().is_some_and(|rate| rate > 1.0), "{row}");
                assert!(row["intervals"].as_u64().is_some_and(|n| n >= 20), "{row}");
            }
        }
    }
}

#[test]
fn experiments_say_what_they_expect_and_what_came_of_it() {
    let dir = Dir::new();
    let listed = json(&dir.prints("ladder experiment -f json"));
    assert_eq!(listed.as_array().unwrap().len(), 10);
    let table = dir.prints("ladder experiment");
    for experiment in listed.as_array().unwrap() {
        assert!(table.contains(experiment["id"].as_str().unwrap()), "{table}");
    }
    let run = dir.run("ladder experiment coalescing --device sim --save c.json");
    assert_says(&run.err, &["note: expected: 32 lanes", "no clock"]);
    assert_says(&run.success(), &["expected", "found", "sectors per request"]);
    let saved = json(&std::fs::read_to_string(dir.path("c.json")).unwrap());
    assert_eq!(saved["experiment"], "coalescing");
    assert_eq!(saved, json(&dir.prints("ladder experiment coalescing --device sim -f json -q")));
    let md = dir.prints("ladder experiment warp-partition -f md -q");
    assert_says(&md, &["## warp-partition", "| 80 x 1 | 80 | 3 | 16 |"]);
    for (status, line, parts) in [
        (1, "latency --device sim", ["no clock", "coalescing"]),
        (1, "execution-sweep --device sim", ["no clock", "divergence"]),
        (2, "nothing", ["\"nothing\"", "ladder experiment"]),
        (2, "coalescing --rung nothing", ["\"nothing\"", "ladder list"]),
        (2, "coalescing --device cpu", ["a CPU cannot", "--device sim"]),
    ] {
        assert_says(&dir.fails(status, &format!("ladder experiment {line}")), &parts);
    }
}

/// Skips aloud without a GPU, unless `WARPFOLD_REQUIRE_CUDA` asks for one.
#[test]
fn experiments_on_the_device_of_this_machine() {
    let dir = Dir::new();
    let listed = json(&dir.prints("ladder experiment -f json"));
    for id in listed.as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap()) {
        let run = dir.run(&format!("ladder experiment {id} --device cuda -f json -q"));
        if run.status == 1 && std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() {
            println!("SKIPPED: {}", run.err);
            return;
        }
        let trial = json(&run.success());
        assert_eq!(trial["wrong"].as_array().map(Vec::len), Some(0), "{trial}");
        assert!(trial["machine"]["name"].is_string(), "{trial}");
    }
}

#[test]
fn reports_are_made_of_what_was_saved() {
    let dir = Dir::new();
    dir.run("ladder run F --device sim -n 100,1000 -q --save runs.json").success();
    dir.run("ladder experiment divergence --device sim -q --save divergence.json").success();
    dir.run("ladder report runs.json divergence.json -o page.html").success();
    let page = std::fs::read_to_string(dir.path("page.html")).unwrap();
    assert_says(&page, &["<!DOCTYPE html>", "shared-first-add", "twice the time", "__syncthreads"]);
    assert_says(
        &page,
        &["Professional CUDA C Programming, Wrox 2014", "<ins>+ ", "no clock", "Step by step"],
    );
    assert!(
        !page.contains("nanosecond") && !page.contains("Times are medians"),
        "nothing was timed"
    );
    assert!(
        !page.contains("http://")
            || page.matches("http").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    assert_eq!(dir.prints("ladder report runs.json divergence.json"), page);
    dir.run("ladder report runs.json divergence.json -o page.md").success();
    let text = std::fs::read_to_string(dir.path("page.md")).unwrap();
    let pictures: Vec<_> = dir.list().into_iter().filter(|name| name.ends_with(".svg")).collect();
    assert!(pictures.len() >= 2 && pictures.iter().all(|name| text.contains(name)), "{pictures:?}");
    dir.run("ladder report --measure --device sim --save all.json -q").success();
    let all = json(&std::fs::read_to_string(dir.path("all.json")).unwrap());
    assert!(
        all["rungs"].as_array().unwrap().len() > 50
            && all["experiments"].as_array().unwrap().len() > 6
    );
    assert_says(&dir.prints("ladder report all.json"), &["simulated device", "warp instructions"]);
    // Figures of a page: those that the record has, and no page is written where it has not.
    std::fs::write(dir.path("rung.json"), r#"{"warpfold": "1", "rungs": [{"rung": "unroll8", "dtype": "f32", "op": "sum", "n": 268435459, "block": 256, "median": 3e-4, "gbps": 3543.2}]}"#).unwrap();
    std::fs::write(dir.path("notes.md"), "it takes <!--h200 gbps unroll8-->?<!--/--> GB/s")
        .unwrap();
    dir.run("ladder report rung.json --figures notes.md").success();
    let notes = || std::fs::read_to_string(dir.path("notes.md")).unwrap();
    assert_eq!(notes(), "it takes <!--h200 gbps unroll8-->3543<!--/--> GB/s");
    let error = dir.fails(1, "ladder report all.json --figures notes.md");
    assert_says(&error, &["notes.md", "gbps unroll8", "no such figure"]);
}

#[test]
fn reports_refuse_what_the_ladder_did_not_write() {
    let dir = Dir::new();
    dir.file("list.json", "[{\"rung\": 7}]")
        .file("text.json", "time: 3")
        .file("bytes.json", [0xff]);
    dir.file("other.json", "{\"name\": \"a package\"}").file("empty.json", "[]");
    std::fs::create_dir(dir.path("folder")).unwrap();
    for (line, parts) in [
        ("list.json", ["list.json: item 1", "--save"]),
        ("text.json", ["text.json: this is no JSON", "--save"]),
        ("bytes.json", ["bytes.json: this is no JSON", "utf-8"]),
        ("other.json", ["other.json: the object", "\"rung\""]),
        ("empty.json", ["nothing was measured", "--save"]),
        ("folder", ["folder: this is a directory", "error: "]),
        ("none.json", ["none.json: ", "error: "]),
        ("--drawings none", ["none: there is no such directory", "error: "]),
        ("empty.json -o folder", ["folder: this is a directory", "error: "]),
    ] {
        assert_says(&dir.fails(1, &format!("ladder report {line}")), &parts);
    }
    for line in ["", "--save x.json", "--measure list.json", "list.json --format pdf"] {
        dir.fails(2, &format!("ladder report {line}"));
    }
    let long = std::fs::File::create(dir.path("long.json")).unwrap();
    long.set_len((64 << 20) + 1).unwrap();
    assert_says(&dir.fails(1, "ladder report long.json"), &["67108865 bytes", "hint: "]);
}
