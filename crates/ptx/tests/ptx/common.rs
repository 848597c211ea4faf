//! Finds the sample kernels.

use std::path::{Path, PathBuf};

/// A committed PTX file.
pub(crate) struct Sample {
    /// `ptx/12.0/two_pass.75`, for messages.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The folder of the sources.
pub(crate) fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

/// All samples, in the order of their names.
pub(crate) fn samples() -> Vec<Sample> {
    let mut files = Vec::new();
    for release in ["12.0", "13.0"] {
        // The package has the older release only.
        let Ok(entries) = std::fs::read_dir(kernels().join("ptx").join(release)) else { continue };
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    assert!(!files.is_empty());
    files.sort();
    files
        .into_iter()
        .map(|path| Sample {
            name: path.strip_prefix(kernels()).unwrap().to_string_lossy().into_owned(),
            text: std::fs::read_to_string(&path).unwrap(),
        })
        .collect()
}

/// The text of one sample: `12.0/two_pass.75`.
pub(crate) fn sample(name: &str) -> String {
    std::fs::read_to_string(kernels().join("ptx").join(format!("{name}.ptx"))).unwrap()
}
