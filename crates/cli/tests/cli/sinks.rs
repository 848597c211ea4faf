//! `-o`: files that appear whole or not at all, and what is no file.

use crate::common::Dir;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn ones() -> Dir {
    let dir = Dir::new();
    dir.f64s("a.npy", &[2], &[1.0, 2.0]);
    dir
}

/// A large answer: writing it takes a while.
fn long() -> Dir {
    of_outputs(3 << 20)
}

fn of_outputs(len: usize) -> Dir {
    let dir = Dir::new();
    dir.npy("long.npy", "|u1", &[1, len], &vec![7; len]);
    dir
}

/// A line for a shell, in which `$W` is the command.
fn shell(dir: &Dir, line: &str) -> Command {
    let command = dir.command("");
    let mut shell = Command::new("bash");
    shell
        .args(["-c", line])
        .env("W", command.get_program())
        .env("NO_COLOR", "1")
        .current_dir(dir.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    shell
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn text(dir: &Dir, name: &str) -> String {
    fs::read_to_string(dir.path(name)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_fifo_is_written_to() {
    let dir = ones();
    mkfifo(&dir.path("p"));
    symlink("p", dir.path("link")).unwrap();
    for (line, expected) in [
        ("sum a.npy -o p", "3\n"),
        ("stats a.npy -f csv -o link", "count,"),
        ("inspect a.npy -o p", "name\t"),
        ("partial sum a.npy -o p", "WARPFOLD"),
    ] {
        let child = dir.command(line).spawn().unwrap();
        let mut got = Vec::new();
        fs::File::open(dir.path("p")).unwrap().read_to_end(&mut got).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0), "{line}");
        assert!(got.starts_with(expected.as_bytes()), "{line}: {got:?}");
        assert!(fs::metadata(dir.path("p")).unwrap().file_type().is_fifo(), "{line}");
    }
    assert_eq!(dir.list(), ["a.npy", "link", "p"]);
}

#[test]
fn a_reader_of_a_fifo_who_leaves_is_no_error() {
    let dir = long();
    mkfifo(&dir.path("p"));
    let child = dir.command("sum -a 0 long.npy -o p").spawn().unwrap();
    let mut fifo = fs::File::open(dir.path("p")).unwrap();
    fifo.read_exact(&mut [0; 16]).unwrap();
    drop(fifo);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn devices_are_written_to_and_stay() {
    let dir = ones();
    let before = fs::metadata("/dev/null").unwrap();
    assert_eq!(dir.prints("sum a.npy -o /dev/null"), "");
    symlink("/dev/null", dir.path("void")).unwrap();
    dir.prints("sum a.npy -o void");
    let after = fs::metadata("/dev/null").unwrap();
    assert!(after.file_type().is_char_device());
    assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
    if cfg!(target_os = "linux") {
        let complaint = dir.fails(1, "sum a.npy -o /dev/full");
        assert!(complaint.contains("/dev/full: No space left"), "{complaint}");
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    }
}

#[test]
fn descriptors_are_written_to() {
    let dir = ones();
    let out = |line: &str| {
        let output = shell(&dir, line).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(out("$W sum a.npy -o /dev/stdout"), "3\n");
    assert_eq!(out("$W sum a.npy -o /dev/stderr"), "3\n");
    assert_eq!(out("$W sum a.npy -o /dev/fd/1 | cat"), "3\n");
    assert_eq!(out("$W sum a.npy -o >(cat); sleep 0.3"), "3\n");
    // What is there already stays, and what comes after comes after.
    assert_eq!(
        out("echo x > f; { $W sum a.npy -o /dev/stdout; echo y; } >> f; cat f"),
        "x\n3\ny\n"
    );
    assert_eq!(out("{ echo x; $W sum a.npy -o /dev/fd/1; echo y; } > g; cat g"), "x\n3\ny\n");
    assert_eq!(out("echo x > h; $W sum a.npy -o /dev/fd/3 3>> h; cat h"), "x\n3\n");
    if cfg!(target_os = "linux") {
        assert_eq!(out("$W sum a.npy -o /proc/self/fd/1"), "3\n");
        assert_eq!(out("$W sum a.npy -o /proc/thread-self/fd/3 3> h; cat h"), "3\n");
    }
    let ino = || fs::metadata(dir.path("h")).unwrap().ino();
    let before = ino();
    out("$W sum a.npy -o /dev/fd/3 3> h");
    assert_eq!(ino(), before);
    assert_eq!(dir.list(), ["a.npy", "f", "g", "h"]);
}

#[test]
fn sockets_are_written_to() {
    let dir = ones();
    let listener = UnixListener::bind(dir.path("s")).unwrap();
    let child = dir.command("sum a.npy -o s").spawn().unwrap();
    let mut got = String::new();
    listener.accept().unwrap().0.read_to_string(&mut got).unwrap();
    assert_eq!(got, "3\n");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    // Nobody listens. A process that another test is about to start may hold what is dropped here for a
    // moment, so that this is a socket of a kind that nobody can connect to.
    drop(UnixDatagram::bind(dir.path("t")).unwrap());
    let complaint = dir.fails(1, "sum a.npy -o t");
    assert!(complaint.starts_with("error: t: "), "{complaint}");
    assert!(fs::metadata(dir.path("t")).unwrap().file_type().is_socket());
}

#[test]
fn links_are_followed_and_stay() {
    let dir = ones();
    fs::create_dir(dir.path("d")).unwrap();
    symlink("d/target.txt", dir.path("link")).unwrap();
    symlink("link", dir.path("second")).unwrap();
    // First it dangles.
    for old in [None, Some("old")] {
        old.iter().for_each(|old| fs::write(dir.path("d/target.txt"), old).unwrap());
        dir.prints("sum a.npy -o second");
        assert!(fs::symlink_metadata(dir.path("link")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(dir.path("second")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(dir.path("d/target.txt")).unwrap().is_file());
        assert_eq!(text(&dir, "d/target.txt"), "3\n");
    }
    symlink("nowhere/target", dir.path("lost")).unwrap();
    assert!(dir.fails(1, "sum a.npy -o lost").contains("there is no directory nowhere"));
    symlink("circle", dir.path("circle")).unwrap();
    assert!(dir.fails(1, "sum a.npy -o circle").contains("circle: "));
    symlink("d", dir.path("e")).unwrap();
    assert!(dir.fails(1, "sum a.npy -o e").contains("this is a directory"));
    dir.prints("sum a.npy -o e/inside");
    assert_eq!(text(&dir, "d/inside"), "3\n");
}

#[test]
fn modes_are_kept_and_new_files_obey_the_umask() {
    let dir = ones();
    for umask in ["022", "027", "077"] {
        let wanted = 0o666 & !u32::from_str_radix(umask, 8).unwrap();
        let line = format!("umask {umask}; rm -f new; $W sum a.npy -o new");
        assert!(shell(&dir, &line).status().unwrap().success());
        assert_eq!(mode(&dir.path("new")), wanted, "{umask}");
    }
    for kept in [0o600, 0o640, 0o664, 0o755, 0o666] {
        fs::set_permissions(dir.path("new"), fs::Permissions::from_mode(kept)).unwrap();
        dir.prints("sum a.npy -o new");
        assert_eq!(mode(&dir.path("new")), kept, "{kept:o}");
    }
}

#[test]
fn owners_are_kept_where_that_is_permitted() {
    let dir = ones();
    dir.file("theirs", "old");
    let path = dir.path("theirs");
    if std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_err() {
        eprintln!("skipped: this user gives no files away");
        return;
    }
    dir.prints("sum a.npy -o theirs");
    let now = fs::metadata(&path).unwrap();
    assert_eq!((now.uid(), now.gid()), (1234, 4321));
    assert_eq!(text(&dir, "theirs"), "3\n");
}

/// The other names keep what they had: nobody sees half a file.
#[test]
fn other_hard_links_keep_the_old_file() {
    let dir = ones();
    dir.file("one", "old");
    fs::hard_link(dir.path("one"), dir.path("two")).unwrap();
    dir.prints("sum a.npy -o one");
    assert_eq!((text(&dir, "one"), text(&dir, "two")), ("3\n".into(), "old".into()));
}

#[test]
fn places_that_are_none() {
    let dir = ones();
    for (name, part) in [
        (".", "this is a directory"),
        ("no/such.txt", "there is no directory no"),
        ("new/", "this is the name of a directory"),
        ("a.npy/x", "a.npy/x: "),
    ] {
        for line in ["sum a.npy -o", "inspect a.npy -o", "stats a.npy -o", "partial sum a.npy -o"] {
            let complaint = dir.fails(1, &format!("{line} {name}"));
            assert!(complaint.contains(part), "{line} {name}: {complaint}");
        }
    }
    assert_eq!(dir.list(), ["a.npy"]);
}

#[test]
fn a_directory_without_permission_is_an_error_before_the_work() {
    let dir = ones();
    fs::create_dir(dir.path("d")).unwrap();
    dir.file("d/old", "old").file("locked", "old");
    let set = |name: &str, mode| {
        fs::set_permissions(dir.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("d", 0o555);
    set("locked", 0o444);
    if fs::write(dir.path("d/probe"), "").is_ok() {
        let _ = fs::remove_file(dir.path("d/probe"));
        set("d", 0o755);
        eprintln!("skipped: permissions do not bind this user");
        return;
    }
    // The input is not looked at.
    let complaint = dir.fails(1, "sum none.npy -o d/old");
    assert!(complaint.contains("d/old: ") && complaint.contains("hint: "), "{complaint}");
    assert!(dir.fails(1, "sum none.npy -o d/new").contains("d/new: "));
    assert!(dir.fails(1, "sum none.npy -o locked").contains("locked: Permission denied"));
    set("d", 0o755);
    assert_eq!((text(&dir, "d/old"), text(&dir, "locked")), ("old".into(), "old".into()));
}

/// A limit on sizes plays a disk that is full.
#[test]
fn a_file_that_does_not_fit_leaves_the_old_one() {
    let dir = long();
    dir.file("out.csv", "old");
    for trap in ["", "trap '' XFSZ; "] {
        let line = format!("{trap}ulimit -f 64; $W sum -a 0 long.npy -o out.csv");
        let output = shell(&dir, &line).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{complaint}");
        assert!(complaint.starts_with("error: out.csv: File too large"), "{complaint}");
        assert_eq!(text(&dir, "out.csv"), "old");
        assert_eq!(dir.list(), ["long.npy", "out.csv"]);
    }
}

/// Sends a signal as soon as the temporary file is there.
fn interrupted(dir: &Dir, mut command: Command, signal: &str) -> std::process::Output {
    let child = command.spawn().unwrap();
    let start = Instant::now();
    while !dir.list().iter().any(|name| name.starts_with(".warpfold-")) {
        assert!(start.elapsed() < Duration::from_secs(60), "there is no temporary file");
        std::thread::sleep(Duration::from_micros(200));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

/// Whether whoever runs the tests has this signal ignored, as shells do for what runs
/// in the background: children ignore it then, too.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (mask >> (number - 1)) & 1 == 1
}

#[test]
fn signals_end_the_process_and_its_temporary_file() {
    let dir = long();
    dir.file("out.csv", "old");
    let is_long = "sum -a 0 -f json long.npy -o out.csv";
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1), ("-QUIT", 3), ("-KILL", 9)] {
        if is_ignored(number) {
            eprintln!("skipped: {signal} is ignored here");
            continue;
        }
        // The probe before the work is such a file, too.
        let output = interrupted(&dir, dir.command(is_long), signal);
        assert_eq!(output.status.signal(), Some(number), "{signal}");
        assert_eq!(text(&dir, "out.csv"), "old", "{signal}");
        let left = dir.list().len() - 2;
        assert!(left == 0 || number == 9, "{signal}: {:?}", dir.list());
    }
}

/// Whenever a signal comes, the old file is there, or the whole new one; and the status
/// tells which.
#[test]
fn a_signal_at_any_moment_leaves_a_whole_file() {
    let dir = Dir::new();
    let rows: String = (0..20_000).map(|i| format!("{i},{}\n", i % 7)).collect();
    dir.file("t.csv", format!("k,x\n{rows}"));
    let old = "old\n".repeat(50_000);
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for out in ["out.arrow", "out.csv"] {
        let line = format!("sum -q --by k t.csv -o {out}");
        let start = Instant::now();
        dir.prints(&line);
        let whole = start.elapsed().as_micros() as u64;
        let new = fs::read(dir.path(out)).unwrap();
        let mut ends = [0, 0];
        // Each signal comes before it is written and while it is.
        for round in 0..crate::thorough::up_to(100, 24) {
            // Before anything is started: what nobody waits for would write beside the next round.
            let (signal, number) = [("-TERM", 15), ("-HUP", 1), ("-KILL", 9)][round % 3];
            if is_ignored(number) {
                continue;
            }
            dir.file(out, &old);
            let mut child = dir.command(&line).spawn().unwrap();
            if round % 2 == 0 {
                std::thread::sleep(Duration::from_micros(random(whole + whole / 4)));
            } else {
                // While it is written. The probe before the work is such a file, too.
                while !dir.list().iter().any(|name| name.starts_with(".warpfold-")) {
                    if child.try_wait().unwrap().is_some() {
                        break;
                    }
                }
                std::thread::sleep(Duration::from_micros(random(whole)));
            }
            // It may be gone.
            let id = child.id().to_string();
            let _ = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status();
            let output = child.wait_with_output().unwrap();
            let found = fs::read(dir.path(out)).unwrap();
            let is_new = found == new;
            assert!(is_new || found == old.as_bytes(), "{out} {round}: {} bytes", found.len());
            match output.status.signal() {
                // Nothing is told of this one.
                Some(9) => {}
                Some(_) => assert!(!is_new, "{out} {round}: {output:?}"),
                None => assert!(is_new && output.status.success(), "{out} {round}: {output:?}"),
            }
            ends[usize::from(is_new)] += 1;
            for name in dir.list().iter().filter(|name| name.starts_with('.')) {
                let killed = output.status.signal() == Some(9);
                assert!(killed, "{out} {round}: {name} is left: {output:?}");
                fs::remove_file(dir.path(name)).unwrap();
            }
        }
        assert!(ends[0] > 0, "{ends:?}");
    }
}

/// What is written to a stdout that is closed is lost: the runtime has `/dev/null` there.
#[test]
fn closed_descriptors_are_errors_where_they_are_needed() {
    let dir = ones();
    let run = |line: &str| shell(&dir, line).output().unwrap();
    let says = |line: &str, part: &str| {
        let output = run(line);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        assert!(message.contains(part) && message.contains("hint: "), "{line}: {message}");
    };
    for line in [
        "sum a.npy",
        "sum a.npy -o -",
        "sum a.npy -o /dev/stdout",
        "stats a.npy -f json",
        "partial sum a.npy -o -",
        "inspect a.npy",
        "doctor",
        "completions bash",
        "--help",
        "sum --help",
        "--version",
    ] {
        says(&format!("$W {line} >&-"), "stdout is closed");
        says(&format!("$W {line} <&- >&-"), "stdout is closed");
    }
    for line in ["sum", "sum -", "merge -", "sum --segments - a.npy", "ptx info -"] {
        says(&format!("$W {line} <&-"), "stdin is closed");
    }
    assert_eq!(run("$W sum a.npy -o /dev/stderr 2>&-").status.code(), Some(1));
    // Where they are not needed, or lead to what takes everything.
    for line in [
        "$W sum a.npy -o out.txt >&-",
        "$W sum a.npy -o out.txt <&- >&- 2>&-",
        "$W sum a.npy > /dev/null",
        "$W sum a.npy 1<> /dev/null",
        "$W sum < /dev/null",
        "$W sum a.npy <&-",
        "$W sum a.npy 2>&-",
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    }
    assert_eq!(text(&dir, "out.txt"), "3\n");
    // An error is told by the status alone where stderr is closed.
    assert_eq!(run("$W sum none.npy 2>&-").status.code(), Some(1));
}

#[test]
fn ignored_signals_stay_ignored() {
    // All of it is written.
    let dir = of_outputs(1 << 20);
    let command = shell(&dir, "trap '' HUP; exec $W sum -a 0 long.npy -o out.csv");
    let output = interrupted(&dir, command, "-HUP");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(dir.list(), ["long.npy", "out.csv"]);
}

#[test]
fn pages_of_the_manual_replace_nothing_but_files() {
    let dir = Dir::new();
    fs::create_dir(dir.path("pages")).unwrap();
    symlink("/dev/null", dir.path("pages/warpfold-sum.1")).unwrap();
    dir.prints("man --out-dir pages");
    assert!(fs::symlink_metadata(dir.path("pages/warpfold-sum.1")).unwrap().is_symlink());
    assert!(text(&dir, "pages/warpfold-max.1").contains("warpfold"));
    dir.file("file", "");
    dir.fails(1, "man --out-dir file");
}

#[test]
fn errors_are_told_by_the_status_where_nobody_reads_them() {
    let dir = ones();
    if !cfg!(target_os = "linux") {
        return;
    }
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    for (line, status) in [("sum none.npy", 1), ("dot a.npy", 2), ("sum --nan x", 2)] {
        let output = dir.command(line).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}");
    }
    let output = dir.command("sum -c x t.csv").stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    // Help that is asked for and cannot be written.
    for line in ["--help", "sum --help", "--version", "man", "completions bash", "inspect a.npy"] {
        let output = dir.command(line).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("No space left"), "{line}");
    }
}

/// A device has no folder for what belongs to a page.
#[test]
fn pictures_lie_beside_files_only() {
    let dir = Dir::new();
    dir.prints("ladder experiment divergence --device sim -q --save s.json");
    symlink("/dev/null", dir.path("void")).unwrap();
    dir.prints("ladder report s.json --format md -o void");
    assert_eq!(dir.list(), ["s.json", "void"]);
    dir.prints("ladder report s.json --format md -o page");
    assert_eq!(dir.list(), ["page", "page-divergence-1.svg", "s.json", "void"]);
}
