//! What came of the expectations, for rungs that were measured at any time: the ranges are those of this warpfold.

use super::groups::groups;
use super::read::Gathered;
use super::record::Measured;
use crate::baselines::{baseline, surprises, verdict};
use warpfold_core::DType;

/// What comparisons say of a row.
struct Judged {
    over_baseline: Option<f64>,
    verdict: Option<String>,
    unexpected: Vec<String>,
}

/// The same measurements, each beside the rung that it is compared with. Rows that were not timed keep what their run said of their counters.
pub(super) fn judged(all: &Gathered) -> Gathered {
    let mut found: Vec<(usize, Judged)> = Vec::new();
    for group in groups(all) {
        for row in &group.rows {
            let (Some(expected), Some(seconds)) = (baseline(&row.rung), row.seconds()) else {
                continue;
            };
            let Ok(dtype) = row.dtype.parse::<DType>() else { continue };
            // Blocks are the rung's own affair, or the group's.
            let over = |id: &str| Some(group.find(id)?.seconds()? / seconds);
            let bytes = row.n.saturating_mul(dtype.size() as u64);
            let compared = expected.compare(bytes, row.rate(), row.on.as_deref(), over);
            let judged = Judged {
                over_baseline: expected.with().and_then(over),
                verdict: verdict(&compared, &[]),
                unexpected: surprises(&compared, &[]),
            };
            let at = all.rungs.iter().position(|other| core::ptr::eq(other, *row));
            found.extend(at.map(|at| (at, judged)));
        }
    }
    let mut rungs: Vec<Measured> = all.rungs.clone();
    for (at, Judged { over_baseline, verdict, unexpected }) in found {
        let row = &mut rungs[at];
        (row.over_baseline, row.verdict, row.unexpected) =
            (over_baseline, verdict, Some(unexpected));
    }
    Gathered { rungs, ..all.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_with_their_baselines_and_not_with_those_before() {
        let row = |rung: &str, us: f64| {
            format!(
                r#"{{"rung": "{rung}", "dtype": "f32", "op": "sum", "n": 268435459, "block": 256, "median": {us}e-6, "gbps": {}, "over_before": 9}}"#,
                4.0 * 268_435_459.0 / us / 1e3
            )
        };
        let rows = [
            row("interleaved", 1414.0),
            row("shared-neighbored", 2648.0),
            row("unroll2", 776.6),
            row("two-pass-shared", 416.6),
            row("unroll8", 300.4),
        ];
        let mut all = Gathered::default();
        all.add(&format!("[{}]", rows.join(","))).unwrap();
        let all = judged(&all);
        let of = |id: &str| all.rungs.iter().find(|row| row.rung == id).unwrap();
        assert!((of("unroll2").over_baseline.unwrap() - 1414.0 / 776.6).abs() < 1e-9);
        assert_eq!(of("unroll2").verdict.as_deref(), Some("as expected"));
        assert_eq!(of("two-pass-shared").verdict.as_deref(), Some("slower"));
        assert!(of("two-pass-shared").unexpected.as_ref().unwrap()[0].contains("Little"));
        // Its baseline is not there.
        assert_eq!(
            (of("shared-neighbored").over_baseline, &of("shared-neighbored").verdict),
            (None, &None)
        );
    }
}
