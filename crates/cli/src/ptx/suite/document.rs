//! A suite as it is written: TOML, with the words of the command line for arguments and contents.

use crate::args::bytes;
use crate::failure::Usage;
use crate::ptx::argument::{self, Argument, Buffer};
use crate::ptx::content::Content;
use crate::ptx::symbols;
use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use warpfold_ptx::machine::{Checks, Schedule, Shape};

/// Warp instructions of a launch, unless the suite says otherwise.
const LIMIT: u64 = 4_000_000_000;

/// Seeds of a schedule that has any, unless the suite says otherwise.
const SEEDS: u64 = 3;

/// What a file says, read and checked.
pub(crate) struct Suite {
    /// The file.
    pub(crate) name: String,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) checks: Checks,
    pub(crate) limit: u64,
    pub(crate) suppressions: Vec<Suppression>,
    pub(crate) tests: Vec<Test>,
}

/// A sequence of launches and what buffers hold after it.
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) symbols: Vec<Buffer>,
    pub(crate) launches: Vec<Launch>,
    pub(crate) expected: Vec<(String, Expected)>,
    pub(crate) suppressions: Vec<Suppression>,
}

/// One launch.
pub(crate) struct Launch {
    pub(crate) ptx: PathBuf,
    pub(crate) kernel: String,
    pub(crate) shape: Shape,
    pub(crate) args: Vec<Argument>,
}

/// What a buffer must hold.
pub(crate) struct Expected {
    pub(crate) content: Wanted,
    /// Relative and absolute; without either the bits must agree.
    pub(crate) rtol: Option<f64>,
    pub(crate) atol: Option<f64>,
}

/// Where the wanted elements are.
pub(crate) enum Wanted {
    File(PathBuf),
    /// In the words of contents, for the buffer's type.
    Values(String),
}

/// A finding that is known and accepted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suppression {
    pub(crate) kind: String,
    pub(crate) kernel: Option<String>,
    /// `file.cu:18`.
    pub(crate) at: Option<String>,
    pub(crate) reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteTable {
    ptx: Option<PathBuf>,
    schedules: Option<Vec<String>>,
    seeds: Option<Seeds>,
    checks: Option<String>,
    limit: Option<u64>,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    suppress: Vec<Suppression>,
    #[serde(default)]
    test: Vec<TestTable>,
}

/// How many, from 0 on, or which.
#[derive(Deserialize)]
#[serde(untagged, expecting = "seeds are a number of them, or a list")]
enum Seeds {
    Count(u64),
    These(Vec<u64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestTable {
    name: String,
    ptx: Option<PathBuf>,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    launch: Vec<LaunchTable>,
    #[serde(default)]
    expect: BTreeMap<String, ExpectTable>,
    #[serde(default)]
    suppress: Vec<Suppression>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LaunchTable {
    ptx: Option<PathBuf>,
    kernel: String,
    grid: Dims,
    block: Dims,
    cluster: Option<Dims>,
    shared: Option<Size>,
    #[serde(default)]
    cooperative: bool,
    #[serde(default)]
    args: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "lengths are a number, or a list of two or three")]
enum Dims {
    One(u32),
    Two([u32; 2]),
    Three([u32; 3]),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a size is a number of bytes, or a word")]
enum Size {
    Bytes(u32),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectTable {
    file: Option<PathBuf>,
    values: Option<String>,
    rtol: Option<f64>,
    atol: Option<f64>,
}

impl Dims {
    fn all(self) -> [u32; 3] {
        match self {
            Dims::One(x) => [x, 1, 1],
            Dims::Two([x, y]) => [x, y, 1],
            Dims::Three(all) => all,
        }
    }
}

impl Suite {
    /// Reads a suite; files that it names are relative to it.
    ///
    /// # Errors
    /// A file that cannot be read, is no such TOML, or contradicts itself.
    pub(crate) fn read(path: &Path) -> Result<Suite> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Suite::parse(&name, &text, folder).map_err(|why| {
            let what = format!("{name}: {}", why.to_string().trim_end());
            Usage::new(what).hint("`warpfold ptx test --help` shows a suite").into()
        })
    }

    fn parse(name: &str, text: &str, folder: &Path) -> Result<Suite> {
        // In one line: the error itself draws the place in several.
        let place = |error: toml::de::Error| {
            let before = error.span().and_then(|span| text.as_bytes().get(..span.start));
            let line = before.unwrap_or(&[]).iter().filter(|&&byte| byte == b'\n').count();
            let shown = text.lines().nth(line).unwrap_or_default().trim();
            anyhow!("line {}, {shown:?}: {}", line + 1, error.message())
        };
        let table: SuiteTable = toml::from_str(text).map_err(place)?;
        if table.test.is_empty() {
            return Err(anyhow!("there is no [[test]]"));
        }
        let seeds = match &table.seeds {
            None => (0..SEEDS).collect(),
            Some(Seeds::Count(n)) => (0..*n).collect(),
            Some(Seeds::These(all)) => all.clone(),
        };
        let names = table.schedules.as_deref();
        let schedules = match names {
            None => self::schedules(&["lockstep", "random", "adversarial"], &seeds)?,
            Some(names) => self::schedules(names, &seeds)?,
        };
        if schedules.is_empty() {
            return Err(anyhow!("no schedule is left: name one, and at least one seed"));
        }
        let wanted = table.checks.as_deref().unwrap_or("all");
        let checks = wanted.parse::<Checks>().map_err(|why| anyhow!("checks: {why}"))?;
        for known in table.suppress.iter().chain(table.test.iter().flat_map(|t| &t.suppress)) {
            if known.reason.trim().is_empty() {
                return Err(anyhow!("a suppression of {} has no reason", known.kind));
            }
        }
        let mut names = BTreeSet::new();
        let mut tests = Vec::new();
        for test in &table.test {
            if !names.insert(&test.name) {
                return Err(anyhow!("two tests are called {:?}", test.name));
            }
            let read = Test::read(&table, test, folder);
            tests.push(read.map_err(|why| anyhow!("test {:?}: {why}", test.name))?);
        }
        Ok(Suite {
            name: name.into(),
            schedules,
            checks,
            limit: table.limit.unwrap_or(LIMIT),
            suppressions: table.suppress,
            tests,
        })
    }
}

fn schedules<S: AsRef<str>>(names: &[S], seeds: &[u64]) -> Result<Vec<Schedule>> {
    let mut all = Vec::new();
    for name in names {
        match name.as_ref() {
            "lockstep" => all.push(Schedule::Lockstep),
            "random" => all.extend(seeds.iter().map(|&seed| Schedule::Random { seed })),
            "adversarial" => all.extend(seeds.iter().map(|&seed| Schedule::Adversarial { seed })),
            other => {
                return Err(anyhow!(
                    "schedule {other:?} is unknown; expected lockstep, random, adversarial"
                ));
            }
        }
    }
    Ok(all)
}

impl Test {
    fn read(suite: &SuiteTable, table: &TestTable, folder: &Path) -> Result<Test> {
        if table.launch.is_empty() {
            return Err(anyhow!("there is no [[test.launch]]"));
        }
        let set = suite.set.iter().chain(&table.set);
        let symbols = set.map(|word| {
            let mut symbol = symbols::parse(word).map_err(|why| anyhow!("set {word:?}: {why}"))?;
            symbol.content.found_in(folder);
            Ok(symbol)
        });
        let symbols = symbols.collect::<Result<Vec<_>>>()?;
        let mut buffers = BTreeSet::new();
        let mut launches = Vec::new();
        for launch in &table.launch {
            let ptx = launch.ptx.as_ref().or(table.ptx.as_ref()).or(suite.ptx.as_ref());
            let ptx = ptx.ok_or_else(|| anyhow!("no ptx is named"))?;
            let shared = match &launch.shared {
                None => 0,
                Some(Size::Bytes(n)) => *n,
                Some(Size::Word(word)) => bytes(word).map_err(|why| anyhow!("shared: {why}"))?,
            };
            let mut args = Vec::new();
            for word in &launch.args {
                let mut arg =
                    argument::parse(word).map_err(|why| anyhow!("argument {word:?}: {why}"))?;
                for part in arg.parts_mut() {
                    match part {
                        Argument::Buffer(buffer) => {
                            buffer.content.found_in(folder);
                            if !buffers.insert(buffer.name.clone()) {
                                return Err(anyhow!(
                                    "two buffers are called {0}; {0} alone is the first one again",
                                    buffer.name
                                ));
                            }
                        }
                        Argument::Again { name, .. } if !buffers.contains(name) => {
                            return Err(anyhow!("there is no buffer {name} yet"));
                        }
                        _ => {}
                    }
                }
                args.push(arg);
            }
            launches.push(Launch {
                ptx: folder.join(ptx),
                kernel: launch.kernel.clone(),
                shape: Shape {
                    grid: launch.grid.all(),
                    block: launch.block.all(),
                    cluster: launch.cluster.map(Dims::all),
                    shared,
                    cooperative: launch.cooperative,
                },
                args,
            });
        }
        let mut expected = Vec::new();
        for (name, table) in &table.expect {
            if !buffers.contains(name) {
                return Err(anyhow!("expect: there is no buffer {name}"));
            }
            let wanted = Expected::read(table, folder);
            expected.push((name.clone(), wanted.map_err(|why| anyhow!("expect {name}: {why}"))?));
        }
        Ok(Test {
            name: table.name.clone(),
            symbols,
            launches,
            expected,
            suppressions: table.suppress.clone(),
        })
    }
}

impl Expected {
    fn read(table: &ExpectTable, folder: &Path) -> Result<Expected> {
        let content = match (&table.file, &table.values) {
            (Some(file), None) => Wanted::File(folder.join(file)),
            (None, Some(words)) => Wanted::Values(words.clone()),
            _ => return Err(anyhow!("file or values, one of them")),
        };
        let is_sound = |t: &Option<f64>| t.is_none_or(|t| t.is_finite() && t >= 0.0);
        if !is_sound(&table.rtol) || !is_sound(&table.atol) {
            return Err(anyhow!("a tolerance is a number from 0 on"));
        }
        Ok(Expected { content, rtol: table.rtol, atol: table.atol })
    }
}

impl Content {
    /// A file is relative to the folder of the suite.
    fn found_in(&mut self, folder: &Path) {
        if let Content::File(file) = self {
            *file = folder.join(&*file).to_string_lossy().into_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        "[[test.launch]]\nkernel = \"k\"\ngrid = 1\nblock = [32, 2]\nargs = [\"out:f32:4\"]\n";

    fn read(text: &str) -> Result<Suite, String> {
        Suite::parse("s.toml", text, Path::new("dir")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_suite_has_defaults() {
        let text = format!("ptx = \"a.ptx\"\n[[test]]\nname = \"t\"\n{ONE}");
        let suite = read(&text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(suite.schedules.len(), 1 + 2 * SEEDS as usize);
        assert_eq!((suite.checks, suite.limit), (Checks::ALL, LIMIT));
        let launch = &suite.tests[0].launches[0];
        assert_eq!(launch.ptx, Path::new("dir/a.ptx"));
        assert_eq!(launch.shape.block, [32, 2, 1]);
    }

    #[test]
    fn what_contradicts_itself_is_told() {
        let test = format!("ptx = \"a.ptx\"\n[[test]]\nname = \"t\"\n{ONE}");
        for (text, part) in [
            ("".to_owned(), "no [[test]]"),
            (
                "nonsense = 1\n".to_owned() + &test,
                "line 1, \"nonsense = 1\": unknown field `nonsense`",
            ),
            ("schedules = [\"best\"]\n".to_owned() + &test, "\"best\" is unknown"),
            ("seeds = 0\nschedules = [\"random\"]\n".to_owned() + &test, "no schedule"),
            ("checks = \"most\"\n".to_owned() + &test, "checks"),
            (test.replace("ptx = \"a.ptx\"", ""), "no ptx is named"),
            (format!("{test}[test.expect.in]\nvalues = \"1\"\n"), "no buffer in"),
            (format!("{test}[test.expect.out]\nrtol = 1.0\n"), "file or values"),
            (format!("{test}[test.expect.out]\nvalues = \"1\"\nrtol = -1.0\n"), "tolerance"),
            (format!("{test}[[suppress]]\nkind = \"race\"\nreason = \" \"\n"), "no reason"),
            (format!("{test}[[test]]\nname = \"t\"\n{ONE}"), "two tests"),
            (test.replace("out:f32:4", "out"), "no buffer out"),
            (test.replace("out:f32:4", "out:f32"), "how many"),
            (test.replace("kernel = \"k\"", ""), "kernel"),
            (test.replace("[32, 2]", "\"32\""), "lengths are a number, or a list"),
            (test.clone() + "x = = 1\n", "line 9, \"x = = 1\": "),
        ] {
            let why = read(&text).err().unwrap_or_default();
            assert!(why.contains(part), "{part:?} is not in {why:?} for\n{text}");
            assert!(!why.contains('\n'), "{why:?} is one line");
        }
    }
}
