//! What a run gave, whatever it will look like.

use super::buffers::{Buffers, Shown};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use warpfold_ptx::count::{Counters, KernelCounters};
use warpfold_ptx::device::Report;
use warpfold_ptx::ir::Module;
use warpfold_ptx::machine::{Checks, Schedule, Shape};
use warpfold_ptx::name::demangled;
use warpfold_ptx::place::Line;

/// One launch from the host, and those that the device made.
pub(crate) struct Run<'a> {
    pub(crate) file: &'a str,
    pub(crate) shape: Shape,
    pub(crate) schedule: Schedule,
    pub(crate) checks: Checks,
    /// Whether the counters of each line are wanted.
    pub(crate) by_line: bool,
    pub(crate) launches: Vec<Report>,
    /// The module, and its source files.
    pub(crate) module: &'a Module,
    pub(crate) files: Vec<Arc<str>>,
    /// The kernel's buffers, and what is shown of them.
    pub(crate) buffers: &'a Buffers,
    pub(crate) shown: Vec<Shown>,
}

impl Run<'_> {
    /// Different faults found, without remarks.
    pub(crate) fn findings(&self) -> usize {
        self.launches.iter().map(|l| l.outcome.findings.faults().count()).sum()
    }

    /// The kernel that did not come to its end.
    pub(crate) fn halted(&self) -> Option<&Report> {
        self.launches.iter().find(|l| l.outcome.halt.is_some())
    }
}

/// A function that the compiler inlined around an instruction: its name, and where it was called.
pub(crate) struct Around<'a> {
    pub(crate) function: Cow<'a, str>,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: u32,
}

/// The functions around an instruction that the compiler inlined, the innermost first.
pub(crate) fn inlined_around(module: &Module, line: Line) -> Vec<Around<'_>> {
    let all = module.inlined_around(line).into_iter();
    all.map(|i| Around {
        function: i.function.as_deref().map_or("a function".into(), demangled),
        file: module.file(i.at.0),
        line: i.at.1,
    })
    .collect()
}

/// A scheduler's name and its seed, where it has one.
pub(crate) fn schedule(schedule: Schedule) -> (&'static str, Option<u64>) {
    match schedule {
        Schedule::Lockstep => ("lockstep", None),
        Schedule::Random { seed } => ("random", Some(seed)),
        Schedule::Adversarial { seed } => ("adversarial", Some(seed)),
    }
}

/// Counters of each source line in order, or of each PTX line where none names its source; instructions without a line come
/// last.
pub(crate) fn lines(counters: &KernelCounters) -> Vec<(Option<Line>, Counters)> {
    let by_source = counters.by_ptx_line().any(|(line, _)| line.source.is_some());
    // Without a source last; then by source line, or by PTX line where there are none.
    type Key = (bool, Option<(u32, u32)>, u32);
    let mut lines: BTreeMap<Key, (Option<Line>, Counters)> = BTreeMap::new();
    for (line, counted) in counters.by_ptx_line() {
        let (key, shown) = match (by_source, line.source) {
            (true, Some(source)) => ((false, Some(source), 0), Some(line)),
            (true, None) => ((true, None, 0), None),
            (false, _) => ((false, None, line.ptx), Some(line)),
        };
        lines.entry(key).or_insert_with(|| (shown, Counters::default())).1.merge(counted);
    }
    lines.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lines: &[(u32, Option<(u32, u32)>)]) -> KernelCounters {
        let mut kernel = KernelCounters::default();
        for &(ptx, source) in lines {
            let one = Counters { instructions: 1, ..Counters::default() };
            kernel.add(Line { ptx, source }, &one);
        }
        kernel
    }

    #[test]
    fn lines_add_up_to_the_whole() {
        let kernel = counted(&[(1, Some((0, 9))), (2, None), (3, Some((0, 7))), (4, Some((0, 9)))]);
        let found = lines(&kernel);
        let shown: Vec<_> =
            found.iter().map(|(l, c)| (l.and_then(|l| l.source), c.instructions)).collect();
        assert_eq!(shown, [(Some((0, 7)), 1), (Some((0, 9)), 2), (None, 1)]);
        let found = lines(&counted(&[(2, None), (1, None)]));
        let shown: Vec<_> = found.iter().map(|(l, c)| (l.map(|l| l.ptx), c.instructions)).collect();
        assert_eq!(shown, [(Some(1), 1), (Some(2), 1)]);
    }
}
