//! Runs each test of a suite under each schedule.

use super::document::{Launch, Suite, Suppression, Test};
use super::expect;
use crate::progress::Steps;
use crate::ptx::buffers::Buffers;
use crate::ptx::file;
use crate::ptx::{report, symbols};
use anyhow::{Context, Result};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use warpfold_ptx::device::{Device, ModuleId, Setup};
use warpfold_ptx::finding;
use warpfold_ptx::ir::Module;
use warpfold_ptx::machine::{Options, Schedule};
use warpfold_ptx::name::demangled;
use warpfold_threads::{Pieces, Threads};

/// What a suite gave.
#[derive(Serialize)]
pub(crate) struct Outcome {
    pub(crate) passed: bool,
    pub(crate) cases: Vec<Case>,
    /// Suppressions that suppressed nothing.
    pub(crate) unused_suppressions: Vec<String>,
}

/// A test under one schedule.
#[derive(Serialize)]
pub(crate) struct Case {
    pub(crate) test: String,
    pub(crate) schedule: &'static str,
    pub(crate) seed: Option<u64>,
    pub(crate) seconds: f64,
    pub(crate) findings: Vec<Finding>,
    /// What else went wrong: outputs, launches that did not end.
    pub(crate) failures: Vec<String>,
    /// Constants that the kernels use and nothing sets.
    pub(crate) unset: Vec<String>,
    /// Accesses that the race checker had to forget.
    pub(crate) accesses_forgotten: u64,
    #[serde(skip)]
    used: BTreeSet<usize>,
}

/// A fault that a check found.
#[derive(Clone, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: &'static str,
    pub(crate) title: &'static str,
    pub(crate) kernel: String,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
    /// The source, or the PTX where it does not name one.
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) count: u64,
    pub(crate) remark: bool,
    /// Why it is accepted.
    pub(crate) suppressed: Option<String>,
}

impl Case {
    pub(crate) fn passed(&self) -> bool {
        self.failures.is_empty() && self.faults().next().is_none()
    }

    /// The findings that make a test fail.
    pub(crate) fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| !f.remark && f.suppressed.is_none())
    }

    /// The schedule and its seed.
    pub(crate) fn schedule(&self) -> String {
        match self.seed {
            Some(seed) => format!("{} with seed {seed}", self.schedule),
            None => self.schedule.into(),
        }
    }
}

/// Runs a suite, its cases beside each other, with a bar on a terminal unless `quiet`.
///
/// # Errors
/// Files that cannot be read, kernels that there are not, invalid launches: what is no answer of a test.
pub(crate) fn run(suite: &Suite, quiet: bool) -> Result<Outcome> {
    let modules = modules(suite)?;
    let cases: Vec<_> = suite
        .tests
        .iter()
        .flat_map(|test| suite.schedules.iter().map(move |&schedule| (test, schedule)))
        .collect();
    let share = Pieces::new(cases.len());
    let steps = Steps::new(cases.len(), quiet);
    let stopped = Mutex::new(false);
    let halves = Threads::All.run(share.count(), || {
        let mut done = Vec::new();
        while let Some(i) = share.take() {
            if stopped.lock().is_ok_and(|s| *s) {
                break;
            }
            let (test, schedule) = cases[i];
            steps.begin(&test.name);
            let case = case(suite, test, schedule, &modules)
                .with_context(|| format!("test {:?}", test.name));
            if let (Err(_), Ok(mut stopped)) = (&case, stopped.lock()) {
                *stopped = true;
            }
            done.push((i, case));
        }
        done
    });
    drop(steps);
    let mut done: Vec<_> = halves.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(i, _)| *i);
    let cases = done.into_iter().map(|(_, case)| case).collect::<Result<Vec<_>>>()?;
    let used: BTreeSet<_> = cases.iter().flat_map(|c| &c.used).copied().collect();
    let known = suite.suppressions.iter().chain(suite.tests.iter().flat_map(|t| &t.suppressions));
    let unused = known.enumerate().filter(|(i, _)| !used.contains(i));
    Ok(Outcome {
        passed: cases.iter().all(Case::passed),
        unused_suppressions: unused.map(|(_, s)| described(s)).collect(),
        cases,
    })
}

fn described(known: &Suppression) -> String {
    let Suppression { kind, kernel, at, reason } = known;
    let kernel = kernel.as_ref().map(|k| format!(" in {k}")).unwrap_or_default();
    let at = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    format!("{kind}{kernel}{at} ({reason})")
}

/// All modules of a suite, each read once.
fn modules(suite: &Suite) -> Result<BTreeMap<&Path, Module>> {
    let mut all = BTreeMap::new();
    for launch in suite.tests.iter().flat_map(|t| &t.launches) {
        if !all.contains_key(&*launch.ptx) {
            let name = launch.ptx.display().to_string();
            let (text, _) = file::text(&name)?;
            let module = warpfold_ptx::parse::parse(&text).with_context(|| name)?;
            all.insert(&*launch.ptx, module);
        }
    }
    Ok(all)
}

fn case(
    suite: &Suite,
    test: &Test,
    schedule: Schedule,
    modules: &BTreeMap<&Path, Module>,
) -> Result<Case> {
    let start = Instant::now();
    let options =
        Options { checks: suite.checks, schedule, instructions: suite.limit, ..Options::default() };
    let (name, seed) = report::schedule(schedule);
    let mut case = Case {
        test: test.name.clone(),
        schedule: name,
        seed,
        seconds: 0.0,
        findings: Vec::new(),
        failures: Vec::new(),
        unset: Vec::new(),
        accesses_forgotten: 0,
        used: BTreeSet::new(),
    };
    let mut device = Device::new(Setup { options, ..Setup::default() });
    let mut loaded: BTreeMap<&Path, ModuleId> = BTreeMap::new();
    for launch in &test.launches {
        if !loaded.contains_key(&*launch.ptx) {
            let module = modules.get(&*launch.ptx).context("a module was not read")?.clone();
            loaded.insert(&launch.ptx, device.load_module(module)?);
        }
    }
    for symbol in &test.symbols {
        set_where_it_is(&mut device, &loaded, symbol)?;
    }
    let mut buffers = Buffers::none();
    for launch in &test.launches {
        let module = loaded[&*launch.ptx];
        let kernel = device.kernel(module, &launch.kernel)?;
        device.opt_in_to_shared(kernel)?;
        buffers.add(&mut device, &launch.args)?;
        case.unset.extend(symbols::unset(&device, module, &launch.kernel, &test.symbols)?);
        let reports = device.run_to_end(kernel, &launch.shape, &buffers.arguments())?;
        let mut halted = false;
        for report in &reports {
            case.accesses_forgotten += report.outcome.forgotten;
            let found = report.outcome.findings.all();
            case.findings.extend(found.iter().map(|f| told(f, launch, &buffers)));
            if let Some(halt) = &report.outcome.halt {
                case.failures.push(format!(
                    "kernel `{}`: {halt}\nhint: {}",
                    demangled(&report.kernel),
                    halt.hint()
                ));
                halted = true;
            }
        }
        if halted {
            break;
        }
    }
    case.unset.sort();
    case.unset.dedup();
    suppress(suite, test, &mut case);
    if case.failures.is_empty() {
        for (name, expected) in &test.expected {
            for shown in buffers.show(&device, std::slice::from_ref(name))? {
                case.failures.extend(expect::compare(&shown, expected)?);
            }
        }
    }
    case.seconds = start.elapsed().as_secs_f64();
    Ok(case)
}

/// A symbol belongs to one of the test's modules.
fn set_where_it_is(
    device: &mut Device,
    loaded: &BTreeMap<&Path, ModuleId>,
    symbol: &crate::ptx::argument::Buffer,
) -> Result<()> {
    let has = |id: &&ModuleId| {
        device
            .module(**id)
            .is_ok_and(|m| m.variables.iter().any(|v| v.name == symbol.name && v.owner.is_none()))
    };
    let all: Vec<ModuleId> = loaded.values().filter(has).copied().collect();
    let ids = if all.is_empty() { loaded.values().copied().take(1).collect() } else { all };
    ids.into_iter().try_for_each(|id| symbols::set(device, id, std::slice::from_ref(symbol)))
}

fn told(found: &finding::Finding, launch: &Launch, buffers: &Buffers) -> Finding {
    let fault = &found.fault;
    let mut message = found.to_string();
    if let Some(access) = fault.access.filter(|a| a.space == finding::Space::Global)
        && let Some(element) = buffers.element_at(access.address)
    {
        message = message.replacen(&format!("{:#x}", access.address), &element, 1);
    }
    let (file, line) = match (&found.file, fault.line.source) {
        (Some(file), Some((_, line))) => (file.to_string(), line),
        _ => (launch.ptx.display().to_string(), fault.line.ptx),
    };
    Finding {
        kind: fault.kind.name(),
        title: fault.kind.title(),
        kernel: demangled(&found.kernel).into_owned(),
        message,
        hint: fault.hint(),
        file,
        line,
        count: found.count,
        remark: fault.kind.is_remark(),
        suppressed: None,
    }
}

/// Marks the findings that are known and accepted.
fn suppress(suite: &Suite, test: &Test, case: &mut Case) {
    let used = RefCell::new(BTreeSet::new());
    let before: usize = suite.suppressions.len()
        + suite
            .tests
            .iter()
            .take_while(|t| !std::ptr::eq(*t, test))
            .map(|t| t.suppressions.len())
            .sum::<usize>();
    let known: Vec<_> =
        suite.suppressions.iter().enumerate().chain((before..).zip(&test.suppressions)).collect();
    for finding in &mut case.findings {
        let fits = |(_, s): &&(usize, &Suppression)| {
            s.kind == finding.kind
                && s.kernel.as_ref().is_none_or(|k| demangled(k) == finding.kernel)
                && s.at.as_ref().is_none_or(|at| is_at(finding, at))
        };
        if let Some((i, known)) = known.iter().find(fits) {
            used.borrow_mut().insert(*i);
            finding.suppressed = Some(known.reason.clone());
        }
    }
    case.used = used.into_inner();
}

/// Whether a finding is at `file:line`, the file named by its last parts.
fn is_at(finding: &Finding, at: &str) -> bool {
    let Some((file, line)) = at.rsplit_once(':') else { return false };
    line.parse() == Ok(finding.line) && Path::new(&finding.file).ends_with(file)
}
