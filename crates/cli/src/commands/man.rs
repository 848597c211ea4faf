//! `man`: the manual, from the definition of the flags.

use crate::args::{self, ManArgs};
use crate::sink::Sink;
use anyhow::{Context, Result};
use clap_mangen::Man;
use std::io::Write;

pub(crate) fn run(args: &ManArgs) -> Result<()> {
    let Some(folder) = &args.out_dir else {
        let mut page = Vec::new();
        Man::new(args::command()).render(&mut page)?;
        let mut sink = Sink::open(None)?;
        sink.write_all(&page)?;
        return sink.commit();
    };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    clap_mangen::generate_to(args::command(), folder).with_context(|| folder.display().to_string())
}
