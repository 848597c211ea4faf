//! A bar on a terminal, for work that takes a while; a line elsewhere, for a launch that takes long.

use crate::bar::{self, Line};
use crate::failure::note;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use warpfold_files::stream::Progress;
use warpfold_ptx::machine::{Headway, Watch};

/// Work shorter than this is not worth a bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where no bar can be shown, a launch that takes longer than [`LONG`] says so after this time.
const SILENCE: Duration = Duration::from_secs(10);

/// What is worth being told of.
const LONG: Duration = Duration::from_secs(60);

/// One thing done after the other, with the name of what is being done.
pub(crate) struct Steps {
    count: u64,
    shown: Option<Mutex<Shown>>,
}

/// What was shown of steps.
struct Shown {
    line: Line,
    began: Instant,
    done: Option<u64>,
}

impl Steps {
    /// This many steps, shown on a terminal unless `quiet`.
    pub(crate) fn new(count: usize, quiet: bool) -> Steps {
        let shown = !quiet && std::io::stderr().is_terminal();
        let shown = shown
            .then(|| Mutex::new(Shown { line: Line::new(), began: Instant::now(), done: None }));
        Steps { count: count as u64, shown }
    }

    /// The next step begins, and the one before has ended.
    pub(crate) fn begin(&self, name: &str) {
        let Some(shown) = &self.shown else { return };
        let Shown { line, began, done } =
            &mut *shown.lock().unwrap_or_else(PoisonError::into_inner);
        let done = *done.insert(done.map_or(0, |done| done + 1));
        let count = self.count;
        line.draw(|| {
            let (gauge, elapsed) = (bar::gauge(done, count), bar::time(began.elapsed()));
            format!("{gauge} {done} of {count}  {elapsed}  {name}")
        });
    }
}

/// Bytes read, shown once it is known that it takes a while.
pub(crate) struct Bar {
    enabled: bool,
    started: Instant,
    done: AtomicU64,
    array: Mutex<Array>,
}

/// The array that is being read.
struct Array {
    total: Option<u64>,
    began: Instant,
    line: Line,
}

impl Bar {
    /// A bar that shows on a terminal unless `quiet`.
    pub(crate) fn new(quiet: bool) -> Bar {
        let started = Instant::now();
        Bar {
            enabled: !quiet && std::io::stderr().is_terminal(),
            started,
            done: AtomicU64::new(0),
            array: Mutex::new(Array { total: None, began: started, line: Line::new() }),
        }
    }
}

impl Array {
    fn draw(&mut self, done: u64) {
        let (total, elapsed) = (self.total, self.began.elapsed());
        self.line.draw(|| {
            let rate = bar::bytes(done as f64 / elapsed.as_secs_f64().max(1e-9));
            let read = bar::bytes(done as f64);
            let Some(total) = total else { return format!("{read}  {rate}/s") };
            let gauge = bar::gauge(done, total);
            let percent = u128::from(done.min(total)) * 100 / u128::from(total.max(1));
            let (all, left) = (bar::bytes(total as f64), left(done, total, elapsed));
            format!("{gauge} {percent:>3}%  {read} of {all}  {rate}/s  {left}")
        });
    }
}

/// How long the rest takes at the rate so far.
fn left(done: u64, total: u64, elapsed: Duration) -> String {
    let each = elapsed.as_secs_f64() / done.max(1) as f64;
    let seconds = (total.saturating_sub(done) as f64 * each).ceil();
    Duration::try_from_secs_f64(seconds)
        .map_or_else(|_| String::new(), |time| format!("{} left", bar::time(time)))
}

impl Progress for Bar {
    fn begin(&self, total: Option<u64>) {
        let mut array = self.array.lock().unwrap_or_else(PoisonError::into_inner);
        *array = Array { total, began: Instant::now(), line: Line::new() };
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !self.enabled || self.started.elapsed() < PATIENCE {
            return;
        }
        // A thread that arrives while another one draws skips its turn.
        if let Ok(mut array) = self.array.try_lock() {
            array.draw(done);
        }
    }
}

/// The blocks of a launch, shown once it is known that it takes a while.
pub(crate) struct Blocks {
    terminal: bool,
    started: Instant,
    shown: Mutex<Launched>,
}

/// What was shown of the launch that runs.
struct Launched {
    began: Instant,
    /// Instructions that had been executed when it was last looked at: another launch begins anew.
    instructions: u64,
    line: Line,
    told: bool,
}

impl Launched {
    fn new(began: Instant) -> Launched {
        Launched { began, instructions: 0, line: Line::new(), told: false }
    }
}

impl Blocks {
    /// Shows launches, unless `quiet`.
    pub(crate) fn watch(quiet: bool) -> Option<Watch> {
        if quiet {
            return None;
        }
        let started = Instant::now();
        let shown = Launched::new(started);
        let terminal = std::io::stderr().is_terminal();
        let blocks = Blocks { terminal, started, shown: Mutex::new(shown) };
        Some(Arc::new(move |headway| {
            blocks.show(headway);
            ControlFlow::Continue(())
        }))
    }

    fn show(&self, headway: Headway) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        // A thread that arrives while another one draws skips its turn.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        if headway.instructions < shown.instructions {
            *shown = Launched::new(Instant::now());
        }
        shown.instructions = headway.instructions;
        if self.terminal {
            shown.draw(headway);
        } else if !shown.told
            && let Some(text) = told(headway, shown.began.elapsed())
        {
            shown.told = true;
            note(&text);
        }
    }
}

impl Launched {
    fn draw(&mut self, headway: Headway) {
        let Headway { finished, blocks, .. } = headway;
        let elapsed = self.began.elapsed();
        self.line.draw(|| {
            let (gauge, left) = (bar::gauge(finished, blocks), left(finished, blocks, elapsed));
            format!("{gauge} {finished} of {blocks} blocks  {left}")
        });
    }
}

/// What is said of a launch that has run for this time, if it takes long.
fn told(headway: Headway, elapsed: Duration) -> Option<String> {
    let Headway { finished, blocks, .. } = headway;
    if elapsed < SILENCE || finished == 0 {
        return None;
    }
    let whole = elapsed.as_secs_f64() * blocks as f64 / finished as f64;
    let whole = Duration::try_from_secs_f64(whole).ok().filter(|&time| time >= LONG)?;
    let (elapsed, whole) = (bar::time(elapsed), bar::time(whole));
    Some(format!(
        "{finished} of {blocks} blocks have ended after {elapsed}: all take about {whole}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_that_takes_long_says_how_long() {
        let at = |finished, blocks| Headway { finished, blocks, instructions: 1 };
        let seconds = Duration::from_secs;
        assert_eq!(told(at(5, 1 << 31), seconds(9)), None);
        assert_eq!(told(at(0, 1 << 31), seconds(20)), None);
        assert_eq!(told(at(500, 1000), seconds(10)), None);
        assert_eq!(
            told(at(10, 1 << 31), seconds(10)).as_deref(),
            Some("10 of 2147483648 blocks have ended after 10 seconds: all take about 68 years")
        );
    }
}
