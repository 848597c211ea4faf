//! What can go wrong between ranks.

/// What is wrong, and what would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    what: String,
    hint: String,
}

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    /// An error with its cause, and a hint, which may be empty.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { what: what.into(), hint: hint.into() }
    }

    /// What would help, if that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        (!self.hint.is_empty()).then_some(&self.hint)
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.what)
    }
}

impl core::error::Error for Error {}
