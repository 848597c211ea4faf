//! `archive.npz:member`: the name of a file, and that of a member after the colon.

use std::ffi::{OsStr, OsString};

/// The ways to read `input` as a file and a member of it, the longest file's
/// name first: both may hold colons. Names of files may be any bytes, members
/// are text.
///
/// # Examples
/// ```
/// # use std::ffi::OsStr;
/// let ways = warpfold_files::split_members(OsStr::new("a:b.npz:c"));
/// assert_eq!(ways, [(OsStr::new("a:b.npz"), "c"), (OsStr::new("a"), "b.npz:c")]);
/// ```
#[must_use]
pub fn split_members(input: &OsStr) -> Vec<(&OsStr, &str)> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let bytes = input.as_bytes();
        let colons = (0..bytes.len()).rev().filter(|&at| bytes[at] == b':');
        colons
            .map_while(|at| {
                let member = core::str::from_utf8(&bytes[at + 1..]).ok()?;
                Some((OsStr::from_bytes(&bytes[..at]), member))
            })
            .collect()
    }
    #[cfg(not(unix))]
    {
        let text = input.to_str().unwrap_or_default();
        text.rmatch_indices(':').map(|(at, _)| (OsStr::new(&text[..at]), &text[at + 1..])).collect()
    }
}

/// The name of a file and of a member, in the form that [`open`](crate::open) takes.
#[must_use]
pub fn join_member(mut file: OsString, member: &str) -> OsString {
    file.push(":");
    file.push(member);
    file
}
