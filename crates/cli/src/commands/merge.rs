//! `merge`: pieces put together and finished.

use super::{groups, partial};
use crate::args::MergeArgs;
use crate::failure::Usage;
use crate::report::{Array, Report};
use crate::{inputs, output};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use warpfold::{Error, GroupPartial, Partial, Reduction, Rules};

pub(crate) fn run(args: &MergeArgs) -> Result<()> {
    output::check(&args.output)?;
    let rules = *args.rules.apply(Reduction::new([])).rules();
    let state = match args.output.output.as_deref() {
        Some(path) if is_state(path) && args.output.output_format.is_none() => Some(path),
        _ => None,
    };
    if state.is_some() && (args.output.hex || rules != Rules::default()) {
        return Err(Usage::new("--hex and rules apply to answers, and a .state file holds none")
            .hint("leave them out, and give them to the last merge")
            .into());
    }
    let states = inputs::files(&args.states)?;
    let Some((first, others)) = states.split_first() else {
        return Err(Usage::new("there is nothing to merge").into());
    };
    let bytes = bytes(first)?;
    if GroupPartial::is_one(&bytes) {
        return groups::merge((first, &bytes), others, state, &rules, &args.output);
    }
    let mut merged = read(first, &bytes)?;
    let mut later = Vec::new();
    for path in others {
        let state = read(path, &self::bytes(path)?)?;
        match merged.merge(&state) {
            // A piece of a text column that has a decimal settles the type of all.
            Err(Error::StateMismatch { what: "element type", .. }) => later.push((path, state)),
            merged => merged.with_context(|| pair(first, path))?,
        }
    }
    for (path, state) in later {
        merged.merge(&state).with_context(|| pair(first, path))?;
    }
    match state {
        Some(path) => partial::write(&merged, path),
        None => {
            let answer = merged.finish(&rules)?;
            let name = first.display().to_string();
            let array = Array::new(name, answer, merged.missing(), merged.unit());
            output::write(&Report { arrays: vec![array], as_record: false }, &args.output)
        }
    }
}

/// The names of the first state and of one that does not merge with it.
pub(super) fn pair(first: &OsStr, other: &OsStr) -> String {
    format!("{} and {}", first.display(), other.display())
}

fn is_state(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("state"))
}

fn read(path: &OsStr, bytes: &[u8]) -> Result<Partial> {
    let name = || path.display().to_string();
    if GroupPartial::is_one(bytes) {
        return Err(Usage::new(format!("{}: this state is one of groups, others are not", name()))
            .hint("merge states that partial has made with the same flags")
            .into());
    }
    Partial::from_bytes(bytes).with_context(name)
}

/// What a state's file holds.
pub(super) fn bytes(path: &OsStr) -> Result<Vec<u8>> {
    let bytes = if path == "-" {
        crate::descriptors::check_stdin()?;
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes.with_context(|| path.display().to_string())
}
