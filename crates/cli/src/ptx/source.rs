//! The lines of source that PTX was compiled from, where they can be found.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer file is not a source.
const LONGEST: u64 = 16 << 20;

/// Folders that are near a file: its own, and those above it.
const NEAR: usize = 3;

/// Source files, read when they are first asked for.
pub(crate) struct Sources {
    folders: Vec<PathBuf>,
    files: HashMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// Sources of a PTX file: in the folders given, where the file says, beside it or a few folders above.
    pub(crate) fn new(ptx: &Path, folders: &[PathBuf]) -> Sources {
        let mut folders = folders.to_vec();
        folders.push(PathBuf::new());
        folders.extend(ptx.ancestors().skip(1).take(NEAR).map(Path::to_path_buf));
        Sources { folders, files: HashMap::new() }
    }

    /// A line, from 1, without what would disturb a terminal.
    pub(crate) fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        if !self.files.contains_key(file) {
            let read = self.candidates(file).find_map(|path| read(&path));
            self.files.insert(file.to_string(), read);
        }
        let lines = self.files.get(file)?.as_ref()?;
        let text = lines.get((line as usize).checked_sub(1)?)?.as_str();
        Some(text).filter(|text| !text.is_empty())
    }

    fn candidates(&self, file: &str) -> impl Iterator<Item = PathBuf> {
        let named = Path::new(file).to_path_buf();
        let bare = named.file_name().map(PathBuf::from);
        let names: Vec<_> = [Some(named), bare].into_iter().flatten().collect();
        let all = self
            .folders
            .iter()
            .flat_map(move |folder| names.iter().map(|name| folder.join(name)).collect::<Vec<_>>());
        all.collect::<Vec<_>>().into_iter()
    }
}

fn read(path: &Path) -> Option<Vec<String>> {
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(printable).collect())
}

/// The text with tabs as spaces and other disturbing characters escaped.
pub(crate) fn printable(text: &str) -> String {
    let spaced = text.replace('\t', "    ");
    crate::printable::printable(spaced.trim_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_the_folders_and_beside_the_ptx() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("src")).unwrap();
        std::fs::write(path("a.cu"), "first\n\tsecond \x1b[31m\n\n").unwrap();
        std::fs::write(path("src/b.cu"), "only").unwrap();
        let mut sources = Sources::new(&path("x.ptx"), &[path("src")]);
        assert_eq!(sources.line("a.cu", 1), Some("first"));
        assert_eq!(sources.line("a.cu", 2), Some("    second \\u{1b}[31m"));
        for (file, line) in [("a.cu", 3), ("a.cu", 4), ("a.cu", 0), ("c.cu", 1)] {
            assert_eq!(sources.line(file, line), None, "{file}:{line}");
        }
        assert_eq!(sources.line("/where/it/was/b.cu", 1), Some("only"));
        let mut sources = Sources::new(&path("build/ptx/x.ptx"), &[]);
        assert_eq!(sources.line("a.cu", 1), Some("first"));
        assert_eq!(sources.line("b.cu", 1), None);
    }
}
