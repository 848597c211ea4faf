//! What answers look like in each format, and where they go.

use crate::common::{Dir, npy, stored_zip};

fn sample() -> Dir {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2, 2], &[1.0, f64::NAN, f64::INFINITY, -0.5]);
    dir.npy("h.npy", "<f2", &[2], &[0x66, 0x2e, 0x00, 0x3c]);
    dir.npy("u.npy", "<u8", &[1], &u64::MAX.to_le_bytes());
    dir
}

#[test]
fn json_is_what_the_documentation_says() {
    let dir = sample();
    for (line, expected) in [
        ("sum -f json h.npy", r#"{"op":"sum","dtype":"f16","shape":[],"value":1.1}"#),
        (
            "max -f json u.npy",
            r#"{"op":"max","dtype":"u64","shape":[],"value":18446744073709551615}"#,
        ),
        (
            "max -a 1 -f json a.npy",
            r#"{"op":"max","dtype":"f64","shape":[2],"value":["NaN","Infinity"]}"#,
        ),
        (
            "sum -a 0 --keepdims --nan omit -f jsonl a.npy",
            r#"{"op":"sum","dtype":"f64","shape":[1,2],"value":[["Infinity",-0.5]]}"#,
        ),
        (
            "minmax --nan omit -f json a.npy",
            r#"{"op":"minmax","dtype":"f64","shape":[],"value":{"min":-0.5,"max":"Infinity"}}"#,
        ),
        ("sum --hex -f json h.npy", r#"{"op":"sum","dtype":"f16","shape":[],"value":"0x3c66"}"#),
    ] {
        assert_eq!(dir.prints(line), format!("{expected}\n"), "{line}");
    }
}

#[test]
fn several_json_answers_are_a_list_or_lines() {
    let dir = sample();
    let list = dir.prints("reduce --op count,all -f json h.npy");
    let parsed: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(parsed[0]["value"], 2);
    assert_eq!(parsed[1]["value"], true);
    let lines = dir.prints("reduce --op count,all -f jsonl h.npy");
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn names_are_quoted_where_needed() {
    let dir = Dir::new();
    dir.file("t.csv", "\"a,b\",\"say \"\"x\"\"\"\n1,2\n");
    assert_eq!(
        dir.prints("sum -c 1,2 -f csv t.csv"),
        "name,op,value\n\"a,b\",sum,1\n\"say \"\"x\"\"\",sum,2\n"
    );
    let json = dir.prints("sum -c 1,2 -f json t.csv");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed[1]["name"], "say \"x\"");
    assert_eq!(dir.prints("sum -c 1,2 -f tsv t.csv").lines().nth(1), Some("a,b\tsum\t1"));
}

#[test]
fn tables_of_scalars_and_of_arrays() {
    let dir = sample();
    assert_eq!(
        dir.prints("reduce --op sum,minmax -f csv h.npy"),
        "op,value\nsum,1.1\nmin,0.1\nmax,1\n"
    );
    assert_eq!(
        dir.prints("reduce --op count,argminmax -a 0 -f csv a.npy"),
        "i0,count,argmin,argmax\n0,2,0,1\n1,2,0,0\n"
    );
    let table = dir.prints("sum -f table h.npy");
    assert!(table.contains("sum") && table.contains("1.1"), "{table}");
}

#[test]
fn plain_arrays_are_rows_with_blank_lines_between_slices() {
    let dir = Dir::new();
    let values: Vec<f64> = (0..8).map(f64::from).collect();
    dir.f64s("c.npy", &[1, 2, 2, 2], &values);
    assert_eq!(dir.prints("sum -a 0 c.npy"), "0 1\n2 3\n\n4 5\n6 7\n");
    assert_eq!(dir.prints("minmax -a 0,1 c.npy"), "0 4\n1 5\n\n2 6\n3 7\n");
    assert_eq!(dir.prints("reduce --op sum,max -a 0,1,2 c.npy"), "# sum\n12 16\n\n# max\n6 7\n");
    dir.f64s("none.npy", &[2, 0], &[]);
    assert_eq!(dir.prints("sum -a 0 none.npy"), "");
    assert_eq!(
        dir.prints("sum -a 0 -f json none.npy"),
        "{\"op\":\"sum\",\"dtype\":\"f64\",\"shape\":[0],\"value\":[]}\n"
    );
}

#[test]
fn hex_shows_the_bits_at_the_width_of_the_type() {
    let dir = sample();
    assert_eq!(dir.prints("sum --hex h.npy"), "0x3c66\n");
    assert_eq!(dir.prints("max --hex u.npy"), "0xffffffffffffffff\n");
    assert_eq!(dir.prints("any --hex u.npy"), "0x01\n");
    assert_eq!(dir.prints("sum --hex a.npy"), "0x7ff8000000000000\n");
}

#[test]
fn files_are_written_in_the_format_of_their_name() {
    let dir = sample();
    assert_eq!(dir.prints("sum h.npy -o s.json"), "");
    let json = std::fs::read_to_string(dir.path("s.json")).unwrap();
    assert!(json.starts_with("{\"op\":\"sum\""), "{json}");
    dir.prints("reduce --op sum,max h.npy -o s.csv");
    assert_eq!(std::fs::read_to_string(dir.path("s.csv")).unwrap(), "op,value\nsum,1.1\nmax,1\n");
    dir.prints("sum h.npy -f csv -o s.txt");
    assert_eq!(std::fs::read_to_string(dir.path("s.txt")).unwrap(), "op,value\nsum,1.1\n");
    assert_eq!(dir.list(), ["a.npy", "h.npy", "s.csv", "s.json", "s.txt", "u.npy"]);
}

#[test]
fn npy_answers_are_read_back() {
    let dir = sample();
    for (line, sum) in [
        ("sum --nan omit -a 1 a.npy", "inf"),
        ("sum h.npy", "1.1"),
        ("argmax -a 0 a.npy", "1"),
        ("any u.npy", "1"),
    ] {
        dir.prints(&format!("{line} -o out.npy"));
        assert_eq!(dir.prints("sum out.npy"), format!("{sum}\n"), "{line}");
    }
    dir.prints("sum -a 1 --keepdims a.npy -o out.npy");
    let row = dir.prints("inspect out.npy");
    assert!(row.contains("\t2 x 1\t16\t"), "{row}");
}

/// Every type that an answer has, with indices, from each kind of file.
#[test]
fn answers_in_files_of_columns_are_read_back() {
    let dir = sample();
    dir.npy("i.npy", "|i1", &[2, 3], &[1, 2, 3, 4, 5, 250]);
    let ops = "sum,mean,min,argmax,any,count";
    for (input, columns) in [
        ("i.npy", "sum i64 9;mean f64 3;min i8 -5;argmax u64 3;any bool 2;count u64 6"),
        ("u.npy", "sum u64 18446744073709551615;min u64 18446744073709551615;count u64 1"),
        ("h.npy", "sum f16 1.1;mean f16 0.55;min f16 0.1;argmax u64 1"),
    ] {
        let axis = if input == "i.npy" { "-a 1" } else { "" };
        for kind in ["parquet", "arrow", "npz"] {
            dir.prints(&format!("reduce --op {ops} {axis} {input} -o out.{kind}"));
            let inspected = dir.prints(&format!("inspect -f csv out.{kind}"));
            for column in columns.split(';') {
                let words: Vec<_> = column.split(' ').collect();
                let [name, dtype, value] = words[..] else { unreachable!() };
                let line = inspected.lines().find(|line| line.contains(&format!(":{name},")));
                let line = line.unwrap_or_else(|| panic!("{kind}: {name} in {inspected}"));
                assert!(line.contains(&format!(",{dtype},")), "{kind}: {line}");
                let op = if dtype == "bool" { "count-nonzero" } else { "sum" };
                let found = dir.prints(&format!("{op} out.{kind}:{name}"));
                assert_eq!(found, format!("{value}\n"), "{input}, {kind}, {name}");
            }
            if kind != "npz" && input == "i.npy" {
                assert_eq!(dir.prints(&format!("max out.{kind}:i0")), "1\n");
            }
        }
    }
    // Shapes are kept where the file has room for them.
    dir.prints("reduce --op sum,max -a 0 --keepdims i.npy -o out.npz");
    assert!(dir.prints("inspect out.npz").contains("\t1 x 3\t"));
    // The same answers are the same bytes, whenever they are written.
    let kinds = ["parquet", "arrow", "npz"];
    let write = |name: &str, kind: &str| {
        dir.prints(&format!("reduce --op sum,max i.npy -o {name}.{kind}"));
    };
    kinds.iter().for_each(|kind| write("a", kind));
    std::thread::sleep(std::time::Duration::from_secs(2));
    for kind in kinds {
        write("b", kind);
        let read = |name: &str| std::fs::read(dir.path(&format!("{name}.{kind}"))).unwrap();
        assert_eq!(read("a"), read("b"), "{kind}");
    }
}

#[test]
fn several_arrays_have_columns_of_their_own() {
    let dir = Dir::new();
    dir.file("t.csv", "a,b\n1,2.5\n3,\n");
    for kind in ["parquet", "arrow", "npz"] {
        dir.prints(&format!("reduce -q --op sum,min t.csv -c a,b -o out.{kind}"));
        for (column, value) in [("a_sum", "4"), ("b_sum", "2.5"), ("a_min", "1"), ("b_min", "2.5")]
        {
            assert_eq!(dir.prints(&format!("sum out.{kind}:{column}")), format!("{value}\n"));
        }
        dir.prints(&format!("stats -q t.csv -o out.{kind}"));
        assert_eq!(dir.prints(&format!("sum out.{kind}:b_missing")), "1\n");
        assert_eq!(dir.prints(&format!("sum out.{kind}:a_std")), "1\n");
    }
    // Shapes that differ have no common rows.
    let ones = |n: usize| 1f64.to_le_bytes().repeat(n);
    let (a, b) = (npy("<f8", &[2, 2], &ones(4)), npy("<f8", &[2, 3], &ones(6)));
    dir.file("z.npz", stored_zip(&[("a", a), ("b", b)]));
    let message = dir.fails(2, "sum -a 0 -c a,b z.npz -o out.parquet");
    assert!(message.contains("not of one shape") && message.contains("hint: "), "{message}");
    dir.prints("sum -a 0 -c a,b z.npz -o out.npz");
    let shapes = dir.prints("inspect out.npz");
    assert!(shapes.contains("\t2\t16\t") && shapes.contains("\t3\t24\t"), "{shapes}");
}

#[test]
fn what_files_of_columns_lack_is_said_before_anything_is_written() {
    let dir = sample();
    dir.npy("b.raw", "<u2", &[1], &[0x80, 0x3f]);
    for kind in ["parquet", "arrow", "npz"] {
        for line in [
            format!("sum h.npy -f csv -o out.{kind}"),
            format!("sum h.npy --hex -o out.{kind}"),
            format!("sum --format raw --dtype bf16 --offset 128 b.raw -o out.{kind}"),
        ] {
            let run = dir.run(&line);
            assert_eq!(run.status, 2, "{line}: {run:?}");
        }
    }
    assert!(!dir.list().iter().any(|name| name.starts_with("out")), "{:?}", dir.list());
}

/// By another reader than ours: its verifier, and its rules of what an array is.
#[test]
fn others_read_arrow_files() {
    use arrow_array::{Array, cast::AsArray, types};
    let dir = Dir::new();
    dir.file(
        "t.csv",
        "k,n,x\none,2024-01-02,1.5\n,2024-01-03,2\nthree,2024-01-04,\none,2024-01-05,3\n",
    );
    dir.prints("reduce -q --op sum,count,max,any --by k t.csv -c x -o groups.arrow");
    dir.prints("reduce -q --op max --by n t.csv -c x -o dates.arrow");
    let batch = |name: &str| {
        let file = std::fs::File::open(dir.path(name)).unwrap();
        let mut reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
        let batch = reader.next().unwrap().unwrap();
        assert!(reader.next().is_none());
        batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
        batch
    };
    let groups = batch("groups.arrow");
    let names: Vec<_> = groups.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["k", "sum", "count", "max", "any"]);
    let keys: Vec<_> = groups["k"].as_string::<i32>().iter().collect();
    let sums: Vec<_> = groups["sum"].as_primitive::<types::Float64Type>().iter().collect();
    let found: Vec<_> = keys.iter().zip(&sums).filter_map(|(k, s)| Some(((*k)?, *s))).collect();
    assert!(found.contains(&("one", Some(4.5))), "{keys:?} {sums:?}");
    assert!(groups["any"].as_boolean().iter().flatten().any(|any| any));
    let dates = batch("dates.arrow");
    assert_eq!(dates.num_rows(), 4);
    assert_eq!(dates.column(1).null_count(), 1);
}

/// The input is read before the output takes its place.
#[test]
fn an_input_may_be_overwritten() {
    let dir = sample();
    dir.prints("sum h.npy -o h.npy");
    assert_eq!(dir.prints("sum h.npy"), "1.1\n");
}

#[test]
fn a_failure_leaves_the_old_file() {
    let dir = sample();
    dir.f64s("none.npy", &[0], &[]).file("out.json", "old");
    dir.fails(1, "min none.npy -o out.json");
    assert_eq!(std::fs::read_to_string(dir.path("out.json")).unwrap(), "old");
    // Here the writing has begun.
    let old = std::fs::read(dir.path("u.npy")).unwrap();
    dir.fails(2, "reduce --op sum,max h.npy -o u.npy");
    assert_eq!(std::fs::read(dir.path("u.npy")).unwrap(), old);
    assert_eq!(dir.list(), ["a.npy", "h.npy", "none.npy", "out.json", "u.npy"]);
}

#[test]
fn inspection_reads_only_metadata() {
    let dir = sample();
    let json = dir.prints("inspect -f json a.npy u.npy");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed[0]["shape"], serde_json::json!([2, 2]));
    assert_eq!(parsed[1]["dtype"], "u64");
    assert_eq!(dir.prints("inspect -f csv u.npy").lines().count(), 2);
    assert_eq!(dir.prints("inspect u.npy -o u.json"), "");
    assert!(std::fs::read_to_string(dir.path("u.json")).unwrap().starts_with("[{"));
}

#[test]
fn benchmarks_are_named_and_measured() {
    let dir = Dir::new();
    let json = dir.prints("bench -q --quick --elements 4K -j 1,2 --only sum -f json");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    let first = &parsed["results"][0];
    assert_eq!((&first["case"], &first["threads"]), (&"sum f64 exact".into(), &1.into()));
    assert_eq!(first["bytes"], 8 * 4096);
    for field in ["ns", "best_ns", "gbps", "of_read", "of_plain"] {
        assert!(first[field].as_f64().unwrap() > 0.0, "{field}: {first}");
    }
    assert!(parsed["machine"]["isa"].is_string());
    let table = dir.prints("bench -q --quick --elements 4K -j 1 --only argmin");
    assert!(table.contains("argmin f32") && !table.contains("dot"), "{table}");
}

#[test]
fn the_doctor_names_the_instruction_sets() {
    let dir = Dir::new();
    let parsed: serde_json::Value = serde_json::from_str(&dir.prints("doctor -f json")).unwrap();
    let active = &parsed["isa"]["active"];
    assert!(parsed["isa"]["available"].as_array().unwrap().contains(active));
    assert!(parsed["cores"].as_u64().unwrap() > 0);
    assert!(parsed["kernels"]["modules"].as_u64().unwrap() >= 100);
    assert_eq!(parsed["cuda"]["available"].as_bool().unwrap(), parsed["cuda"]["why"].is_null());
    let verbose = dir.prints("doctor -v");
    for part in ["--device auto chooses it", "kernels  ", "sim           loads"] {
        assert!(verbose.contains(part), "{part} is not in:\n{verbose}");
    }
    let output = dir.command("doctor").env("WARPFOLD_CPU", "mmx").output().unwrap();
    assert!(output.status.success(), "the doctor looks at what is wrong");
    assert!(String::from_utf8(output.stdout).unwrap().contains("mmx"));
}

#[test]
fn colour_is_asked_for_or_not_there() {
    let dir = Dir::new();
    assert!(!dir.run("sum none.npy").err.contains('\x1b'));
    assert!(!dir.run("sum --nan x").err.contains('\x1b'));
    assert!(dir.run("sum none.npy --color always").err.contains('\x1b'));
    assert!(dir.run("sum --nan x --color=always").err.contains('\x1b'));
    assert!(!dir.run("sum none.npy --color never").err.contains('\x1b'));
}

#[test]
fn manual_and_completions_know_every_command() {
    let dir = Dir::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = dir.prints(&format!("completions {shell}"));
        for word in ["logsumexp", "norm-inf", "keepdims", "doctor"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert!(dir.prints("man").contains(".TH warpfold 1"));
    dir.prints("man --out-dir pages");
    for page in ["warpfold.1", "warpfold-argminmax.1", "warpfold-merge.1"] {
        assert!(dir.path("pages").join(page).exists(), "{page}");
    }
}
