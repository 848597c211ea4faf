//! What a path given to `-o` stands for.

use anyhow::{Context, Result, bail};
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// More links in a row are a loop, as the kernel says.
const MOST_LINKS: usize = 40;

/// What is there.
pub(super) enum Place {
    /// Standard output.
    Stdout,
    /// Standard error.
    #[cfg(unix)]
    Stderr,
    /// A regular file, or nothing yet. Symbolic links have been followed: what
    /// they lead to is replaced, and they stay.
    File { path: PathBuf, existing: Option<Existing> },
    /// Something that the system lists as an open descriptor, such as
    /// `/dev/fd/3`.
    #[cfg(unix)]
    Descriptor { path: PathBuf },
    /// A socket that a process listens on.
    #[cfg(unix)]
    Socket { path: PathBuf },
    /// A FIFO or a device.
    Other { path: PathBuf },
}

/// What a new file takes over from the one it replaces. Other hard links keep
/// the old file; access lists and extended attributes are not taken over.
#[derive(Clone, Copy)]
#[cfg_attr(not(unix), expect(dead_code, reason = "modes and owners are those of Unix"))]
pub(super) struct Existing {
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
}

impl Existing {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Existing {
        use std::os::unix::fs::MetadataExt;
        Existing { mode: metadata.mode() & 0o7777, owner: metadata.uid(), group: metadata.gid() }
    }

    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Existing {
        Existing { mode: 0, owner: 0, group: 0 }
    }
}

impl Place {
    /// What the path leads to; `-` is stdout.
    ///
    /// # Errors
    /// A directory of that name, none around it, links that never end, and
    /// what the system says.
    pub(super) fn find(asked: &Path) -> Result<Place> {
        if asked == Path::new("-") {
            return Ok(Place::Stdout);
        }
        let name = || asked.display().to_string();
        let mut path = asked.to_path_buf();
        for _ in 0..MOST_LINKS {
            if let Some(place) = descriptor(&path) {
                return Ok(place);
            }
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return nothing_yet(asked, path);
                }
                Err(error) => return Err(error).with_context(name),
            };
            if !metadata.is_symlink() {
                return existing(asked, path, &metadata);
            }
            let target = fs::read_link(&path).with_context(name)?;
            // An absolute target replaces all that is in front of it.
            path = path.parent().unwrap_or(Path::new("")).join(target);
        }
        bail!("{}: too many symbolic links", name())
    }
}

fn existing(asked: &Path, path: PathBuf, metadata: &Metadata) -> Result<Place> {
    if metadata.is_dir() {
        bail!("{}: this is a directory", asked.display());
    }
    if metadata.is_file() {
        return Ok(Place::File { path, existing: Some(Existing::of(metadata)) });
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if metadata.file_type().is_socket() {
            return Ok(Place::Socket { path });
        }
    }
    Ok(Place::Other { path })
}

fn nothing_yet(asked: &Path, path: PathBuf) -> Result<Place> {
    let folder = folder(&path);
    if !folder.is_dir() {
        bail!("{}: there is no directory {}", asked.display(), folder.display());
    }
    // `Path` overlooks a separator at the end.
    let ends_with_separator = asked.as_os_str().as_encoded_bytes().ends_with(b"/");
    if path.file_name().is_none() || ends_with_separator {
        bail!("{}: this is the name of a directory", asked.display());
    }
    Ok(Place::File { path, existing: None })
}

/// The directory that the file is in.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An entry of one of the directories in which the system lists open
/// descriptors. What it leads to is open already: it is neither replaced nor
/// cut short.
#[cfg(unix)]
fn descriptor(path: &Path) -> Option<Place> {
    let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
    let folder = fs::canonicalize(folder(path)).ok()?;
    let is = |name: &str| fs::canonicalize(name).is_ok_and(|own| own == folder);
    let own = ["/proc/self/fd", "/proc/thread-self/fd", "/dev/fd"].into_iter().any(is);
    let another = || folder.starts_with("/proc") && folder.ends_with("fd");
    match number {
        1 if own => Some(Place::Stdout),
        2 if own => Some(Place::Stderr),
        _ if own || another() => Some(Place::Descriptor { path: path.into() }),
        _ => None,
    }
}

#[cfg(not(unix))]
fn descriptor(_: &Path) -> Option<Place> {
    None
}
