//! What can be wrong with PTX text.

/// The result of parsing.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why a text is not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not PTX, or contradicts itself.
    #[error("PTX line {line}: {what}")]
    Invalid {
        /// The line, from 1.
        line: u32,
        /// What is wrong, with what was found.
        what: String,
        /// What would help.
        hint: Option<String>,
    },
    /// An instruction, or a form of one, that is not interpreted.
    #[error("PTX line {}: `{}` is not supported{}", .0.line, .0.instruction, .0.reason())]
    Unsupported(Unsupported),
}

/// An instruction that is not interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The PTX line, from 1.
    pub line: u32,
    /// The line of the source, where `.loc` gives one: file and line.
    pub source: Option<(u32, u32)>,
    /// The instruction with its suffixes, cut short if it is absurdly long.
    pub instruction: String,
    /// What about it is not supported; `None`: all of it.
    pub what: Option<String>,
}

impl Unsupported {
    fn reason(&self) -> String {
        self.what.as_ref().map(|what| format!(": {what}")).unwrap_or_default()
    }
}

impl Error {
    /// The PTX line, from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        match self {
            Error::Invalid { line, .. } => *line,
            Error::Unsupported(instruction) => instruction.line,
        }
    }

    /// What the caller can do, in one line without a full stop.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Invalid { hint, .. } => hint.clone(),
            Error::Unsupported(_) => {
                Some("`warpfold ptx info` lists everything in a file that is not supported".into())
            }
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
            other => other,
        }
    }
}

/// A piece of the text, short enough for a message.
pub(super) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}
