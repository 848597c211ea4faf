//! `merge`: pieces put together and finished.

use super::partial;
use crate::args::MergeArgs;
use crate::failure::Usage;
use crate::output;
use crate::report::{Array, Report};
use anyhow::{Context, Result};
use std::io::Read;
use std::path::Path;
use warpfold::{Partial, Reduction};

pub(crate) fn run(args: &MergeArgs) -> Result<()> {
    if args.states.iter().filter(|s| *s == "-").count() > 1 {
        return Err(Usage::new("stdin can be read only once, but is named twice").into());
    }
    let Some((first, others)) = args.states.split_first() else {
        return Err(Usage::new("there is nothing to merge").into());
    };
    let mut merged = read(first)?;
    for path in others {
        merged.merge(&read(path)?).with_context(|| path.clone())?;
    }
    let rules = *args.rules.apply(Reduction::new([])).rules();
    match args.output.output.as_deref() {
        Some(path) if is_state(path) && args.output.output_format.is_none() => {
            partial::write(&merged, path)
        }
        _ => {
            let answer = merged.finish(&rules)?;
            let array = Array::new(first.clone(), answer, merged.missing());
            output::write(&Report { arrays: vec![array], as_record: false }, &args.output)
        }
    }
}

fn is_state(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("state"))
}

fn read(path: &str) -> Result<Partial> {
    let bytes = if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    Partial::from_bytes(&bytes.with_context(|| path.to_string())?).with_context(|| path.to_string())
}
