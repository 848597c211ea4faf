//! A file that takes another's place when it is whole, and vanishes otherwise.

use super::place::{Existing, folder};
use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    file: Option<Named>,
    destination: PathBuf,
}

/// An open file, removed unless it is moved.
struct Named {
    file: File,
    path: PathBuf,
}

impl Named {
    /// A file that was not there, in a folder.
    fn new(folder: &Path, options: &OpenOptions) -> io::Result<Named> {
        loop {
            // The keys of a hash are drawn anew for each process, and differ from call to call.
            let drawn = RandomState::new().hash_one(std::process::id());
            let path = folder.join(format!(".warpfold-{drawn:016x}"));
            match options.open(&path) {
                Ok(file) => return Ok(Named { file, path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn remove(self) {
        // Nobody hears of a file that cannot be removed.
        let _ = std::fs::remove_file(&self.path);
    }
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
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // What replaces a secret is one from the beginning. The umask
            // applies to both.
            options.mode(if existing.is_some() { 0o600 } else { 0o666 });
        }
        let mut there = there();
        let file = Named::new(folder(path), &options)?;
        there.push(file.path.clone());
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
        let Some(Named { file, .. }) = &self.file else { return Ok(()) };
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
        let Some(Named { file, path }) = self.file.take() else { return Ok(()) };
        // Some file systems find out only now that there is no room. Others
        // cannot sync, and have said all there is to say.
        let synced = match file.sync_all() {
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
        let done = synced.and_then(|()| std::fs::rename(&path, &self.destination));
        if done.is_err() {
            Named { file, path: path.clone() }.remove();
        }
        there.retain(|p| *p != path);
        DONE.store(done.is_ok() && there.is_empty(), Ordering::Relaxed);
        done
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            let mut there = there();
            there.retain(|p| *p != file.path);
            // Under the lock: a signal would not find it any more.
            file.remove();
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(bytes.len()), |named| named.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |named| named.file.flush())
    }
}
