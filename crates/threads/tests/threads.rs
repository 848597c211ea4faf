//! Threads that the system refuses, and threads that nobody needs.
#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use warpfold_threads::{Ahead, Pieces, Threads, join, read_ahead, scoped};

/// The threads of this process.
fn alive() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Runs the test `name` in a process of its own.
fn alone(name: &str, mut command: Command) -> std::io::Result<Output> {
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(CHILD, name).env("RUST_BACKTRACE", "0").output()
}

/// The same where the user may have `limit` processes and threads; `None` where
/// that cannot be arranged, which is said.
fn limited(name: &str, limit: usize) -> Option<Output> {
    let mut command = Command::new("prlimit");
    // By an open file: the folder may be one that the other user may not enter.
    let this = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    command.arg(format!("--nproc={limit}")).arg("/proc/self/fd/0").stdin(this);
    // The limit does not bind root; nobody else is this user.
    if is_root() {
        command.uid(1_000_000 + std::process::id());
    }
    match alone(name, command) {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: prlimit: {error}");
            None
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

const CHILD: &str = "WARPFOLD_TEST_CHILD";

fn is_child(name: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|child| child == name)
}

/// 0 + 1 + ... by pieces.
fn sum(threads: Threads, count: usize) -> usize {
    let pieces = Pieces::new(count);
    let sums = threads.run(count, || core::iter::from_fn(|| pieces.take()).sum::<usize>());
    sums.into_iter().sum()
}

/// Everything that may start a thread, done right by however many there are.
fn everything() {
    for threads in [2, 3, 64, 5000] {
        for count in [0, 1, 2, 100] {
            let expected = (0..count).sum::<usize>();
            assert_eq!(sum(Threads::Exactly(threads), count), expected);
        }
    }
    assert_eq!(sum(Threads::All, 1000), 499_500);
    let pieces = Pieces::new(100);
    let sums = scoped(8, || core::iter::from_fn(|| pieces.take()).sum::<usize>());
    assert_eq!(sums.into_iter().map(Option::unwrap).sum::<usize>(), 4950);
    assert_eq!(join(|| 1, || 2), (1, Some(2)));
    let mut left = 100;
    let fetch = || {
        left -= 1;
        (left > 0).then_some(left)
    };
    let total = |ahead: &Ahead<'_, usize>| core::iter::from_fn(|| ahead.take()).sum::<usize>();
    assert_eq!(read_ahead(2, fetch, total), (4950, true));
}

#[test]
fn everything_works_with_the_threads_there_are() {
    everything();
    if is_child("everything_works_with_the_threads_there_are") {
        println!("alive {}", alive());
    }
}

/// The test harness needs a thread for itself: 2 leaves none for us.
#[test]
fn refused_threads_are_done_without() {
    for limit in [1, 2, 3, 5, 20] {
        let Some(output) = limited("everything_works_with_the_threads_there_are", limit) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        if limit == 1 && text.contains("failed to spawn thread to run test") {
            // The harness itself: there is nothing left to see.
            continue;
        }
        assert!(output.status.success(), "{limit}: {text}");
        let at = text.find("alive ").unwrap() + 6;
        let alive: usize = text[at..].split_whitespace().next().unwrap().parse().unwrap();
        assert!(alive <= limit.max(2), "{alive} threads of {limit}: {text}");
    }
}

/// Asks for one thread more each time, in a process of its own.
#[test]
fn numbers_in_turn() {
    if is_child("numbers_in_turn") {
        for threads in 2..=64 {
            assert_eq!(sum(Threads::Exactly(threads), 1000), 499_500);
        }
        // Pools that were replaced end when they like.
        for _ in 0..1000 {
            if alive() <= 66 {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{} threads are left", alive());
    }
}

#[test]
fn the_pool_is_no_larger_than_the_largest_share() {
    let output = alone("numbers_in_turn", Command::new(std::env::current_exe().unwrap())).unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[test]
fn little_work_starts_no_threads() {
    if is_child("little_work_starts_no_threads") {
        let before = alive();
        for most in [0, 1] {
            assert_eq!(Threads::All.run(most, || 1), [1]);
        }
        assert_eq!(alive(), before);
        // For three pieces there are three workers, however many may work.
        assert!((1..=3).contains(&Threads::Exactly(1000).run(3, || ()).len()));
        assert!(alive() <= before + 2);
        return;
    }
    let this = Command::new(std::env::current_exe().unwrap());
    let output = alone("little_work_starts_no_threads", this).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A panic of one worker is the caller's, and the pool goes on.
#[test]
fn a_panic_in_the_work_is_the_callers() {
    for _ in 0..3 {
        let pieces = Pieces::new(100);
        let work = || {
            while let Some(piece) = pieces.take() {
                assert!(piece != 50, "on purpose");
            }
        };
        let caught = std::panic::catch_unwind(|| Threads::Exactly(4).run(100, work));
        assert!(caught.is_err());
        assert_eq!(sum(Threads::Exactly(4), 100), 4950);
    }
}
