//! A file that takes another's place when it is whole, and vanishes otherwise.

use super::place::{Existing, folder};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

/// The files that are there now: for signals, which run no destructors.
static THERE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether a file has taken its place and none waits to: the work is done.
static DONE: AtomicBool = AtomicBool::new(false);

/// Whether what was to be written is written. Asked with the list in hand.
pub(super) fn is_done() -> bool {
    DONE.load(Ordering::Relaxed)
}

/// The list. Who holds it is sure that no file comes or goes.
pub(super) fn there() -> MutexGuard<'static, Vec<PathBuf>> {
    THERE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The list, if nobody holds it.
#[cfg(unix)]
pub(super) fn there_now() -> Option<MutexGuard<'static, Vec<PathBuf>>> {
    THERE.try_lock().ok()
}

/// A file under a name of its own, in the directory of the one it is for.
pub(super) struct Temporary {
    /// `None` once it has taken its place.
    file: Option<NamedTempFile>,
    destination: PathBuf,
}

impl Temporary {
    /// An empty file with the mode and, where the system permits it, the owner
    /// of the one it will replace; else with those of any new file.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn beside(path: &Path, existing: Option<Existing>) -> io::Result<Temporary> {
        #[cfg(unix)]
        super::signals::watch();
        let mut builder = tempfile::Builder::new();
        builder.prefix(".warpfold-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // What replaces a secret is one from the beginning. The umask
            // applies to both.
            let mode = if existing.is_some() { 0o600 } else { 0o666 };
            builder.permissions(std::fs::Permissions::from_mode(mode));
        }
        let mut there = there();
        let file = builder.tempfile_in(folder(path))?;
        there.push(file.path().to_path_buf());
        DONE.store(false, Ordering::Relaxed);
        drop(there);
        let temporary = Temporary { file: Some(file), destination: path.into() };
        if let Some(existing) = existing {
            temporary.take_over(existing)?;
        }
        Ok(temporary)
    }

    #[cfg(unix)]
    fn take_over(&self, existing: Existing) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let Some(file) = &self.file else { return Ok(()) };
        let file = file.as_file();
        let Existing { mut mode, owner, group } = existing;
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (owner, group)
            && fchown(file, Some(owner), Some(group)).is_err()
        {
            // Only root gives files away, but a file may go to any group of
            // its owner.
            mode &= 0o777;
            if own.gid() != group && fchown(file, None, Some(group)).is_err() {
                // Our group gets no more than everybody.
                mode = mode & 0o707 | (mode & mode << 3 & 0o070);
            }
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }

    #[cfg(not(unix))]
    fn take_over(&self, _: Existing) -> io::Result<()> {
        Ok(())
    }

    /// Puts the file where it belongs, whole.
    ///
    /// # Errors
    /// What the system says; then nothing has changed.
    pub(super) fn persist(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let path = file.path().to_path_buf();
        // Some file systems find out only now that there is no room. Others
        // cannot sync, and have said all there is to say.
        let synced = match file.as_file().sync_all() {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        };
        let mut there = there();
        let done = synced.and_then(|()| file.persist(&self.destination).map_err(|e| e.error));
        there.retain(|p| *p != path);
        DONE.store(done.is_ok() && there.is_empty(), Ordering::Relaxed);
        done.map(drop)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let mut there = there();
            there.retain(|p| p != file.path());
            // Under the lock: a signal would not find it any more.
            drop(file);
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), NamedTempFile::flush)
    }
}
