//! Finds the sample kernels.

use crate::archive::Archive;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A sample's PTX.
pub(crate) struct Sample {
    /// `12.0/two_pass.75`, for messages.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The compute capabilities that samples are compiled for.
pub(crate) const COMPUTE: [u32; 2] = [75, 90];

/// The folder of the sources.
pub(crate) fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

fn archive() -> Archive {
    static ARCHIVE: OnceLock<Archive> = OnceLock::new();
    *ARCHIVE.get_or_init(|| {
        Archive::new(std::fs::read(kernels().join("kernels.archive")).unwrap().leak())
    })
}

/// The text of one sample, of `12.0/two_pass` for 75, if it is compiled for it.
pub(crate) fn sample(name: &str, compute: u32) -> Option<String> {
    let text = archive().module(name, (compute / 10, compute % 10))?;
    text.contains(&format!(".target sm_{compute}\n")).then(|| text.to_string())
}

/// All samples, in the order of their names.
pub(crate) fn samples() -> Vec<Sample> {
    let names: BTreeSet<_> = archive().names().collect();
    let all = names.iter().flat_map(|name| COMPUTE.map(|compute| (name, compute)));
    let found = all.filter_map(|(name, compute)| {
        let text = sample(name, compute)?;
        Some(Sample { name: format!("{name}.{compute}"), text })
    });
    let samples: Vec<_> = found.collect();
    assert!(samples.len() > 100, "{} samples", samples.len());
    samples
}
