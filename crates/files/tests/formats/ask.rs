//! What is written first about a file: one line for one column.

use std::fs;
use std::path::PathBuf;
use warpfold::{CancelToken, Op, Reduction};
use warpfold_files::stream::{Inputs, Silent, partial, reduce};
use warpfold_files::{Error, Format, OpenOptions, max, mean, min, open, reduce_column, sum};

const TABLE: &str = "fruit,price,count,day\napple,0.1,3,2024-01-01\npear,,5,2024-01-02\nplum,0.2,9007199254740993,2024-01-03\n";

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, TABLE).unwrap();
    (folder, path)
}

#[test]
fn a_column_by_its_name_or_its_place() {
    let (_folder, path) = folder();
    let exact = 0.1 + 0.2;
    assert_eq!(sum(&path, "price").unwrap(), exact);
    assert_eq!(sum(path.to_str().unwrap(), String::from("price")).unwrap(), exact);
    assert_eq!(sum(&path, 2).unwrap(), exact);
    assert_eq!((min(&path, "price").unwrap(), max(&path, "price").unwrap()), (0.1, 0.2));
    assert_eq!(mean(&path, "price").unwrap(), exact / 2.0);
    // Integers lose nothing before they are rounded, once.
    assert_eq!(sum(&path, "count").unwrap(), 9_007_199_254_741_001_i64 as f64);
    let total: i64 = reduce_column(&path, "count", &Reduction::sum()).unwrap().try_into().unwrap();
    assert_eq!(total, 9_007_199_254_741_001);
    let variance: f64 =
        reduce_column(&path, 2, &Reduction::var().ddof(1)).unwrap().try_into().unwrap();
    assert_eq!(variance, warpfold::var(&[0.1, 0.2], 1));
}

#[test]
fn errors_say_what_there_is() {
    let (folder, path) = folder();
    let error = sum(&path, "cost").unwrap_err().to_string();
    assert!(
        error.ends_with("there is no column \"cost\"; there are fruit, price, count, day"),
        "{error}"
    );
    assert!(sum(&path, 9).unwrap_err().to_string().contains("only 4"));
    assert!(sum(&path, "fruit").is_err() && sum(folder.path().join("none.csv"), "price").is_err());
    let empty = folder.path().join("empty.csv");
    fs::write(&empty, "fruit,price\napple,\npear,\n").unwrap();
    assert!(min(&empty, "price").is_err());
}

/// The token of a question ends it as its progress does, whatever the file.
#[test]
fn a_token_ends_the_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, "x\n".to_owned() + &"1.5\n".repeat(1000)).unwrap();
    let token = CancelToken::new();
    for question in [Reduction::sum(), Reduction::new([Op::Max, Op::Var])] {
        let question = question.until(&token);
        assert!(reduce_column(&path, "x", &question).is_ok());
    }
    token.cancel();
    let question = Reduction::sum().until(&token);
    assert!(matches!(reduce_column(&path, "x", &question), Err(Error::Cancelled)));
    let inputs =
        || Inputs { items: open(&path, &OpenOptions::default()).unwrap(), others: Vec::new() };
    let states = partial(inputs(), &question, 0, None, &Silent);
    assert!(matches!(states, Err(Error::Cancelled)), "{states:?}");
    let raw = folder.path().join("x.bin");
    fs::write(&raw, vec![0u8; 1 << 16]).unwrap();
    let options = OpenOptions {
        format: Some(Format::Raw),
        dtype: Some(warpfold::DType::F32),
        shape: Some(vec![128, 128]),
        ..OpenOptions::default()
    };
    for question in [question.clone(), question.axis(0)] {
        let inputs = Inputs { items: open(&raw, &options).unwrap(), others: Vec::new() };
        let ended = reduce(inputs, &question, None, &Silent);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    }
}
