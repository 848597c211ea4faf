//! From the words on the command line to arrays.

use crate::descriptors;
use crate::failure::{Usage, note};
use crate::globs;
use anyhow::{Result, bail};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use warpfold_files::stream::Inputs;
use warpfold_files::{Access, Description, Format, OpenOptions, Source, inspect, is_address, open};

/// One array, or two for `dot`, and what to call it.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) inputs: Inputs,
}

/// The files meant by `words`: globs are expanded, nothing is stdin.
///
/// # Errors
/// Nothing to read but a terminal, stdin closed or named twice, a glob that no file
/// matches.
pub(crate) fn files(words: &[OsString]) -> Result<Vec<OsString>> {
    if words.is_empty() {
        if std::io::stdin().is_terminal() {
            return Err(Usage::new("there is nothing to read")
                .hint("name a file, or pipe numbers in: seq 10 | warpfold sum")
                .into());
        }
        descriptors::check_stdin()?;
        return Ok(vec!["-".into()]);
    }
    if words.iter().any(is_stdin) {
        descriptors::check_stdin()?;
    }
    if words.iter().filter(|w| is_stdin(w)).count() > 1 {
        return Err(Usage::new("stdin can be read only once, but is named twice").into());
    }
    if words.iter().any(|w| w.is_empty()) {
        return Err(Usage::new("the name of a file is empty").into());
    }
    let mut files = Vec::new();
    for word in words {
        match globs::expand(word)? {
            Some(matches) => files.extend(matches),
            None => files.push(word.clone()),
        }
    }
    Ok(files)
}

/// Whether the word names standard input, or a column of it.
pub(crate) fn is_stdin(word: &OsString) -> bool {
    word == "-" || word.as_encoded_bytes().starts_with(b"-:")
}

/// The arrays of the files, for operations on one array: column by column,
/// each joined over all files. Columns that were left out because they hold text
/// are named on stderr, unless `quiet`; and first rows that could be read the
/// other way.
///
/// # Errors
/// What opening finds; files with different numbers of columns.
pub(crate) fn arrays(files: &[OsString], options: &OpenOptions, quiet: bool) -> Result<Vec<Named>> {
    let mut options = options.clone();
    let mut columns: Vec<Vec<Source>> = Vec::new();
    for file in files {
        let sources = open(file, &options)?;
        if !quiet {
            note_remark(file, &sources);
        }
        if columns.is_empty() {
            if !quiet {
                note_left_out(file, &sources);
            }
            columns.resize_with(sources.len(), || Vec::with_capacity(files.len()));
            // What was taken of the first file is taken of the others.
            let taken = sources.iter().map(|source| match &source.access {
                Access::Column(column) => column.selector().cloned(),
                _ => None,
            });
            if let Some(taken) = taken.collect() {
                options.columns = taken;
            }
        }
        if columns.len() != sources.len() {
            bail!(
                "{}: {} columns are chosen here, but {} in {}",
                file.display(),
                sources.len(),
                columns.len(),
                files[0].display()
            );
        }
        columns.iter_mut().zip(sources).for_each(|(column, source)| column.push(source));
    }
    let names = labels(columns.iter().filter_map(|c| c.first()).map(|s| s.name.as_str()), files);
    let inputs = columns.into_iter().map(|items| Inputs { items, others: Vec::new() });
    Ok(names.into_iter().zip(inputs).map(|(name, inputs)| Named { name, inputs }).collect())
}

/// Says what a reader may want to know of how a table was read.
fn note_remark(file: &OsString, sources: &[Source]) {
    let remark = sources.iter().find_map(|source| match &source.access {
        Access::Column(column) => column.remark(),
        _ => None,
    });
    if let Some(remark) = remark {
        note(&format!("{}: {remark}", shown(file)));
    }
}

/// Names the columns of a table that were left out, and the only one that was
/// taken, where nobody chose.
fn note_left_out(file: &OsString, sources: &[Source]) {
    let left_out = sources.iter().find_map(|source| match &source.access {
        Access::Column(column) => Some(column.left_out()),
        _ => None,
    });
    let Some(left_out) = left_out.filter(|columns| !columns.is_empty()) else { return };
    let shown = shown(file);
    let taken = match sources {
        [only] => format!(
            "{} is taken; ",
            labels([&*only.name].into_iter(), core::slice::from_ref(file))[0]
        ),
        _ => String::new(),
    };
    let out = left_out.iter().map(|column| (column.name.as_str(), column.why.as_str()));
    note(&format!("{shown}: {taken}left out: {}", listed(out)));
}

/// A file's name, for a note.
fn shown(file: &OsString) -> String {
    if file == "-" { "stdin".into() } else { file.display().to_string() }
}

/// Columns with what there is to say about them; of many the first ones.
fn listed<'a>(columns: impl ExactSizeIterator<Item = (&'a str, &'a str)>) -> String {
    const SHOWN: usize = 5;
    let more = columns.len().saturating_sub(SHOWN);
    let shown = columns.take(SHOWN).map(|(name, why)| format!("{name} ({why})"));
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if more > 0 {
        list += &format!(" and {more} more");
    }
    list
}

/// The pairs of arrays, for `dot`: two files, or two columns of one.
///
/// # Errors
/// What opening finds; one array, or three.
pub(crate) fn pairs(files: &[OsString], options: &OpenOptions, quiet: bool) -> Result<Vec<Named>> {
    let usage = |what: String| {
        Usage::new(what).hint("dot takes two files, or two columns of one: -c NAME,NAME FILE")
    };
    let (left, right) = match files {
        [file] => {
            let mut sources = open(file, options)?;
            if !quiet {
                note_remark(file, &sources);
            }
            if sources.len() != 2 {
                return Err(usage(format!(
                    "{}: dot takes two arrays, not {}",
                    file.display(),
                    sources.len()
                ))
                .into());
            }
            let right = sources.split_off(1);
            (sources, right)
        }
        [left_file, right_file] => {
            let (left, right) = (open(left_file, options)?, open(right_file, options)?);
            if !quiet {
                note_remark(left_file, &left);
                note_remark(right_file, &right);
            }
            if left.len() != right.len() {
                let what = format!("{} columns cannot be paired with {}", left.len(), right.len());
                return Err(usage(what).into());
            }
            (left, right)
        }
        _ => return Err(usage(format!("dot takes two arrays, not {}", files.len())).into()),
    };
    let names = labels(left.iter().map(|s| s.name.as_str()), &files[..1]);
    let pairs =
        left.into_iter().zip(right).map(|(l, r)| Inputs { items: vec![l], others: vec![r] });
    Ok(names.into_iter().zip(pairs).map(|(name, inputs)| Named { name, inputs }).collect())
}

/// What to call columns: their names without the file's, which is the same for
/// all.
fn labels<'a>(names: impl Iterator<Item = &'a str>, files: &[OsString]) -> Vec<String> {
    // As the names of sources: escaped where they are not Unicode.
    let file = files.first().map_or_else(Default::default, |f| f.to_string_lossy());
    let short = |name: &'a str| {
        let column = name.strip_prefix(&*file).and_then(|rest| rest.strip_prefix(':'));
        column.or_else(|| name.strip_prefix("stdin:")).unwrap_or(name).to_string()
    };
    names.map(short).collect()
}

/// The arrays of the files, for commands that take every column with numbers
/// where none is chosen.
///
/// # Errors
/// As for [`arrays`].
pub(crate) fn all_arrays(
    files: &[OsString],
    options: &OpenOptions,
    quiet: bool,
) -> Result<Vec<Named>> {
    let options = &OpenOptions { all_columns: true, ..options.clone() };
    let first = &files[0];
    let path = Path::new(first);
    // Looking at a pipe would consume its data.
    if !options.columns.is_empty()
        || first == "-"
        || !(path.is_file() || path.is_dir() || is_address(first))
    {
        return arrays(files, options, quiet);
    }
    // The columns of text are found when it is opened.
    let all = inspect(first, options)?;
    let text = |d: &Description| matches!(d.format, Format::Csv | Format::Tsv | Format::Text);
    let (readable, others): (Vec<_>, Vec<_>) = all.into_iter().partition(Description::is_plain);
    if readable.iter().chain(&others).any(text) || readable.len() < 2 {
        return arrays(files, options, quiet);
    }
    let columns = labels(readable.iter().map(|d| d.name.as_str()), &files[..1]);
    let distinct: HashSet<&String> = columns.iter().collect();
    if distinct.len() < columns.len() {
        // Not to be chosen by name: let the opening say what there is.
        return arrays(files, options, quiet);
    }
    if !quiet && !others.is_empty() {
        let names = labels(others.iter().map(|d| d.name.as_str()), &files[..1]);
        let whys =
            others.iter().map(|d| d.why_not.as_deref().unwrap_or("it has a unit; name it with -c"));
        let first = first.display();
        note(&format!("{first}: left out: {}", listed(names.iter().map(String::as_str).zip(whys))));
    }
    let columns = columns.into_iter().map(warpfold_files::ColumnSelector::Name).collect();
    arrays(files, &OpenOptions { columns, ..options.clone() }, quiet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_called_by_their_own_names() {
        let files = ["d/t.csv".into()];
        let names = labels(["d/t.csv:a", "d/t.csv:b:c"].into_iter(), &files);
        assert_eq!(names, ["a", "b:c"]);
        assert_eq!(labels(["d/t.csv"].into_iter(), &files), ["d/t.csv"]);
    }

    #[test]
    fn stdin_is_read_once() {
        let words = ["-".into(), "-:x".into()];
        assert!(files(&words).unwrap_err().is::<Usage>());
    }
}
