//! Quoted globs: `'run-*/loss.npz:train'`.
//!
//! `*`, `?` and `[...]` match within a name, `**` any number of directories.
//! Names that begin with a dot are matched by patterns that do. Names may be
//! any bytes, and come in the order of these.

use anyhow::{Context, Result, bail};
use glob::{MatchOptions, Pattern};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use warpfold_files::{is_address, is_zarr, join_member, split_members};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The files that match `word`, if it is a glob and no file has that very
/// name; what follows a colon is kept with each.
///
/// # Errors
/// A glob that no file matches, directories that cannot be read.
pub(crate) fn expand(word: &OsStr) -> Result<Option<Vec<OsString>>> {
    let is_stdin = word.as_encoded_bytes().starts_with(b"-:");
    // A server has no folders to look through, and addresses hold question marks.
    if !is_glob(word) || is_stdin || is_address(word) || fs::symlink_metadata(word).is_ok() {
        return Ok(None);
    }
    let Some(matches) = matching(word)? else { return Ok(None) };
    if !matches.is_empty() {
        return Ok(Some(matches));
    }
    // The glob in front of a member's name; where the front is a file rather
    // than a glob, the member may hold what it likes.
    for (front, member) in split_members(word) {
        if Path::new(front).is_file() {
            return Ok(None);
        }
        let matches = if is_glob(front) { matching(front)?.unwrap_or_default() } else { vec![] };
        if !matches.is_empty() {
            let with_member = |file: OsString| join_member(file, member);
            return Ok(Some(matches.into_iter().map(with_member).collect()));
        }
    }
    bail!("{}: no file matches", word.display());
}

fn is_glob(text: &OsStr) -> bool {
    text.as_encoded_bytes().iter().any(|b| matches!(b, b'*' | b'?' | b'['))
}

/// A part of a pattern between separators.
enum Part {
    /// A name as it is, a root, a prefix.
    Literal(OsString),
    /// `**`.
    AnyDepth,
    /// A name to match.
    Pattern(Pattern),
}

/// The files that match, sorted; `None` if this is not a pattern.
fn matching(pattern: &OsStr) -> Result<Option<Vec<OsString>>> {
    let mut parts = Vec::new();
    for component in Path::new(pattern).components() {
        parts.push(match component {
            Component::Normal(name) if name == "**" => Part::AnyDepth,
            Component::Normal(name) if is_glob(name) => match Pattern::new(&as_text(name)) {
                Ok(pattern) => Part::Pattern(pattern),
                Err(_) => return Ok(None),
            },
            other => Part::Literal(other.as_os_str().into()),
        });
    }
    let mut found = Vec::new();
    walk(PathBuf::new(), &parts, &mut found)?;
    let mut files: Vec<OsString> = found
        .into_iter()
        .filter(|p| !p.is_dir() || is_zarr(p))
        .map(PathBuf::into_os_string)
        .collect();
    files.sort_unstable_by(|a, b| a.as_encoded_bytes().cmp(b.as_encoded_bytes()));
    // `a/**/**` finds the same file in several ways.
    files.dedup();
    Ok(Some(files))
}

/// What matches `parts` below `base`.
fn walk(base: PathBuf, parts: &[Part], found: &mut Vec<PathBuf>) -> Result<()> {
    let Some((part, rest)) = parts.split_first() else {
        if fs::symlink_metadata(&base).is_ok() {
            found.push(base);
        }
        return Ok(());
    };
    match part {
        Part::Literal(name) => walk(base.join(name), rest, found),
        Part::Pattern(pattern) => {
            for name in names(&base)? {
                if pattern.matches_with(&as_text(&name), OPTIONS) {
                    walk(base.join(name), rest, found)?;
                }
            }
            Ok(())
        }
        Part::AnyDepth => {
            // No directory, or what lies at any depth in one. At the end of a
            // pattern it stands for all files.
            if rest.is_empty() {
                return every(&base, found);
            }
            walk(base.clone(), rest, found)?;
            for name in names(&base)? {
                let path = base.join(&name);
                if !is_hidden(&name) && is_real_dir(&path) {
                    walk(path, parts, found)?;
                }
            }
            Ok(())
        }
    }
}

/// All files below a directory but hidden ones.
fn every(base: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for name in names(base)? {
        let path = base.join(&name);
        if is_hidden(&name) {
            continue;
        }
        if is_real_dir(&path) {
            every(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Whether this is a directory and no link to one, which might lead in circles.
fn is_real_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
}

/// The names in a directory; none where there is no directory.
fn names(folder: &Path) -> Result<Vec<OsString>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let name = || folder.display().to_string();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error).with_context(name),
    };
    entries.map(|entry| Ok(entry.with_context(name)?.file_name())).collect()
}

/// The name as text in which each byte that is not text stands for itself, as a
/// character that no name has: `?` matches it, and so does the same byte.
fn as_text(name: &OsStr) -> Cow<'_, str> {
    const FIRST: u32 = 0x10_ff00;
    if let Some(text) = name.to_str() {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        out += chunk.valid();
        out.extend(chunk.invalid().iter().filter_map(|&b| char::from_u32(FIRST + u32::from(b))));
    }
    Cow::Owned(out)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn make(names: &[&[u8]]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "1").unwrap();
        }
        folder
    }

    /// What `pattern` finds, without the folder's name.
    fn found(folder: &Path, pattern: &[u8]) -> Vec<Vec<u8>> {
        let word = folder.join(OsStr::from_bytes(pattern)).into_os_string();
        let start = folder.as_os_str().len() + 1;
        let files = expand(&word).unwrap().unwrap_or_else(|| vec![word]);
        files.into_iter().map(|f| f.as_bytes()[start..].to_vec()).collect()
    }

    #[test]
    fn names_are_bytes_and_sorted_as_such() {
        let folder = make(&[b"b", b"B", b"\xff", "é".as_bytes(), b"a-b", b"a/b", b".h", b"a\n"]);
        let all: [&[u8]; 6] = [b"B", b"a\n", b"a-b", b"b", "é".as_bytes(), b"\xff"];
        assert_eq!(found(folder.path(), b"*"), all);
        assert_eq!(found(folder.path(), b"?"), [b"B", b"b", "é".as_bytes(), b"\xff"]);
        assert_eq!(found(folder.path(), b"[\xff]"), [b"\xff"]);
        assert_eq!(found(folder.path(), b".*"), [b".h"]);
        assert_eq!(found(folder.path(), b"*/*"), [b"a/b"]);
        assert_eq!(found(folder.path(), b"a?b"), [b"a-b"]);
        assert_eq!(found(folder.path(), b"[!a-z]"), [b"B", "é".as_bytes(), b"\xff"]);
    }

    #[test]
    fn two_stars_go_down() {
        let folder =
            make(&[b"x.npy", b"d/x.npy", b"d/e/x.npy", b".h/x.npy", b"d/.x.npy", b"\xfe/x.npy"]);
        let all: [&[u8]; 4] = [b"d/e/x.npy", b"d/x.npy", b"x.npy", b"\xfe/x.npy"];
        assert_eq!(found(folder.path(), b"**/x.npy"), all);
        assert_eq!(found(folder.path(), b"**"), all);
        assert_eq!(found(folder.path(), b"d/**/x.npy"), all[..2]);
        assert_eq!(found(folder.path(), b"**/e/*"), all[..1]);
        std::os::unix::fs::symlink("..", folder.path().join("d/up")).unwrap();
        assert_eq!(found(folder.path(), b"**/x.npy"), all, "links are not followed");
    }

    #[test]
    fn files_that_look_like_globs_are_themselves() {
        let folder = make(&[b"*", b"a[1].npz", b"a1.npz", b"b[.csv"]);
        assert_eq!(found(folder.path(), b"*"), [b"*"]);
        assert_eq!(found(folder.path(), b"a[1].npz"), [b"a[1].npz"]);
        assert_eq!(found(folder.path(), b"a[1].npz:x[0]"), [b"a[1].npz:x[0]"]);
        assert_eq!(found(folder.path(), b"b[.csv:*"), [b"b[.csv:*"]);
        assert_eq!(found(folder.path(), b"a?.npz:m:n"), [b"a1.npz:m:n"]);
        assert!(expand(&folder.path().join("q*").into_os_string()).is_err());
        assert!(expand(OsStr::new("-:a[0]")).unwrap().is_none());
    }
}
