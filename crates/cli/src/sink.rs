//! Where bytes go: stdout, or a file that appears whole or not at all.

use anyhow::{Context, Result, bail};
use std::io::{BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// An open destination. Without [`commit`](Sink::commit) a file is left as it
/// was.
pub(crate) enum Sink {
    Stdout(BufWriter<StdoutLock<'static>>),
    File { path: PathBuf, writer: BufWriter<NamedTempFile> },
}

/// Finds out whether there is a place for the file.
///
/// # Errors
/// A directory of that name, or none around it.
pub(crate) fn check(path: &Path) -> Result<()> {
    if path.is_dir() {
        bail!("{}: this is a directory", path.display());
    }
    let folder = folder(path);
    if !folder.is_dir() {
        bail!("{}: there is no directory {}", path.display(), folder.display());
    }
    Ok(())
}

/// The directory that the file is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Sink {
    /// The file, or stdout for none and for `-`.
    ///
    /// # Errors
    /// A directory that cannot be written to.
    pub(crate) fn open(path: Option<&Path>) -> Result<Sink> {
        let Some(path) = path.filter(|p| *p != Path::new("-")) else {
            return Ok(Sink::Stdout(BufWriter::new(std::io::stdout().lock())));
        };
        // A link stays a link: what it leads to is replaced.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
        check(&path)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".warpfold-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Those of any new file, rather than those of a secret.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file =
            builder.tempfile_in(folder(&path)).with_context(|| path.display().to_string())?;
        Ok(Sink::File { path, writer: BufWriter::new(file) })
    }

    /// Makes what was written visible.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn commit(self) -> Result<()> {
        match self {
            Sink::Stdout(mut writer) => writer.flush()?,
            Sink::File { path, writer } => {
                let name = || path.display().to_string();
                let file = writer.into_inner().map_err(|e| e.into_error()).with_context(name)?;
                file.persist(&path).map_err(|e| e.error).with_context(name)?;
            }
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Sink::Stdout(writer) => writer.write(bytes),
            Sink::File { writer, .. } => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Sink::Stdout(writer) => writer.flush(),
            Sink::File { writer, .. } => writer.flush(),
        }
    }
}
