//! A reduction that nobody waits for ends.

use std::sync::atomic::{AtomicU64, Ordering};
use warpfold::{Op, Reduction, Threads};
use warpfold_files::stream::{Inputs, Progress, reduce};
use warpfold_files::{Error, OpenOptions, open};

/// Cancels when so many pieces have been read.
struct Patience {
    pieces: u64,
    seen: AtomicU64,
}

impl Progress for Patience {
    fn begin(&self, _total: Option<u64>) {}
    fn advance(&self, _bytes: u64) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }
    fn is_cancelled(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.pieces
    }
}

fn npy(rows: usize, columns: usize) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    header.push_str(&" ".repeat(63 - (10 + header.len()) % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + rows * columns * 8, 0);
    bytes
}

#[test]
fn every_driver_hears_it_and_needs_no_more_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let array = file("a.npy", &npy(1000, 2000));
    let lines = file("t.csv", "1.5\n".repeat(2_000_000).as_bytes());
    let all = Reduction::of(Op::Sum);
    // Over some axes an array is read in boxes, which the limit makes small.
    let cases = [(&array, all.clone()), (&array, all.clone().axis(0)), (&lines, all)];
    for (path, question) in cases {
        for threads in [1, 3] {
            let question = question.clone().threads(Threads::Exactly(threads));
            let run = |progress: &dyn Progress| {
                let options = OpenOptions { header: Some(false), ..OpenOptions::default() };
                let options = if path == &lines { options } else { OpenOptions::default() };
                let items = open(path, &options).unwrap();
                reduce(Inputs { items, others: Vec::new() }, &question, Some(1 << 20), progress)
            };
            let patience = Patience { pieces: 2, seen: AtomicU64::new(0) };
            let cancelled = run(&patience);
            assert!(matches!(cancelled, Err(Error::Cancelled)), "{path:?} {cancelled:?}");
            let seen = patience.seen.into_inner();
            // A piece of each thread may be under way, and one that was read ahead.
            assert!(seen <= 2 + 2 * threads as u64, "{path:?}: {seen} pieces");
            let never = Patience { pieces: u64::MAX, seen: AtomicU64::new(0) };
            assert!(run(&never).is_ok(), "{path:?}");
        }
    }
}
