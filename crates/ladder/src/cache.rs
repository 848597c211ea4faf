//! A folder for compiled libraries, to which only its owner can write: a library in it
//! is loaded and run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A private folder below the user's cache folder; made if it is missing.
///
/// # Errors
/// The reason why there is no such folder.
pub(crate) fn folder(name: &str) -> Result<PathBuf, String> {
    let base = base(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
    within(&base.join("warpfold"), name)
}

/// The cache folder that the environment names. A temporary folder is not safe: another
/// user could have made it before.
fn base(xdg: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, String> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let home = absolute(home).map(|home| home.join(".cache"));
    absolute(xdg).or(home).ok_or_else(|| {
        "the compiled library needs a folder: neither XDG_CACHE_HOME nor HOME is set".into()
    })
}

/// The folder of this name within another, both made where they are missing.
fn within(parent: &Path, name: &str) -> Result<PathBuf, String> {
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(parent).map_err(|e| failed(parent, e))?;
    // From here on the way has no links that could be turned.
    let parent = parent.canonicalize().map_err(|e| failed(parent, e))?;
    let folder = parent.join(name);
    match private::create(&folder) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(&folder, e)),
        _ => private::check(&folder).map(|()| folder),
    }
}

#[cfg(unix)]
mod private {
    use std::fs::{self, DirBuilder, Metadata, OpenOptions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    use std::path::Path;

    /// Makes a folder that only its owner can enter.
    pub(super) fn create(folder: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(folder)
    }

    /// Refuses a folder that belongs to another user, or that another user can write to
    /// or replace.
    pub(super) fn check(folder: &Path) -> Result<(), String> {
        let failed = |e: io::Error| format!("{}: {e}", folder.display());
        let found = fs::symlink_metadata(folder).map_err(failed)?;
        if !found.is_dir() {
            return Err(format!("{} is a link or a file, not a folder", folder.display()));
        }
        let mode = found.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!("{} is open to others (mode {mode:03o})", folder.display()));
        }
        let us = our_number(folder).map_err(failed)?;
        if found.uid() != us {
            return Err(format!("{} belongs to user {}", folder.display(), found.uid()));
        }
        for above in folder.ancestors().skip(1) {
            let found = fs::metadata(above).map_err(|e| format!("{}: {e}", above.display()))?;
            if can_be_exchanged_below(&found, us) {
                return Err(format!(
                    "{} is in {}, where other users can create files",
                    folder.display(),
                    above.display()
                ));
            }
        }
        Ok(())
    }

    /// Whether a user other than the superuser and this one can rename what is in a
    /// folder. The sticky bit prevents it.
    fn can_be_exchanged_below(folder: &Metadata, us: u32) -> bool {
        let sticky = folder.mode() & 0o1000 != 0;
        ![0, us].contains(&folder.uid()) || folder.mode() & 0o002 != 0 && !sticky
    }

    /// The number of the current user, taken from a new file.
    fn our_number(folder: &Path) -> io::Result<u32> {
        let path = folder.join(format!(".owner.{}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = match file {
            // Left by a process that was stopped here.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path)?;
                OpenOptions::new().write(true).create_new(true).open(&path)?
            }
            file => file?,
        };
        let owner = file.metadata().map(|file| file.uid());
        fs::remove_file(&path)?;
        owner
    }
}

#[cfg(not(unix))]
mod private {
    use std::io;
    use std::path::Path;

    /// Makes a folder, with the permissions of the user's folder that contains it.
    pub(super) fn create(folder: &Path) -> io::Result<()> {
        std::fs::create_dir(folder)
    }

    /// Refuses anything but a folder.
    pub(super) fn check(folder: &Path) -> Result<(), String> {
        match std::fs::symlink_metadata(folder) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(format!("{} is a link or a file, not a folder", folder.display())),
            Err(e) => Err(format!("{}: {e}", folder.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_home_there_is_no_folder() {
        let path = |text: &str| Some(OsString::from(text));
        assert_eq!(base(path("/a"), path("/b")), Ok(PathBuf::from("/a")));
        for none in [None, path(""), path("relative")] {
            assert_eq!(base(none.clone(), path("/b")), Ok(PathBuf::from("/b/.cache")));
            let refused = base(None, none).unwrap_err();
            assert!(refused.contains("XDG_CACHE_HOME"), "{refused}");
        }
    }

    #[cfg(unix)]
    mod on_unix {
        use super::super::within;
        use std::fs::{self, Permissions};
        use std::os::unix::fs::{PermissionsExt, symlink};
        use std::path::{Path, PathBuf};

        struct Root(PathBuf);

        impl Root {
            fn new(name: &str) -> Root {
                let folder = format!("warpfold-cache-{name}-{}", std::process::id());
                let root = std::env::temp_dir().join(folder);
                let _ = fs::remove_dir_all(&root);
                fs::create_dir(&root).unwrap();
                set_mode(&root, 0o700);
                Root(root)
            }
        }

        impl Drop for Root {
            fn drop(&mut self) {
                let _ = fs::remove_dir_all(&self.0);
            }
        }

        fn set_mode(path: &Path, mode: u32) {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn it_is_made_for_its_owner_alone_and_taken_again() {
            let root = Root::new("made");
            let parent = root.0.join("a/b");
            let folder = within(&parent, "cub").unwrap();
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
            fs::write(folder.join("kept"), "").unwrap();
            assert_eq!(within(&parent, "cub"), Ok(folder.clone()));
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left over");
        }

        #[test]
        fn what_others_can_write_to_is_refused() {
            let root = Root::new("open");
            let folder = within(&root.0, "cub").unwrap();
            for mode in [0o777, 0o755, 0o770, 0o701, 0o704] {
                set_mode(&folder, mode);
                let refused = within(&root.0, "cub").unwrap_err();
                assert!(refused.contains("open to others"), "{mode:o}: {refused}");
            }
            set_mode(&folder, 0o700);
            // A user who can write to the parent folder can replace it.
            set_mode(&root.0, 0o777);
            let refused = within(&root.0, "cub").unwrap_err();
            assert!(refused.contains("other users can create files"), "{refused}");
            set_mode(&root.0, 0o1777);
            assert_eq!(within(&root.0, "cub").map(drop), Ok(()));
        }

        #[test]
        fn links_and_files_are_refused() {
            let root = Root::new("links");
            let elsewhere = within(&root.0, "elsewhere").unwrap();
            symlink(&elsewhere, root.0.join("link")).unwrap();
            symlink(root.0.join("nowhere"), root.0.join("dangling")).unwrap();
            fs::write(root.0.join("file"), "").unwrap();
            for name in ["link", "dangling", "file"] {
                let refused = within(&root.0, name).unwrap_err();
                assert!(refused.contains("not a folder"), "{name}: {refused}");
            }
            // A home that is reached by a link is as good as any.
            symlink(&root.0, root.0.join("home")).unwrap();
            let folder = within(&root.0.join("home"), "cub").unwrap();
            assert!(!folder.to_string_lossy().contains("home"));
        }

        /// Only the superuser can give folders away.
        #[test]
        fn what_belongs_to_somebody_else_is_refused() {
            let root = Root::new("owner");
            let folder = within(&root.0, "cub").unwrap();
            match std::os::unix::fs::chown(&folder, Some(12_345), None) {
                Ok(()) => {
                    let refused = within(&root.0, "cub").unwrap_err();
                    assert!(refused.contains("belongs to user 12345"), "{refused}");
                }
                Err(error) => println!("SKIPPED: folders of others: {error}"),
            }
        }
    }
}
