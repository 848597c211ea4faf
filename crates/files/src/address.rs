//! Addresses of files on servers, told from paths.

use std::ffi::OsStr;

/// What addresses begin with, and `://`.
const SCHEMES: [&str; 9] = ["https", "http", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// Whether `input` is the address of a file on a server, such as `s3://bucket/key`.
///
/// # Examples
/// ```
/// assert!(warpfold_files::is_address("https://example.org/x.npy".as_ref()));
/// assert!(!warpfold_files::is_address("x.npy".as_ref()));
/// ```
#[must_use]
pub fn is_address(input: &OsStr) -> bool {
    scheme(input).is_some()
}

pub(crate) fn scheme(input: &OsStr) -> Option<&'static str> {
    let bytes = input.as_encoded_bytes();
    let begins = |scheme: &&str| {
        bytes.strip_prefix(scheme.as_bytes()).is_some_and(|rest| rest.starts_with(b"://"))
    };
    SCHEMES.into_iter().find(begins)
}
