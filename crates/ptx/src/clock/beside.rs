//! What threads know beside happens-before, along the same ways.
//!
//! - What the *asynchronous proxy* sees: a bulk copy reads what a thread stored only if a `fence.proxy.async` stands somewhere between the two.
//!   Such a fence takes what its thread knows, and barriers, releases and acquires carry it on.
//! - What a thread *believes* to come before it, since it saw an atomic or a flag that the other thread wrote later, with or without fences. Where
//!   happens-before does not say the same, a fence is missing.

use super::Key;
use super::grid::GridKnown;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What is known beside happens-before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matter {
    /// Seen in shared memory by the asynchronous proxy.
    AsyncShared,
    /// Seen in global memory by it.
    AsyncGlobal,
    /// Believed.
    Belief,
}

/// What a thread knows of each matter; of its own block, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    matters: [GridKnown; 3],
}

impl Beside {
    pub(crate) fn of(&self, matter: Matter) -> &GridKnown {
        &self.matters[matter as usize]
    }

    pub(super) fn learn(&mut self, matter: Matter, news: &GridKnown) {
        self.matters[matter as usize].join(news);
    }

    fn join(&mut self, other: &Beside) {
        for (own, other) in self.matters.iter_mut().zip(&other.matters) {
            own.join(other);
        }
    }
}

/// What many threads share; nothing, as nearly always, or one record.
pub(super) type Shared = Option<Arc<Beside>>;

/// All that some know.
pub(super) fn pooled<'a>(all: impl Iterator<Item = &'a Shared>) -> Shared {
    let mut pool: Shared = None;
    for other in all.flatten() {
        join(&mut pool, other);
    }
    pool
}

/// Learns what others know; those who know the same go on sharing it.
pub(super) fn join(own: &mut Shared, other: &Arc<Beside>) {
    match own {
        None => *own = Some(other.clone()),
        Some(own) if Arc::ptr_eq(own, other) => {}
        Some(own) => Arc::make_mut(own).join(other),
    }
}

/// Addresses at which this is kept; beyond it, nothing more is learned.
const PLACES: usize = 1 << 14;

/// What the values at addresses carry.
#[derive(Debug, Default)]
pub(super) struct Carried(FxHashMap<Key, Arc<Beside>>);

impl Carried {
    pub(super) fn at(&self, key: Key) -> Option<&Arc<Beside>> {
        self.0.get(&key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, key: Key, news: &Arc<Beside>) {
        if self.0.len() >= PLACES && !self.0.contains_key(&key) {
            return;
        }
        let entry = self.0.entry(key).or_insert_with(|| news.clone());
        if !Arc::ptr_eq(entry, news) {
            Arc::make_mut(entry).join(news);
        }
    }

    pub(super) fn clear(&mut self, key: Key) {
        self.0.remove(&key);
    }
}
