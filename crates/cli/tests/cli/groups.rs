//! `--by`: an answer for each group of rows.

use crate::common::Dir;

const SALES: &str = "region,year,price,count\n\
    north,2023,1e308,1\n\
    south,2023,2.5,2\n\
    north,2024,0.5,3\n\
    \"no\"\"rth, \",2023,7,4\n\
    north,2023,1e308,5\n\
    ,2024,9,6\n\
    south,2024,,7\n\
    north,2023,-1e308,8\n";

#[test]
fn each_group_has_a_line_in_the_order_of_keys() {
    let dir = Dir::new();
    dir.file("t.csv", SALES);
    let run = dir.run("sum -q -c price --by region t.csv");
    assert_eq!(run.out, "no\"rth, \t7\nnorth\t1e308\nsouth\t2.5\n-\t9\n", "{run:?}");
    let run = dir.run("sum -c price --by region --omit-missing-keys t.csv");
    assert_eq!(run.out, "no\"rth, \t7\nnorth\t1e308\nsouth\t2.5\n");
    assert!(run.err.contains("note: 1 row has no key and was left out"), "{run:?}");
    assert!(run.err.contains("note: price: 1 row has no value and was left out"), "{run:?}");
    let run = dir.run("sum -q -c price --by region --group-order first t.csv");
    assert_eq!(run.out, "north\t1e308\nsouth\t2.5\nno\"rth, \t7\n-\t9\n");
    // On a pipe, and with one thread, the same.
    let piped = dir.pipe("sum -q -j 1 -c price --by region", SALES);
    assert_eq!(piped.out, "no\"rth, \t7\nnorth\t1e308\nsouth\t2.5\n-\t9\n", "{piped:?}");
}

#[test]
fn several_keys_operations_and_columns_make_a_table() {
    let dir = Dir::new();
    dir.file("t.csv", SALES);
    let run = dir.run("reduce -q --op min,argmax,count -c price --by region,year -f csv t.csv");
    let expected = "region,year,min,argmax,count\n\
        \"no\"\"rth, \",2023,7,3,1\n\
        north,2023,-1e308,0,3\n\
        north,2024,0.5,2,1\n\
        south,2023,2.5,1,1\n\
        south,2024,,,0\n\
        ,2024,9,5,1\n";
    assert_eq!(run.out, expected, "{run:?}");
    let run = dir.run("reduce -q --op minmax -c count,price --by year -f json t.csv");
    let expected = "[{\"name\":\"count\",\"by\":{\"year\":\"2023\"},\"min\":1,\"max\":8},\n \
        {\"name\":\"count\",\"by\":{\"year\":\"2024\"},\"min\":3,\"max\":7},\n \
        {\"name\":\"price\",\"by\":{\"year\":\"2023\"},\"min\":-1e308,\"max\":1e308},\n \
        {\"name\":\"price\",\"by\":{\"year\":\"2024\"},\"min\":0.5,\"max\":9}]\n";
    assert_eq!(run.out, expected, "{run:?}");
    let run = dir.run("stats -q --by region,year -f tsv t.csv");
    assert!(
        run.out.starts_with("name\tregion\tyear\tcount\tsum\tmean\tstd\tmin\tmax\targmin"),
        "{run:?}"
    );
    assert_eq!(run.out.lines().count(), 1 + 2 * 6);
    let run = dir.run("sum -q -c count --by region -o out.jsonl t.csv");
    assert_eq!((run.status, run.out.as_str()), (0, ""));
    let lines = std::fs::read_to_string(dir.path("out.jsonl")).unwrap();
    assert!(lines.ends_with("{\"by\":{\"region\":null},\"sum\":6}\n"), "{lines}");
}

#[test]
fn states_of_pieces_merge_to_the_whole() {
    let dir = Dir::new();
    let (head, rows) = SALES.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    dir.file("t.csv", SALES);
    let piece = |rows: &[&str]| format!("{head}\n{}\n", rows.join("\n"));
    dir.file("a.csv", piece(&rows[..3])).file("b.csv", piece(&rows[3..]));
    let ops = "mean,argmin,std,prod";
    let line = |file: &str, start: u32| {
        format!(
            "partial {ops} -q -c price --by region,year --start {start} {file}.csv -o {file}.state"
        )
    };
    for (file, start) in [("a", 0), ("b", 3), ("t", 0)] {
        let run = dir.run(&line(file, start));
        assert_eq!(run.status, 0, "{run:?}");
    }
    let run = dir.run("merge b.state a.state -o whole.state");
    assert_eq!(run.status, 0, "{run:?}");
    let bytes = |name: &str| std::fs::read(dir.path(name)).unwrap();
    assert_eq!(bytes("whole.state"), bytes("t.state"));
    let merged = dir.run("merge --ddof 1 b.state a.state -f csv");
    let whole =
        dir.run(&format!("reduce -q --op {ops} --ddof 1 -c price --by region,year -f csv t.csv"));
    assert_eq!(merged.out, whole.out, "{merged:?}");
    assert!(dir.run("merge a.state a.state").err.contains("both hold element 0"));
    dir.run("partial sum -q -c price t.csv -o plain.state");
    for states in ["plain.state a.state", "a.state plain.state"] {
        let run = dir.run(&format!("merge {states}"));
        assert_eq!(run.status, 2, "{run:?}");
        assert!(run.err.contains("state") && run.err.contains("hint: "), "{run:?}");
    }
    let mut damaged = bytes("a.state");
    damaged.truncate(damaged.len() - 1);
    dir.file("damaged.state", damaged);
    assert!(dir.run("merge damaged.state").err.contains("its checksum is wrong"));
}

#[test]
fn files_are_joined_and_arrays_are_columns() {
    let dir = Dir::new();
    dir.file("a.csv", "k,x\na,1\nb,2\n").file("b.csv", "k,x\nb,0.5\nc,4\n");
    let run = dir.run("sum -c x --by k a.csv b.csv");
    assert_eq!(run.out, "a\t1\nb\t2.5\nc\t4\n", "{run:?}");
    // An integer column, though only the last file could tell.
    assert_eq!(dir.run("sum -c x --by k a.csv").out, "a\t1\nb\t2\n");
    let big = "k,x\na,9007199254740993\na,0\n";
    assert_eq!(dir.pipe("sum -c x --by k --format csv", big).out, "a\t9007199254740993\n");
    let run = dir.pipe("sum -c x --by k --format csv", "k,x\na,18446744073709551615\n");
    assert!(run.err.contains("--dtype u64"), "{run:?}");
    let big = "k,x\na,18446744073709551615\n";
    assert_eq!(
        dir.pipe("sum -c x --by k --dtype u64 --format csv", big).out,
        "a\t18446744073709551615\n"
    );
    dir.file("c.csv", "k,y\na,1\n");
    assert_eq!(dir.run("sum -c 2 --by k a.csv c.csv").status, 1);
}

/// The second column is of integers, the first of floats, and each lacks values that the
/// other has.
#[test]
fn dot_products_take_two_columns() {
    let dir = Dir::new();
    let rows = "k,a,b\nx,1e16,1\ny,2,3\nx,1,1\nx,-1e16,1\ny,,5\ny,7,\nz,,\n";
    dir.file("t.csv", rows);
    let expected = "x\t1\ny\t6\nz\t0\n";
    let run = dir.run("dot -c a,b --by k t.csv");
    assert_eq!(run.out, expected, "{run:?}");
    assert!(run.err.contains("3 rows have no value"), "{run:?}");
    assert_eq!(dir.run("dot -q -c b,a -j 1 --by k t.csv").out, expected);
    assert_eq!(dir.pipe("dot -q -c a,b --by k --format csv", rows).out, expected);
    // Integers stay integers, beyond what a float holds.
    let big = "k,a,b\nx,9007199254740993,1\nx,0,5\ny,-3,3037000500\n";
    let run = dir.pipe("dot -c a,b --by k --format csv", big);
    assert_eq!(run.out, "x\t9007199254740993\ny\t-9111001500\n", "{run:?}");
    // Pieces, and a file of columns.
    dir.file("1.csv", "k,a,b\nx,1e16,1\ny,2,3\n").file("2.csv", "k,a,b\nx,-1e16,1\nx,1,1\n");
    assert_eq!(dir.run("dot -c a,b --by k 1.csv 2.csv").out, "x\t1\ny\t6\n");
    for piece in ["1", "2"] {
        dir.prints(&format!("partial dot -c a,b --dtype f64 --by k {piece}.csv -o {piece}.state"));
    }
    assert_eq!(dir.prints("merge 2.state 1.state"), "x\t1\ny\t6\n");
    dir.prints("reduce -q --op sum,count -c a --by k t.csv -o t.parquet");
    let run = dir.run("dot -c sum,count --by k t.parquet");
    assert_eq!(run.status, 1, "f64 and u64: {run:?}");
    assert_eq!(dir.run("dot -c sum,sum --by k t.parquet").out, "x\t1\ny\t81\nz\t0\n");
}

#[test]
fn groups_are_written_as_columns() {
    let dir = Dir::new();
    dir.file("t.csv", SALES);
    for kind in ["parquet", "arrow"] {
        let line = "reduce -q --op min,argmax,count -c price,count --by region,year";
        dir.prints(&format!("{line} t.csv -o out.{kind}"));
        // As keys and values again.
        let sums = dir.run(&format!("sum -q -c price_count --by region out.{kind}"));
        assert_eq!(sums.out, "no\"rth, \t1\nnorth\t4\nsouth\t1\n-\t1\n", "{sums:?}");
        let least = dir.run(&format!("min -c price_min --by year out.{kind}"));
        assert_eq!(least.out, "2023\t-1e308\n2024\t0.5\n", "{least:?}");
        assert!(least.err.contains("1 row has no value"), "{least:?}");
        assert_eq!(dir.prints(&format!("sum out.{kind}:count_argmax")), "24\n");
    }
    dir.prints("reduce -q --op min,count -c price --by region,year t.csv -o out.npz");
    assert_eq!(dir.prints("count-nan out.npz:min"), "1\n");
    assert_eq!(dir.prints("count-nonzero out.npz:min.missing"), "1\n");
    assert_eq!(dir.prints("count-nonzero out.npz:region.missing"), "1\n");
    // Names that are not told apart.
    dir.file("sum.csv", "sum,x\n1,2\n");
    for kind in ["parquet", "arrow", "npz"] {
        let run = dir.run(&format!("sum -c x --by sum sum.csv -o out2.{kind}"));
        assert_eq!(run.status, 2, "{run:?}");
        assert!(run.err.contains("two columns would have the name \"sum\""), "{run:?}");
        let run = dir.run(&format!("sum -c x --by sum nothing.csv -f csv -o out2.{kind}"));
        assert_eq!(run.status, 2, "flags before files: {run:?}");
    }
    assert!(!dir.list().iter().any(|name| name.starts_with("out2")), "{:?}", dir.list());
}

#[test]
fn what_groups_do_not_have_is_an_error_with_a_hint() {
    let dir = Dir::new();
    dir.file("t.csv", SALES);
    let fails = |line: &str, status: i32, parts: &[&str]| {
        let run = dir.run(line);
        assert_eq!((run.status, run.out.as_str()), (status, ""), "{run:?}");
        assert!(parts.iter().all(|part| run.err.contains(part)), "{line}: {run:?}");
    };
    fails("sum --by nothing t.csv", 1, &["no column \"nothing\"", "region, year, price, count"]);
    fails("sum --by region t.csv", 1, &["which column?", "year, price, count"]);
    fails("sum --axis 0 -c price --by region t.csv", 2, &["--axis", "hint: "]);
    fails("dot -c price --by region t.csv", 1, &["dot takes two columns", "hint: "]);
    fails("dot -c 2,3,4 --by region t.csv", 1, &["dot takes two columns", "not 3"]);
    fails("reduce --op dot,sum -c price,count --by region t.csv", 2, &["dot"]);
    fails("sum -c price --by region -o x.npy t.csv", 2, &[".npy", "hint: "]);
    fails("sum -c price --group-order first t.csv", 2, &["--by"]);
    fails("sum -c price --by region --device sim t.csv", 1, &["sim", "hint: "]);
    fails("sum -c price --nan error --by region x.csv", 1, &["x.csv"]);
    fails(
        "sum --by region -c price --memory-limit 1K t.csv",
        1,
        &["groups after 8 rows", "--memory-limit"],
    );
    fails("sum --wrap --out i8 -c price --by region t.csv", 1, &["price", "group "]);
    // The decimals of the first rows are not those of all.
    let mut text = String::from("k,x\n");
    (0..5000).for_each(|i| text += &format!("{},{i}\n", i % 3));
    dir.file("late.csv", text.clone() + "0,0.5\n");
    fails("xor -c x --by k late.csv", 1, &["xor"]);
    assert_eq!(dir.run("max -c x --by k late.csv").out, "0\t4998\n1\t4999\n2\t4997\n");
}

/// Each key looks like no other, in every form, and comes back from CSV and TSV.
#[test]
fn keys_of_any_text_are_told_apart() {
    let dir = Dir::new();
    let keys = [
        "", " ", " a", "a ", "a", "-", "NA", "null", "a\nb", "a\\nb", "a\\\\nb", "a\rb", "a\r\nb",
        "a\tb", "a,b", "\"", "\"a\"", "\\", "007", "7", "数", "\u{feff}",
    ];
    let rows =
        keys.iter().zip(1..).map(|(key, n)| format!("\"{}\",{n}\n", key.replace('"', "\"\"")));
    dir.file("t.csv", format!("k,v\n{},100\nNA,200\n", rows.collect::<String>()));
    let groups = keys.len() + 1;
    let plain = dir.prints("sum -q --by k -c v t.csv");
    let mut shown: Vec<_> = plain.lines().map(|line| line.rsplit_once('\t').unwrap().0).collect();
    assert_eq!(shown.len(), groups, "{plain}");
    shown.sort();
    shown.dedup();
    assert_eq!(shown.len(), groups, "{plain}");
    for line in ["\"\"\t1", "-\t300", "\"-\"\t6", "\"a\\nb\"\t9", "a\\nb\t10", "\"a\\tb\"\t14"] {
        assert!(plain.lines().any(|l| l == line), "{line}: {plain}");
    }
    for (format, empty) in [("csv", "\"\",1\n"), ("tsv", "\"\"\t1\n")] {
        let once = dir.prints(&format!("sum -q --by k -c v -f {format} t.csv"));
        assert!(once.contains(empty), "{once}");
        dir.file(&format!("once.{format}"), &once);
        let twice = dir.prints(&format!("sum -q --by k -c sum -f {format} once.{format}"));
        assert_eq!(twice, once);
    }
    let json = dir.prints("sum -q --by k -c v -f jsonl t.csv");
    let mut found: Vec<Option<String>> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["by"]["k"].as_str().map(Into::into))
        .collect();
    found.sort();
    let mut wanted: Vec<_> = keys.iter().map(|key| Some(key.to_string())).chain([None]).collect();
    wanted.sort();
    assert_eq!(found, wanted);
    // Who names what is missing means it in quotes, too.
    let named = dir.prints("sum -q --by k -c v -f csv --na ,NA,null t.csv");
    assert!(named.ends_with("\n,318\n"), "{named}");
}

#[test]
fn keys_that_are_no_utf8_are_not_changed() {
    let dir = Dir::new();
    dir.file("t.csv", b"k,v\nm\xfcller,1\nm\xf6ller,2\n\xc3\xbc,4\n\"\xff\"\"\",8\n");
    let run = |flags: &str| dir.command(&format!("sum -q --by k -c v {flags}")).output().unwrap();
    let json = dir.prints("sum -q --by k -c v -f jsonl --format csv t.csv");
    for line in [
        "{\"by\":{\"k\":{\"hex\":\"6dfc6c6c6572\"}},\"sum\":1}",
        "{\"by\":{\"k\":{\"hex\":\"6df66c6c6572\"}},\"sum\":2}",
        "{\"by\":{\"k\":\"ü\"},\"sum\":4}",
        "{\"by\":{\"k\":{\"hex\":\"ff22\"}},\"sum\":8}",
    ] {
        assert!(json.lines().any(|l| l == line), "{line}: {json}");
    }
    let plain = dir.prints("sum -q --by k -c v --format csv t.csv");
    assert!(plain.contains("\"m\\xfcller\"\t1\n"), "{plain}");
    assert!(plain.contains("\"\\xff\\\"\"\t8\n"), "{plain}");
    let once = run("-f csv --format csv t.csv").stdout;
    dir.file("once.csv", &once);
    let twice = dir.command("sum -q --by k -c sum -f csv --format csv once.csv").output().unwrap();
    assert_eq!(twice.stdout, once);
    assert!(once.windows(8).any(|w| w == b"m\xfcller,1"), "{once:?}");
}

/// No limit of the memory ends the command by a signal: there is an answer, or an error with a
/// hint. The limits begin where the program starts at all, which is the system's to say.
#[cfg(target_os = "linux")]
#[test]
fn no_limit_of_memory_is_an_abort() {
    let dir = Dir::new();
    let rows: String = (0..80_000).map(|i| format!("key{i},{i}\n")).collect();
    dir.file("t.csv", format!("k,x\n{rows}"));
    let ids: Vec<u8> = (0..150_000u64).flat_map(|i| (i * 7919).to_le_bytes()).collect();
    let zip = [("k", &ids), ("x", &ids)]
        .map(|(name, ids)| (name, crate::common::npy("<u8", &[150_000], ids)));
    dir.file("t.npz", crate::common::stored_zip(&zip));
    dir.file("out.npz", "old");
    let program = dir.command("").get_program().to_owned();
    let limited = |line: &str, limit: u32| {
        let limited = format!("ulimit -c 0; ulimit -v {limit}; exec \"$W\" {line}");
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &limited]).env("W", &program).env_remove("RUST_BACKTRACE");
        shell.current_dir(dir.path("")).output().unwrap()
    };
    let starts = |limit: &u32| limited("--version", *limit).status.success();
    let least = (4..400).map(|n| n * 2_000).find(starts).unwrap();
    for line in [
        "sum -q -j 1 --by k -c x t.csv",
        "sum -q -j 2 --by k -c x t.csv",
        "sum -q -j 2 --by k -c x t.npz -o out.npz",
        "mean -q -j 2 -c x t.csv",
    ] {
        let (mut refused, mut answered) = (0, 0);
        for limit in (least..).step_by(crate::thorough::up_to(3_000, 6_000)) {
            let output = limited(line, limit);
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => answered += 1,
                Some(1) => {
                    assert!(message.contains("error: "), "{line}, {limit}: {message}");
                    refused += 1;
                }
                _ => panic!("{line}, {limit}: {}: {message}", output.status),
            }
            // From a few answers on there is memory enough.
            if answered == crate::thorough::up_to(4, 3) {
                break;
            }
        }
        assert!(refused > 0, "{line}: no limit was too little");
    }
    let names = std::fs::read_dir(dir.path("")).unwrap();
    let left = names.filter(|name| {
        let name = name.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".warpfold")
    });
    assert_eq!(left.count(), 0);
}

/// With less and less memory there is an answer, or an error that says so: no abort. With one
/// thread, so that no other takes the memory that buffers need.
#[cfg(target_os = "linux")]
#[test]
fn more_groups_than_memory_is_an_error() {
    let dir = Dir::new();
    let rows: String = (0..200_000).map(|i| format!("key{i},{i}\n")).collect();
    dir.file("t.csv", format!("k,x\n{rows}"));
    let ids: Vec<u8> = (0..200_000u64).flat_map(|i| (i * 7919).to_le_bytes()).collect();
    let zip = [("k", &ids), ("x", &ids)]
        .map(|(name, ids)| (name, crate::common::npy("<u8", &[200_000], ids)));
    dir.file("t.npz", crate::common::stored_zip(&zip));
    let program = dir.command("").get_program().to_owned();
    let limited = |line: &str, limit: u32| {
        let limited = format!("ulimit -v {limit}; exec \"$W\" {line}");
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &limited]).env("W", &program).env("NO_COLOR", "1");
        shell.current_dir(dir.path("")).output().unwrap()
    };
    // What the program needs for a few groups.
    dir.file("few.csv", "k,x\na,1\nb,2\n");
    let enough = |limit: &u32| limited("sum --by k -c x few.csv", *limit).status.success();
    let least = (4..400).map(|n| n * 10_000).find(enough).unwrap();
    for line in [
        "sum -q -j 1 --by k -c x t.csv",
        "stats -q -j 1 --by k -c x t.npz",
        "reduce --op min,prod,argmax -q -j 1 --by k -c x t.npz -o out.arrow",
        "sum -q -j 1 --by k -c x t.npz -o out.npz",
        "partial sum -q -j 1 --by k -c x t.csv -o out.state",
    ] {
        let (mut answered, mut refused) = (0, 0);
        // Beyond what buffers take: too little for the first groups, for some more of them, and enough.
        for more in [50, 80, 86, 92, 1200] {
            let limit = least + 1000 * more;
            let output = limited(line, limit);
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(0) => answered += 1,
                Some(1) => {
                    assert!(message.starts_with("error: "), "{line}, {limit}: {message}");
                    refused += u32::from(message.contains("memory") && message.contains("hint: "));
                }
                _ => panic!("{line}, {limit}: {}: {message}", output.status),
            }
        }
        assert!(answered > 0 && refused > 0, "{line}: {answered} {refused}");
    }
}
