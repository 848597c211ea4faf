//! Random small programs: the race checker against an oracle that keeps, for every operation, the set of all
//! operations before it, and compares every pair of accesses.

use crate::thorough::up_to;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use warpfold_ptx::clock::{Engine, Gate, Scope, Strong};
use warpfold_ptx::finding::{Act, Fault, Kind};
use warpfold_ptx::memory::{Races, Request, Target};
use warpfold_ptx::place::{Line, Place, Warp, lanes};

/// A full warp and one of eight lanes.
const THREADS: u32 = 40;
const BLOCKS: u32 = 2;
/// The words of each memory.
const WORDS: u64 = 2;

#[derive(Clone, Debug)]
enum Event {
    Access {
        warp: Warp,
        mask: u32,
        shared: bool,
        act: Act,
        addresses: [u64; 4],
        size: u32,
        acquires: bool,
        releases: bool,
    },
    Copy {
        warp: Warp,
        mask: u32,
        engine: Engine,
        write: bool,
        addresses: [u64; 4],
    },
    Commit {
        warp: Warp,
        mask: u32,
        engine: Engine,
    },
    Wait {
        warp: Warp,
        mask: u32,
        engine: Engine,
        pending: usize,
    },
    Complete {
        warp: Warp,
        mask: u32,
        engine: Engine,
        gate: usize,
    },
    SyncWarp {
        warp: Warp,
        mask: u32,
    },
    SyncBlock {
        block: u32,
        masks: [u32; 2],
        gate: Option<usize>,
    },
    Fence {
        warp: Warp,
        mask: u32,
        scope: Scope,
    },
    Arrive {
        warp: Warp,
        mask: u32,
        gate: usize,
    },
    Depart {
        warp: Warp,
        mask: u32,
        gate: usize,
    },
}

/// The lanes that take part in random events: few, so that they meet.
const ACTIVE: [u32; 4] = [0, 1, 3, 6];

fn mask_of(bits: u32) -> u32 {
    (0..4).filter(|i| bits >> i & 1 == 1).map(|i| 1 << ACTIVE[i]).sum()
}

fn warp() -> impl Strategy<Value = Warp> {
    (0..BLOCKS, 0_u32..2).prop_map(|(block, warp)| Warp { block, warp })
}

fn mask() -> impl Strategy<Value = u32> {
    (1_u32..16).prop_map(mask_of)
}

/// One lane: programs of single lanes race less at once.
fn one_lane() -> impl Strategy<Value = u32> {
    (0_u32..4).prop_map(|i| mask_of(1 << i))
}

fn who() -> impl Strategy<Value = u32> {
    prop_oneof![3 => one_lane(), 1 => mask()]
}

fn sync_mask() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(u32::MAX), 1 => mask()]
}

fn engine() -> impl Strategy<Value = Engine> {
    prop_oneof![Just(Engine::Copy), Just(Engine::Bulk)]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Read),
        2 => Just(Act::Write),
        1 => Just(Act::VolatileRead),
        1 => Just(Act::VolatileWrite),
        2 => Just(Act::StrongRead),
        2 => Just(Act::StrongWrite),
        3 => Just(Act::Atomic),
    ]
}

fn is_weak(act: Act) -> bool {
    matches!(act, Act::Read | Act::Write | Act::AsyncRead | Act::AsyncWrite)
}

fn is_volatile(act: Act) -> bool {
    matches!(act, Act::VolatileRead | Act::VolatileWrite)
}

fn access() -> impl Strategy<Value = Event> {
    let flags = (any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.3));
    let places = (
        prop::array::uniform4(0_u64..WORDS * 4),
        prop_oneof![Just(1_u32), Just(2), Just(4), Just(8)],
    );
    (warp(), who(), act(), flags, places).prop_map(
        |(warp, mask, act, (shared, acquires, releases), (at, size))| {
            let size = if is_weak(act) { size } else { 4 };
            let addresses = at.map(|a| a / u64::from(size) * u64::from(size));
            let (acquires, releases) =
                (acquires && !is_volatile(act), releases && !is_volatile(act));
            Event::Access { warp, mask, shared, act, addresses, size, acquires, releases }
        },
    )
}

fn copy() -> impl Strategy<Value = Event> {
    let at = prop::array::uniform4(0..WORDS);
    (warp(), one_lane(), engine(), any::<bool>(), at).prop_map(|(warp, mask, engine, write, at)| {
        Event::Copy { warp, mask, engine, write, addresses: at.map(|a| a * 4) }
    })
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::Block), Just(Scope::Device), Just(Scope::System)]
}

fn event() -> impl Strategy<Value = Event> {
    let gate = 0_usize..2;
    prop_oneof![
        12 => access(),
        2 => copy(),
        1 => (warp(), who(), engine()).prop_map(|(warp, mask, engine)| Event::Commit { warp, mask, engine }),
        1 => (warp(), who(), engine(), 0_usize..2).prop_map(|(warp, mask, engine, pending)| Event::Wait { warp, mask, engine, pending }),
        1 => (warp(), who(), engine(), gate.clone()).prop_map(|(warp, mask, engine, gate)| Event::Complete { warp, mask, engine, gate }),
        4 => (warp(), sync_mask()).prop_map(|(warp, mask)| Event::SyncWarp { warp, mask }),
        3 => (0..BLOCKS).prop_map(|block| Event::SyncBlock { block, masks: [u32::MAX; 2], gate: None }),
        2 => (0..BLOCKS, sync_mask(), sync_mask(), prop::option::of(gate.clone()))
            .prop_map(|(block, a, b, gate)| Event::SyncBlock { block, masks: [a, b], gate }),
        5 => (warp(), who(), scope()).prop_map(|(warp, mask, scope)| Event::Fence { warp, mask, scope }),
        1 => (warp(), who(), gate.clone()).prop_map(|(warp, mask, gate)| Event::Arrive { warp, mask, gate }),
        1 => (warp(), who(), gate).prop_map(|(warp, mask, gate)| Event::Depart { warp, mask, gate }),
    ]
}

/// A weak access of one lane to a word.
fn weak(warp: Warp, mask: u32, act: Act, word: u64) -> Event {
    let addresses = [word * 4; 4];
    Event::Access {
        warp,
        mask,
        shared: false,
        act,
        addresses,
        size: 4,
        acquires: false,
        releases: false,
    }
}

fn relaxed(warp: Warp, mask: u32, act: Act, order: bool) -> Event {
    let (acquires, releases) = (order && act != Act::StrongWrite, order && act != Act::StrongRead);
    Event::Access { warp, mask, shared: false, act, addresses: [0; 4], size: 4, acquires, releases }
}

/// One lane hands a word to another through a strong access; any step may be missing. Events taken at
/// random hardly ever come in this order.
fn handshake() -> impl Strategy<Value = Vec<Event>> {
    let lanes = ((warp(), one_lane()), (warp(), one_lane()), (warp(), one_lane()));
    let fences = prop::array::uniform2((prop::bool::weighted(0.8), scope()));
    let between =
        prop::option::weighted(0.3, prop_oneof![Just(Act::Atomic), Just(Act::StrongWrite)]);
    let flags = (
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    (lanes, fences, between, flags).prop_map(
        |(lanes, fences, between, (late, release, acquire, atomic))| {
            let ((from, from_lane), (by, by_lane), (to, to_lane)) = lanes;
            let fence = |who, mask, (there, scope): (bool, Scope)| {
                there.then_some(Event::Fence { warp: who, mask, scope })
            };
            let mut steps = Vec::new();
            steps.extend((!late).then(|| weak(from, from_lane, Act::Write, 1)));
            steps.extend(fence(from, from_lane, fences[0]));
            // A write behind the fence is not released.
            steps.extend(late.then(|| weak(from, from_lane, Act::Write, 1)));
            steps.push(relaxed(
                from,
                from_lane,
                if atomic { Act::Atomic } else { Act::StrongWrite },
                release,
            ));
            steps.extend(between.map(|act| relaxed(by, by_lane, act, false)));
            steps.push(relaxed(
                to,
                to_lane,
                if atomic { Act::Atomic } else { Act::StrongRead },
                acquire,
            ));
            steps.extend(fence(to, to_lane, fences[1]));
            steps.push(weak(to, to_lane, if late { Act::Read } else { Act::Write }, 1));
            steps
        },
    )
}

/// Events one by one and handshakes, for a given number of either.
fn program(size: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Event>> {
    let part = prop_oneof![20 => event().prop_map(|e| vec![e]), 1 => handshake()];
    prop::collection::vec(part, size).prop_map(|parts| parts.concat())
}

fn existing(warp: u32) -> u32 {
    if warp == 0 { u32::MAX } else { 0xff }
}

fn spread(addresses: [u64; 4]) -> [u64; 32] {
    let mut all = [0; 32];
    for (lane, address) in ACTIVE.into_iter().zip(addresses) {
        all[lane as usize] = address;
    }
    all
}

fn target(shared: bool, block: u32) -> Target {
    if shared { Target::Shared { of: block } } else { Target::Global }
}

/// Strong accesses to shared memory mean the block, those to global memory the device.
fn scope_of(shared: bool, act: Act) -> Scope {
    match (is_volatile(act), shared) {
        (true, _) => Scope::System,
        (false, true) => Scope::Block,
        (false, false) => Scope::Device,
    }
}

fn strong(act: Act, scope: Scope, acquires: bool, releases: bool) -> Strong {
    let writes = act.writes();
    let reads = !writes || act == Act::Atomic;
    Strong { reads, writes, acquires: acquires && reads, releases: releases && writes, scope }
}

/// The first race: the event, the lane and the kind.
type Met = Option<(usize, u32, Kind)>;

/// The first race, with the kinds of all pairs that race there.
type Expected = Option<(usize, u32, BTreeSet<Kind>)>;

/// Whether the checker met the race that the oracle expects. Where an access races with several others, one is reported.
fn agrees(met: Met, expected: &Expected) -> bool {
    match (met, expected) {
        (None, None) => true,
        (Some((at, lane, kind)), Some((event, other, kinds))) => {
            (at, lane) == (*event, *other) && kinds.contains(&kind)
        }
        _ => false,
    }
}

/// The checker's answer.
fn checked(program: &[Event]) -> Met {
    let mut races = Races::new(BLOCKS, THREADS, 1);
    (0..BLOCKS).for_each(|block| races.start_block(block));
    let mut gates = [Gate::default(), Gate::default()];
    for (at, event) in program.iter().enumerate() {
        let mut faults: Vec<Fault> = Vec::new();
        match *event {
            Event::Access { warp, mask, shared, act, addresses, size, acquires, releases } => {
                let addresses = &spread(addresses);
                let request =
                    Request { addresses, active: mask, size, act, warp, line: Line::default() };
                let (target, scope) = (target(shared, warp.block), scope_of(shared, act));
                races.access(&request, target, scope, None, &mut |f| faults.push(f));
                if !is_weak(act) {
                    for lane in lanes(mask) {
                        let key = target.key(addresses[lane as usize]);
                        let strong = strong(act, scope, acquires, releases);
                        races.clocks.strong(Place::of_lane(warp, lane), key, strong);
                    }
                }
            }
            Event::Copy { warp, mask, engine, write, addresses } => {
                let addresses = &spread(addresses);
                let act = if write { Act::AsyncWrite } else { Act::AsyncRead };
                let request =
                    Request { addresses, active: mask, size: 4, act, warp, line: Line::default() };
                let target = target(write, warp.block);
                races.access(&request, target, Scope::Block, Some(engine), &mut |f| faults.push(f));
            }
            Event::Commit { warp, mask, engine } => races.clocks.commit_copies(warp, mask, engine),
            Event::Wait { warp, mask, engine, pending } => {
                races.clocks.wait_copies(warp, mask, engine, pending)
            }
            Event::Complete { warp, mask, engine, gate } => {
                races.clocks.complete_copies(&mut gates[gate], warp, mask, engine)
            }
            Event::SyncWarp { warp, mask } => races.clocks.sync_warp(warp, mask),
            Event::SyncBlock { block, masks, gate } => {
                races.clocks.sync_block(block, &masks, gate.map(|g| &gates[g]))
            }
            Event::Fence { warp, mask, scope } => races.clocks.fence(warp, mask, scope),
            Event::Arrive { warp, mask, gate } => races.clocks.arrive(&mut gates[gate], warp, mask),
            Event::Depart { warp, mask, gate } => races.clocks.depart(&gates[gate], warp, mask),
        }
        if let Some(first) = faults.first() {
            return Some((at, first.place.lane(), first.kind));
        }
    }
    assert_eq!(races.forgotten(), 0);
    None
}

type Past = BTreeSet<usize>;

/// A release that a value carries: how far it reaches, whose it is, what came before it.
#[derive(Clone, Debug)]
struct Release {
    scope: Scope,
    block: u32,
    past: Past,
}

#[derive(Default)]
struct Thread {
    past: Past,
    /// Every fence so far.
    fences: Vec<(Scope, Past)>,
    /// Every strong read so far, with what its value carried.
    seen: Vec<(Scope, Vec<Release>)>,
    copies: BTreeMap<bool, Copies>,
}

#[derive(Default)]
struct Copies {
    all: Past,
    open: Past,
    groups: Vec<Past>,
}

struct Operation {
    /// The thread, and which of its engines if it is a copy.
    thread: (Place, Option<bool>),
    act: Act,
    past: Past,
    /// The bytes: the memory, and the address.
    bytes: BTreeSet<(Option<u32>, u64)>,
    /// The writes it saw.
    observed: Past,
}

#[derive(Default)]
struct Oracle {
    operations: Vec<Operation>,
    threads: BTreeMap<Place, Thread>,
    gates: [Past; 2],
    /// What the value of a word carries.
    carried: BTreeMap<(Option<u32>, u64), Vec<Release>>,
    latest: BTreeMap<(Option<u32>, u64), usize>,
}

fn within(scope: Scope, a: u32, b: u32) -> bool {
    scope >= Scope::Device || a == b
}

/// Whether two accesses are of threads whose `volatile` ones race with each other: of a block in its shared memory, of a
/// warp in global memory.
fn are_near(a: &Operation, b: &Operation) -> bool {
    let shared = a.bytes.first().is_some_and(|byte| byte.0.is_some());
    shared || a.thread.0.warp() == b.thread.0.warp()
}

/// Whether a strong write takes the place of a strong access that it comes after. A volatile access stays beside others,
/// unless its value was seen.
fn stands_for(later: &Operation, earlier: &Operation) -> bool {
    !is_volatile(earlier.act) || is_volatile(later.act) && are_near(later, earlier)
}

impl Oracle {
    fn thread(&mut self, place: Place) -> &mut Thread {
        self.threads.entry(place).or_default()
    }

    /// Performs an access; the kinds of its races with the accesses before it.
    fn access(
        &mut self,
        place: Place,
        engine: Option<bool>,
        act: Act,
        space: Option<u32>,
        address: u64,
        size: u32,
    ) -> BTreeSet<Kind> {
        let node = self.operations.len();
        let past = self.thread(place).past.clone();
        let bytes: BTreeSet<_> = (address..address + u64::from(size)).map(|a| (space, a)).collect();
        let strong = !is_weak(act);
        let mut observed = Past::new();
        if strong && (!act.writes() || act == Act::Atomic) {
            for byte in &bytes {
                if let Some(&latest) = self.latest.get(byte)
                    && !is_weak(self.operations[latest].act)
                {
                    observed.insert(latest);
                    if self.operations[latest].act == Act::Atomic {
                        observed.extend(self.operations[latest].observed.iter().copied());
                    }
                }
            }
        }
        let this = Operation { thread: (place, engine), act, past, bytes, observed };
        let earlier = self.operations.iter().enumerate();
        let races = earlier.filter_map(|(at, other)| self.race(at, other, &this)).collect();
        if act.writes() {
            for &byte in &this.bytes {
                self.latest.insert(byte, node);
                if !strong {
                    self.carried.remove(&(byte.0, byte.1 / 4 * 4));
                }
            }
        }
        self.operations.push(this);
        match engine {
            None => _ = self.thread(place).past.insert(node),
            Some(engine) => {
                let copies = self.thread(place).copies.entry(engine).or_default();
                copies.all.insert(node);
                copies.open.insert(node);
            }
        }
        races
    }

    /// Whether an operation saw the access `at`, or one of those that have replaced it, and does not come after it
    /// otherwise. The checker forgets a witness when a write that does not come after it replaces the value.
    fn saw(&self, z: usize, at: usize, replacing: &Past) -> bool {
        let Operation { act, observed, past, .. } = &self.operations[z];
        let bytes = &self.operations[at].bytes;
        let forgotten = || {
            let replaces = |o: &&Operation| o.act.writes() && !o.bytes.is_disjoint(bytes);
            let next = self.operations[z + 1..].iter().find(replaces);
            next.is_some_and(|next| !next.past.contains(&z))
        };
        let atomic = *act == Act::Atomic;
        let known = |w: &usize| !atomic && past.contains(w);
        observed.iter().any(|w| (*w == at || replacing.contains(w)) && !known(w))
            && (atomic || !forgotten())
    }

    /// What has replaced the access `at` in the checker's memory, one after the other: whoever comes after such
    /// a write, or saw its value, comes after the access, too.
    fn replacing(&self, at: usize) -> Past {
        let other = &self.operations[at];
        let mut replacing = Past::new();
        for (w, op) in self.operations.iter().enumerate().skip(at + 1) {
            let stands = stands_for(op, other);
            let before = |z: usize| z == at && stands || self.saw(z, at, &replacing);
            let replaces = op.act.writes() && op.bytes == other.bytes && !is_weak(other.act);
            if replaces && op.past.iter().any(|&z| before(z)) {
                replacing.insert(w);
            }
        }
        replacing
    }

    fn race(&self, at: usize, other: &Operation, this: &Operation) -> Option<Kind> {
        let conflict =
            (other.act.writes() || this.act.writes()) && !other.bytes.is_disjoint(&this.bytes);
        let same = other.thread == this.thread && this.thread.1.is_none();
        if !conflict || same || this.past.contains(&at) {
            return None;
        }
        let replacing = self.replacing(at);
        if this.past.iter().any(|&z| self.saw(z, at, &replacing)) {
            return None;
        }
        if is_weak(other.act) || is_weak(this.act) {
            return Some(Kind::Race);
        }
        // Where an atomic took a volatile value, or a strong write replaced one that its thread had seen, the
        // later one stands for the volatile access, and for what that had replaced.
        let volatile = is_volatile(other.act) && is_volatile(this.act) && are_near(other, this);
        (volatile && !self.taken(at, &replacing)).then_some(Kind::UnorderedVolatile)
    }

    fn taken(&self, at: usize, replacing: &Past) -> bool {
        let took = |w: &usize| *w == at || replacing.contains(w);
        self.operations.iter().any(|z| z.act == Act::Atomic && z.observed.iter().any(took))
            || replacing.iter().any(|&w| !stands_for(&self.operations[w], &self.operations[at]))
    }

    fn strong(&mut self, place: Place, word: (Option<u32>, u64), strong: Strong) {
        let node = self.operations.len() - 1;
        assert_eq!(self.operations[node].thread.0, place);
        if strong.reads {
            let carried = self.carried.get(&word).cloned().unwrap_or_default();
            if strong.acquires {
                self.take(place, strong.scope, &carried);
            }
            self.thread(place).seen.push((strong.scope, carried));
        }
        if strong.writes {
            let thread = self.thread(place);
            let mut releases: Vec<Release> = thread
                .fences
                .iter()
                .map(|(scope, past)| Release {
                    scope: (*scope).min(strong.scope),
                    block: place.block,
                    past: past.clone(),
                })
                .collect();
            if strong.releases {
                releases.push(Release {
                    scope: strong.scope,
                    block: place.block,
                    past: thread.past.clone(),
                });
            }
            let carried = self.carried.entry(word).or_default();
            if !strong.reads {
                carried.clear();
            }
            carried.extend(releases);
        }
    }

    fn take(&mut self, place: Place, scope: Scope, carried: &[Release]) {
        let thread = self.thread(place);
        for release in carried {
            if within(scope, place.block, release.block)
                && within(release.scope, place.block, release.block)
            {
                thread.past.extend(&release.past);
            }
        }
    }

    fn fence(&mut self, place: Place, scope: Scope) {
        for (seen_by, carried) in self.thread(place).seen.clone() {
            self.take(place, scope.min(seen_by), &carried);
        }
        let thread = self.thread(place);
        thread.fences.push((scope, thread.past.clone()));
    }

    fn meet(&mut self, places: &[Place], extra: &Past) {
        let mut all = extra.clone();
        for &place in places {
            all.extend(&self.thread(place).past);
        }
        for &place in places {
            self.thread(place).past.clone_from(&all);
        }
    }
}

fn places(warp: Warp, mask: u32) -> Vec<Place> {
    lanes(mask & existing(warp.warp)).map(|lane| Place::of_lane(warp, lane)).collect()
}

/// The oracle's answer.
fn expected(program: &[Event]) -> Expected {
    let mut oracle = Oracle::default();
    for (at, event) in program.iter().enumerate() {
        let bulk = |engine: Engine| engine == Engine::Bulk;
        match *event {
            Event::Access { warp, mask, shared, act, addresses, size, acquires, releases } => {
                let (addresses, space) = (spread(addresses), shared.then_some(warp.block));
                for place in places(warp, mask) {
                    let address = addresses[place.lane() as usize];
                    let kinds = oracle.access(place, None, act, space, address, size);
                    if !kinds.is_empty() {
                        return Some((at, place.lane(), kinds));
                    }
                    if !is_weak(act) {
                        let strong = strong(act, scope_of(shared, act), acquires, releases);
                        oracle.strong(place, (space, address), strong);
                    }
                }
            }
            Event::Copy { warp, mask, engine, write, addresses } => {
                let addresses = spread(addresses);
                let act = if write { Act::AsyncWrite } else { Act::AsyncRead };
                for place in places(warp, mask) {
                    let space = write.then_some(warp.block);
                    let address = addresses[place.lane() as usize];
                    let engine = Some(bulk(engine));
                    let kinds = oracle.access(place, engine, act, space, address, 4);
                    if !kinds.is_empty() {
                        return Some((at, place.lane(), kinds));
                    }
                }
            }
            Event::Commit { warp, mask, engine } => {
                for place in places(warp, mask) {
                    let copies = oracle.thread(place).copies.entry(bulk(engine)).or_default();
                    let open = core::mem::take(&mut copies.open);
                    copies.groups.push(open);
                }
            }
            Event::Wait { warp, mask, engine, pending } => {
                for place in places(warp, mask) {
                    let thread = oracle.thread(place);
                    let groups = &mut thread.copies.entry(bulk(engine)).or_default().groups;
                    for group in groups.drain(..groups.len().saturating_sub(pending)) {
                        thread.past.extend(group);
                    }
                }
            }
            Event::Complete { warp, mask, engine, gate } => {
                for place in places(warp, mask) {
                    let all =
                        oracle.thread(place).copies.entry(bulk(engine)).or_default().all.clone();
                    for node in all {
                        let past = oracle.operations[node].past.clone();
                        oracle.gates[gate].extend(past);
                        oracle.gates[gate].insert(node);
                    }
                }
            }
            Event::SyncWarp { warp, mask } => oracle.meet(&places(warp, mask), &Past::new()),
            Event::SyncBlock { block, masks, gate } => {
                let all: Vec<Place> = (0..)
                    .zip(masks)
                    .flat_map(|(warp, mask)| places(Warp { block, warp }, mask))
                    .collect();
                let extra = gate.map(|g| oracle.gates[g].clone()).unwrap_or_default();
                oracle.meet(&all, &extra);
            }
            Event::Fence { warp, mask, scope } => {
                places(warp, mask).into_iter().for_each(|place| oracle.fence(place, scope));
            }
            Event::Arrive { warp, mask, gate } => {
                for place in places(warp, mask) {
                    let past = oracle.thread(place).past.clone();
                    oracle.gates[gate].extend(past);
                }
            }
            Event::Depart { warp, mask, gate } => {
                for place in places(warp, mask) {
                    let past = oracle.gates[gate].clone();
                    oracle.thread(place).past.extend(past);
                }
            }
        }
    }
    None
}

/// Drops every access that races, so that what follows is looked at as well.
fn without_races(mut program: Vec<Event>) -> Vec<Event> {
    while let Some((at, ..)) = expected(&program) {
        program.remove(at);
    }
    program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(up_to(3000, 300)))]

    #[test]
    fn the_first_race_is_the_oracles(program in program(1..60)) {
        let (met, expected) = (checked(&program), expected(&program));
        prop_assert!(agrees(met, &expected), "{met:?} is not {expected:?}");
    }

    #[test]
    fn behind_a_long_past_without_races_the_first_race_is_the_oracles(
        program in program(10..80),
        last in program(1..8),
    ) {
        let mut program = without_races(program);
        prop_assert_eq!(checked(&program), None);
        program.extend(last);
        let (met, expected) = (checked(&program), expected(&program));
        prop_assert!(agrees(met, &expected), "{met:?} is not {expected:?}");
    }

    #[test]
    fn what_is_handed_on_is_the_oracles(handshakes in prop::collection::vec(handshake(), 1..4), last in program(0..3)) {
        let program = [handshakes.concat(), last].concat();
        let (met, expected) = (checked(&program), expected(&program));
        prop_assert!(agrees(met, &expected), "{met:?} is not {expected:?}");
    }
}
