//! `completions`: scripts for shells.

use crate::args::{self, CompletionsArgs};
use crate::sink::Sink;
use anyhow::Result;
use std::io::Write;

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "warpfold", &mut script);
    let mut sink = Sink::open(None)?;
    sink.write_all(&script)?;
    sink.commit()
}
