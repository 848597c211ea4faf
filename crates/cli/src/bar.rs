//! A line of a terminal that is drawn over itself, and what stands in it.

use std::io::Write;
use std::time::{Duration, Instant};

/// Time between two drawings.
const FRAME: Duration = Duration::from_millis(60);

/// The most characters of the line: a longer one would be two.
const MOST: usize = 79;

/// A line of stderr, which is a terminal; it is empty again in the end.
pub(crate) struct Line {
    drawn: Option<Instant>,
}

impl Line {
    pub(crate) fn new() -> Line {
        Line { drawn: None }
    }

    /// Draws the text, if the last one has been seen.
    pub(crate) fn draw(&mut self, text: impl FnOnce() -> String) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
            return;
        }
        self.drawn = Some(Instant::now());
        let text: String = text().chars().take(MOST).collect();
        write(&format!("\r\x1b[2K{text}"));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            write("\r\x1b[2K");
        }
    }
}

/// What the terminal does not take is not worth an error.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// How much is done, in thirty characters.
pub(crate) fn gauge(done: u64, total: u64) -> String {
    const WIDTH: u64 = 30;
    let full = u128::from(done.min(total)) * u128::from(WIDTH) / u128::from(total.max(1));
    let full = full as usize;
    "█".repeat(full) + &"░".repeat(WIDTH as usize - full)
}

/// `1.50 MiB`
pub(crate) fn bytes(count: f64) -> String {
    let mut count = count;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if count < 1024.0 {
            let digits = if unit == "B" { 0 } else { 2 };
            return format!("{count:.digits$} {unit}");
        }
        count /= 1024.0;
    }
    format!("{count:.2} PiB")
}

/// `3 minutes`: in the largest unit that there are one and a half of.
pub(crate) fn time(length: Duration) -> String {
    let seconds = length.as_secs_f64();
    const UNITS: [(f64, &str); 6] = [
        (31_557_600.0, "year"),
        (604_800.0, "week"),
        (86_400.0, "day"),
        (3_600.0, "hour"),
        (60.0, "minute"),
        (1.0, "second"),
    ];
    let (unit, name) = *UNITS.iter().find(|(unit, _)| seconds >= 1.5 * unit).unwrap_or(&UNITS[5]);
    let count = (seconds / unit).round() as u64;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short() {
        assert_eq!(
            [0.0, 1023.0, 1536.0, 3e12].map(bytes),
            ["0 B", "1023 B", "1.50 KiB", "2.73 TiB"]
        );
        let times = [0.2, 1.0, 89.0, 91.0, 5_400.0, 2e5, 3e9];
        let expected =
            ["0 seconds", "1 second", "89 seconds", "2 minutes", "2 hours", "2 days", "95 years"];
        assert_eq!(times.map(|seconds| time(Duration::from_secs_f64(seconds))), expected);
        for (done, total, full) in [(0, 10, 0), (5, 10, 15), (10, 10, 30), (11, 10, 30), (0, 0, 0)]
        {
            let gauge = gauge(done, total);
            assert_eq!((gauge.matches('█').count(), gauge.chars().count()), (full, 30));
        }
    }
}
