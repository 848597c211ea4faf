//! Where bytes go: stdout, a file that appears whole or not at all, or whatever else has
//! a name: a FIFO, a device, a socket, an open descriptor.

mod place;
#[cfg(unix)]
mod signals;
mod temporary;

use crate::descriptors;
use crate::failure::Obstacle;
use anyhow::{Result, bail};
use place::{Existing, Place};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use temporary::Temporary;

/// An open destination. Without [`commit`](Sink::commit) a file is left as it
/// was; other destinations have what was written so far.
pub(crate) struct Sink {
    /// What messages call it.
    name: String,
    writer: Writer,
}

enum Writer {
    Stream(BufWriter<Box<dyn Write>>),
    File(BufWriter<Temporary>),
}

/// Finds out whether the file can be written, before hours of work are.
///
/// # Errors
/// A directory of that name or none around it, a file that this user may not
/// write, a directory in which no file can be made; stdout or stderr where they are closed.
pub(crate) fn check(path: &Path) -> Result<()> {
    match Place::find(path)? {
        Place::File { path, existing } => temporary(&path, existing).map(drop),
        Place::Stdout => Ok(descriptors::check_stdout()?),
        #[cfg(unix)]
        Place::Stderr => Ok(descriptors::check_stderr()?),
        _ => Ok(()),
    }
}

/// Removes what is not whole yet, before a process ends without running destructors.
#[cfg(unix)]
pub(crate) fn remove_files() {
    temporary::there_now().iter().flat_map(|there| there.iter()).for_each(|path| {
        let _ = std::fs::remove_file(path);
    });
}

/// Whether the path names a regular file or none yet, beside which others may
/// be put.
pub(crate) fn is_file(path: &Path) -> bool {
    matches!(Place::find(path), Ok(Place::File { .. }))
}

/// A file beside `path` that can take its place.
///
/// A file in a directory where no other can be made could be written in place.
/// But a disk that is full then would leave half of it: this is an error, and
/// redirection is there for those who accept that.
fn temporary(path: &Path, existing: Option<Existing>) -> Result<Temporary> {
    let name = path.display();
    if existing.is_some() {
        // Renaming asks the directory alone. Who may not write a file should
        // not replace it either.
        if let Err(error) = OpenOptions::new().write(true).open(path) {
            bail!("{name}: {error}");
        }
    }
    // The error itself names the temporary file, which the user does not know.
    match Temporary::beside(path, existing).map_err(|error| error.kind()) {
        Ok(file) => Ok(file),
        Err(error) if existing.is_some() && is_refusal(error) => {
            let what = format!("{name}: cannot create a file in its directory: {error}");
            let hint = "to write it in place, whole or in part, redirect: > FILE";
            Err(Obstacle { what, hint }.into())
        }
        Err(error) => bail!("{name}: cannot create a file in its directory: {error}"),
    }
}

fn is_refusal(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

impl Sink {
    /// What the path names, or stdout for none and for `-`.
    ///
    /// Opening a FIFO waits for its reader.
    ///
    /// # Errors
    /// As for [`check`], and what the system says.
    pub(crate) fn open(path: Option<&Path>) -> Result<Sink> {
        let place = path.map_or(Ok(Place::Stdout), Place::find)?;
        let name = match (&place, path) {
            (Place::Stdout, _) | (_, None) => "stdout".into(),
            (_, Some(path)) => path.display().to_string(),
        };
        let stream = |writer| Writer::Stream(BufWriter::new(writer));
        let opened = |file: io::Result<File>| match file {
            Ok(file) => Ok(stream(Box::new(file))),
            Err(error) => bail!("{name}: {error}"),
        };
        let writer = match place {
            Place::Stdout => {
                descriptors::check_stdout()?;
                stream(Box::new(io::stdout().lock()))
            }
            #[cfg(unix)]
            Place::Stderr => {
                descriptors::check_stderr()?;
                stream(Box::new(io::stderr()))
            }
            Place::File { path, existing } => {
                Writer::File(BufWriter::new(temporary(&path, existing)?))
            }
            Place::Other { path } => opened(OpenOptions::new().write(true).open(path))?,
            #[cfg(unix)]
            Place::Descriptor { path } => {
                // What the descriptor's file holds already stays.
                opened(OpenOptions::new().append(true).open(path))?
            }
            #[cfg(unix)]
            Place::Socket { path } => match std::os::unix::net::UnixStream::connect(path) {
                Ok(socket) => stream(Box::new(socket)),
                Err(error) => bail!("{name}: {error}"),
            },
        };
        Ok(Sink { name, writer })
    }

    /// Makes what was written visible.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn commit(self) -> Result<()> {
        let Sink { name, writer } = self;
        let done = match writer {
            Writer::Stream(mut writer) => writer.flush(),
            Writer::File(writer) => {
                writer.into_inner().map_err(|e| e.into_error()).and_then(Temporary::persist)
            }
        };
        Ok(done.map_err(|error| named(&name, error))?)
    }
}

/// The same error with the name of the destination. Its kind stays: it tells
/// a reader who left.
fn named(name: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Writer::Stream(writer) => writer.write(bytes),
            Writer::File(writer) => writer.write(bytes),
        }
        .map_err(|error| named(&self.name, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Stream(writer) => writer.flush(),
            Writer::File(writer) => writer.flush(),
        }
        .map_err(|error| named(&self.name, error))
    }
}
