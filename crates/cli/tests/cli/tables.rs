//! Tables in text: which columns, of which type, with which values, in one pass.

use crate::common::{Dir, Run};
use crate::thorough::thorough;

/// The same question of a file and of a pipe, which must agree.
#[track_caller]
fn both(dir: &Dir, line: &str, text: &str) -> Run {
    dir.file("t.csv", text);
    let (file, pipe) = (dir.run(&format!("{line} t.csv")), dir.pipe(line, text));
    assert_eq!((file.status, &file.out), (pipe.status, &pipe.out), "{file:?} {pipe:?}");
    assert_eq!(file.err.replace("t.csv", "stdin"), pipe.err);
    file
}

#[track_caller]
fn answers(line: &str, text: &str) -> String {
    both(&Dir::new(), line, text).success()
}

#[track_caller]
fn complains(line: &str, text: &str, parts: &[&str]) {
    let complaint = both(&Dir::new(), line, text).failure(1);
    for part in parts {
        assert!(complaint.contains(part), "{part:?} is not in:\n{complaint}");
    }
}

#[test]
fn the_index_that_pandas_writes_is_a_column_by_its_number() {
    let text = ",a\n0,1.5\n1,2.5\n";
    let run = both(&Dir::new(), "sum -c 1", text);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("1\n", ""));
    assert_eq!(answers("sum -c a", text), "4\n");
    assert_eq!(answers("sum -c 2", text), "4\n");
    assert_eq!(answers("sum -c 1,a", text), "1\t1\na\t4\n");
    let stats = answers("stats", text);
    assert!(stats.contains("1\tsum\t1\n") && stats.contains("a\tsum\t4\n"), "{stats}");
    complains("sum", text, &["which column? There are 2 with numbers: 1, a"]);
}

#[test]
fn a_name_that_is_a_number_wins_over_a_place() {
    let text = ",1,b\n5,6,x\n7,8,y\n";
    assert_eq!(answers("sum --header -c 1", text), "14\n");
    assert_eq!(answers("sum --header -c 2", text), "14\n");
    // A range counts places only.
    assert_eq!(answers("sum --header -c 1-1", text), "12\n");
    let stats = answers("stats --header", text);
    assert!(stats.contains("column 1\tsum\t12\n") && stats.contains("\n1\tsum\t14\n"), "{stats}");
}

#[test]
fn a_missing_first_cell_does_not_choose_the_column() {
    complains("sum", "a,b\n,1\n2,3\n", &["which column?", "a, b", "hint: choose with -c"]);
    complains("sum", ",1\n2,3\n", &["which column?", "1, 2"]);
    assert_eq!(answers("sum -c 1", ",1\n2,3\n"), "2\n");
    assert_eq!(answers("sum -c 2", "NA,1\n2,3\n"), "4\n");
    let stats = answers("stats -f csv", "a,b\nNA,1\n2,3\n");
    assert!(stats.contains("\na,1,2,2,0,2,2,1,1,0,1\n"), "{stats}");
}

#[test]
fn columns_taken_and_left_out_are_named() {
    let dir = Dir::new();
    let text = "name,n\nx,\ny,2\n";
    let run = both(&dir, "sum", text);
    assert_eq!(run.out, "2\n");
    assert!(run.err.contains("note: t.csv: n is taken; left out: name (text: line 2 holds \"x\")"));
    let run = both(&dir, "sum", "a,b\n,1\n,2\n");
    assert!(run.err.contains("b is taken; left out: a (no value in the first rows)"), "{run:?}");
    let run = both(&dir, "stats", text);
    assert!(run.err.contains("left out: name (text: line 2 holds \"x\")"), "{run:?}");
    assert_eq!(both(&dir, "stats -q", text).err, "");
    // Text far down in the first rows, too, and a hint for what it may mean.
    let mixed = "a,b\n1,2\n3,oops\n5,6\n";
    let run = both(&dir, "stats", mixed);
    assert!(run.err.contains("left out: b (text: line 3 holds \"oops\")"), "{run:?}");
    assert!(run.out.starts_with("count\t3\n"), "{run:?}");
    complains("sum", mixed, &["which column?", "a, b"]);
    complains("sum -c b", mixed, &["line 3, column 2 (b): \"oops\"", "hint: ", "--na"]);
    assert_eq!(answers("sum -q -c b --na oops", mixed), "8\n");
    complains("sum", "a,b\nx,y\n", &["no column has numbers; the columns are a, b"]);
    complains("stats", "a,b\nx,y\n", &["no column has only numbers", "line 2 holds \"x\""]);
}

#[test]
fn json_is_refused() {
    for text in ["[1,2,3]\n", " [ -1, 2]", "[[1,2],[3,4]]", "{\"a\": 1, \"b\": 2}\n"] {
        let complaint = Dir::new().pipe("sum", text).failure(1);
        assert!(complaint.contains("JSON") && complaint.contains("hint: "), "{complaint}");
    }
    let dir = Dir::new();
    dir.file("t.json", "[1,2,3]");
    assert!(dir.fails(1, "stats t.json").contains("JSON"));
    // As a table if somebody says so, and names may begin with a bracket.
    assert_eq!(dir.pipe("sum -c 2 --format csv", "[1,2,3]\n").success(), "2\n");
    assert_eq!(dir.pipe("sum -c 2", "[a],[b]\n1,2\n").success(), "2\n");
}

#[test]
fn no_digit_of_an_integer_is_lost() {
    let numbers = "9007199254740992\n9007199254740993\n";
    for text in [numbers.to_string(), format!("x\n{numbers}")] {
        let columns = if text == numbers { "" } else { "-c x" };
        let line = format!("reduce --op max,argmax,sum -f json {columns}");
        let got = Dir::new().pipe(&line, &text).success();
        assert!(got.contains("\"dtype\":\"i64\",\"shape\":[],\"value\":9007199254740993"), "{got}");
        assert!(
            got.contains("\"op\":\"argmax\",\"dtype\":\"u64\",\"shape\":[],\"value\":1"),
            "{got}"
        );
        assert!(got.contains("\"value\":18014398509481985"), "{got}");
    }
    assert_eq!(answers("max --format csv", "18446744073709551615\n3\n"), "18446744073709551615\n");
    assert_eq!(answers("xor -c b", "a,b\n1,12\n2,10\n"), "6\n");
    complains("xor -c b", "a,b\n1,1.5\n", &["xor is not defined for f64"]);
    let sum = answers("stats -f json -c a", "a\n9223372036854775807\n9223372036854775807\n");
    assert!(sum.contains("\"sum\":18446744073709551614") || sum.contains("1.8446744073709552e19"));
    complains("sum -c a", "a\n9223372036854775807\n1\n", &["9223372036854775808", "--out f64"]);
}

#[test]
fn integers_that_no_type_holds_are_an_error_with_a_way_out() {
    let text = "k,x\n1,18446744073709551616\n";
    let hint = "hint: to round such integers to the nearest float: --dtype f64";
    complains("max -c x", text, &["line 2, column 2 (x)", "fits neither i64 nor u64", hint]);
    assert_eq!(answers("max -c x --dtype f64", text), "1.8446744073709552e19\n");
    let text = "k,x\n1,-1\n1,9223372036854775808\n";
    complains("max -c x", text, &["line 3, column 2 (x): \"9223372036854775808\"", hint]);
    // Among decimals they are decimals.
    let text = text.to_owned() + "1,0.5\n";
    assert_eq!(answers("max -c x", &text), "9.223372036854776e18\n");
    complains("max --format text", "1\n-99999999999999999999\n", &["line 2", hint]);
}

#[test]
fn the_last_cell_of_a_pipe_may_tell_the_type() {
    let mut text: String = (0..400_000).map(|i| format!("{i}\n")).collect();
    let dir = Dir::new();
    let line = "reduce --op sum,argmax,xor";
    assert!(dir.pipe(line, &text).success().contains("argmax\t399999\n"));
    text += "0.5\n";
    let complaint = dir.pipe(line, &text).failure(1);
    assert!(complaint.contains("line 400001: \"0.5\" is not an integer, and xor"), "{complaint}");
    let json = dir.pipe("reduce --op sum,argmin -f json", &text).success();
    assert!(json.contains("\"dtype\":\"f64\",\"shape\":[],\"value\":79999800000.5"), "{json}");
    // Where a float is, -0 is one.
    assert_eq!(dir.pipe("min --hex", "-0\n0\n1.5\n").success(), "0x8000000000000000\n");
    assert_eq!(dir.pipe("min", "-0\n0\n").success(), "0\n");
}

#[test]
fn joined_tables_have_one_type() {
    let dir = Dir::new();
    dir.file("a.csv", "k,x\n1,9007199254740993\n1,\n").file("b.csv", "x,k\n0.5,1\n");
    dir.file("c.csv", "x,k\n18446744073709551615,1\n");
    assert!(dir.prints("reduce --op sum,argmin -q -c x a.csv b.csv").ends_with("argmin\t2\n"));
    assert_eq!(dir.prints("max -q -c x -f json a.csv c.csv").matches("\"u64\"").count(), 1);
    let stats = dir.prints("stats a.csv b.csv");
    assert!(stats.contains("x\tcount\t2\n") && stats.contains("k\tsum\t3\n"), "{stats}");
    // A column of the same name is looked for, not any column of numbers.
    dir.file("d.csv", "t,y\nfoo,7\n").file("e.csv", "t,x\nfoo,7\n");
    assert!(dir.fails(1, "sum -q e.csv d.csv").contains("there is no column \"x\""));
    assert_eq!(dir.prints("sum -q e.csv e.csv"), "14\n");
    // With an array, its type.
    dir.f64s("f.npy", &[2], &[0.5, 1.0]);
    assert_eq!(dir.prints("sum f.npy e.csv:x"), "8.5\n");
    assert_eq!(dir.prints("argmax e.csv:x f.npy"), "0\n");
}

#[test]
fn missing_tokens_are_those_of_the_ecosystem() {
    let text = "k,x\n1,NA\n1,N/A\n1,NULL\n1,null\n1,\n1,\"\"\n1,#N/A\n1,5\n";
    let json = answers("sum -q -c x -f json", text);
    assert_eq!(json, "{\"op\":\"sum\",\"dtype\":\"i64\",\"shape\":[],\"value\":5,\"missing\":7}\n");
    complains("sum -c x --strict", text, &["line 2, column 2 (x): \"NA\" stands for a missing"]);
    complains("sum -c x --na NA", text, &["line 3, column 2 (x): \"N/A\" is not a number"]);
    complains("sum -c x --na NA", "k,x\n1,\n", &["line 2, column 2 (x): the cell is empty"]);
    assert_eq!(answers("sum -q -c x --na ,-999,?", "k,x\n1,-999\n2,?\n3,\n4,7\n"), "7\n");
    assert_eq!(answers("sum -c x", "k,x\n1,-999\n"), "-999\n");
    assert_eq!(Dir::new().pipe("sum -q", "1\nNA\n2\n").success(), "3\n");
}

#[test]
fn nan_is_a_number_unless_somebody_says_otherwise() {
    for nan in ["NaN", "nan", "NAN", "-nan"] {
        let text = format!("k,x\n1,{nan}\n1,2\n");
        assert_eq!(answers("sum -c x", &text), "nan\n");
        assert_eq!(answers("sum -c x --nan omit", &text), "2\n");
        assert_eq!(answers("count-nan -c x", &text), "1\n");
        let line = format!("reduce --op sum,count,count-nan -q -c x --na {nan}");
        assert_eq!(answers(&line, &text), "sum\t2\ncount\t1\ncount-nan\t0\n");
    }
}

#[test]
fn empty_lines_are_rows_under_the_header_of_a_single_column() {
    // What Polars and DuckDB write for a null.
    let text = "x\n1\n\n3\n\n";
    let json = answers("reduce --op count,argmax -q -c x -f json", text);
    assert!(
        json.contains("\"op\":\"argmax\",\"dtype\":\"u64\",\"shape\":[],\"value\":2"),
        "{json}"
    );
    assert_eq!(json.matches("\"missing\":2").count(), 2, "{json}");
    assert!(!answers("sum -q -c x -f json", "x\r\n1\r\n2\r\n").contains("missing"));
    assert!(!answers("sum -q -c x -f json", "x\n1\n2\n  ").contains("missing"));
    complains("sum --strict -c x", text, &["line 3, column 1 (x): the cell is empty"]);
    // Elsewhere they are what editors leave behind.
    assert_eq!(answers("argmax --no-header", "1\n\n3\n\n"), "1\n");
    assert_eq!(answers("argmax -c y", "x,y\n1,1\n\n3,3\n\n"), "1\n");
}

#[test]
fn all_columns_come_in_one_pass() {
    let dir = Dir::new();
    let rows: String = (0..50_000).map(|i| format!("{i},{}.5,{}\n", i % 7, i * 3)).collect();
    let text = format!("a,b,c\n{rows}");
    let stats = both(&dir, "stats", &text).success();
    assert!(stats.contains("c\tmax\t149997\n") && stats.contains("b\tmax\t6.5\n"), "{stats}");
    assert_eq!(both(&dir, "sum -c c,a", &text).success(), "c\t3749925000\na\t1249975000\n");
    assert_eq!(both(&dir, "dot -c a,a", "a,b\n3,1\n4,1\n").success(), "25\n");
    assert_eq!(both(&dir, "dot -c a,b", "a,b\n3,0.5\n4,1\n").success(), "5.5\n");
    complains("dot -c a,b", "a,b\n3,1\n,1\n", &["row 1 has no value"]);
    // The first error of the file is told, whichever column has it.
    let text = "a,b\n1,2\n3,x\ny,4\n5\n";
    complains("sum -c a,b", text, &["line 3, column 2 (b): \"x\""]);
    complains("sum -c a", text, &["line 4, column 1 (a): \"y\""]);
    complains("sum -c b,a --na x,y", text, &["line 5: 1 field where the first row has 2"]);
    dir.file("x.txt", "1\n2\n3\n").file("y.txt", "4\n0.5\n6\n").file("z.txt", "1\n2\n");
    assert_eq!(dir.prints("dot x.txt y.txt"), "23\n");
    assert_eq!(dir.prints("dot -f json x.txt x.txt").matches("\"i64\"").count(), 1);
    assert!(dir.fails(1, "dot x.txt z.txt").contains("it has 2 elements, fewer than x.txt"));
}

#[test]
fn tables_may_be_wide() {
    for width in [7_000, 30_000] {
        let row =
            |f: &dyn Fn(usize) -> String| (0..width).map(f).collect::<Vec<_>>().join(",") + "\n";
        let last = width - 1;
        let text = row(&|i| format!("column{i}"))
            + &row(&|i| i.to_string())
            + &row(&|i| if i == last { "0.5".into() } else { (i * 2).to_string() });
        let dir = Dir::new();
        let line = format!("sum -c column{last},column3,2");
        let sums = both(&dir, &line, &text).success();
        assert_eq!(sums, format!("column{last}\t{last}.5\ncolumn3\t9\ncolumn1\t3\n"));
        // Of each column it takes long.
        if width < 10_000 || thorough() {
            let stats = dir.pipe("stats", &text).success();
            assert_eq!(stats.lines().count(), 9 * width);
            assert!(stats.contains("column77\tsum\t231\n"));
        }
        assert_eq!(dir.prints("inspect t.csv").lines().count(), width + 1);
        let complaint = both(&dir, "sum -c nowhere", &text).failure(1);
        assert!(complaint.len() < 500, "{complaint}");
    }
}

#[test]
fn a_quote_that_is_never_closed_is_told() {
    let rows = "1,2\n".repeat(100_000);
    for text in [format!("\"a,b\n{rows}"), format!("a,b\n1,\"2\n{rows}")] {
        let complaint = both(&Dir::new(), "sum -c 1", &text).failure(1);
        assert!(complaint.contains("a quote in this row is never closed"), "{complaint}");
    }
}

/// A name over numbers, whatever the file is called; and it is told.
#[test]
fn one_column_of_plain_text_may_have_a_name() {
    let dir = Dir::new();
    let told = "note: t.txt: the first line, \"id\", names the column\n";
    for text in ["id\n1\n2\n", "\"id\"\r\n1\r\n2\r\n", "\nid\n+1\n02\n", "\u{feff}id\n1\n2"] {
        dir.file("t.txt", text).file("untold", text);
        let run = dir.run("sum t.txt");
        assert_eq!((run.out.as_str(), run.err.as_str()), ("3\n", told), "{text:?}");
        assert_eq!(dir.pipe("sum", text).err, told.replace("t.txt", "stdin"));
        assert_eq!(dir.run("sum untold").err, told.replace("t.txt", "untold"));
        assert!(dir.prints("stats t.txt -f json").contains("{\"count\":2,\"sum\":3,"));
        assert!(dir.prints("inspect t.txt").contains("t.txt:id\tcsv\ti64"));
        // Whoever names the column, or keeps quiet, is not told.
        for line in ["sum -c id t.txt", "sum --header t.txt", "sum -q t.txt"] {
            let run = dir.run(line);
            assert_eq!((run.out.as_str(), run.err.as_str()), ("3\n", ""), "{line}");
        }
    }
    dir.file("t.csv", "id\n1\n2\n");
    assert_eq!(dir.run("sum t.csv").err, "");
    // Under a name, a blank line is a row without a value.
    dir.file("t.txt", "id\n1\n\nNA\n5\n");
    let run = dir.run("reduce --op argmax,sum t.txt");
    assert_eq!(run.out, "argmax\t3\nsum\t6\n");
    assert!(run.err.contains("names the column") && run.err.contains("2 rows have no value"));
    // What may be a number with a fault in it is no name.
    for text in ["1O\n2\n", "-\n1\n", "x 1\n2\n", "x\n1 2\n"] {
        dir.file("t.txt", text);
        assert!(dir.fails(1, "sum t.txt").contains("is not a number"), "{text:?}");
    }
    // Two pieces, of which each has the name.
    dir.file("a.txt", "id\n1\n").file("b.txt", "id\n0.5\n");
    assert_eq!(dir.prints("sum a.txt b.txt"), "1.5\n");
}

/// Numbers for names, as pandas writes where a frame has none.
#[test]
fn a_row_that_numbers_the_columns_is_a_header() {
    let names = |text: &str, row: &str| {
        let run = both(&Dir::new(), "stats", text);
        let told = format!("the first row, {row}, names the columns; if it is data: --no-header");
        assert!(run.err.contains(&told), "{text:?}: {run:?}");
        run.success()
    };
    let stats = names(",0,1,2\n0,5,6,7\n1,8,9,10\n", "0 to 2");
    assert!(stats.contains("\n0\tsum\t13\n") && stats.contains("\n2\tsum\t17\n"), "{stats}");
    names(",0,1\n5,1,2\n9,3,4\n", "0 to 1");
    names(",0\n0,7\n1,7\n", "0");
    names(",0\nx,7\ny,7\n", "0");
    names(",2000,2001,2002\nde,7,8,9\nfr,7,8,9\n", "2000 to 2002");
    names("\"\",\"1\",\"2\",\"3\"\n\"1\",4,5,6\n", "1 to 3");
    // Without the index: decimals below, or text.
    names("0,1,2\n0.5,-1.0,2.25\n1.5,,3.0\n", "0 to 2");
    names("0,1\nx,1\ny,2\n", "0 to 1");
    let (dir, text) = (Dir::new(), "0,1,2\n0.5,1.25,2.5\n");
    assert_eq!(both(&dir, "sum -c 2", text).success(), "2.5\n");
    assert_eq!(both(&dir, "sum -c 2 --no-header", text).success(), "2.25\n");
    // Rows of data: told where they look like that.
    let run = both(&dir, "sum -c 1", "0,1,2\n3,4,5\n6,7,8\n");
    assert_eq!(run.out, "9\n");
    assert!(run.err.contains("the first row, 0 to 2, is data; if it names the columns: --header"));
    for (text, sum) in [
        ("0,1\n2,3\n", "2\n"),
        ("0,1\n0.5,3.5\n", "0.5\n"),
        (",0\n5,1\n", "5\n"),
        (",4,5\n3,6,7\n", "3\n"),
        (",0,1\n,6,7\n2,8,9\n", "2\n"),
        ("0,2,1\n0.5,0.5,0.5\n", "0.5\n"),
        ("1,2,3\n0.5,0.5,0.5\n", "1.5\n"),
        ("0.0,1.0,2.0\n0.5,0.5,0.5\n", "0.5\n"),
        ("0,1,2\n", "0\n"),
    ] {
        let run = both(&dir, "sum -c 1-1", text);
        assert_eq!(run.out, sum, "{text:?}");
        assert!(!run.err.contains("names the columns;"), "{text:?}: {}", run.err);
    }
    // Names that begin with a word, as Polars and DuckDB number columns.
    for name in ["column_", "column"] {
        let text = format!("{name}0,{name}1\n1,2\n3,4\n");
        let run = both(&dir, "stats", &text);
        assert!(run.err.is_empty() && run.out.contains(&format!("{name}1\tsum\t6\n")), "{run:?}");
    }
}
