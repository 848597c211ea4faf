//! Finds CUDA toolkits on this machine. The library itself needs none.

use std::path::{Path, PathBuf};

/// The folders of toolkits: those that the environment names, then the usual places,
/// newer versions first.
#[must_use]
pub fn roots() -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
    let usual = folders(Path::new("/usr/local"), |name| name.starts_with("cuda"));
    named.map(PathBuf::from).chain(usual).collect()
}

/// A program of a toolkit: from `PATH`, from a toolkit, or from a profiler's folder, of
/// which there is one for each version.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkits = roots().into_iter().map(|root| root.join("bin"));
    let profilers = folders(Path::new("/opt/nvidia/nsight-compute"), |_| true);
    let all = std::env::split_paths(&path).chain(toolkits).chain(profilers);
    all.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The folders in a folder whose names match, the last one first.
pub(crate) fn folders(within: &Path, pleases: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(within).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(&pleases))
        .map(|entry| entry.path())
        .collect();
    found.sort_unstable();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_in_the_path() {
        assert!(program("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(program("no program has this name"), None);
    }

    #[test]
    fn folders_come_last_first() {
        let root = std::env::temp_dir().join(format!("warpfold-toolkit-{}", std::process::id()));
        for name in ["cuda-12.8", "cuda-13.0", "other"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        let found = folders(&root, |name| name.starts_with("cuda"));
        assert_eq!(found, [root.join("cuda-13.0"), root.join("cuda-12.8")]);
        assert!(folders(&root.join("none"), |_| true).is_empty());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
