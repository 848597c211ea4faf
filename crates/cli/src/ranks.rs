//! `--mpi`: the ranks of one job, each of which reduces its share.

use crate::args::{ExecutionArgs, Global};
use crate::failure;
use crate::failure::Usage;
use crate::inputs::is_stdin;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;
use warpfold::mpi::{self, How, Together, World};
use warpfold::{Device, Partial, Reduction, Threads};
use warpfold_cuda::Driver;
use warpfold_files::groups::{Keyed, Question};
use warpfold_files::stream::{self, Inputs, Progress};
use warpfold_files::{Result as Read, Share};

/// The ranks of the job; without `--mpi` there is one.
pub(crate) struct Ranks {
    world: Option<World>,
    /// This rank's place among those of its host, and how many these are.
    on_host: (usize, usize),
    /// What `-q` says; other ranks than the first are quiet, too.
    pub(crate) global: Global,
}

/// An error that another rank has told, and with which exit status.
#[derive(Debug)]
struct Told(u8);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("another rank has failed")
    }
}

impl std::error::Error for Told {}

/// Does `work` as one of the ranks, if `--mpi` is given, or alone. An error of one rank ends all.
///
/// # Errors
/// Those of `work` alone, and of the MPI library.
pub(crate) fn run(
    execution: &ExecutionArgs,
    global: &Global,
    work: impl FnOnce(&Ranks) -> Result<()>,
) -> Result<ExitCode> {
    let mut ranks = Ranks { world: None, on_host: (0, 1), global: *global };
    if !execution.mpi {
        return work(&ranks).map(|()| ExitCode::SUCCESS);
    }
    let world = World::open()?;
    let (rank, size) = (world.rank(), world.size());
    ranks.global.quiet |= rank > 0;
    ranks.world = Some(world);
    let done = ranks.begin().and_then(|()| work(&ranks));
    let Some(world) = ranks.world else { return Ok(ExitCode::SUCCESS) };
    let status = match done {
        Ok(()) => 0,
        Err(error) => match error.downcast_ref::<Told>() {
            Some(&Told(status)) => status,
            None => {
                let named = if size > 1 { error.context(format!("rank {rank}")) } else { error };
                failure::report(&named);
                match failure::status(&named) {
                    // The reader of the output has left, with all that it wanted.
                    0 => 0,
                    status => world.abort(i32::from(status)),
                }
            }
        },
    };
    world.close()?;
    Ok(ExitCode::from(status))
}

impl Ranks {
    /// Compares what is asked, and finds out who shares this host.
    fn begin(&mut self) -> Result<()> {
        let Some(world) = &self.world else { return Ok(()) };
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        let words = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let asked = format!("`{words}` of warpfold {}", env!("CARGO_PKG_VERSION"));
        self.on_all(world.agree(&asked, None).map_err(Into::into))?;
        self.on_host = world.on_host()?;
        Ok(())
    }

    /// What all ranks have done before they wait for each other. If some have failed, the first of
    /// them says so, and all end.
    ///
    /// # Errors
    /// That some rank has failed.
    pub(crate) fn on_all<T>(&self, done: Result<T>) -> Result<T> {
        let Some(world) = &self.world else { return done };
        let (rank, size) = (world.rank() as i64, world.size() as i64);
        let status = done.as_ref().err().map_or(0, failure::status);
        let mut first = [if status == 0 { size } else { rank }];
        world.all_reduce(&mut first, How::Min)?;
        if first[0] == size {
            return done;
        }
        let mut told = [i64::from(status)];
        world.all_reduce(&mut told, How::Max)?;
        if let Some(error) = done.err().filter(|_| first[0] == rank) {
            failure::report(&error);
        }
        Err(Told(u8::try_from(told[0]).unwrap_or(1)).into())
    }

    /// Whether there may be several.
    pub(crate) fn are_many(&self) -> bool {
        self.world.is_some()
    }

    /// Refuses files that only one process can read.
    ///
    /// # Errors
    /// Standard input.
    pub(crate) fn check(&self, files: &[OsString]) -> Result<()> {
        if self.are_many() && (files.is_empty() || files.iter().any(is_stdin)) {
            let what = "ranks cannot share standard input";
            return Err(Usage::new(what).hint("name files that every rank can open").into());
        }
        Ok(())
    }

    /// The reduction as this rank does it: on a device of its own, and with the threads that the
    /// others of its host leave.
    ///
    /// # Errors
    /// No CUDA device where they are asked for.
    pub(crate) fn apply(
        &self,
        execution: &ExecutionArgs,
        reduction: Reduction,
    ) -> Result<Reduction> {
        let reduction = execution.apply(reduction);
        let (place, ranks) = self.on_host;
        if !self.are_many() {
            return Ok(reduction);
        }
        let reduction = match execution.device {
            Device::Cuda(None) => {
                let devices = Driver::probe()?.max(1);
                reduction.device(Device::Cuda(Some(place as u32 % devices)))
            }
            _ => reduction,
        };
        if execution.threads.is_some() || std::env::var_os("RAYON_NUM_THREADS").is_some() {
            return Ok(reduction);
        }
        let threads = (Threads::All.count() / ranks).max(1);
        Ok(reduction.threads(Threads::Exactly(threads)))
    }

    /// The partials of this rank's share of arrays, the first of whose elements have index `start`.
    ///
    /// # Errors
    /// Those of [`stream::partials`].
    pub(crate) fn partials(
        &self,
        arrays: Vec<Inputs>,
        reduction: &Reduction,
        start: u64,
        memory_limit: Option<usize>,
        progress: &dyn Progress,
    ) -> Read<Vec<Partial>> {
        let Some(share) = self.share() else {
            return stream::partials(arrays, reduction, start, memory_limit, progress);
        };
        let mut shares = share.of_arrays(arrays, reduction).into_iter().peekable();
        let mut partials = Vec::new();
        // Columns of one table begin alike, and are read together.
        while let Some((first, at)) = shares.next() {
            let mut alike = vec![first];
            while let Some((next, _)) = shares.next_if(|(_, other)| *other == at) {
                alike.push(next);
            }
            let start = start.saturating_add(at);
            partials.extend(stream::partials(alike, reduction, start, memory_limit, progress)?);
        }
        Ok(partials)
    }

    /// This rank's share of tables, and of the question about it.
    pub(crate) fn tables(&self, tables: Vec<Keyed>, question: &mut Question) -> Vec<Keyed> {
        match self.share() {
            Some(share) => share.of_tables(tables, question),
            None => tables,
        }
    }

    fn share(&self) -> Option<Share> {
        let world = self.world.as_ref()?;
        Some(Share { rank: world.rank(), ranks: world.size() })
    }

    /// The merged partials of all ranks, on the first.
    ///
    /// # Errors
    /// Partials that do not merge; what the MPI library says.
    pub(crate) fn merged<T: Together>(&self, partials: Vec<T>) -> Result<Option<Vec<T>>> {
        let Some(world) = &self.world else { return Ok(Some(partials)) };
        let merged = partials.iter().map(|partial| mpi::reduce(world, partial));
        // All of them, before anyone is done: others wait.
        let merged = merged.collect::<mpi::Result<Vec<Option<T>>>>()?;
        Ok(merged.into_iter().collect())
    }
}
