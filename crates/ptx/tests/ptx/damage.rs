//! Damaged PTX gives an error or a module, never a panic.

use crate::thorough::up_to;
use std::{collections::BTreeMap, sync::LazyLock};

use proptest::prelude::*;
use warpfold_ptx::{
    flow::{CallGraph, Flow},
    info::info,
    parse::parse,
};

static SAMPLES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    crate::common::samples().into_iter().map(|sample| (sample.name, sample.text)).collect()
});

/// The name of a sample, which is what a failure should show.
fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(SAMPLES.keys().map(String::as_str).collect::<Vec<_>>())
}

/// All that looks at a text before it is run.
fn examine(text: &str) {
    let _ = info(text);
    if let Ok(module) = parse(text) {
        for function in &module.functions {
            let flow = Flow::new(function);
            for at in 0..function.code.len() {
                let _ = flow.reconvergence(at as u32);
            }
        }
        let graph = CallGraph::new(&module);
        for kernel in module.kernels() {
            let _ = graph.shared_layout(&module, module.function(&kernel.name).unwrap());
        }
    }
}

/// One change to a text, by fractions of its length.
#[derive(Clone, Debug)]
enum Damage {
    Cut { at: f64 },
    Flip { at: f64, bit: u8 },
    DropToken { at: f64 },
    RepeatToken { at: f64, times: usize },
    MoveToken { from: f64, to: f64 },
    Insert { at: f64, what: &'static str },
}

fn damage() -> impl Strategy<Value = Damage> {
    const PIECES: &[&str] = &[
        "{",
        "}",
        ";",
        "@",
        "-",
        "99999999999999999999",
        "[",
        ".param",
        "%r1",
        ":",
        "\"",
        "/*",
        "0f",
        "\u{e9}",
    ];
    let at = 0.0..1.0;
    prop_oneof![
        at.clone().prop_map(|at| Damage::Cut { at }),
        (at.clone(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        at.clone().prop_map(|at| Damage::DropToken { at }),
        (at.clone(), 2..50_usize).prop_map(|(at, times)| Damage::RepeatToken { at, times }),
        (at.clone(), at.clone()).prop_map(|(from, to)| Damage::MoveToken { from, to }),
        (at, proptest::sample::select(PIECES)).prop_map(|(at, what)| Damage::Insert { at, what }),
    ]
}

/// Where words and marks begin and end.
fn tokens(text: &str) -> Vec<&str> {
    let mut rest = text;
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || "_$%.:".contains(c);
        let end = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        found.push(token);
        rest = after;
    }
    found
}

fn place(at: f64, length: usize) -> usize {
    ((at * length as f64) as usize).min(length.saturating_sub(1))
}

fn apply(text: &str, damage: &Damage) -> String {
    let mut tokens = tokens(text);
    if tokens.is_empty() {
        return String::new();
    }
    match *damage {
        Damage::Cut { at } => {
            let end = place(at, text.len());
            return String::from_utf8_lossy(&text.as_bytes()[..end]).into_owned();
        }
        Damage::Flip { at, bit } => {
            let mut bytes = text.as_bytes().to_vec();
            bytes[place(at, text.len())] ^= 1 << bit;
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        Damage::DropToken { at } => {
            tokens.remove(place(at, tokens.len()));
        }
        Damage::RepeatToken { at, times } => {
            let at = place(at, tokens.len());
            tokens.splice(at..at, vec![tokens[at]; times]);
        }
        Damage::MoveToken { from, to } => {
            let token = tokens.remove(place(from, tokens.len()));
            tokens.insert(place(to, tokens.len()), token);
        }
        Damage::Insert { at, what } => tokens.insert(place(at, tokens.len()), what),
    }
    tokens.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(up_to(2000, 200)))]

    #[test]
    fn no_damage_is_a_panic(
        name in name(),
        changes in proptest::collection::vec(damage(), 1..4),
    ) {
        let mut text = SAMPLES[name].clone();
        for change in &changes {
            text = apply(&text, change);
        }
        examine(&text);
    }

    /// Lines from everywhere, in any order, around a proper head.
    #[test]
    fn no_mixture_of_lines_is_a_panic(
        picks in proptest::collection::vec((name(), 0.0..1.0), 1..60),
    ) {
        let mut text = String::from(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n");
        for (name, line) in picks {
            let lines: Vec<_> = SAMPLES[name].lines().collect();
            text.push_str(lines[place(line, lines.len())]);
            text.push('\n');
        }
        examine(&text);
    }
}

/// Every prefix of a text: wherever it is cut, there is an answer.
#[test]
fn every_prefix_has_an_answer() {
    let text = crate::common::sample("12.0/async_copy", 90).unwrap();
    let short = &text[..text.len().min(12_000)];
    // 17 is no divisor of what repeats in the text.
    for end in (0..short.len()).step_by(up_to(1, 17)) {
        assert!(short.is_char_boundary(end));
        examine(&short[..end]);
    }
}
