//! Grids that launch grids.

use super::place::{Place, bytes_of, counting};
use super::{Bench, Cell, Experiment, Needs, Outcome, Table};
use crate::error::{Error, Result};
use crate::rung::Text;
use warpfold_cuda::Launch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "nested-hello",
    texts: &[Text::P],
    title: "grids that launch smaller grids",
    expectation: "each block's first thread launches a grid of one block of half as many threads, until a block is as small as allowed or a depth is reached; or, the second strategy, the first block launches half as many blocks of as many threads, which is one launch a level instead of one for each block; every thread of every grid says hello once. Children come behind their parents: a grid cannot wait for what it launches",
    needs: Needs::Kernels,
    run,
};

/// A grid and where its nesting ends.
struct Case {
    title: &'static str,
    blocks: u32,
    threads: u32,
    /// No block is smaller.
    least: u32,
    /// No grid at this depth has children.
    deepest: u32,
    /// Whether children have half the blocks, and not half the threads.
    by_grid: bool,
}

const fn halved(title: &'static str, blocks: u32, threads: u32) -> Case {
    Case { title, blocks, threads, least: 1, deepest: u32::MAX, by_grid: false }
}

const CASES: [Case; 5] = [
    halved("halved to the end", 1, 8),
    halved("two blocks", 2, 8),
    Case { least: 32, ..halved("no block below 32 threads", 1, 256) },
    Case { deepest: 2, ..halved("to depth 2", 2, 64) },
    Case { by_grid: true, ..halved("blocks of 32 threads, half as many of them", 8, 32) },
];

/// What a grid leaves: words of the kernel's `Greeting`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Greeting {
    parent: u32,
    from_block: u32,
    depth: u32,
    blocks: u32,
    threads: u32,
    greeted: u32,
}

const WORDS: usize = 6;
/// Room for this many grids.
const MOST: u32 = 64;

impl Case {
    /// The grids that there must be: a chain for each block of the first one, or a single one.
    fn wanted(&self) -> Vec<(u32, u32, u32)> {
        let mut all = vec![(0, self.blocks, self.threads)];
        if self.by_grid {
            let mut depth = 0;
            while depth < self.deepest && self.blocks >> (depth + 1) > 0 {
                depth += 1;
                all.push((depth, self.blocks >> depth, self.threads));
            }
            all.sort_unstable();
            return all;
        }
        for _ in 0..self.blocks {
            let (mut depth, mut threads) = (0, self.threads);
            while depth < self.deepest && threads >= 2 && threads / 2 >= self.least {
                (depth, threads) = (depth + 1, threads / 2);
                all.push((depth, 1, threads));
            }
        }
        all.sort_unstable();
        all
    }
}

fn greetings(place: &Place<'_>, case: &Case) -> Result<Vec<Greeting>> {
    let mut first = vec![0; MOST as usize * WORDS];
    (first[3], first[4]) = (case.blocks, case.threads);
    let table = place.upload(&bytes_of(&first))?;
    let count = place.upload(&bytes_of(&[1]))?;
    let kernel = place.kernel("nested_hello", "hello")?;
    let launch = Launch::linear(case.blocks, case.threads);
    let arguments = [
        table.into(),
        count.into(),
        MOST.into(),
        0u32.into(),
        case.least.into(),
        case.deepest.into(),
        u32::from(case.by_grid).into(),
    ];
    place.launch(kernel, &launch, &arguments)?;
    place.wait()?;
    let count = place.words(count, 1)?[0].min(MOST);
    let words = place.words(table, u64::from(count) * WORDS as u64)?;
    let greeting = |w: &[u32]| Greeting {
        parent: w[0],
        from_block: w[1],
        depth: w[2],
        blocks: w[3],
        threads: w[4],
        greeted: w[5],
    };
    Ok(words.chunks_exact(WORDS).map(greeting).collect())
}

/// Whether they are the grids that there must be, each with all of its threads.
fn right(case: &Case, all: &[Greeting]) -> bool {
    let mut found: Vec<_> = all.iter().map(|g| (g.depth, g.blocks, g.threads)).collect();
    found.sort_unstable();
    let below = |(i, g): (usize, &Greeting)| {
        i == 0
            || all
                .get(g.parent as usize)
                .is_some_and(|p| p.depth + 1 == g.depth && g.from_block < p.blocks)
    };
    found == case.wanted()
        && all.iter().all(|g| g.greeted == g.blocks * g.threads)
        && all.iter().enumerate().all(below)
}

/// The grids as a tree.
fn tree(all: &[Greeting]) -> String {
    let mut out = String::new();
    let mut stack = vec![(0, String::new(), true)];
    while let Some((at, indent, last)) = stack.pop() {
        let Some(g) = all.get(at) else { continue };
        let plural = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let from = match at {
            0 => "from the host".into(),
            _ => format!("from block {}", g.from_block),
        };
        let (elbow, below) = match (at, last) {
            (0, _) => ("", ""),
            (_, true) => ("└─ ", "   "),
            (_, false) => ("├─ ", "│  "),
        };
        out += &format!(
            "{indent}{elbow}depth {}: {} of {}, {from}\n",
            g.depth,
            plural(g.blocks, "block"),
            plural(g.threads, "thread")
        );
        let children: Vec<usize> =
            (1..all.len()).filter(|&i| all[i].parent as usize == at).collect();
        for (k, &child) in children.iter().enumerate().rev() {
            stack.push((child, format!("{indent}{below}"), k + 1 == children.len()));
        }
    }
    out
}

/// What is wrong with the nestings of a device, a sentence each.
fn on(place: &Place<'_>) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for case in &CASES {
        let all = greetings(place, case)?;
        if !right(case, &all) {
            wrong.push(format!("{}, on the device: other grids: {all:?}", case.title));
        }
    }
    Ok(wrong)
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let sim = counting();
    let place = Place::new(EXPERIMENT.id, &sim);
    let mut table =
        Table::new("Grids of each nesting", &["nesting", "grids", "depth", "threads", "right"]);
    for (i, case) in CASES.iter().enumerate() {
        bench.tell(i, CASES.len());
        let all = greetings(&place, case)?;
        let is_right = right(case, &all);
        if !is_right {
            outcome.wrong.push(format!("{}: other grids than there must be: {all:?}", case.title));
        }
        table.rows.push(vec![
            case.title.into(),
            (all.len() as u64).into(),
            all.iter().map(|g| g.depth).max().into(),
            Cell::Whole(all.iter().map(|g| u64::from(g.greeted)).sum()),
            if is_right { "yes".into() } else { "no".into() },
        ]);
        outcome.drawings.push(format!("{}\n{}", case.title, tree(&all)));
    }
    outcome
        .findings
        .push("every grid ran once, after its parent, and all of its threads said hello".into());
    if !outcome.wrong.is_empty() {
        outcome.findings.clear();
    }
    if let Some(device) = bench.place(EXPERIMENT.id) {
        match on(&device) {
            Ok(wrong) if wrong.is_empty() => {
                outcome.findings.push("the device gives the same".into());
            }
            Ok(wrong) => outcome.wrong.extend(wrong),
            // It is linked in where it is found.
            Err(Error::Device { source: warpfold_cuda::Error::Library { why, hint }, .. }) => {
                outcome.skipped.push(format!("on the device: {why}; {hint}"));
            }
            Err(error @ Error::ExperimentCapability { .. }) => {
                outcome.skipped.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    outcome.tables.push(table);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nestings_end_where_they_must() {
        assert_eq!(CASES[0].wanted(), [(0, 1, 8), (1, 1, 4), (2, 1, 2), (3, 1, 1)]);
        assert_eq!(CASES[2].wanted(), [(0, 1, 256), (1, 1, 128), (2, 1, 64), (3, 1, 32)]);
        assert_eq!(CASES[3].wanted().len(), 1 + 2 * 2);
        assert_eq!(CASES[4].wanted(), [(0, 8, 32), (1, 4, 32), (2, 2, 32), (3, 1, 32)]);
        assert_eq!(CASES[1].wanted().iter().filter(|g| g.0 == 3).count(), 2);
    }

    #[test]
    fn a_lost_grid_is_noticed() {
        let sim = counting();
        let place = Place::new(EXPERIMENT.id, &sim);
        let mut all = greetings(&place, &CASES[1]).unwrap();
        assert!(right(&CASES[1], &all));
        assert!(
            tree(&all).contains("└─ depth 1: 1 block of 4 threads, from block"),
            "{}",
            tree(&all)
        );
        all[2].greeted -= 1;
        assert!(!right(&CASES[1], &all));
        all.pop();
        assert!(!right(&CASES[1], &all));
    }
}
