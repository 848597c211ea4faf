//! What can be wrong with PTX text.

/// The result of parsing.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a text is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not PTX, or contradicts itself.
    Invalid {
        /// The line, from 1.
        line: u32,
        /// What is wrong, with what was found.
        what: String,
        /// What would help.
        hint: Option<String>,
    },
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Invalid { line, what, .. } => write!(f, "PTX line {line}: {what}"),
        }
    }
}

impl core::error::Error for Error {}

impl Error {
    /// The PTX line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        match self {
            Error::Invalid { line, .. } => *line,
        }
    }

    /// What the caller can do, in one line without a full stop.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Invalid { hint, .. } => hint.clone(),
        }
    }

    pub(super) fn invalid(line: u32, what: impl Into<String>) -> Self {
        Error::Invalid { line, what: what.into(), hint: None }
    }

    #[must_use]
    pub(super) fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Error::Invalid { line, what, .. } => {
                Error::Invalid { line, what, hint: Some(text.into()) }
            }
        }
    }
}

/// A piece of the text, short enough for a message.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let text = &*crate::name::demangled(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}
