//! What goes to stderr when something goes wrong, and the exit status.

use crate::printable::{is_disturbing, printable, printable_lines};
use anstyle::{AnsiColor, Style};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// A question that makes no sense, found after the flags were read.
#[derive(Debug)]
pub(crate) struct Usage {
    what: String,
    hint: Option<String>,
}

/// Something outside that stands in the way, and what would help.
#[derive(Debug)]
pub(crate) struct Obstacle {
    pub(crate) what: String,
    pub(crate) hint: &'static str,
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Obstacle {}

impl Usage {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Usage { what: what.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Usage { hint: Some(hint.into()), ..self }
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Usage {}

const DATA: u8 = 1;
const USAGE: u8 = 2;

/// The answer is there, and it is that something is wrong.
pub(crate) const FOUND: u8 = 3;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default().bold();

/// Prints the error and chooses the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    // The reader of the output has closed the pipe.
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    say(ERROR, "error:", &message(error));
    if let Some(hint) = error.chain().find_map(hint) {
        say(HINT, "hint:", &hint);
    }
    ExitCode::from(status(error))
}

/// The exit status of an error.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    match error {
        _ if is_closed_pipe(error) => 0,
        _ if error.is::<Usage>() => USAGE,
        _ => DATA,
    }
}

/// Prints clap's messages: help and the version, which are not errors, or what is wrong
/// with the flags.
pub(crate) fn report_usage(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
    // Help and the version.
    if !error.use_stderr()
        && let Err(closed) = crate::descriptors::check_stdout()
    {
        return report(&closed.into());
    }
    // A shell may have put names of files among the words, which are quoted
    // as they are.
    if words.iter().any(|w| w.to_string_lossy().chars().any(is_disturbing)) {
        let text = printable_lines(&error.render().to_string()).into_owned();
        let written = if error.use_stderr() {
            std::io::stderr().write_all(text.as_bytes())
        } else {
            std::io::stdout().write_all(text.as_bytes())
        };
        return if written.is_ok() || error.use_stderr() { status } else { ExitCode::from(DATA) };
    }
    match error.print() {
        Err(e) if !error.use_stderr() && e.kind() != std::io::ErrorKind::BrokenPipe => {
            report(&e.into())
        }
        _ => status,
    }
}

/// Says that the system gave no memory, without any.
#[cfg(unix)]
pub(crate) fn out_of_memory(bytes: usize) {
    let hint = "fewer threads (-j 1), columns and keys take less, as does a smaller --memory-limit";
    let mut line = [0; 200];
    let mut rest = &mut line[..];
    let _ = writeln!(rest, "error: out of memory: {bytes} bytes were refused\nhint: {hint}");
    let left = rest.len();
    // Not through the lock of `stderr`, which this thread may have.
    if let Ok(stderr) = std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned() {
        let _ = std::fs::File::from(stderr).write_all(&line[..line.len() - left]);
    }
}

/// Prints a remark that changes nothing.
pub(crate) fn note(text: &str) {
    say(NOTE, "note:", text);
}

/// Prints how a reduction was done.
pub(crate) fn explain(text: &str) {
    say(NOTE, "explain:", text);
}

/// A line on stderr. If it cannot be written, the error cannot be reported either; the
/// exit status still does.
fn say(style: Style, label: &str, text: &str) {
    let text = printable(text);
    let _ = writeln!(anstream::stderr().lock(), "{style}{label}{style:#} {text}");
}

/// Whether the reader of our output has left.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

/// The causes from the outermost to the innermost; one that already says what
/// comes next is not repeated.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = words(cause);
        if text.ends_with(&cause) {
            continue;
        }
        if !text.is_empty() {
            text += ": ";
        }
        text += &cause;
    }
    text
}

/// What a cause says; without a file's name where no file is to blame.
fn words(cause: &(dyn std::error::Error + 'static)) -> String {
    match cause.downcast_ref() {
        Some(warpfold_files::Error::Reduce { name, source })
            if name.is_empty() || matches!(source, warpfold::Error::Device { .. }) =>
        {
            source.to_string()
        }
        _ => cause.to_string(),
    }
}

fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(usage) = cause.downcast_ref::<Usage>() {
        return usage.hint.clone();
    }
    if let Some(obstacle) = cause.downcast_ref::<Obstacle>() {
        return Some(obstacle.hint.into());
    }
    if let Some(error) = cause.downcast_ref::<warpfold_files::Error>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<warpfold_ladder::Error>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<warpfold_ladder::attempt::Failed>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<warpfold_ladder::report::Foreign>() {
        return Some(error.hint().into());
    }
    if let Some(error) = cause.downcast_ref::<warpfold::mpi::Error>() {
        return error.hint().map(Into::into);
    }
    if let Some(error) = cause.downcast_ref::<warpfold_cuda::Error>() {
        return error.hint().map(Into::into);
    }
    if let Some(error) = cause.downcast_ref::<warpfold_ptx::device::DeviceError>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<warpfold_ptx::machine::Halt>() {
        return Some(error.hint().into());
    }
    if let Some(error) = cause.downcast_ref::<warpfold_ptx::parse::Error>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<std::io::Error>() {
        return too_many_files(error).then(|| "allow more open files: ulimit -n 65536".into());
    }
    cause.downcast_ref::<warpfold::Error>().and_then(warpfold::Error::hint)
}

/// Whether the system refused because so many files are open: all files of an
/// array are, before the first is read.
fn too_many_files(error: &std::io::Error) -> bool {
    // EMFILE, which has no `ErrorKind`, is the same everywhere.
    cfg!(unix) && error.raw_os_error() == Some(24)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn causes_are_told_once() {
        let io = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let file = warpfold_files::Error::Io { path: "x.npy".into(), source: io() };
        let text = message(&anyhow::Error::new(file));
        assert_eq!(text, format!("x.npy: {}", io()));
        let context = Err::<(), _>(io()).context("y.state").unwrap_err();
        assert_eq!(message(&context), format!("y.state: {}", io()));
    }

    #[test]
    fn a_file_is_named_only_where_it_is_to_blame() {
        let source = warpfold::Error::AxisRepeated { axis: 0 };
        let error = warpfold_files::Error::Reduce { name: String::new(), source };
        assert_eq!(message(&anyhow::Error::new(error)), "axis 0 is named twice");
        let source = warpfold::Error::Device { what: "no GPU".into(), hint: String::new() };
        let error = warpfold_files::Error::Reduce { name: "x.npy".into(), source };
        assert_eq!(message(&anyhow::Error::new(error)), "no GPU");
    }
}
