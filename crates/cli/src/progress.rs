//! A bar on a terminal, for work that takes a while.

use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use warpfold_files::stream::Progress;

/// Work shorter than this is not worth a bar.
const PATIENCE: Duration = Duration::from_millis(500);

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
    let seconds = bytes as f64 / speed(state).max(1.0);
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
