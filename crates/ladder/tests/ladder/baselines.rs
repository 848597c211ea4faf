//! What rungs count on the interpreter, beside what their baselines count: the expectations of counters hold.

use std::collections::HashMap;
use warpfold_core::{DType, Op};
use warpfold_ladder::baselines::{COUNTED, Counted, Counter, Effect, baseline};
use warpfold_ladder::{ALL, Lab, Measurement, Question, Timing, find};

fn measure(lab: &Lab, id: &'static str) -> Option<Measurement> {
    let (n, block) = COUNTED;
    let rung = find(id)?;
    let dtype = if rung.dtypes.contains(&DType::U32) { DType::U32 } else { DType::F32 };
    let question = Question::new(rung, dtype, Op::Sum, n, block).ok()?;
    match lab.measure(&question, &Timing::default(), 1) {
        Ok(measured) => Some(measured),
        Err(error) if error.is_skip() => None,
        Err(error) => panic!("{id}: {error}"),
    }
}

#[test]
fn what_is_counted_is_what_is_expected() {
    let lab = Lab::simulated();
    let measured: HashMap<&str, Measurement> =
        ALL.iter().filter_map(|rung| Some((rung.id, measure(&lab, rung.id)?))).collect();
    let (mut failed, mut held) = (Vec::new(), 0);
    for rung in ALL {
        let expected = baseline(rung.id).unwrap();
        if expected.counts.is_empty() {
            continue;
        }
        let with = expected.with().unwrap();
        let of = |id: &str| measured[id].counters.clone().unwrap();
        let blocks = measured[rung.id].grid.iter().map(|&blocks| u64::from(blocks)).sum();
        for Counted { count, times, effect } in expected.count(&of(rung.id), &of(with), blocks) {
            let (name, range) = (count.counter.name(), count.times);
            let told =
                format!("{}: {times:.3} times the {name} of {with}, expected {range:?}", rung.id);
            match effect {
                Effect::AsExpected => held += 1,
                Effect::Faster | Effect::Slower => failed.push(told),
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(held > 40, "{held}");
}

/// The figures that the pages name.
#[test]
fn strides_of_powers_of_two_meet_in_banks() {
    let lab = Lab::simulated();
    let conflicts = |id: &str, n: u64| {
        let question = Question::new(find(id).unwrap(), DType::U32, Op::Sum, n, 256).unwrap();
        let measured = lab.measure(&question, &Timing::default(), 1).unwrap();
        assert!(measured.verdict.is_right());
        let counters = measured.counters.unwrap();
        let all = Counter::BankConflicts.of(&counters);
        (counters.shared_loads.conflicts, all)
    };
    // One block of 256 threads.
    let (loads, all) = conflicts("shared-strided", 256);
    assert!((60..=80).contains(&loads) && all > loads, "{loads} {all}");
    // The first one leaves lanes idle, and the last one has lanes side by side.
    assert_eq!(conflicts("shared-neighbored", 256), (0, 0));
    assert_eq!(conflicts("block-sum", 256), (0, 0));
}
