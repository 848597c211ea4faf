//! What goes wrong between here and a server, in words.

use object_store::Error;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// Why a file on a server cannot be read, and what would help.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    what: String,
    hint: Option<String>,
}

impl Failure {
    /// An error without a hint.
    pub(super) fn of(error: &dyn core::fmt::Display) -> Self {
        Failure { kind: ErrorKind::Other, what: error.to_string(), hint: None }
    }

    /// The server sent less than it said.
    pub(super) fn truncated(range: &Range<u64>, got: usize) -> Self {
        let Range { start, end } = range;
        let what =
            format!("the server sent {got} bytes of the {} from byte {start} on", end - start);
        Failure { kind: ErrorKind::Other, what, hint: None }
    }

    /// An answer that did not come to its end, however often it was asked for.
    pub(super) fn broken(range: &Range<u64>, error: Error) -> Self {
        let Range { start, end } = range;
        Failure::of(&format!("the answer about bytes {start} to {end} broke off: {}", told(&error)))
    }

    /// What the crate of the stores says.
    pub(super) fn of_store(scheme: &str, error: Error) -> Self {
        let told = told(&error);
        let code = code(&told);
        let denied =
            matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
                || code.is_some_and(is_about_credentials);
        let (kind, what, hint) = match error {
            _ if denied => {
                let code = code.map_or_else(String::new, |code| format!(": {code}"));
                let what = format!("the server refuses access{code}");
                (ErrorKind::PermissionDenied, what, Some(credentials(scheme)))
            }
            Error::NotFound { .. } => {
                let what = code.map_or_else(String::new, |code| format!(": {code}"));
                (ErrorKind::NotFound, format!("the server has no such file{what}"), None)
            }
            Error::NotSupported { .. } => {
                let what = "the server does not send parts of this file".into();
                (ErrorKind::Unsupported, what, Some("download it first".into()))
            }
            Error::Generic { .. }
                if told.contains("CredentialProvider") || told.contains("169.254.169.254") =>
            {
                let what = "no credentials were found".into();
                (ErrorKind::PermissionDenied, what, Some(credentials(scheme)))
            }
            _ => (ErrorKind::Other, told, None),
        };
        Failure { kind, what, hint }
    }

    /// As an error of reading.
    pub(super) fn io(self) -> io::Error {
        io::Error::new(self.kind, self)
    }

    /// The hint of an error of reading, if that is one of ours.
    pub(crate) fn hint_of(error: &io::Error) -> Option<String> {
        error.get_ref()?.downcast_ref::<Failure>()?.hint.clone()
    }
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.what)
    }
}

impl core::error::Error for Failure {}

/// An error and its causes, each once, on one line.
fn told(error: &Error) -> String {
    let mut text = match error {
        Error::Generic { source, .. } => source.to_string(),
        error => error.to_string(),
    };
    let mut cause = core::error::Error::source(error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text += ": ";
            text += &more;
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The code in the body of a refusal, as S3 and its kin, Azure and Google send it.
fn code(told: &str) -> Option<&str> {
    let (_, rest) = told.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code).filter(|code| code.len() < 80)
}

/// Some of these come as bad requests.
fn is_about_credentials(code: &str) -> bool {
    const CODES: [&str; 8] = [
        "AccessDenied",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "RequestTimeTooSkewed",
        "AuthenticationFailed",
        "TokenRefreshRequired",
    ];
    CODES.contains(&code)
}

fn credentials(scheme: &str) -> String {
    let from = match scheme {
        "s3" | "s3a" => {
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; AWS_SKIP_SIGNATURE=true asks without any"
        }
        "gs" => "GOOGLE_APPLICATION_CREDENTIALS; GOOGLE_SKIP_SIGNATURE=true asks without any",
        "http" | "https" => {
            return "check whether the address is still valid: signed ones expire".into();
        }
        _ => {
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; AZURE_SKIP_SIGNATURE=true asks without any"
        }
    };
    format!("check the credentials, and whether they have expired: {from}")
}
