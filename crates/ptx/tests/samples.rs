//! The committed PTX of the sample kernels, as two compilers print it.

use std::path::{Path, PathBuf};

use warpfold_ptx::parse::parse;

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/ptx");
    let mut files = Vec::new();
    for release in ["12.0", "13.0"] {
        let entries = std::fs::read_dir(folder.join(release)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.sort();
    files
}

#[test]
fn every_committed_ptx_is_read() {
    let files = samples();
    assert!(files.len() > 100, "only {} files", files.len());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(error) = parse(&text) {
            panic!("{}: {error}", path.display());
        }
    }
}
