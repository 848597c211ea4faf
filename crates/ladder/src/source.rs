//! The sources of kernels, function by function.

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../kernels/", $name)))),*]
    };
}

static SOURCES: &[(&str, &str)] = sources![
    "any_op.cu",
    "any_op.cuh",
    "atomic.cu",
    "block_sum.cu",
    "bulk_copy.cu",
    "cg_reduce.cu",
    "cluster.cu",
    "columns.cuh",
    "complete_unroll.cu",
    "faulty.cu",
    "grid_stride.cuh",
    "grid_sync.cu",
    "last_block.cu",
    "launches.cuh",
    "nested.cu",
    "pairing.cu",
    "redux.cu",
    "shared.cu",
    "shuffles.cuh",
    "texts.cu",
    "texts_nested.cu",
    "two_pass.cu",
    "unrolled_warp.cu",
    "unrolling.cu",
    "vector_load.cu",
    "vectors.cuh",
    "warps.cu",
];

/// The functions of the host.
static HOST: (&str, &str) = ("host.rs", include_str!("host.rs"));

/// The functions, each with the comment above it and after the name of its file.
pub(crate) fn of(functions: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut file = "";
    for &(name, function) in functions {
        let text = SOURCES.iter().chain([&HOST]).find(|(n, _)| *n == name);
        let text = text.map_or("", |(_, text)| text);
        let lines: Vec<&str> = text.lines().collect();
        if let Some(range) = function_in(&lines, function) {
            if !out.is_empty() {
                out.push('\n');
            }
            if file != name {
                let folder = if name == HOST.0 { "src" } else { "kernels" };
                out += &format!("// {folder}/{name}\n\n");
                file = name;
            }
            for line in &lines[range] {
                out += line;
                out.push('\n');
            }
        }
    }
    out
}

/// The lines of a function or a struct, from the comment above it.
fn function_in(lines: &[&str], name: &str) -> Option<core::ops::Range<usize>> {
    let defines = |line: &str| {
        let at_margin = line.starts_with("extern") || line.starts_with("__device__");
        at_margin && line.contains(&format!(" {name}("))
            || ["FAULTY", "TEXT"].iter().any(|of| line.starts_with(&format!("{of}({name})")))
            || line.trim_end() == format!("struct {name} {{")
            || line.ends_with(&format!(" {name} {{"))
            || ["<", "("].iter().any(|next| line.starts_with(&format!("fn {name}{next}")))
    };
    let found = lines.iter().position(|line| defines(line))?;
    let above = |line: &&&str| ["//", "template", "#["].iter().any(|begin| line.starts_with(begin));
    let begin = found - lines[..found].iter().rev().take_while(above).count();
    let one_line = lines[found].ends_with('}');
    let closes = |line: &&str| **line == *"}" || **line == *"};";
    let end = if one_line { found } else { found + lines[found..].iter().position(closes)? };
    Some(begin..end + 1)
}

#[cfg(test)]
mod tests {
    use crate::{ALL, Plan};

    #[test]
    fn every_function_that_is_to_be_shown_is_found() {
        for rung in ALL {
            let source = rung.source();
            for (file, function) in rung.kernel.shown {
                let one = super::of(&[(*file, *function)]);
                assert!(one.contains(function), "{}: {function} in {file}", rung.id);
                assert!(one.lines().count() > 2 && one.contains("// "), "{one}");
            }
            let library = matches!(rung.plan, Plan::Library | Plan::Cub);
            let begins = source.starts_with("// kernels/") || source.starts_with("// src/");
            assert!(begins || library, "{}", rung.id);
            let braces = |c| source.matches(c).count();
            assert_eq!(braces('{'), braces('}'), "{source}");
        }
    }
}
