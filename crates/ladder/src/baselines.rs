//! What each rung is compared with, and what is expected of it: how many times as fast it is, and what it counts.
//!
//! The ranges are those of the registry's expectations, which were written before anything was measured. One that fails stays as it is, and
//! its reason stands beside it. Each has the time at which it was set. A record is judged by ranges that are older than it: one that takes
//! another's place keeps the old one as `was`, which goes on judging the records that were made before.

use warpfold_ptx::count::Counters;

/// From the least to the most.
pub type Range = (f64, f64);

/// An expectation against another rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The rung that it is compared with. Empty: the range is in GB/s.
    pub with: &'static str,
    /// How many times as fast, for an array that is read from memory.
    pub large: Range,
    /// The same for an array of a few MiB, if the expectation says anything of it.
    pub small: Option<Range>,
    /// Why it may be faster than expected; empty if nothing is known.
    pub faster: &'static str,
    /// Why it may be slower than expected.
    pub slower: &'static str,
    /// When the ranges were set: `2026-11-22 11:58`, UTC.
    pub set: &'static str,
    /// The expectation whose place it has taken.
    pub was: Option<&'static Comparison>,
}

/// What the interpreter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Warp instructions.
    Instructions,
    /// Sectors of loads from global memory.
    Sectors,
    /// Branches at which the lanes of a warp part.
    DivergentBranches,
    /// Bank conflicts of loads and stores.
    BankConflicts,
    /// Barriers of a block that warps waited at.
    Barriers,
}

/// An expectation of a counter, at [`COUNTED`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// What is counted.
    pub counter: Counter,
    /// How many times as many as the baseline counts; how many for each block, if that counts none.
    pub times: Range,
}

/// Everything that is expected of a rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// The rung.
    pub rung: &'static str,
    /// What it is compared with; the first one is its baseline.
    pub comparisons: &'static [Comparison],
    /// What it counts, compared with its baseline.
    pub counts: &'static [Count],
}

/// The question of which counters are expected: elements, and threads of a block.
pub const COUNTED: (u64, u32) = (10_007, 256);

/// Bytes from which an array counts as large, and below which as small. Between them the caches of some devices decide.
const LARGE: u64 = 256 << 20;
const SMALL: u64 = 16 << 20;
/// Below this the launches are all that takes time.
const TINY: u64 = 1 << 20;

/// What came of an expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It holds.
    AsExpected,
    /// It is faster, or counts less.
    Faster,
    /// It is slower, or counts more.
    Slower,
}

impl Effect {
    /// The words of a table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Effect::AsExpected => "as expected",
            Effect::Faster => "faster",
            Effect::Slower => "slower",
        }
    }
}

impl Comparison {
    /// The expectation that judges a record of this time: the newest one that is older. None, if all are as young as the record.
    #[must_use]
    pub fn before(&'static self, record: &str) -> Option<&'static Comparison> {
        let mut older = Some(self);
        while let Some(comparison) = older.filter(|comparison| comparison.set >= record) {
            older = comparison.was;
        }
        older
    }

    /// What is expected of an array of so many bytes; nothing if the expectation does not speak of such arrays.
    #[must_use]
    pub fn range(&self, bytes: u64) -> Option<Range> {
        match bytes {
            LARGE.. => Some(self.large),
            TINY..=SMALL => self.small,
            _ => None,
        }
    }

    /// What came of it, and why it came otherwise, as far as that is known. `measured` is how many times as fast it is.
    #[must_use]
    pub fn judge(&self, measured: f64, bytes: u64) -> Option<(Effect, &'static str)> {
        let (least, most) = self.range(bytes)?;
        Some(match measured {
            _ if measured < least => (Effect::Slower, self.slower),
            _ if measured > most => (Effect::Faster, self.faster),
            _ => (Effect::AsExpected, ""),
        })
    }
}

/// An expectation against another rung, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The expectation.
    pub comparison: &'static Comparison,
    /// What is expected of arrays of this size.
    pub expected: Option<Range>,
    /// How many times as fast, or GB/s; nothing if the other rung was not measured.
    pub measured: Option<f64>,
    /// What came of it, and why it came otherwise.
    pub effect: Option<(Effect, &'static str)>,
}

impl Compared {
    /// What is unexpected, in a sentence.
    fn surprise(&self) -> Option<String> {
        let ((effect, why), measured, range) = (self.effect?, self.measured?, self.expected?);
        if effect == Effect::AsExpected {
            return None;
        }
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let range = between(range);
        Some(match self.comparison.with {
            "" => format!("{measured:.3} GB/s, expected {range}{why}"),
            with => format!("{measured:.3} times as fast as {with}, expected {range}{why}"),
        })
    }
}

/// An expectation of a counter, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The expectation.
    pub count: &'static Count,
    /// How many times as many as the baseline.
    pub times: f64,
    /// What came of it.
    pub effect: Effect,
}

impl Counted {
    fn surprise(&self) -> Option<String> {
        let Counted { count, times, effect } = self;
        let (name, range) = (count.counter.name(), between(count.times));
        (*effect != Effect::AsExpected)
            .then(|| format!("{times:.2} times as many {name}, expected {range}"))
    }
}

/// A range, as sentences have it.
#[must_use]
pub fn between((least, most): Range) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// What came of all expectations, in a word or two: that they hold, or the first that does not. Times speak before counters.
#[must_use]
pub fn verdict(compared: &[Compared], counts: &[Counted]) -> Option<String> {
    let timed: Vec<_> =
        compared.iter().filter_map(|c| Some((c.effect?.0, c.comparison.with))).collect();
    if !timed.is_empty() {
        let failed = timed.iter().find(|(effect, _)| *effect != Effect::AsExpected);
        return Some(match failed {
            None => Effect::AsExpected.name().into(),
            Some((effect, with))
                if compared.first().is_some_and(|c| c.comparison.with == *with) =>
            {
                effect.name().into()
            }
            Some((effect, with)) => format!("{} than {with}", effect.name()),
        });
    }
    let failed = counts.iter().find(|c| c.effect != Effect::AsExpected);
    (!counts.is_empty()).then(|| match failed {
        None => Effect::AsExpected.name().into(),
        Some(Counted { count, effect, .. }) => {
            let word = if *effect == Effect::Faster { "fewer" } else { "more" };
            format!("{word} {}", count.counter.name())
        }
    })
}

/// Expectations that failed, and why, a sentence each.
#[must_use]
pub fn surprises(compared: &[Compared], counts: &[Counted]) -> Vec<String> {
    let timed = compared.iter().filter_map(Compared::surprise);
    timed.chain(counts.iter().filter_map(Counted::surprise)).collect()
}

impl Counter {
    /// Its name, as the tables have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Counter::Instructions => "instructions",
            Counter::Sectors => "sectors loaded",
            Counter::DivergentBranches => "divergent branches",
            Counter::BankConflicts => "bank conflicts",
            Counter::Barriers => "barriers",
        }
    }

    /// It, among counters.
    #[must_use]
    pub const fn of(self, counters: &Counters) -> u64 {
        match self {
            Counter::Instructions => counters.instructions,
            Counter::Sectors => counters.global_loads.sectors,
            Counter::DivergentBranches => counters.divergent_branches,
            Counter::BankConflicts => {
                counters.shared_loads.conflicts + counters.shared_stores.conflicts
            }
            Counter::Barriers => counters.barriers,
        }
    }
}

impl Count {
    /// How many times as many, or how many for each of `blocks` where the baseline counts none; and what came of it.
    #[must_use]
    pub fn judge(&self, rung: &Counters, baseline: &Counters, blocks: u64) -> (f64, Effect) {
        let (mine, theirs) = (self.counter.of(rung) as f64, self.counter.of(baseline) as f64);
        let times = mine / if theirs == 0.0 { blocks.max(1) as f64 } else { theirs };
        let (least, most) = self.times;
        let verdict = match times {
            _ if times < least => Effect::Faster,
            _ if times > most => Effect::Slower,
            _ => Effect::AsExpected,
        };
        (times, verdict)
    }
}

impl Baseline {
    /// What came of its comparisons over an array of so many bytes: `gbps` is its own rate, and `over` says how many times as fast as
    /// another rung it is, if that was measured. `record` is when that was, if it was not now: younger ranges judge nothing.
    pub fn compare(
        &self,
        bytes: u64,
        gbps: Option<f64>,
        record: Option<&str>,
        over: impl Fn(&str) -> Option<f64>,
    ) -> Vec<Compared> {
        let compare = |comparison: &'static Comparison| {
            let measured = if comparison.with.is_empty() { gbps } else { over(comparison.with) };
            let judge = record.map_or(Some(comparison), |record| comparison.before(record));
            let expected = judge.and_then(|judge| judge.range(bytes));
            let effect = measured.and_then(|measured| judge?.judge(measured, bytes));
            Compared { comparison: judge.unwrap_or(comparison), expected, measured, effect }
        };
        self.comparisons.iter().map(compare).collect()
    }

    /// What came of its counters, beside its baseline's; `blocks` are those of all launches.
    #[must_use]
    pub fn count(&self, rung: &Counters, baseline: &Counters, blocks: u64) -> Vec<Counted> {
        let judge = |count: &'static Count| {
            let (times, effect) = count.judge(rung, baseline, blocks);
            Counted { count, times, effect }
        };
        self.counts.iter().map(judge).collect()
    }

    /// The first comparison's rung, if there is one.
    #[must_use]
    pub fn with(&self) -> Option<&'static str> {
        self.comparisons.first().map(|first| first.with).filter(|with| !with.is_empty())
    }
}

/// What is expected of a rung.
#[must_use]
pub fn baseline(rung: &str) -> Option<&'static Baseline> {
    BASELINES.iter().find(|baseline| baseline.rung == rung)
}

/// When the first ranges were set.
const FIRST: &str = "2026-11-22 11:58";

const fn with(with: &'static str, large: Range) -> Comparison {
    Comparison { with, large, small: None, faster: "", slower: "", set: FIRST, was: None }
}

const fn set(set: &'static str, comparison: Comparison) -> Comparison {
    Comparison { set, ..comparison }
}

const fn and_small(comparison: Comparison, small: Range) -> Comparison {
    Comparison { small: Some(small), ..comparison }
}

const fn faster(comparison: Comparison, faster: &'static str) -> Comparison {
    Comparison { faster, ..comparison }
}

const fn slower(comparison: Comparison, slower: &'static str) -> Comparison {
    Comparison { slower, ..comparison }
}

const fn of(
    rung: &'static str,
    comparisons: &'static [Comparison],
    counts: &'static [Count],
) -> Baseline {
    Baseline { rung, comparisons, counts }
}

const fn count(counter: Counter, least: f64, most: f64) -> Count {
    Count { counter, times: (least, most) }
}

use Counter::{BankConflicts, Barriers, DivergentBranches, Instructions, Sectors};

const SAME: Range = (0.97, 1.03);
const ONE_LOAD: &str = "a thread has one load of 4 bytes in flight, which is 8 KiB for each multiprocessor: less than Little's law asks for";

/// In the order of the ladder.
static BASELINES: &[Baseline] = &[
    of(
        "cpu-serial",
        &[faster(
            and_small(with("", (1.0, 10.0)), (1.0, 10.0)),
            "sums of integers may be added in any order, so that the compiler uses vectors",
        )],
        &[],
    ),
    of(
        "cpu-recursive",
        &[slower(
            and_small(with("cpu-serial", (1.0, 5.0)), (1.0, 5.0)),
            "half of the array is written and read again, in new pages of memory",
        )],
        &[],
    ),
    of("neighbored", &[and_small(with("cpu-serial", (20.0, 400.0)), (20.0, 400.0))], &[]),
    of(
        "neighbored-compact",
        &[faster(
            with("neighbored", (1.2, 1.5)),
            "a warp executes less than half of the instructions: the remainder costs more than it was thought to",
        )],
        &[
            count(Instructions, 0.5, 0.8),
            count(DivergentBranches, 0.0, 0.5),
            count(Barriers, 1.0, 1.0),
        ],
    ),
    of(
        "interleaved",
        &[with("neighbored-compact", (1.1, 1.4))],
        &[count(Instructions, 0.8, 1.1), count(Sectors, 0.2, 0.7), count(Barriers, 1.0, 1.0)],
    ),
    of(
        "shared-neighbored",
        &[slower(
            with("neighbored", (1.3, 2.0)),
            "the levels of `neighbored` hit the L1 cache: its remainder and its idle lanes decide, and both are still there",
        )],
        &[count(Sectors, 0.1, 0.6), count(Instructions, 0.5, 1.1)],
    ),
    of(
        "shared-strided",
        &[with("shared-neighbored", (1.2, 1.8))],
        &[
            // About 70 of the loads, and half as many of the stores that follow them.
            count(BankConflicts, 60.0, 220.0),
            count(Instructions, 0.3, 0.8),
            count(Sectors, 1.0, 1.0),
        ],
    ),
    of(
        "shared-first-add",
        &[faster(with("shared-neighbored", (1.6, 1.9)), "half as many blocks are started, too")],
        &[count(Instructions, 0.45, 0.65), count(Sectors, 0.9, 1.1)],
    ),
    of(
        "shared-first-add-full-grid",
        &[and_small(with("shared-first-add", (0.3, 0.95)), (0.3, 0.95))],
        &[count(Instructions, 1.5, 2.1), count(Sectors, 0.9, 1.2)],
    ),
    of(
        "unroll2",
        &[with("interleaved", (1.5, 2.0))],
        &[count(Instructions, 0.45, 0.75), count(Barriers, 0.45, 0.6)],
    ),
    of(
        "unroll4",
        &[with("unroll2", (1.3, 1.8))],
        &[count(Instructions, 0.5, 0.8), count(Barriers, 0.45, 0.6)],
    ),
    of(
        "unroll8",
        &[with("unroll4", (1.1, 1.5))],
        &[count(Instructions, 0.5, 0.9), count(Barriers, 0.45, 0.65)],
    ),
    of(
        "unroll16",
        &[faster(
            with("unroll8", (0.95, 1.1)),
            "sixteen loads in flight are still worth a tenth: the memory of this device wants more of them than those of the text",
        )],
        &[count(Instructions, 0.5, 1.0), count(Barriers, 0.45, 0.75)],
    ),
    of(
        "unroll8-loop",
        &[with("unroll8", (0.98, 1.05))],
        &[count(Instructions, 0.6, 1.1), count(Sectors, 1.0, 1.0)],
    ),
    of(
        "unroll8-rolled",
        &[with("unroll8", (0.3, 0.98))],
        &[count(Instructions, 0.7, 1.3), count(Sectors, 1.0, 1.0)],
    ),
    of(
        "unroll-warps8",
        &[with("unroll8", (1.0, 1.1))],
        &[count(Instructions, 0.4, 0.9), count(Barriers, 0.3, 0.6)],
    ),
    of(
        "unroll-warps8-barrier",
        &[with("unroll-warps8", (0.9, 1.0)), with("unroll8", SAME)],
        &[count(Barriers, 1.6, 3.0)],
    ),
    of(
        "complete-unroll8",
        &[with("unroll-warps8", (1.0, 1.05))],
        &[count(Instructions, 0.8, 1.1), count(Barriers, 1.0, 1.3)],
    ),
    of(
        "complete-unroll8-static",
        &[with("complete-unroll8", SAME)],
        &[count(Instructions, 0.8, 1.05), count(Barriers, 0.7, 1.0)],
    ),
    of("nested", &[and_small(with("interleaved", (0.001, 0.1)), (0.0001, 0.1))], &[]),
    of(
        "nested-nosync",
        &[and_small(with("nested", (0.9, 1.1)), (0.9, 1.1))],
        &[count(Barriers, 0.0, 0.0)],
    ),
    of(
        "nested-wide",
        &[
            with("nested", (10.0, 100.0)),
            faster(
                with("interleaved", (0.0, 1.0)),
                "its 512 blocks step through the array with the whole grid, as `two-pass-shared` does, and `interleaved` starts a block for each tile",
            ),
        ],
        &[],
    ),
    of(
        "two-pass-shared",
        &[slower(with("unroll8", (1.2, 2.0)), ONE_LOAD)],
        // A thread has one element here, so that the tree is paid as often as by `block-sum`.
        &[count(Instructions, 3.0, 5.0), count(BankConflicts, 0.0, 0.0)],
    ),
    of(
        "two-pass-warp",
        &[and_small(with("two-pass-shared", SAME), (1.0, 1.05))],
        &[count(Barriers, 0.3, 0.6), count(Sectors, 1.0, 1.0)],
    ),
    of(
        "two-pass-static",
        &[with("two-pass-warp", SAME)],
        &[count(Instructions, 0.7, 1.0), count(Sectors, 1.0, 1.0)],
    ),
    of(
        "block-sum",
        &[
            faster(
                with("shared-neighbored", (1.5, 2.0)),
                "neither a remainder nor idle lanes nor conflicts of banks are left",
            ),
            with("shared-strided", (1.05, 1.6)),
            with("two-pass-shared", (0.1, 0.8)),
        ],
        &[count(Instructions, 0.2, 0.6), count(BankConflicts, 0.0, 0.0), count(Sectors, 1.0, 1.0)],
    ),
    of(
        "sequential-first-add",
        &[
            set("2026-11-25 15:00", with("block-sum", (1.6, 1.95))),
            set("2026-11-25 15:00", with("shared-first-add", (1.5, 2.3))),
        ],
        &[
            count(Instructions, 0.45, 0.65),
            count(Barriers, 0.45, 0.6),
            count(BankConflicts, 0.0, 0.0),
            count(Sectors, 0.9, 1.1),
        ],
    ),
    of(
        "warp-shuffle",
        &[and_small(with("two-pass-shared", SAME), (1.0, 1.2))],
        &[count(Barriers, 0.1, 0.2), count(Instructions, 0.6, 1.1), count(Sectors, 1.0, 1.0)],
    ),
    of(
        "warp-allreduce",
        &[with("warp-shuffle", SAME)],
        &[count(Instructions, 1.0, 1.6), count(Barriers, 1.0, 1.0)],
    ),
    of("any-op", &[with("warp-shuffle", SAME)], &[count(Instructions, 0.95, 1.05)]),
    of(
        "vector-load",
        &[faster(
            with("warp-shuffle", (1.05, 1.3)),
            "`warp-shuffle` is slower than it was thought to be: a thread has one load of 4 bytes in flight, which is 8 KiB for each multiprocessor",
        )],
        &[],
    ),
    of(
        "last-block",
        &[slower(
            and_small(with("warp-shuffle", SAME), (1.5, 2.0)),
            "launches that follow each other overlap: a second one costs less than a first",
        )],
        &[count(Sectors, 0.95, 1.1)],
    ),
    of(
        "atomic",
        &[faster(
            and_small(with("last-block", SAME), (0.8, 1.0)),
            "setting the answer to zero costs less than the tickets and the fences",
        )],
        &[count(Instructions, 0.6, 1.0)],
    ),
    of(
        "redux",
        &[and_small(with("warp-shuffle", SAME), (1.0, 1.1))],
        &[count(Instructions, 0.5, 0.9)],
    ),
    of(
        "cg-reduce",
        &[set("2026-11-25 15:00", and_small(with("warp-shuffle", SAME), (0.97, 1.1)))],
        &[count(Instructions, 0.5, 1.1), count(Sectors, 1.0, 1.0), count(Barriers, 1.0, 1.0)],
    ),
    of("grid-sync", &[and_small(with("last-block", SAME), (0.4, 0.95))], &[]),
    of(
        "cluster",
        &[slower(
            and_small(with("last-block", SAME), (0.87, 1.17)),
            "the eight blocks of a cluster are placed together, and wait for each other before they end",
        )],
        &[],
    ),
    of("bulk-copy", &[with("vector-load", (0.97, 1.05))], &[]),
    of(
        "engine",
        &[faster(
            and_small(with("vector-load", SAME), (0.3, 1.0)),
            "one launch instead of two, whose blocks begin before the launch before has ended",
        )],
        &[],
    ),
    of("cub", &[with("vector-load", (0.95, 1.05))], &[]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALL;

    #[test]
    fn every_rung_has_its_baseline_above_it_or_in_a_known_place() {
        assert!(ALL.iter().map(|rung| rung.id).eq(BASELINES.iter().map(|b| b.rung)));
        for rung in ALL {
            let expected = baseline(rung.id).unwrap();
            assert!(!expected.comparisons.is_empty(), "{}", rung.id);
            for comparison in expected.comparisons {
                let known = comparison.with.is_empty() || crate::find(comparison.with).is_some();
                assert!(known && comparison.with != rung.id, "{}: {comparison:?}", rung.id);
                for (least, most) in
                    [Some(comparison.large), comparison.small].into_iter().flatten()
                {
                    assert!(0.0 <= least && least <= most && most.is_finite(), "{}", rung.id);
                }
            }
            for Count { times: (least, most), .. } in expected.counts {
                assert!(0.0 <= *least && least <= most, "{}", rung.id);
            }
        }
    }

    #[test]
    fn a_range_judges_only_what_was_measured_after_it() {
        static OLD: Comparison = set("2026-01-01 10:00", with("a", (1.0, 2.0)));
        static NEW: Comparison =
            Comparison { was: Some(&OLD), ..set("2026-03-01 10:00", with("a", (0.5, 3.0))) };
        let judges = |record: &str| NEW.before(record).map(|c| c.large);
        assert_eq!(judges("2026-03-01 10:01"), Some((0.5, 3.0)));
        // As young as the record.
        assert_eq!(judges("2026-03-01 10:00"), Some((1.0, 2.0)));
        assert_eq!(judges("2026-01-01 10:00"), None);
        static BASELINE: Baseline = Baseline { rung: "b", comparisons: &[NEW], counts: &[] };
        let of = |record| BASELINE.compare(1 << 30, None, record, |_| Some(2.5))[0].effect;
        assert_eq!(of(None).map(|e| e.0), Some(Effect::AsExpected));
        assert_eq!(of(Some("2026-02-01 00:00")).map(|e| e.0), Some(Effect::Faster));
        assert_eq!(of(Some("2025-12-31 00:00")), None);
    }

    #[test]
    fn an_expectation_is_judged_where_it_speaks() {
        let shuffle = &baseline("warp-shuffle").unwrap().comparisons[0];
        assert_eq!(shuffle.judge(1.1, 1 << 30), Some((Effect::Faster, "")));
        assert_eq!(shuffle.judge(1.1, 4 << 20), Some((Effect::AsExpected, "")));
        assert_eq!((shuffle.judge(1.1, 1 << 10), shuffle.judge(1.1, 64 << 20)), (None, None));
        let two = &baseline("two-pass-shared").unwrap().comparisons[0];
        let (verdict, why) = two.judge(0.72, 1 << 30).unwrap();
        assert!(verdict == Effect::Slower && why.contains("Little"), "{why}");
        assert_eq!(two.judge(0.72, 4 << 20), None);
    }
}
