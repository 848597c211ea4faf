//! `learn`: the course.

use super::ladder::attempt;
use crate::args::{CheckArgs, ExerciseArgs, Global, LearnArgs, LearnVerb, ProgressArgs};
use crate::failure::{self, Usage, note};
use crate::output::grid;
use crate::sink::Sink;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use warpfold_ladder::learn::{Checked, LESSONS, Lesson, lesson};

pub(super) fn run(args: &LearnArgs, global: &Global) -> Result<ExitCode> {
    match (&args.verb, args.lesson) {
        (Some(LearnVerb::Exercise(args)), _) => exercise(args)?,
        (Some(LearnVerb::Check(args)), _) => return check(args, global),
        (None, None) => list(&args.progress)?,
        (None, Some(number)) => {
            let lesson = find(number)?;
            match args.predict {
                None => read(lesson)?,
                Some(predicted) => predict(lesson, predicted, &args.progress)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn find(number: u32) -> Result<&'static Lesson, Usage> {
    lesson(number).ok_or_else(|| {
        Usage::new(format!("there is no lesson {number}"))
            .hint(format!("there are 1 to {}: warpfold learn lists them", LESSONS.len()))
    })
}

/// What was done so far.
#[derive(Default, Serialize, Deserialize)]
struct Progress {
    /// Lessons whose number was predicted, right or not.
    #[serde(default)]
    predicted: BTreeSet<u32>,
    /// Lessons whose exercise is solved.
    #[serde(default)]
    solved: BTreeSet<u32>,
}

impl Progress {
    /// Where it is kept.
    fn path(args: &ProgressArgs) -> Option<PathBuf> {
        let absolute =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || absolute("HOME").map(|home| home.join(".local/state"));
        let default =
            || Some(absolute("XDG_STATE_HOME").or_else(home)?.join("warpfold/learn.json"));
        args.progress.clone().or_else(default)
    }

    fn load(path: Option<&Path>) -> Result<Progress> {
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(Progress::default()) };
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        serde_json::from_str(&text).map_err(|error| {
            let usage =
                Usage::new(format!("{}: this is no progress of the course: {error}", name()));
            anyhow!(
                usage.hint("remove the file to begin again, or name another one with --progress")
            )
        })
    }

    /// Keeps it. What cannot be kept is not lost but told.
    fn save(&self, path: Option<&Path>) {
        let saved = || -> Result<()> {
            let path = path.context("neither XDG_STATE_HOME nor HOME is set")?;
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            }
            let mut sink = Sink::open(Some(path))?;
            writeln!(sink, "{}", serde_json::to_string(self)?)?;
            sink.commit()
        };
        if let Err(error) = saved() {
            note(&format!("progress is not kept: {error:#}"));
        }
    }
}

fn list(args: &ProgressArgs) -> Result<()> {
    let progress = Progress::load(Progress::path(args).as_deref())?;
    let done = |all: &BTreeSet<u32>, number| if all.contains(&number) { "yes" } else { "-" };
    let rows = LESSONS.iter().map(|lesson| {
        let number = lesson.number;
        vec![
            number.to_string(),
            lesson.title.into(),
            done(&progress.predicted, number).into(),
            done(&progress.solved, number).into(),
        ]
    });
    let mut sink = Sink::open(None)?;
    let header = ["lesson", "title", "predicted", "solved"];
    writeln!(sink, "{}", grid(&header, rows.collect(), 2))?;
    let next = LESSONS.iter().find(|lesson| !progress.solved.contains(&lesson.number));
    match next {
        Some(lesson) => writeln!(sink, "next: warpfold learn {}", lesson.number)?,
        None => writeln!(sink, "all exercises are solved")?,
    }
    sink.commit()
}

fn read(lesson: &Lesson) -> Result<()> {
    let Lesson { number, title, read, question, .. } = lesson;
    let mut sink = Sink::open(None)?;
    writeln!(sink, "{number}. {title}\n\n{read}\n\nPredict: {question}\n")?;
    writeln!(sink, "  warpfold learn {number} --predict NUMBER")?;
    writeln!(sink, "  warpfold learn exercise {number} -o my.cu")?;
    sink.commit()
}

fn predict(lesson: &Lesson, predicted: u64, args: &ProgressArgs) -> Result<()> {
    let path = Progress::path(args);
    let mut progress = Progress::load(path.as_deref())?;
    let found = lesson.run.count()?;
    let mut sink = Sink::open(None)?;
    writeln!(sink, "$ {}", lesson.run.command())?;
    let verdict = if predicted == found { "as predicted" } else { "not as predicted" };
    writeln!(sink, "found {found}, predicted {predicted}: {verdict}")?;
    writeln!(sink, "{}.", lesson.explain)?;
    sink.commit()?;
    progress.predicted.insert(lesson.number);
    progress.save(path.as_deref());
    Ok(())
}

fn exercise(args: &ExerciseArgs) -> Result<()> {
    let lesson = find(args.lesson)?;
    let mut sink = Sink::open(args.output.as_deref())?;
    write!(sink, "{}", lesson.exercise.source)?;
    sink.commit()
}

fn check(args: &CheckArgs, global: &Global) -> Result<ExitCode> {
    let lesson = find(args.lesson)?;
    let path = Progress::path(&args.progress);
    let mut progress = Progress::load(path.as_deref())?;
    let ptx = attempt::ptx(&args.file, (7, 5), args.fetch_nvrtc)?;
    if !global.quiet {
        note("it is run on the interpreter over every size, with every check");
    }
    let checked = lesson.exercise.check(ptx)?;
    let solved = checked.is_solved();
    let Checked { cases, failure, missed } = checked;
    let mut sink = Sink::open(None)?;
    if let Some(failure) = &failure {
        attempt::wrong(failure, cases, &mut sink)?;
    }
    for missed in missed {
        writeln!(sink, "right, but {missed}")?;
    }
    if solved {
        writeln!(sink, "solved: lesson {}, {cases} cases", lesson.number)?;
        progress.solved.insert(lesson.number);
        progress.save(path.as_deref());
    }
    sink.commit()?;
    Ok(if solved { ExitCode::SUCCESS } else { ExitCode::from(failure::FOUND) })
}
