//! Rungs that can be compared with each other, and what is drawn of them.

use super::read::Gathered;
use super::record::Measured;
use crate::chart::{Axis, Bar, Chart, Line, Mark};
use crate::experiments::number;
use serde_json::Value;
use std::collections::BTreeMap;

/// Rungs over the same elements, in blocks of the same size, on the same device.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) key: Key<'a>,
    /// In the order in which they were measured.
    pub(super) rows: Vec<&'a Measured>,
}

/// What rows of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'a> {
    pub(super) device: &'a str,
    pub(super) dtype: &'a str,
    pub(super) op: &'a str,
    pub(super) n: u64,
    pub(super) block: u64,
    /// Blocks for each multiprocessor, where they were asked for.
    pub(super) per: Option<u64>,
}

impl Key<'_> {
    /// `f32, 1 048 583 elements, blocks of 256`.
    pub(super) fn name(&self) -> String {
        let op = if self.op.is_empty() || self.op == "sum" {
            String::new()
        } else {
            format!("{} of ", self.op)
        };
        let per = self.per.map_or_else(String::new, |per| format!(", {per} a multiprocessor"));
        format!("{op}{}, {} elements, blocks of {}{per}", self.dtype, digits(self.n), self.block)
    }
}

/// A number in groups of three digits.
pub(super) fn digits(n: u64) -> String {
    let text = n.to_string();
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i > 0 && (text.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

impl Measured {
    /// Seconds of a run, if it was timed.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.median.filter(|seconds| seconds.is_finite() && *seconds > 0.0)
    }

    /// Bytes of input for each nanosecond.
    pub(super) fn rate(&self) -> Option<f64> {
        self.gbps.filter(|gbps| gbps.is_finite() && *gbps > 0.0 && self.seconds().is_some())
    }

    /// A counter, by the names on the way to it.
    pub(super) fn counter(&self, path: &[&str]) -> Option<f64> {
        let (first, rest) = path.split_first()?;
        let found = self.counters.as_ref()?.get(*first)?;
        rest.iter().try_fold(found, |value, name| value.get(*name)).and_then(Value::as_f64)
    }

    /// What a profiler counted of the first launch, which reads the elements.
    pub(super) fn profiled(&self, metric: &str) -> Option<f64> {
        self.profile.as_ref()?.first()?.metrics.get(metric).copied()
    }

    fn key(&self) -> Key<'_> {
        let Measured { dtype, op, n, block, .. } = self;
        let device = self.device.as_deref().unwrap_or("");
        Key { device, dtype, op, n: *n, block: *block, per: self.per_multiprocessor }
    }
}

impl<'a> Group<'a> {
    /// A rung of the group.
    pub(super) fn find(&self, rung: &str) -> Option<&'a Measured> {
        self.rows.iter().copied().find(|row| row.rung == rung)
    }

    /// How many times as fast one is as another.
    pub(super) fn ratio(&self, slow: &str, fast: &str) -> Option<f64> {
        Some(self.find(slow)?.seconds()? / self.find(fast)?.seconds()?)
    }
}

/// All groups: those that hold the ladder first, and of these the most elements. A
/// rung that was measured twice counts as it was first.
pub(super) fn groups(all: &Gathered) -> Vec<Group<'_>> {
    let mut found: BTreeMap<Key<'_>, Vec<&Measured>> = BTreeMap::new();
    for row in &all.rungs {
        let rows = found.entry(row.key()).or_default();
        if rows.iter().all(|other| other.rung != row.rung) {
            rows.push(row);
        }
    }
    let mut groups: Vec<_> = found.into_iter().map(|(key, rows)| Group { key, rows }).collect();
    let most = most_rungs(&groups);
    groups.sort_by_key(|group| {
        let rank = |wanted: &str| u8::from(group.key.dtype != wanted);
        // Groups that differ by a rung or two are alike.
        let is_sweep = 2 * group.rows.len() <= most;
        (is_sweep, u64::MAX - group.key.n, rank("f32"), group.key.block)
    });
    groups
}

fn most_rungs(groups: &[Group<'_>]) -> usize {
    groups.iter().map(|group| group.rows.len()).max().unwrap_or(0)
}

/// The groups that hold the ladder, and not a sweep of a few rungs.
pub(super) fn ladders<'g, 'a>(groups: &'g [Group<'a>]) -> &'g [Group<'a>] {
    let most = most_rungs(groups);
    let count = groups.iter().take_while(|group| 2 * group.rows.len() > most).count();
    &groups[..count]
}

/// The speed of each rung, or what the interpreter counted, where nothing was timed.
pub(super) fn speed(group: &Group<'_>) -> Option<Chart> {
    let text = |row: &Measured| {
        let rung = crate::find(&row.rung)?;
        Some(rung.texts.first()?.name().to_owned())
    };
    let bar = |row: &Measured, value: f64| Bar { name: row.rung.clone(), value, group: text(row) };
    let timed: Vec<Bar> = group.rows.iter().filter_map(|row| Some(bar(row, row.rate()?))).collect();
    if !timed.is_empty() {
        let ceiling = group.rows.iter().find_map(|row| row.ceiling_gbps);
        let in_l2 = |is| group.rows.iter().any(|row| row.in_l2 == Some(is));
        let from_memory = in_l2(false) && !in_l2(true);
        let mark = |at: f64| Mark { at, text: format!("the device reads {} GB/s", number(at)) };
        return Some(Chart::Bars {
            title: format!("Speed: {}", group.key.name()),
            unit: "GB/s of input".into(),
            bars: timed,
            reference: ceiling.filter(|_| from_memory).map(mark),
        });
    }
    let counted = |row: &&Measured| Some(bar(row, row.counter(&["instructions"])?));
    let counted: Vec<Bar> = group.rows.iter().filter_map(counted).collect();
    (!counted.is_empty()).then(|| Chart::Bars {
        title: format!("Warp instructions, on the interpreter: {}", group.key.name()),
        unit: "warp instructions".into(),
        bars: counted,
        reference: None,
    })
}

/// The least number of sizes that make a sweep.
const SWEEP: usize = 3;

/// More lines of a chart cannot be told apart.
const MOST_LINES: usize = 6;

/// A value for each key of a sweep.
type Points<K> = BTreeMap<K, f64>;

/// Sweeps of several things, in their order, each beside others of its kind.
type Sweeps<Kind, Thing> = BTreeMap<Kind, Vec<(Thing, Points<u64>)>>;

/// How the speed of rungs depends on the number of elements: a chart for each device
/// and type.
pub(super) fn over_elements(all: &Gathered) -> Vec<Chart> {
    // By device and type, then by rung and block.
    let mut found: Sweeps<(&str, &str), (&str, u64)> = BTreeMap::new();
    for row in all.rungs.iter().filter(|row| row.per_multiprocessor.is_none()) {
        let (key, Some(rate)) = (row.key(), row.rate()) else { continue };
        let rungs = found.entry((key.device, key.dtype)).or_default();
        let which = (row.rung.as_str(), key.block);
        match rungs.iter_mut().find(|(other, _)| *other == which) {
            Some((_, points)) => drop(points.entry(key.n).or_insert(rate)),
            None => rungs.push((which, Points::from([(key.n, rate)]))),
        }
    }
    found
        .into_iter()
        .flat_map(|((_, dtype), rungs)| {
            let swept = rungs.into_iter().filter(|(_, points)| points.len() >= SWEEP);
            let lines: Vec<Line> = swept
                .map(|((rung, _), points)| Line {
                    name: rung.into(),
                    points: points.into_iter().map(|(n, rate)| (n as f64, rate)).collect(),
                })
                .collect();
            let parts = lines.len().div_ceil(MOST_LINES);
            // As many lines in each chart, or one fewer.
            let each = lines.len().div_ceil(parts.max(1)).max(1);
            let chart = |(i, lines): (usize, &[Line])| {
                let part =
                    if parts > 1 { format!(" ({} of {parts})", i + 1) } else { String::new() };
                Chart::Lines {
                    title: format!("Bandwidth by the number of elements, {dtype}{part}"),
                    x: Axis::log("elements"),
                    y: Axis::linear("GB/s of input"),
                    lines: lines.to_vec(),
                    marks: Vec::new(),
                }
            };
            lines.chunks(each).enumerate().map(chart).collect::<Vec<_>>()
        })
        .collect()
}

/// How the speed of rungs depends on the size of a block: a chart for each device,
/// type and number of elements.
pub(super) fn over_blocks(all: &Gathered) -> Vec<Chart> {
    let mut found: Sweeps<(&str, &str, u64), &str> = BTreeMap::new();
    for row in all.rungs.iter().filter(|row| row.per_multiprocessor.is_none()) {
        let (key, Some(rate)) = (row.key(), row.rate()) else { continue };
        let rungs = found.entry((key.device, key.dtype, key.n)).or_default();
        match rungs.iter_mut().find(|(other, _)| *other == row.rung) {
            Some((_, points)) => drop(points.entry(key.block).or_insert(rate)),
            None => rungs.push((&row.rung, Points::from([(key.block, rate)]))),
        }
    }
    found
        .into_iter()
        .filter_map(|((_, dtype, n), rungs)| {
            let mut rungs: Vec<_> =
                rungs.into_iter().filter(|(_, points)| points.len() >= SWEEP).collect();
            let place = |rung: &str| crate::ALL.iter().position(|known| known.id == rung);
            rungs.sort_by_key(|(rung, _)| place(rung).unwrap_or(usize::MAX));
            let mut blocks: Vec<u64> = rungs.iter().flat_map(|(_, p)| p.keys().copied()).collect();
            blocks.sort_unstable();
            blocks.dedup();
            let row = |points: &Points<u64>| {
                blocks.iter().map(|block| points.get(block).copied()).collect()
            };
            (!rungs.is_empty()).then(|| Chart::Heat {
                title: format!("Bandwidth by the size of a block: {dtype}, {} elements", digits(n)),
                unit: "GB/s of input".into(),
                across: "threads of a block".into(),
                columns: blocks.iter().map(u64::to_string).collect(),
                down: "rung".into(),
                rows: rungs.iter().map(|(rung, _)| (*rung).into()).collect(),
                cells: rungs.iter().map(|(_, points)| row(points)).collect(),
            })
        })
        .collect()
}

/// A rung over this many elements of a type, on a device.
type Rung<'a> = (&'a str, &'a str, u64, &'a str);

/// How the speed of a rung depends on the shape of its launch: a chart for each
/// device, type, number of elements and rung.
pub(super) fn over_launches(all: &Gathered) -> Vec<Chart> {
    let mut found: BTreeMap<Rung<'_>, Points<(u64, u64)>> = BTreeMap::new();
    for row in &all.rungs {
        let (key, Some(rate)) = (row.key(), row.rate()) else { continue };
        let Some(per) = key.per else { continue };
        let points = found.entry((key.device, key.dtype, key.n, &row.rung)).or_default();
        points.entry((key.block, per)).or_insert(rate);
    }
    let sorted = |numbers: &mut Vec<u64>| {
        numbers.sort_unstable();
        numbers.dedup();
    };
    let chart = |((_, dtype, n, rung), points): (Rung<'_>, Points<(u64, u64)>)| {
        let mut blocks: Vec<u64> = points.keys().map(|shape| shape.0).collect();
        let mut per: Vec<u64> = points.keys().map(|shape| shape.1).collect();
        sorted(&mut blocks);
        sorted(&mut per);
        let cell = |block: u64, per: u64| points.get(&(block, per)).copied();
        let row = |&block: &u64| per.iter().map(|&per| cell(block, per)).collect();
        (points.len() >= SWEEP).then(|| Chart::Heat {
            title: format!("{rung} by the shape of its launch: {dtype}, {} elements", digits(n)),
            unit: "GB/s of input".into(),
            across: "blocks of a multiprocessor".into(),
            columns: per.iter().map(u64::to_string).collect(),
            down: "threads of a block".into(),
            rows: blocks.iter().map(u64::to_string).collect(),
            cells: blocks.iter().map(row).collect(),
        })
    };
    found.into_iter().filter_map(chart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rung: &str, n: u64, block: u64, gbps: f64) -> Measured {
        Measured {
            rung: rung.into(),
            dtype: "f32".into(),
            n,
            block,
            median: Some(1e-6),
            gbps: Some(gbps),
            ..Measured::default()
        }
    }

    #[test]
    fn sweeps_are_told_from_the_ladder() {
        let mut all = Gathered::default();
        for n in [1000, 2000] {
            all.rungs.extend(["a", "b", "c", "d"].map(|rung| row(rung, n, 256, n as f64)));
        }
        all.rungs.extend([4000, 8000].map(|n| row("a", n, 256, 7.0)));
        all.rungs.extend([32, 64, 128].map(|block| row("b", 500, block, block as f64)));
        let groups = groups(&all);
        let ladders = ladders(&groups);
        assert_eq!(ladders.iter().map(|g| g.key.n).collect::<Vec<_>>(), [2000, 1000]);
        let [Chart::Lines { lines, .. }] = &over_elements(&all)[..] else { panic!() };
        assert_eq!((lines.len(), lines[0].points.len()), (1, 4));
        let [Chart::Heat { rows, cells, .. }] = &over_blocks(&all)[..] else { panic!() };
        assert_eq!(
            (rows, cells),
            (&vec!["b".into()], &vec![vec![Some(32.0), Some(64.0), Some(128.0)]])
        );
        assert_eq!(speed(&ladders[0]).unwrap().marks(), 4);
    }

    #[test]
    fn launches_are_swept_by_themselves() {
        let mut all = Gathered::default();
        for (block, per) in [(64, 2), (64, 4), (128, 2)] {
            let shape = Some(per);
            all.rungs.push(Measured { per_multiprocessor: shape, ..row("a", 9, block, 5.0) });
        }
        let [Chart::Heat { rows, columns, cells, .. }] = &over_launches(&all)[..] else { panic!() };
        assert_eq!((rows.join(" "), columns.join(" ")), ("64 128".into(), "2 4".into()));
        assert_eq!(cells, &[vec![Some(5.0), Some(5.0)], vec![Some(5.0), None]]);
        assert!(over_blocks(&all).is_empty() && over_elements(&all).is_empty());
    }

    #[test]
    fn nothing_is_drawn_of_what_was_not_measured() {
        let mut all = Gathered::default();
        all.rungs.push(Measured { rung: "a".into(), ..Measured::default() });
        all.rungs.push(Measured { median: Some(0.0), ..row("b", 0, 0, 0.0) });
        let groups = groups(&all);
        assert!(groups.iter().all(|group| speed(group).is_none()));
        assert!(over_elements(&all).is_empty() && over_blocks(&all).is_empty());
        assert_eq!(digits(1048583), "1\u{202f}048\u{202f}583");
        assert_eq!((digits(0), digits(100)), ("0".into(), "100".into()));
    }
}
