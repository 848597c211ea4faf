//! What the classic listings get wrong, kernel and host code, shown at work on the interpreter; and mistakes that are often made
//! with what is in none of the texts.

mod coverage;
mod listings;
mod printed;
mod statements;

pub(crate) use coverage::astray;
pub use printed::{PRINTED, Printed};
pub use statements::{STATEMENTS, Statement, page};

use crate::error::{Error, Result};
use crate::rung::{Rung, Text};
use listings::LISTINGS;
use warpfold_ptx::finding::Finding;

/// A demonstration of a fault.
#[derive(Clone, Debug)]
pub struct Showing {
    /// The text whose algorithm this is; [`Text::Beyond`] for a mistake that comes from no text.
    pub text: Text,
    /// The listing of the text that it is made after, if it is a kernel of one.
    pub printed: Option<&'static Printed>,
    /// The listing, in words of our own.
    pub source: String,
    /// How it was run.
    pub how: String,
    /// The findings of the interpreter.
    pub findings: Vec<String>,
    /// Why it did not finish.
    pub halt: Option<String>,
    /// The answer of each run; empty if the listing did not finish.
    pub got: Vec<String>,
    /// The right answer.
    pub wanted: String,
    /// Where the first answer goes wrong, if it is a sum of not too many elements.
    pub astray: Vec<String>,
}

impl Showing {
    /// Whether something is wrong.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        !self.findings.is_empty()
            || self.halt.is_some()
            || self.got.iter().any(|g| *g != self.wanted)
    }
}

/// Demonstrations of the faults of a rung's listing; empty if there is nothing to show.
///
/// # Errors
/// Errors of the interpreter, other than findings.
pub fn show(rung: &Rung) -> Result<Vec<Showing>> {
    if let Some(showing) = crate::host::faulty(rung.id) {
        return Ok(vec![showing]);
    }
    let failed = |source| Error::Device { id: rung.id, source };
    let of_rung = LISTINGS.iter().filter(|listing| listing.rung == rung.id);
    of_rung.map(|listing| listing.show().map_err(failed)).collect()
}

/// How many of the texts' listings are wrong: those that a fault is shown of, each once, and the two that run on the host.
#[must_use]
pub fn wrong_listings() -> usize {
    let of_texts = LISTINGS.iter().filter(|listing| listing.text != Text::Beyond);
    let kernels: std::collections::BTreeSet<&str> =
        of_texts.map(|listing| listing.kernel).collect();
    let on_host = crate::ALL.iter().filter(|rung| crate::host::is_faulty(rung.id)).count();
    kernels.len() + on_host
}

/// Findings of one kind between the same lines of the source are one, whichever came first. The compiler makes several instructions of
/// a line, and several copies of a loop.
pub(crate) fn join(findings: &[Finding]) -> Vec<Finding> {
    let key = |finding: &Finding| {
        let fault = &finding.fault;
        let mut lines = [Some(fault.line), fault.other.map(|other| other.line)]
            .map(|line| line.map(|line| line.source.ok_or(line.ptx)));
        lines.sort_unstable();
        (finding.kernel.clone(), fault.kind, lines)
    };
    let mut joined: Vec<Finding> = Vec::new();
    for finding in findings {
        match joined.iter_mut().find(|other| key(other) == key(finding)) {
            Some(first) => first.count += finding.count,
            None => joined.push(finding.clone()),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::listings::{GRID_SYNC, WARP_SHUFFLE};
    use super::*;
    use crate::{ALL, find};
    use std::collections::BTreeMap;
    use std::sync::{Mutex, OnceLock};

    /// What the listings of a rung show. Some take seconds, and several tests look at them: each is run once.
    fn shown(id: &'static str) -> &'static [Showing] {
        static SHOWN: Mutex<BTreeMap<&str, &OnceLock<Vec<Showing>>>> = Mutex::new(BTreeMap::new());
        let cell = *SHOWN.lock().unwrap().entry(id).or_insert_with(|| Box::leak(Box::default()));
        cell.get_or_init(|| show(find(id).unwrap()).unwrap())
    }

    /// A page without the figures of a record.
    fn unmarked(page: &str) -> String {
        let figure =
            |part: &str| part.split_once("<!--/-->").map_or("", |(_, after)| after).to_owned();
        let mut parts = page.split("<!--h200 ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |page, part| page + &figure(part))
    }

    /// `warpfold ladder faults > docs/ladder/faults.md` makes it anew.
    #[test]
    fn the_page_of_faults_is_what_is_found() {
        let page = statements::page_of(|rung| Ok(shown(rung.id).to_vec())).unwrap();
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ladder/faults.md");
        // A package is without pages, and has `docs` nowhere.
        let Ok(committed) = &std::fs::read_to_string(&path) else {
            return assert!(path.ancestors().nth(2).is_none_or(|docs| !docs.exists()));
        };
        // The record's figures are compared by tests/docs.rs.
        assert!(
            unmarked(&page) == unmarked(committed),
            "docs/ladder/faults.md is not what `warpfold ladder faults` prints"
        );
        for statement in STATEMENTS {
            assert_eq!(statement.shown.is_some(), statement.happens.is_empty(), "{statement:?}");
            if let Some((id, at)) = statement.shown {
                let showing = &shown(id)[at];
                assert_eq!(showing.text, statement.text, "{statement:?}");
                assert!(showing.is_faulty(), "{statement:?}");
            }
        }
    }

    /// What is said to be printed is of a kernel that is run, and every kernel of a text says it.
    #[test]
    fn every_listing_of_a_text_says_what_is_printed() {
        for printed in PRINTED {
            let runs = |listing: &&listings::Listing| {
                listing.printed().is_some_and(|p| p.kernel == printed.kernel)
            };
            assert!(LISTINGS.iter().any(|listing| runs(&listing)), "{printed:?}");
            assert!(!printed.same.is_empty(), "{printed:?}");
        }
        for listing in LISTINGS {
            let Some(printed) = listing.printed() else { continue };
            assert!(find(listing.rung).unwrap().texts.contains(&printed.text), "{listing:?}");
        }
    }

    /// What the texts' algorithms answer, kernel and host code.
    #[test]
    fn the_reconstructions_answer_as_the_texts_do() {
        for (id, place, text, got, wanted, astray) in [
            // 26 / 8 blocks: a whole block is forgotten.
            ("unroll8", 0, Text::P, 1_180_416, 1_288_815, "elements 1537 to 1605 are left out"),
            // The guard fails in the fourth block, which still folds the first of its tiles.
            ("unroll8", 1, Text::P, 1_280_800, 1_288_815, "elements 1601 to 1605 are left out"),
            (
                "unroll8-loop",
                0,
                Text::P,
                1_180_416,
                1_288_815,
                "elements 1537 to 1605 are left out",
            ),
            (
                "unroll8-loop",
                1,
                Text::P,
                1_280_800,
                1_288_815,
                "elements 1601 to 1605 are left out",
            ),
            // A number of partials that is no power of two.
            ("block-sum", 0, Text::S, 192, 325, "element 1 "),
        ] {
            let showing = &shown(id)[place];
            let Showing { got: answers, astray: told, .. } = showing;
            assert_eq!(showing.text, text, "{id}");
            assert_eq!(*answers, [got.to_string()], "{id}: {showing:?}");
            assert_eq!(showing.wanted, wanted.to_string(), "{id}");
            // The partials of block-sum are told by their first elements.
            match id {
                "block-sum" => assert_eq!(told[0], "elements 9 to 12 are left out", "{showing:?}"),
                _ => assert_eq!(*told, [astray], "{showing:?}"),
            }
            assert!(showing.findings.is_empty(), "{id}: {showing:?}");
        }
    }

    #[test]
    fn the_second_launch_of_f_reads_what_no_thread_wrote() {
        let showing = &shown("shared-neighbored")[0];
        assert_eq!((showing.text, showing.wanted.as_str()), (Text::F, "325"));
        assert!(showing.how.contains("then one of as many threads as partials, 25"), "{showing:?}");
        let found = &showing.findings;
        assert!(found.iter().any(|f| f.contains("uninitialised memory")), "{found:#?}");
        // The interpreter has all ones where nothing was written.
        assert_ne!(showing.got[0], showing.wanted);
    }

    /// As printed the step of a loop compares where it should shift.
    #[test]
    fn two_listings_of_h_never_end_as_printed() {
        for id in ["two-pass-shared", "two-pass-warp"] {
            let showing = &shown(id)[0];
            assert!(showing.source.contains("half >= 1"), "{}", showing.source);
            assert!(showing.halt.is_some() && showing.got.is_empty(), "{showing:?}");
        }
    }

    #[test]
    fn all_lanes_of_the_first_warp_race_at_every_step() {
        let showing = &shown("unroll-warps8-barrier")[0];
        assert_eq!((&showing.got[..], &*showing.wanted), (&["583600".to_string()][..], "524800"));
    }

    #[test]
    fn a_volatile_tail_in_global_memory_is_wrong_and_found() {
        for id in ["unroll-warps8", "complete-unroll8", "complete-unroll8-static"] {
            let showing = &shown(id)[0];
            assert_ne!(showing.got[0], showing.wanted, "{id}: {showing:?}");
            let volatile = |f: &&String| f.contains("unordered volatile accesses");
            assert!(showing.findings.iter().any(|f| volatile(&f)), "{id}: {showing:?}");
        }
        assert!(shown("unroll-warps8")[0].how.contains("random order with seed 1"));
        // Every level is written out.
        for id in ["complete-unroll8", "complete-unroll8-static"] {
            let source = &shown(id)[0].source;
            assert!(!source.contains("for ("), "{id}: {source}");
            assert!(source.contains("tid + 512") && source.contains("tid + 1]"), "{id}: {source}");
        }
    }

    #[test]
    fn a_leaf_of_the_recursion_leaves_before_the_barrier() {
        let showing = &shown("nested")[0];
        let at_leaf = |f: &&String| f.contains("barrier") && f.contains("p_nested_halving");
        assert!(showing.findings.iter().any(|f| at_leaf(&f)), "{showing:?}");
    }

    #[test]
    fn the_second_launch_of_w_takes_any_number_of_partials() {
        let many = WARP_SHUFFLE.of("w_warp_shuffle_of_all_lanes", (1100 * 32, 32, 1100));
        let showing = many.show().unwrap();
        assert_eq!(showing.got, [showing.wanted.as_str()], "{showing:?}");
        assert!(!showing.is_faulty(), "{showing:?}");
        assert!(!find("warp-shuffle").unwrap().fault.contains("1024"));
    }

    /// The compiler makes many instructions of a line.
    #[test]
    fn one_fault_is_one_finding() {
        let showing = &shown("nested-nosync")[0];
        assert_eq!(showing.findings.len(), 1, "{:#?}", showing.findings);
        assert!(showing.findings[0].contains("met "), "{:#?}", showing.findings);
    }

    /// Every listing is wrong, and in the way that is said of it.
    #[test]
    fn every_fault_shows() {
        for rung in ALL {
            // Which takes long, and is tested below.
            if rung.id == GRID_SYNC.rung {
                continue;
            }
            let shown = shown(rung.id);
            for showing in shown {
                assert!(showing.is_faulty(), "{}: {showing:?}", rung.id);
                let begins = match showing.text {
                    Text::Beyond => ["// kernels/faulty.cu", ""],
                    _ => ["// kernels/texts", "// src/host.rs"],
                };
                let begins = begins.iter().any(|b| !b.is_empty() && showing.source.starts_with(b));
                assert!(begins, "{}: {}", rung.id, showing.source);
                // What is in no text claims none.
                let claims = showing.text != Text::Beyond;
                assert!(!claims || rung.texts.contains(&showing.text), "{}", rung.id);
                let wrong = showing.got.first().is_some_and(|got| *got != showing.wanted);
                let is_sum = !["any-op", "cpu-serial", "cpu-recursive"].contains(&rung.id)
                    && !showing.how.starts_with("1 to 8400");
                assert_eq!(
                    showing.astray.is_empty(),
                    !(wrong && is_sum),
                    "{}: {showing:?}",
                    rung.id
                );
            }
            let nothing = rung.fault.starts_with("none") || rung.id == "atomic";
            assert_eq!(shown.is_empty(), nothing, "{}", rung.id);
        }
        assert!(LISTINGS.iter().all(|listing| find(listing.rung).is_some()));
    }

    #[test]
    fn what_is_found_is_what_the_texts_got_wrong() {
        for (id, place, part) in [
            ("neighbored", 0, "barrier"),
            ("neighbored", 0, "out of bounds"),
            ("interleaved", 0, "out of bounds"),
            ("neighbored", 2, "out of bounds"),
            ("shared-first-add", 1, "out of bounds"),
            ("shared-first-add-full-grid", 0, "out of bounds"),
            ("unroll2", 1, "out of bounds"),
            ("unroll-warps8", 0, "volatile"),
            ("unroll-warps8-barrier", 0, "race"),
            ("two-pass-warp", 1, "volatile"),
            ("two-pass-warp", 2, "0 bytes past the 128 bytes"),
            ("two-pass-static", 0, "volatile"),
            ("two-pass-static", 1, "0 bytes past the 128 bytes"),
            ("nested-nosync", 0, "race"),
            ("nested-wide", 0, "race"),
            ("warp-shuffle", 0, "mask"),
            ("warp-allreduce", 0, "mask"),
            ("vector-load", 0, "misaligned"),
            ("last-block", 0, "race"),
        ] {
            let shown = shown(id);
            let found = &shown[place].findings;
            assert!(found.iter().any(|f| f.contains(part)), "{id}, {part}: {found:#?}");
            assert!(found.iter().all(|f| f.contains(".cu:")), "{id}: {found:#?}");
        }
        // And where nothing is found, the answer is wrong.
        for (id, place) in [
            ("neighbored", 1),
            ("interleaved", 1),
            ("unroll2", 0),
            ("unroll16", 1),
            ("unroll-warps8", 1),
            ("unroll-warps8-barrier", 1),
            ("two-pass-shared", 1),
            ("warp-shuffle", 1),
            ("any-op", 0),
            ("nested", 1),
            ("vector-load", 1),
            ("last-block", 0),
        ] {
            let showing = &shown(id)[place];
            assert!(showing.got.iter().any(|g| *g != showing.wanted), "{id}: {showing:?}");
        }
        let showing = &shown("grid-sync")[0];
        assert!(showing.halt.is_some() && showing.got.is_empty(), "{showing:?}");
        // As many as fit come to their end.
        let fit = GRID_SYNC.of("faulty_grid_sync", (132, 32, 132)).show().unwrap();
        assert!(!fit.is_faulty(), "{fit:?}");
    }
}
