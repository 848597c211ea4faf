//! The pages' lists of operations are what the catalogue says.
//!
//! After a change that is meant, `README=overwrite cargo test -p warpfold-pages` writes
//! the table anew.

use std::path::{Path, PathBuf};
use warpfold::{DType, Op};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The types of an array's elements that answers treat alike.
fn classes() -> [(&'static str, Vec<DType>); 4] {
    let of = |is: fn(DType) -> bool| DType::ALL.into_iter().filter(|&d| is(d)).collect();
    [
        ("floats", of(DType::is_float)),
        ("signed", of(DType::is_signed_int)),
        ("unsigned", of(DType::is_unsigned_int)),
        ("bool", vec![DType::Bool]),
    ]
}

/// The elements that an operation takes, by classes.
fn elements(op: Op) -> String {
    let takes = classes().into_iter().filter(|(_, types)| {
        let some = types.iter().any(|&dtype| op.supports(dtype));
        assert_eq!(some, types.iter().all(|&dtype| op.supports(dtype)), "{op} cuts a class");
        some
    });
    let names: Vec<&str> = takes.map(|(name, _)| name).collect();
    if names.len() == classes().len() { "all".into() } else { names.join(", ") }
}

/// The types of an operation's answers, by classes of elements where those differ.
fn answers(op: Op) -> String {
    let takes: Vec<DType> = DType::ALL.into_iter().filter(|&dtype| op.supports(dtype)).collect();
    let one = op.answer_type(takes[0]);
    if takes.iter().all(|&dtype| op.answer_type(dtype) == one) {
        return one.to_string();
    }
    if takes.iter().all(|&dtype| op.answer_type(dtype) == dtype) {
        return "the elements' type".into();
    }
    let mut groups: Vec<(&str, String)> = Vec::new();
    for (class, types) in classes() {
        let one = op.answer_type(types[0]);
        let answer = if types.iter().all(|&dtype| op.answer_type(dtype) == one) {
            one.to_string()
        } else {
            assert!(types.iter().all(|&dtype| op.answer_type(dtype) == dtype), "{op} of {class}");
            "their type".into()
        };
        match groups.last_mut() {
            Some((classes, other)) if *other == answer => *classes = "others",
            _ => groups.push((class, answer)),
        }
    }
    let cut = groups.iter().rev().skip(1).any(|&(classes, _)| classes == "others");
    assert!(!cut, "{op} needs another word for its types: {groups:?}");
    let groups: Vec<String> =
        groups.iter().map(|(classes, answer)| format!("{classes}: {answer}")).collect();
    groups.join("; ")
}

fn table() -> String {
    let head = "| operation | answer | arrays | elements | answers in |\n|---|---|---|---|---|\n";
    Op::ALL.into_iter().fold(head.to_string(), |table, op| {
        let (about, arrays) = (op.about(), op.arity());
        table + &format!("| {op} | {about} | {arrays} | {} | {} |\n", elements(op), answers(op))
    })
}

#[test]
fn the_page_of_operations_has_the_catalogues_table() {
    let path = root().join("docs/operations.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = page.find("| operation | answer |").expect("the table's head");
    let len = page[begin..].find("\n\n").expect("an empty line behind the table") + 1;
    let (found, wanted) = (&page[begin..begin + len], table());
    if std::env::var_os("README").is_some_and(|what| what == "overwrite") {
        let page = [&page[..begin], &wanted, &page[begin + len..]].concat();
        std::fs::write(path, page).unwrap();
        return;
    }
    let hint = "README=overwrite cargo test -p warpfold-pages writes the table anew";
    assert!(found == wanted, "docs/operations.md has\n{found}\nnot\n{wanted}\n{hint}");
}

#[test]
fn the_readme_names_every_operation() {
    let page = std::fs::read_to_string(root().join("README.md")).unwrap();
    let names: Vec<&str> = Op::ALL.into_iter().map(Op::name).collect();
    let row = format!("| operations | {} |", names.join(", "));
    assert!(page.contains(&row), "README.md lacks this row:\n{row}");
}
