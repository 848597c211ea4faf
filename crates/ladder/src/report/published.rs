//! What the texts have published, beside what was measured here.

use super::groups::Group;
use crate::experiments::number;

/// Something that a text says.
pub(super) struct Claim {
    /// What is compared.
    pub(super) what: &'static str,
    /// What the text says of it.
    pub(super) published: &'static str,
    ours: fn(&Group<'_>) -> Option<String>,
}

/// The steps of P, in its order; the gain of each is that over the one before.
const STEPS_OF_P: [&str; 7] = [
    "neighbored",
    "neighbored-compact",
    "interleaved",
    "unroll8",
    "unroll-warps8",
    "complete-unroll8",
    "complete-unroll8-static",
];

pub(super) static CLAIMS: [Claim; 6] = [
    Claim {
        what: "interleaved over neighbored (P)",
        published: "1.69 times as fast",
        ours: |group| times(group.ratio("neighbored", "interleaved")?),
    },
    Claim {
        what: "interleaved over neighbored-compact (P)",
        published: "1.34 times as fast",
        ours: |group| times(group.ratio("neighbored-compact", "interleaved")?),
    },
    Claim {
        what: "v0 : v1 : v2 at 2^20 floats, full grids (F): neighbored, shared-neighbored, shared-first-add",
        published: "1.114 : 0.886 : 0.628 ms, which is 1 : 0.796 : 0.564: \u{201c}20 %\u{201d} and \u{201c}44 %\u{201d} less",
        ours: |group| {
            let one = group.ratio("shared-neighbored", "neighbored")?;
            let two = group.ratio("shared-first-add", "neighbored")?;
            let first = group.find("neighbored")?.seconds()? * 1e6;
            Some(format!("1 : {one:.3} : {two:.3}, the first {} us", number(first)))
        },
    },
    Claim {
        what: "the step with the largest gain, from neighbored to complete-unroll8-static (P)",
        published: "unroll8",
        ours: |group| {
            let gains =
                STEPS_OF_P.windows(2).map(|pair| Some((pair[1], group.ratio(pair[0], pair[1])?)));
            let gains: Vec<(&str, f64)> = gains.collect::<Option<_>>()?;
            let largest = gains.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let all: Vec<String> =
                gains.iter().map(|(id, gain)| format!("{id} {gain:.2}")).collect();
            Some(format!("{}: {}", largest.0, all.join(", ")))
        },
    },
    Claim {
        what: "unroll16 against unroll8 (P)",
        published: "slightly ahead",
        ours: |group| times(group.ratio("unroll8", "unroll16")?),
    },
    Claim {
        what: "shared-first-add that forgets to halve the grid (F)",
        published: "slower",
        ours: |group| times(group.ratio("shared-first-add", "shared-first-add-full-grid")?),
    },
];

/// A step of Mark Harris, "Optimizing Parallel Reduction in CUDA" (NVIDIA, 2007): 2^22 integers on a device of 2006.
pub(super) struct Step {
    /// What it does.
    pub(super) what: &'static str,
    /// GB/s.
    pub(super) gbps: f64,
    /// How many times as fast as the first step.
    pub(super) speedup: f64,
    /// The rung that does the same, if there is one.
    pub(super) rung: Option<&'static str>,
}

const fn step(what: &'static str, gbps: f64, speedup: f64, rung: Option<&'static str>) -> Step {
    Step { what, gbps, speedup, rung }
}

/// His seven steps.
pub(super) static HARRIS: [Step; 7] = [
    step("1: neighbours, by every second thread", 2.083, 1.0, Some("shared-neighbored")),
    step("2: neighbours, by the first threads", 4.854, 2.33, Some("shared-strided")),
    step("3: sequential addressing", 9.741, 4.68, Some("block-sum")),
    step("4: first add during load", 17.377, 8.34, Some("sequential-first-add")),
    step("5: the last warp unrolled", 31.289, 15.01, None),
    step("6: all levels unrolled", 43.996, 21.16, None),
    step("7: several elements a thread", 62.671, 30.04, Some("two-pass-static")),
];

fn times(ratio: f64) -> Option<String> {
    Some(format!("{ratio:.2} times as fast"))
}

impl Claim {
    /// The same of a group, if it was measured.
    pub(super) fn ours(&self, group: &Group<'_>) -> Option<String> {
        (self.ours)(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::groups::Key;
    use crate::report::record::Measured;

    #[test]
    fn ratios_are_of_times() {
        let row = |rung: &str, median: f64| Measured {
            rung: rung.into(),
            median: Some(median),
            ..Measured::default()
        };
        let rows = [
            row("neighbored", 1.69),
            row("interleaved", 1.0),
            row("neighbored-compact", 1.3),
            row("unroll8", 0.1),
            row("unroll-warps8", 0.05),
            row("complete-unroll8", 0.05),
            row("complete-unroll8-static", 0.05),
            row("unroll16", 0.08),
        ];
        let key = Key { device: "", dtype: "f32", op: "sum", n: 1, block: 1, per: None };
        let group = Group { key, rows: rows.iter().collect() };
        let ours: Vec<_> = CLAIMS.iter().map(|claim| claim.ours(&group)).collect();
        assert_eq!(ours[0].as_deref(), Some("1.69 times as fast"));
        assert_eq!((ours[1].as_deref(), &ours[2]), (Some("1.30 times as fast"), &None));
        assert!(ours[3].as_deref().is_some_and(|text| {
            text.starts_with("unroll8: neighbored-compact 1.30, interleaved 1.30, unroll8 10.00")
        }));
        assert_eq!(ours[4].as_deref(), Some("1.25 times as fast"));
    }
}
