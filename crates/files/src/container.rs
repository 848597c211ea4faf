//! Arrays by name in files that hold several: Zarr groups and HDF5.

use crate::columns::{self, ColumnSelector};
use crate::{Error, Result};

/// The arrays that were chosen, be it behind the colon or by option; the only one where none was.
///
/// # Errors
/// A name that there is not; nothing chosen of several, with one of those that are `read` as hint.
pub(crate) fn choose(
    file: &str,
    names: &[String],
    member: Option<&str>,
    columns: &[ColumnSelector],
    is_read: impl Fn(usize) -> bool,
) -> Result<Vec<usize>> {
    if let Some(wanted) = member {
        let place = names.iter().position(|name| name == wanted.trim_start_matches('/'));
        return place.map(|place| vec![place]).ok_or_else(|| {
            let list = columns::list(names);
            Error::format(file, format!("there is no array {wanted:?}; there are {list}"))
        });
    }
    match (columns, names.len()) {
        (_, 0) => Err(Error::format(file, "it holds no arrays")),
        ([], 1) => Ok(vec![0]),
        ([], n) => {
            let list = columns::list(names);
            let error = Error::format(file, format!("which array? There are {n}: {list}"));
            Err(match (0..n).find(|&i| is_read(i)) {
                Some(i) => error.with_hint(format!("name it after a colon: {file}:{}", names[i])),
                None => error,
            })
        }
        (wanted, _) => columns::resolve(wanted, names, file),
    }
}

/// What a source and its description are called.
pub(crate) fn joined(file: &str, name: &str) -> String {
    // An array that is all there is has no name of its own.
    if name.is_empty() { file.into() } else { format!("{file}:{name}") }
}
