//! A bar on a terminal, for work that takes a while; a line elsewhere, for a launch that takes long.

use crate::failure::note;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
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
pub(crate) struct Steps(Option<ProgressBar>);

impl Steps {
    /// This many steps, shown on a terminal unless `quiet`.
    pub(crate) fn new(count: usize, quiet: bool) -> Steps {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = || {
            let template = "{bar:30} {pos} of {len}  {elapsed}  {msg}";
            let style = ProgressStyle::with_template(template);
            ProgressBar::new(count as u64).with_style(style.unwrap_or(ProgressStyle::default_bar()))
        };
        Steps(shown.then(bar))
    }

    /// The next step begins, and the one before has ended.
    pub(crate) fn begin(&self, name: &str) {
        if let Some(bar) = &self.0 {
            if !bar.message().is_empty() {
                bar.inc(1);
            }
            bar.set_message(name.to_owned());
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
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
    bar: Option<ProgressBar>,
}

impl Bar {
    /// A bar that shows on a terminal unless `quiet`.
    pub(crate) fn new(quiet: bool) -> Bar {
        let started = Instant::now();
        Bar {
            enabled: !quiet && std::io::stderr().is_terminal(),
            started,
            done: AtomicU64::new(0),
            array: Mutex::new(Array { total: None, began: started, bar: None }),
        }
    }
}

impl Array {
    fn bar(&self) -> ProgressBar {
        let (bar, template) = match self.total {
            Some(total) => (
                ProgressBar::new(total),
                "{bar:30} {percent:>3}%  {bytes} of {total_bytes}  {rate}  {left}",
            ),
            None => (ProgressBar::no_length(), "{spinner} {bytes}  {rate}  {elapsed}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        // The bar's own estimates would begin when it is first shown.
        let style = style.with_key("rate", rate).with_key("left", left);
        bar.with_elapsed(self.began.elapsed()).with_style(style)
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn speed(state: &ProgressState) -> f64 {
    state.pos() as f64 / state.elapsed().as_secs_f64().max(1e-9)
}

fn rate(state: &ProgressState, out: &mut dyn Write) {
    let _ = write!(out, "{}/s", HumanBytes(speed(state) as u64));
}

fn left(state: &ProgressState, out: &mut dyn Write) {
    let bytes = state.len().unwrap_or(0).saturating_sub(state.pos());
    let seconds = bytes as f64 / speed(state);
    if let Ok(time) = Duration::try_from_secs_f64(seconds.ceil()) {
        let _ = write!(out, "{} left", HumanDuration(time));
    }
}

impl Progress for Bar {
    fn begin(&self, total: Option<u64>) {
        let mut array = self.array.lock().unwrap_or_else(PoisonError::into_inner);
        array.clear();
        *array = Array { total, began: Instant::now(), bar: None };
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !self.enabled || self.started.elapsed() < PATIENCE {
            return;
        }
        // A thread that arrives while another one draws skips its turn.
        if let Ok(mut array) = self.array.try_lock() {
            if array.bar.is_none() {
                array.bar = Some(array.bar());
            }
            if let Some(bar) = &array.bar {
                bar.set_position(done);
            }
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.array.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
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
    bar: Option<ProgressBar>,
    told: bool,
}

impl Blocks {
    /// Shows launches, unless `quiet`.
    pub(crate) fn watch(quiet: bool) -> Option<Watch> {
        if quiet {
            return None;
        }
        let started = Instant::now();
        let shown = Launched { began: started, instructions: 0, bar: None, told: false };
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
            *shown = Launched { began: Instant::now(), instructions: 0, bar: None, told: false };
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
        let bar = self.bar.get_or_insert_with(|| {
            let template = "{bar:30} {pos} of {len} blocks  {left}";
            let style =
                ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
            let bar = ProgressBar::new(headway.blocks).with_style(style.with_key("left", left));
            bar.with_elapsed(self.began.elapsed())
        });
        bar.set_position(headway.finished);
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
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
    let (elapsed, whole) = (HumanDuration(elapsed), HumanDuration(whole));
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
