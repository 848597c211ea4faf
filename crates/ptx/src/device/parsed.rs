//! Modules that were parsed lately, with the programs of their kernels: devices of one process load the same texts, and parsing and
//! decoding take as long as running them over a few elements.

use crate::ir::Module;
use crate::machine::Program;
use crate::parse;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of text whose modules are kept. A module with its programs takes about fifteen times its text.
const KEPT: usize = 8 << 20;

/// The programs of a module's kernels, by the kernel's number.
pub(super) type Programs = Mutex<FxHashMap<u32, Arc<Program>>>;

/// A module, and its programs for all devices on which no variable of it has memory of its own.
#[derive(Clone)]
pub(super) struct Parsed {
    pub(super) module: Arc<Module>,
    pub(super) programs: Arc<Programs>,
}

impl Parsed {
    pub(super) fn new(module: Module) -> Parsed {
        Parsed { module: Arc::new(module), programs: Arc::default() }
    }
}

/// Parses a text, unless it is among the last ones.
pub(super) fn text(text: &str) -> Result<Parsed, parse::Error> {
    /// The last one first.
    static LAST: Mutex<VecDeque<(Box<str>, Parsed)>> = Mutex::new(VecDeque::new());
    let found = {
        let mut last = lock(&LAST);
        last.iter().position(|(of, _)| **of == *text).and_then(|at| last.remove(at))
    };
    // Without the lock: others parse meanwhile.
    let (of, parsed) = match found {
        Some(found) => found,
        None => (text.into(), Parsed::new(parse::parse(text)?)),
    };
    let (mut last, mut bytes) = (lock(&LAST), 0);
    last.push_front((of, parsed.clone()));
    last.retain(|(of, _)| {
        bytes += of.len();
        bytes <= KEPT
    });
    Ok(parsed)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
