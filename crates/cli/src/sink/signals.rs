//! Signals that end the process take its temporary files along.

use super::temporary::{is_done, there as files};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::c_int;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once, mpsc};
use std::time::Duration;

/// How long a process may take to end once its file is in its place: so many steps. Where a machine was suspended, or had no
/// time for the process, one step passes, and not all.
const GRACE: (u32, Duration) = (500, Duration::from_millis(10));

/// Makes sure that temporary files vanish on signals. The process still dies of them,
/// as the sender expects.
///
/// Where no thread can be started, signals end the process as they always do.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name("signals".into());
        let body = move || {
            let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
            let ignored = ignored();
            let signals = Signals::new(wanted.into_iter().filter(|&s| !ignored(s)));
            // A file that exceeds the limit is then an error, which says so.
            if !ignored(SIGXFSZ) {
                let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
            }
            let _ = ready.send(());
            let Ok(mut signals) = signals else { return };
            for signal in signals.forever() {
                let mut there = files();
                if is_done() {
                    // The new file is in its place, and the process about to end. Its
                    // status says which file is there: the signal comes too late.
                    drop(there);
                    (0..GRACE.0).for_each(|_| std::thread::sleep(GRACE.1));
                    there = files();
                }
                // Held until the end: no file comes or takes its place.
                for path in there.iter() {
                    let _ = std::fs::remove_file(path);
                }
                let _ = emulate_default_handler(signal);
            }
        };
        if warpfold_threads::has_room(1) && thread.spawn(body).is_ok() {
            let _ = is_ready.recv();
        }
    });
}

/// Which signals the process was told to ignore, as `nohup` and shells do for
/// what runs in the background. A handler would undo that.
fn ignored() -> impl Fn(c_int) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    move |signal| match mask {
        Some(mask) => mask >> (signal - 1) & 1 == 1,
        // Unknown: then at least `nohup` works.
        None => signal == SIGHUP,
    }
}
