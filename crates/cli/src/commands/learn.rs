//! `learn`: the course.

mod progress;

use super::ladder::attempt;
use crate::args::{
    CheckArgs, ExerciseArgs, Global, LearnArgs, LearnVerb, ProgressArgs, SolutionArgs,
};
use crate::failure::{self, Usage, note};
use crate::output::grid;
use crate::sink::Sink;
use anyhow::Result;
use progress::{Kept, Progress};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use warpfold::Device;
use warpfold_ladder::learn::{Checked, Figures, LESSONS, Lesson, lesson};
use warpfold_ladder::report::bare;

pub(super) fn run(args: &LearnArgs, global: &Global) -> Result<ExitCode> {
    match (&args.verb, args.lesson) {
        (Some(LearnVerb::Exercise(args)), _) => write(args, find(args.lesson)?.exercise.source)?,
        (Some(LearnVerb::Drawing(args)), _) => write(args, &find(args.lesson)?.drawing.svg())?,
        (Some(LearnVerb::Solution(args)), _) => solution(args)?,
        (Some(LearnVerb::Ranking(args)), _) => ranking(args)?,
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

fn list(args: &ProgressArgs) -> Result<()> {
    let progress = Progress::load(Progress::path(args).as_deref())?;
    let done = |all: &BTreeSet<u32>, number| if all.contains(&number) { "yes" } else { "-" };
    let rows = LESSONS.iter().map(|lesson| {
        let number = lesson.number;
        vec![
            number.to_string(),
            lesson.title.into(),
            match progress.right.contains(&number) {
                true => "right".into(),
                false if progress.predicted.contains(&number) => "tried".into(),
                false => "-".into(),
            },
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
    writeln!(sink, "{number}. {title}\n\n{}\n", bare(read))?;
    writeln!(sink, "Drawn: {} (warpfold learn drawing {number})\n", lesson.drawing.title())?;
    writeln!(sink, "Predict: {question}\n")?;
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
    let right = predicted.abs_diff(found) <= found / 100;
    writeln!(sink, "found {found}, predicted {predicted}: {}", judged(predicted, found))?;
    writeln!(sink, "{}.", lesson.explain)?;
    sink.commit()?;
    // Whoever has seen the number does not predict it any more.
    if progress.predicted.insert(lesson.number) && right {
        progress.right.insert(lesson.number);
    }
    progress.save(path.as_deref());
    Ok(())
}

/// What came of a prediction. Large numbers need not be right to the last digit.
fn judged(predicted: u64, found: u64) -> String {
    match predicted.abs_diff(found) {
        0 => "as predicted".into(),
        off if off <= found / 100 => format!("as predicted, {off} off"),
        off => {
            let side = if predicted > found { "too many" } else { "too few" };
            format!("not as predicted, {off} {side}")
        }
    }
}

/// Writes a text to a file, or to stdout.
fn write(args: &ExerciseArgs, text: &str) -> Result<()> {
    let mut sink = Sink::open(args.output.as_deref())?;
    write!(sink, "{text}")?;
    sink.commit()
}

fn solution(args: &SolutionArgs) -> Result<()> {
    let lesson = find(args.exercise.lesson)?;
    let number = lesson.number;
    let progress = Progress::load(Progress::path(&args.progress).as_deref())?;
    if !progress.solved.contains(&number) {
        let usage = Usage::new(format!("lesson {number} is not solved yet"));
        return Err(usage.hint(format!("warpfold learn check {number} my.cu solves it")).into());
    }
    write(&args.exercise, lesson.exercise.solution)
}

fn ranking(args: &ProgressArgs) -> Result<()> {
    let progress = Progress::load(Progress::path(args).as_deref())?;
    let mut sink = Sink::open(None)?;
    rank(&progress, &mut sink)?;
    sink.commit()
}

/// The attempts at the last exercise, the fastest first.
fn rank(progress: &Progress, out: &mut dyn Write) -> Result<()> {
    let last = LESSONS.len();
    if progress.attempts.is_empty() {
        return Ok(writeln!(out, "no right attempt yet: warpfold learn exercise {last} -o my.cu")?);
    }
    let row = |place: usize, (number, attempt): (usize, &Kept)| {
        vec![
            place.to_string(),
            attempt.file.clone(),
            format!("attempt {number}"),
            attempt.by(),
            attempt.rate().map_or("-".into(), |rate| format!("{rate:.0}")),
            attempt.instructions.to_string(),
        ]
    };
    let rows = (1..).zip(progress.ranked()).map(|(place, ranked)| row(place, ranked)).collect();
    let header = ["rank", "file", "attempt", "by", "GB/s", "instructions"];
    writeln!(out, "{}", grid(&header, rows, 4))?;
    let figures = |rung| Figures::of(rung).map_or_else(String::new, |f| format!("{:.0}", f.gbps));
    Ok(writeln!(
        out,
        "on an H200 neighbored reaches {} GB/s and vector-load {}; what was not timed and lacks nothing has the rate of the rung that counts most alike",
        figures("neighbored"),
        figures("vector-load")
    )?)
}

fn check(args: &CheckArgs, global: &Global) -> Result<ExitCode> {
    let lesson = find(args.lesson)?;
    let path = Progress::path(&args.progress);
    let mut progress = Progress::load(path.as_deref())?;
    let ptx = attempt::ptx(&args.file, (7, 5), args.fetch_nvrtc, global.quiet)?;
    if !global.quiet {
        note("it is run on the interpreter over every size, with every check");
    }
    let checked = lesson.exercise.check(ptx)?;
    let (number, solved) = (lesson.number, checked.is_solved());
    let Checked { cases, failure, missed, attempt: kernel } = checked;
    let mut sink = Sink::open(None)?;
    if let Some(failure) = &failure {
        attempt::wrong(failure, cases, &mut sink)?;
    }
    for missed in &missed {
        writeln!(sink, "right, but {missed}")?;
    }
    if solved {
        writeln!(sink, "solved: lesson {number}, {cases} cases\n{}", bare(&lesson.place()))?;
        writeln!(sink, "a model solution: warpfold learn solution {number}")?;
        progress.solved.insert(number);
    }
    let ranked = failure.is_none() && number as usize == LESSONS.len();
    if ranked {
        let placed = kernel.place()?;
        let timed = attempt::rate(&kernel, Device::Auto)?;
        progress.keep(Kept {
            file: args.file.display().to_string(),
            instructions: placed.counts[0],
            missed: missed.len(),
            beside: placed.nearest.into(),
            timed: timed.map(|timed| (timed.device, timed.gbps)),
        });
        rank(&progress, &mut sink)?;
    }
    if solved || ranked {
        progress.save(path.as_deref());
    }
    sink.commit()?;
    Ok(if solved { ExitCode::SUCCESS } else { ExitCode::from(failure::FOUND) })
}
