//! PTX from a file or a pipe.

use anyhow::{Context, Result, bail};
use std::io::Read;
use std::path::Path;

/// A longer file is not PTX: the largest modules of libraries have a few dozen MiB.
const LONGEST: u64 = 256 << 20;

/// The text of a PTX file, and what messages call it.
///
/// # Errors
/// A file that cannot be read or is not text.
pub(crate) fn text(file: &str) -> Result<(String, &str)> {
    let name = if file == "-" { "stdin" } else { file };
    let mut bytes = Vec::new();
    let read = if file == "-" {
        crate::descriptors::check_stdin()?;
        std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes)
    } else {
        if Path::new(file).is_dir() {
            bail!("{name}: this is a directory");
        }
        let open = std::fs::File::open(file).with_context(|| name.to_string())?;
        open.take(LONGEST + 1).read_to_end(&mut bytes)
    };
    read.with_context(|| name.to_string())?;
    if bytes.len() as u64 > LONGEST {
        bail!("{name}: a file of more than {} MiB is not PTX", LONGEST >> 20);
    }
    // Drivers are handed PTX with a zero at its end, and some tools keep it.
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, name)),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
            bail!(
                "{name}: line {line} is not text: PTX is text, and machine code (.cubin, .fatbin) is not"
            )
        }
    }
}
