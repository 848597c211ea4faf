//! All ranks of a program, as one of them sees them.

use crate::{Calls, Error, How, Result, library};

/// The ranks that a launcher has started together, and the place among them.
///
/// Calls that every rank must make say so. A rank that drops it without [`close`](Self::close)
/// ends all of them, with status 1: others would wait for it forever. If the program itself had
/// started MPI before, nothing is ended.
pub struct World {
    calls: Box<dyn Calls>,
    library: String,
    rank: usize,
    size: usize,
    /// Whether MPI was started here, and is to be ended here.
    ours: bool,
}

impl core::fmt::Debug for World {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("World")
            .field("library", &self.library)
            .field("rank", &self.rank)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The environment's variables in which launchers say how many ranks they start.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

impl World {
    /// Loads the MPI library, and joins the other ranks. All ranks call it, once.
    ///
    /// The library is the one that the environment's variable `WARPFOLD_MPI_LIBRARY` names, or the first
    /// of the usual names that can be loaded, Open MPI's first where its launcher is at work.
    ///
    /// # Errors
    /// No library of a known interface, with the names that were tried; a library that is not
    /// the launcher's.
    pub fn open() -> Result<World> {
        let (mut calls, library) = library::open()?;
        let failed = |what: String| Error::new(format!("{library}: {what}"), "");
        let ours = !calls.initialised().map_err(failed)?;
        if ours {
            calls.initialise().map_err(failed)?;
        }
        // The launcher ends those who wait for a process that ends with an error from here on.
        let (rank, size) = calls.join().map_err(failed)?;
        let told = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
        match SIZES.into_iter().find_map(told) {
            Some(told) if size == 1 && told > 1 => Err(Error::new(
                format!("the launcher has started {told} ranks, but {library} knows of one"),
                "name the library that belongs to the launcher: WARPFOLD_MPI_LIBRARY=/path/to/libmpi.so",
            )),
            _ => Ok(World { calls, library, rank, size, ours }),
        }
    }

    /// This rank's number, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The file of the library, and what it calls itself.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.library
    }

    fn failed(&self, what: String) -> Error {
        Error::new(format!("{}: {what}", self.library), "")
    }

    /// Puts the numbers of all ranks together, place by place. All ranks call it, with as many.
    ///
    /// # Errors
    /// What the library says.
    pub fn all_reduce(&self, numbers: &mut [i64], how: How) -> Result<()> {
        self.calls.all_reduce(numbers, how).map_err(|what| self.failed(what))
    }

    /// The numbers of all ranks, in their order. All ranks call it.
    ///
    /// # Errors
    /// What the library says.
    pub fn all_gather(&self, number: i64) -> Result<Vec<i64>> {
        let mut all = vec![0; self.size];
        self.calls.all_gather(number, &mut all).map_err(|what| self.failed(what))?;
        Ok(all)
    }

    /// This rank's place among those of its host, and how many these are. All ranks call it.
    ///
    /// # Errors
    /// What the library says.
    pub fn on_host(&self) -> Result<(usize, usize)> {
        let host = self.calls.host().map_err(|what| self.failed(what))?;
        let hosts = self.all_gather(digest(host.as_bytes()))?;
        let here = |ranks: &[i64]| ranks.iter().filter(|&&one| one == hosts[self.rank]).count();
        Ok((here(&hosts[..self.rank]), here(&hosts)))
    }

    /// Gives every rank the bytes of `root`. All ranks call it.
    ///
    /// # Errors
    /// What the library says.
    pub fn broadcast(&self, bytes: Vec<u8>, root: usize) -> Result<Vec<u8>> {
        let failed = |what| self.failed(what);
        let mut len = (bytes.len() as u64).to_ne_bytes();
        self.calls.broadcast(&mut len, root).map_err(failed)?;
        let mut bytes = bytes;
        bytes.resize(self.room(len)?, 0);
        self.calls.broadcast(&mut bytes, root).map_err(failed)?;
        Ok(bytes)
    }

    /// Sends bytes to another rank, which [receives](Self::receive) them.
    ///
    /// # Errors
    /// What the library says.
    pub fn send(&self, bytes: &[u8], to: usize) -> Result<()> {
        let len = (bytes.len() as u64).to_ne_bytes();
        let sent = self.calls.send(&len, to).and_then(|()| self.calls.send(bytes, to));
        sent.map_err(|what| self.failed(what))
    }

    /// Waits for the bytes that another rank [sends](Self::send).
    ///
    /// # Errors
    /// What the library says.
    pub fn receive(&self, from: usize) -> Result<Vec<u8>> {
        let mut len = [0; 8];
        self.calls.receive(&mut len, from).map_err(|what| self.failed(what))?;
        let mut bytes = vec![0; self.room(len)?];
        self.calls.receive(&mut bytes, from).map_err(|what| self.failed(what))?;
        Ok(bytes)
    }

    fn room(&self, len: [u8; 8]) -> Result<usize> {
        let len = usize::try_from(u64::from_ne_bytes(len));
        len.map_err(|_| self.failed("a message is larger than the memory".into()))
    }

    /// Checks that all ranks ask the same, and tells whether they are alike in a detail that
    /// need not be so; `None` is unlike all. All ranks call it: 32 bytes tell.
    ///
    /// # Errors
    /// Ranks that ask different questions: the same error on all ranks, with both questions.
    pub fn agree(&self, question: &str, detail: Option<&[u8]>) -> Result<bool> {
        let asked = digest(question.as_bytes());
        let mut ends = [asked, -asked, i64::MAX, i64::MAX];
        if let Some(detail) = detail {
            ends[2] = digest(detail);
            ends[3] = -ends[2];
        }
        self.all_reduce(&mut ends, How::Max)?;
        if ends[0] == -ends[1] {
            return Ok(ends[2] == -ends[3]);
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let first = text(self.broadcast(question.into(), 0)?);
        let mut other = [if first == question { self.size } else { self.rank } as i64];
        self.all_reduce(&mut other, How::Min)?;
        let other = usize::try_from(other[0]).unwrap_or(0);
        let second = text(self.broadcast(question.into(), other)?);
        Err(Error::new(
            format!(
                "ranks ask different questions: rank 0 asks for {first}; rank {other} asks for {second}"
            ),
            "start all ranks with the same words and the same version",
        ))
    }

    /// Ends all ranks. The launcher's exit status becomes `status`, or another that is not 0.
    pub fn abort(&self, status: i32) -> ! {
        self.calls.abort(status);
        std::process::exit(status);
    }

    /// Leaves the others. All ranks call it, and wait for each other.
    ///
    /// # Errors
    /// What the library says.
    pub fn close(mut self) -> Result<()> {
        if !core::mem::take(&mut self.ours) {
            return Ok(());
        }
        self.calls.finalise().map_err(|what| self.failed(what))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.ours {
            self.abort(1);
        }
    }
}

/// A number that tells texts apart, positive and below the largest one.
fn digest(bytes: &[u8]) -> i64 {
    // FNV-1a: nobody makes texts collide on purpose.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 2).cast_signed()
}
