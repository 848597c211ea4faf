//! `man`: the manual, from the definition of the flags.

use crate::args::{self, ManArgs};
use crate::sink::Sink;
use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &ManArgs) -> Result<()> {
    let Some(folder) = &args.out_dir else {
        return page(&Man::new(args::command()), None);
    };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    pages(command, folder)
}

/// A page for the command and each below it.
fn pages(command: Command, folder: &Path) -> Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()).cloned() {
        pages(below, folder)?;
    }
    let man = Man::new(command);
    let path = folder.join(man.get_filename());
    page(&man, Some(&path))
}

fn page(man: &Man, path: Option<&Path>) -> Result<()> {
    let mut text = Vec::new();
    man.render(&mut text)?;
    let mut sink = Sink::open(path)?;
    sink.write_all(&text)?;
    sink.commit()
}
