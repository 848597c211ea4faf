//! The ladder step by step: what changes in the code, what it costs and why, and what came of it.

use super::drawing::Drawing;
use super::groups::Group;
use super::page::{anchor, prose};
use super::record::Measured;
use super::svg::escaped;
use crate::baselines::{Baseline, baseline};
use crate::experiments::number;
use crate::rung::{Rung, Text};
use core::fmt::Write;

/// The texts in full, for the introduction.
const TEXTS: [(Text, &str); 5] = [
    (
        Text::P,
        "John Cheng, Max Grossman, Ty McKercher: Professional CUDA C Programming, Wrox 2014, chapter 3",
    ),
    (Text::F, "a course's series of three kernels, v0, v1 and v2"),
    (Text::H, "Nicholas Wilt: The CUDA Handbook, Addison-Wesley 2013, section 12.2"),
    (
        Text::S,
        "the tutorial block_sum of Stanford's CS193g, Programming Massively Parallel Processors with CUDA, 2010",
    ),
    (Text::W, "an article of the steps3D series on warp shuffles"),
];

/// What the page is about, and whose kernels these are.
pub(super) fn introduction(timed: bool) -> String {
    let how = if timed {
        "Each was compared with the exact sum, and timed by the device's own clock."
    } else {
        "Each was compared with the exact sum on the interpreter, which checks every access and counts instructions. It has no clock: nothing here is a time."
    };
    let mut out = format!(
        "<div class=\"two\"><div><p>A sum of an array is a small program, and it shows everything that decides the speed of a GPU. These kernels climb from the plainest to the rate of memory, one change at a time. {how} What was expected of each change was written down before; the verdict says what came of it.</p></div>\n<div><p>Five texts teach it. Their kernels are written afresh here, right for every size:</p>\n<ul>\n"
    );
    for (text, title) in TEXTS {
        let _ = writeln!(out, "<li><strong>{}</strong> {}</li>", text.name(), escaped(title));
    }
    out + "</ul></div></div>\n"
}

/// The drawing that shows how a rung works.
fn drawing(rung: &Rung) -> Option<&'static Drawing> {
    Drawing::find(match rung.id {
        "neighbored" => "neighbored",
        "neighbored-compact" | "shared-strided" => "neighbored-compact",
        "interleaved" | "block-sum" | "sequential-first-add" => "interleaved",
        "shared-neighbored" => "one-element",
        "shared-first-add" => "first-add",
        "unroll2" | "unroll4" | "unroll8" | "unroll16" => "columns",
        "two-pass-shared" | "vector-load" => "grid-stride",
        "warp-shuffle" => "shuffle-down",
        "warp-allreduce" => "butterfly",
        _ => return None,
    })
}

/// A picture inside the page, which asks for no other file.
fn picture(drawing: &Drawing) -> String {
    let mut data = String::new();
    for byte in drawing.svg().bytes() {
        match byte {
            // A page that needs no network names no address.
            b'a'..=b'g' | b'i'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                data.push(char::from(byte));
            }
            _ => {
                let _ = write!(data, "%{byte:02X}");
            }
        }
    }
    format!(
        "<img class=\"step\" alt=\"{}\" src=\"data:image/svg+xml,{data}\">",
        escaped(drawing.title)
    )
}

/// A line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// The difference of two texts, line by line, by their longest common subsequence.
fn difference<'a>(old: &'a str, new: &'a str) -> Vec<Change<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // How many lines are common from here on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push(Change::Same(new[j]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            out.push(Change::Gone(old[i]));
            i += 1;
        } else {
            out.push(Change::New(new[j]));
            j += 1;
        }
    }
    out
}

/// The code of a rung, with what is new in it and what is gone from its baseline's.
fn code(rung: &Rung, with: Option<&Rung>) -> String {
    let source = rung.source();
    let old = with.map_or_else(String::new, Rung::source);
    let mut out = String::from("<pre><code>");
    let lines = if with.is_some() {
        difference(&old, &source)
    } else {
        source.lines().map(Change::Same).collect()
    };
    for line in lines {
        let _ = match line {
            Change::Same(text) => writeln!(out, "  {}", escaped(text)),
            Change::Gone(text) => writeln!(out, "<del>- {}</del>", escaped(text)),
            Change::New(text) => writeln!(out, "<ins>+ {}</ins>", escaped(text)),
        };
    }
    out + "</code></pre>"
}

/// What a row cost, in the words of a step: times where there are some, else counters.
fn figures(row: &Measured) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, Option<String>)> = vec![
        ("time", row.seconds().map(|s| format!("{} us", number(s * 1e6)))),
        ("bandwidth", row.rate().map(|rate| format!("{} GB/s", number(rate)))),
        ("of the read rate", row.of_ceiling.map(|part| format!("{:.1}%", 100.0 * part))),
        ("step", row.over_baseline.map(|x| format!("{x:.2} times"))),
        ("over neighbored", row.over_neighbored.map(|x| format!("{x:.2} times"))),
        ("registers", row.registers.map(|x| x.to_string())),
        ("occupancy", row.occupancy.map(|x| format!("{:.0}%", 100.0 * x))),
    ];
    let counter = |path: &[&str]| row.counter(path).map(number);
    all.extend([
        ("warp instructions", counter(&["instructions"])),
        ("sectors loaded", counter(&["global_loads", "sectors"])),
        ("divergent branches", counter(&["divergent_branches"])),
        ("conflicts of loads", counter(&["shared_loads", "bank_conflicts"])),
        ("waits at barriers", counter(&["barriers"])),
        ("waits for memory", row.profiled("stall_memory_dependency").map(|x| format!("{x:.0}%"))),
        ("stalls at barriers", row.profiled("stall_sync").map(|x| format!("{x:.0}%"))),
    ]);
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Every step: a drawing, the difference in code, what it costs and why, and the verdict.
pub(super) fn steps(group: &Group<'_>) -> String {
    let mut out = String::from("<div class=\"figures\">\n");
    for row in &group.rows {
        let Some(rung) = crate::find(&row.rung) else { continue };
        let with = baseline(rung.id).and_then(Baseline::with).and_then(crate::find);
        let texts: Vec<_> = rung.texts.iter().map(|text| text.name()).collect();
        let _ = writeln!(
            out,
            "<section class=\"step\" id=\"step-{}\"><h3>{} <small>{} ({})</small></h3>\n<p>{}. {}.</p>",
            anchor(rung.id),
            escaped(rung.id),
            escaped(rung.title),
            escaped(&texts.join(", ")),
            sentence(rung.teaches),
            sentence(rung.change)
        );
        out += &drawing(rung).map_or_else(String::new, picture);
        out += "<dl class=\"figures-of-step\">";
        for (name, value) in figures(row) {
            let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
        }
        let _ = writeln!(
            out,
            "</dl>\n<p class=\"expected\">Expected: {}.</p>\n<p>Verdict: {}.",
            prose(rung.expectation),
            badge(row)
        );
        for text in row.unexpected.iter().flatten() {
            let _ = write!(out, " {}.", prose(text));
        }
        let heading = with.map_or_else(
            || "The code".into(),
            |with| format!("The code, beside <code>{}</code>", escaped(with.id)),
        );
        let _ = writeln!(
            out,
            "</p>\n<details><summary>{heading}</summary>{}</details></section>",
            code(rung, with)
        );
    }
    out + "</div>\n"
}

/// What came of a row's expectation, in colour and in words.
pub(super) fn badge(row: &Measured) -> String {
    let (class, words) = match (row.verdict.as_deref(), &row.skipped) {
        (Some("as expected"), _) => ("good", "as expected".into()),
        (Some(word @ ("faster" | "slower")), _) => ("off", format!("{word} than expected")),
        (Some(words), _) => ("off", words.to_owned()),
        (None, Some(why)) if why.len() < 40 => ("none", why.clone()),
        (None, Some(_)) => ("none", "skipped".into()),
        (None, None) => ("none", "not judged".into()),
    };
    format!("<span class=\"verdict {class}\">{}</span>", escaped(&words))
}

/// A phrase of the registry as a sentence.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first: String = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    prose(&(first + letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_give_both_texts_back() {
        let texts = ["", "a", "a\nb\nc", "a\nx\nc\nd", "b\na", "c\nc\nc"];
        for old in texts {
            for new in texts {
                let all = difference(old, new);
                let pick = |gone: bool| {
                    let line = |change: &Change<'_>| match *change {
                        Change::Same(text) => Some(text.to_owned()),
                        Change::Gone(text) => gone.then(|| text.to_owned()),
                        Change::New(text) => (!gone).then(|| text.to_owned()),
                    };
                    all.iter().filter_map(line).collect::<Vec<_>>().join("\n")
                };
                assert_eq!((pick(true).as_str(), pick(false).as_str()), (old, new), "{all:?}");
            }
        }
        use Change::{Gone, New, Same};
        assert_eq!(difference("a\nb\nc", "a\nx\nc"), [Same("a"), Gone("b"), New("x"), Same("c")]);
    }

    #[test]
    fn code_is_escaped_and_its_changes_are_marked() {
        let rung = crate::find("interleaved").unwrap();
        let html = code(rung, crate::find("neighbored-compact"));
        assert!(
            html.contains("<ins>+ ") && html.contains("<del>- ") && html.contains("tid &lt; half"),
            "{html}"
        );
        assert!(!code(rung, None).contains("<ins>"));
    }

    #[test]
    fn pictures_name_no_address() {
        let picture = picture(Drawing::find("interleaved").unwrap());
        assert!(!picture.contains("http") && picture.contains("%68ttp"), "{}", &picture[..200]);
    }
}
