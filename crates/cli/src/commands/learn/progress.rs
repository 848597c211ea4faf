//! What was done of the course so far, in a file.

use crate::args::ProgressArgs;
use crate::failure::{Usage, note};
use crate::sink::Sink;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use warpfold_ladder::learn::Figures;

/// What was done so far.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Lessons whose number was predicted, right or not.
    #[serde(default)]
    pub(super) predicted: BTreeSet<u32>,
    /// Of these, those whose first prediction was right: after it the number is known.
    #[serde(default)]
    pub(super) right: BTreeSet<u32>,
    /// Lessons whose exercise is solved.
    #[serde(default)]
    pub(super) solved: BTreeSet<u32>,
    /// Right attempts at the last exercise, in the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attempts: Vec<Kept>,
}

/// A right attempt at the last exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The file.
    pub(super) file: String,
    /// Warp instructions, of the interpreter's count.
    pub(super) instructions: u64,
    /// How much it lacks of what the exercise needs.
    pub(super) missed: usize,
    /// The rung that counts most alike.
    pub(super) beside: String,
    /// The GPU that it was timed on, and GB/s.
    pub(super) timed: Option<(String, f64)>,
}

impl Kept {
    /// GB/s: its own, or those of the rung that counts most alike on an H200. What lacks something counts like no rung.
    pub(super) fn rate(&self) -> Option<f64> {
        let alike = || Figures::of(&self.beside).filter(|_| self.missed == 0).map(|f| f.gbps);
        self.timed.as_ref().map(|(_, rate)| *rate).or_else(alike)
    }

    /// Where its rate is from.
    pub(super) fn by(&self) -> String {
        match &self.timed {
            Some((device, _)) => format!("timed, {device}"),
            None if self.missed > 0 => format!("right, but lacks {}", self.missed),
            None => format!("counts like {}", self.beside),
        }
    }
}

/// More attempts than this are not kept: the slowest goes.
const MOST_ATTEMPTS: usize = 100;

impl Progress {
    /// Where it is kept.
    pub(super) fn path(args: &ProgressArgs) -> Option<PathBuf> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME").map(|home| home.join(".local/state"));
        let default =
            || Some(absolute("XDG_STATE_HOME").or_else(home)?.join("warpfold/learn.json"));
        args.progress.clone().or_else(default)
    }

    pub(super) fn load(path: Option<&Path>) -> Result<Progress> {
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(Progress::default()) };
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        serde_json::from_str(&text).map_err(|error| {
            let usage =
                Usage::new(format!("{}: this is no progress of the course: {error}", name()));
            anyhow!(
                usage.hint("remove the file to begin again, or name another one with --progress")
            )
        })
    }

    /// Keeps it. What cannot be kept is not lost but told.
    pub(super) fn save(&self, path: Option<&Path>) {
        let saved = || -> Result<()> {
            let path = path.context("neither XDG_STATE_HOME nor HOME is set")?;
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            }
            let mut sink = Sink::open(Some(path))?;
            writeln!(sink, "{}", serde_json::to_string(self)?)?;
            sink.commit()
        };
        if let Err(error) = saved() {
            note(&format!("progress is not kept: {error:#}"));
        }
    }

    /// Keeps an attempt, unless the same is there.
    pub(super) fn keep(&mut self, attempt: Kept) {
        if !self.attempts.contains(&attempt) {
            self.attempts.push(attempt);
        }
        if self.attempts.len() > MOST_ATTEMPTS {
            let slowest = self.ranked().last().map(|(number, _)| number - 1);
            slowest.map(|at| self.attempts.remove(at));
        }
    }

    /// The attempts with their numbers, the fastest first; of as fast ones that with the fewest instructions. What a clock has measured comes
    /// before what counting suggests, and what lacks least comes first of what has no rate.
    pub(super) fn ranked(&self) -> Vec<(usize, &Kept)> {
        let mut all: Vec<(usize, &Kept)> = (1..).zip(&self.attempts).collect();
        all.sort_by(|(_, a), (_, b)| {
            b.timed
                .is_some()
                .cmp(&a.timed.is_some())
                .then(b.rate().unwrap_or(0.0).total_cmp(&a.rate().unwrap_or(0.0)))
                .then(a.missed.cmp(&b.missed))
                .then(a.instructions.cmp(&b.instructions))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_ranked_by_clock_then_by_rung_then_by_instructions() {
        let kept = |file: &str, instructions, beside: &str, timed: Option<f64>| Kept {
            file: file.into(),
            instructions,
            missed: file.len() - 1,
            beside: beside.into(),
            timed: timed.map(|rate| ("H200".into(), rate)),
        };
        let mut progress = Progress::default();
        for attempt in [
            kept("a", 9, "neighbored", None),
            kept("b", 8, "unroll8", None),
            kept("c", 7, "unroll8", None),
            kept("d", 99, "neighbored", Some(400.0)),
            kept("eee", 1, "vector-load", None),
            kept("ff", 2, "vector-load", None),
        ] {
            progress.keep(attempt.clone());
            progress.keep(attempt);
        }
        let files: Vec<_> = progress.ranked().iter().map(|(n, a)| (*n, a.file.as_str())).collect();
        assert_eq!(files, [(4, "d"), (3, "c"), (2, "b"), (1, "a"), (6, "ff"), (5, "eee")]);
        assert!(progress.attempts[1].rate() > Some(3000.0), "the record of the rung");
        assert_eq!(
            (progress.attempts[4].rate(), progress.attempts[4].by().as_str()),
            (None, "right, but lacks 2")
        );
        assert_eq!(progress.attempts[1].by(), "counts like unroll8");
    }
}
