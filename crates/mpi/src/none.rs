//! Systems without an MPI library of a known interface.

use crate::{Calls, Error, Result};

pub(crate) fn open() -> Result<(Box<dyn Calls>, String)> {
    Err(Error::new(
        "there is no MPI library of a known interface for this kind of machine",
        "run on Linux or macOS, or send partials yourself",
    ))
}
