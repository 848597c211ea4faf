//! `ptx`: kernels without a GPU.

mod info;
mod run;
mod test;

use crate::args::{Global, PtxArgs, PtxVerb};
use anyhow::Result;
use std::process::ExitCode;

pub(super) fn run(args: &PtxArgs, global: &Global) -> Result<ExitCode> {
    match &args.verb {
        PtxVerb::Run(args) => run::run(args, global),
        PtxVerb::Info(args) => info::run(args),
        PtxVerb::Test(args) => test::run(args, global),
    }
}
