//! What can be learned at an address: the releases that its value carries.
//!
//! A strong write that follows a fence carries what its thread knew at the
//! fence; a read-modify-write hands on what the value carried before and adds
//! its own; any other write begins anew. Who reads the value may take from it
//! what releases of a scope that includes the reader carry.

use super::Scope;
use super::grid::GridKnown;
use rustc_hash::FxHashMap;

/// Where strong accesses meet: an address, and the block for shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The block whose shared memory it is; `None` for global memory.
    pub shared_of: Option<u32>,
    /// The address.
    pub address: u64,
}

/// Those who may learn of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Audience {
    Block(u32),
    Cluster(u32),
    Device,
}

/// A block and the cluster it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub(super) block: u32,
    pub(super) cluster: u32,
}

/// A scope as an index: one device has no system around it.
pub(super) fn reach(scope: Scope) -> usize {
    match scope {
        Scope::Block => 0,
        Scope::Cluster => 1,
        Scope::Device | Scope::System => 2,
    }
}

/// The audiences that a scope reaches from a block.
fn audiences(home: Home, scope: Scope) -> impl Iterator<Item = Audience> {
    let all = [Audience::Block(home.block), Audience::Cluster(home.cluster), Audience::Device];
    all.into_iter().take(reach(scope) + 1)
}

/// The scopes that differ: within a block, a cluster, a device.
pub(super) const REACHES: usize = 3;

/// What a read may learn, by the scope that it takes.
pub(super) type Carried = [GridKnown; REACHES];

/// The releases that addresses carry.
#[derive(Debug, Default)]
pub(super) struct Channels {
    carried: FxHashMap<Key, FxHashMap<Audience, GridKnown>>,
}

impl Channels {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.carried.is_empty()
    }

    /// A write that carries nothing from before.
    pub(super) fn overwrite(&mut self, key: Key) {
        self.carried.remove(&key);
    }

    /// Adds a release.
    pub(super) fn release(&mut self, key: Key, home: Home, scope: Scope, known: &GridKnown) {
        let carried = self.carried.entry(key).or_default();
        for audience in audiences(home, scope) {
            carried.entry(audience).or_default().join(known);
        }
    }

    /// What a read can learn.
    pub(super) fn acquire(&self, key: Key, home: Home, scope: Scope) -> Carried {
        let mut known = Carried::default();
        if let Some(carried) = self.carried.get(&key) {
            for (known, audience) in known.iter_mut().zip(audiences(home, scope)) {
                if let Some(there) = carried.get(&audience) {
                    known.join(there);
                }
            }
        }
        known
    }
}
