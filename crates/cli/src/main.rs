//! The `warpfold` command.

#![deny(unsafe_code)]

mod args;
mod bar;
mod bench;
mod commands;
mod descriptors;
mod failure;
mod globs;
mod inputs;
mod memory;
mod number;
mod output;
mod printable;
mod progress;
mod ptx;
mod ranks;
mod report;
mod sink;

use std::process::ExitCode;

fn main() -> ExitCode {
    memory::watch();
    // What a decoder dies of is reported as what is wrong with its file.
    warpfold_files::hide_guarded_panics();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match args::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return failure::report_usage(&error, &words),
    };
    match cli.global.color {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
    match commands::run(cli) {
        Ok(status) => status,
        Err(error) => failure::report(&error),
    }
}
