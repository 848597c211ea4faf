//! Errors of files.

use std::path::PathBuf;

/// The result of reading.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// An error with the file it is about and what would help.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// The bytes are not what the format demands.
    Format {
        /// The file or source.
        name: String,
        /// What is wrong, with the value found.
        what: String,
        /// What would help.
        hint: Option<String>,
    },
    /// Nobody waits for the answer any more: see
    /// [`Progress::is_cancelled`](crate::stream::Progress::is_cancelled).
    Cancelled,
    /// The reduction refused.
    Reduce {
        /// The file or source.
        name: String,
        /// The library's error.
        source: warpfold_core::Error,
    },
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Format { name, what, .. } => write!(f, "{name}: {what}"),
            Error::Cancelled => f.write_str("the reduction was cancelled"),
            Error::Reduce { name, source } => write!(f, "{name}: {source}"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Reduce { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Error {
    /// A format error without a hint.
    pub fn format(name: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Format { name: name.into(), what: what.into(), hint: None }
    }

    /// The same error with a hint, where it has room for one.
    #[must_use]
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Error::Format { name, what, .. } => {
                Error::Format { name, what, hint: Some(text.into()) }
            }
            other => other,
        }
    }

    /// What the caller can do, in one line without a full stop.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Format { hint, .. } => hint.clone(),
            Error::Reduce { source, .. } => source.hint(),
            #[cfg(feature = "remote")]
            Error::Io { source, .. } => crate::remote::Failure::hint_of(source),
            #[cfg(not(feature = "remote"))]
            Error::Io { .. } => None,
            Error::Cancelled => None,
        }
    }
}
