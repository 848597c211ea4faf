//! The `warpfold` command.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod commands;
mod failure;
mod inputs;
mod number;
mod output;
mod progress;
mod ptx;
mod report;
mod sink;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match args::parse(&words) {
        Ok(cli) => cli,
        // Help and the version are not errors; clap knows which is which.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
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
