//! Happens-before: what each lane knows of what the others did.
//!
//! Every lane is a thread of its own and counts *moments*. A lane's accesses
//! belong to its present moment; when others may learn what it did so far, at
//! a barrier or a fence, the moment ends and the next begins. An access of another
//! lane comes before what a lane does now if the lane *knows* the access's moment.
//!
//! Knowledge moves as PTX's memory model says:
//!
//! - barriers of a block or a warp: each participant learns what all participants know and did;
//! - a fence, then a strong write (or a releasing one) lets go of what the lane knew at the
//!   fence; a strong read that sees the value, then a fence (or an acquiring read) takes it up, if
//!   the scopes of both sides include each other; read-modify-writes hand on what the value carried;
//! - asynchronous copies are done by *agents*, threads of their own that know what
//!   the issuing lane knew; a lane learns what its agent did when it waits for it.
//!
//! Two `fence.sc` alone order nothing here, although PTX orders them somehow
//! in every run: the order would differ in the next run, and with it the race.
//!
//! Barriers, releases and acquires carry some more along: see `beside`.
//!
//! What a lane knows is shared: after a barrier all participants point to one
//! record. A barrier costs time in proportion to its threads, never to their square.

mod beside;
mod channel;
mod grid;
mod known;

pub(crate) use beside::Matter;
pub use channel::Key;
pub(crate) use known::{AGENT, Moment};

use crate::place::{LANES, Place, Warp, lanes};
use beside::Shared;
use channel::{Carried, Channels, Home, REACHES, reach};
use grid::GridKnown;
use known::BlockKnown;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// The threads among which a strong access or a fence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `.cta`
    Block,
    /// `.cluster`
    Cluster,
    /// `.gpu`
    Device,
    /// `.sys`
    System,
}

/// What carries out a lane's asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// `cp.async`
    Copy,
    /// `cp.async.bulk`
    Bulk,
    /// The stores to global memory of `cp.async.bulk`, which end later than the reads of its source.
    BulkStore,
}

impl Engine {
    /// The warp number under which the agents of a warp's lanes count their moments.
    pub(crate) fn agents_of(self, warp: u32) -> u32 {
        match self {
            Engine::Copy => warp | AGENT,
            Engine::Bulk => warp | AGENT | AGENT >> 1,
            Engine::BulkStore => warp | AGENT | AGENT >> 2,
        }
    }
}

/// The warp that a warp number stands for, an agent's included.
pub(crate) fn issuer(warp: u32) -> u32 {
    warp & !(AGENT | AGENT >> 1 | AGENT >> 2)
}

/// What a strong access means for order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strong {
    /// It reads: a load or a read-modify-write.
    pub reads: bool,
    /// It writes: a store or a read-modify-write.
    pub writes: bool,
    /// It acquires by itself.
    pub acquires: bool,
    /// It releases by itself.
    pub releases: bool,
    /// Among which threads.
    pub scope: Scope,
}

/// What a thread knows of all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Of its own block.
    own: BlockKnown,
    /// Of other blocks.
    grid: GridKnown,
}

impl Known {
    fn join(&mut self, other: &Known) {
        self.own.join(&other.own);
        self.grid.join(&other.grid);
    }
}

/// What a fence lets go of, and what it would take up.
#[derive(Debug, Default)]
struct Fences {
    /// What the lane knew, and its moment, at the last fence of each scope.
    released: [Option<(Arc<Known>, Moment)>; REACHES],
    /// What strong reads saw since.
    pending: Carried,
}

/// The life of an agent.
#[derive(Debug)]
struct Agent {
    now: Moment,
    /// What the issuing lane knew, and its moment, at the last copy.
    issued: Option<(Arc<Known>, Moment)>,
    /// The last moments of committed groups for which no thread has waited.
    groups: VecDeque<Moment>,
}

impl Default for Agent {
    fn default() -> Agent {
        Agent { now: 1, issued: None, groups: VecDeque::new() }
    }
}

#[derive(Debug)]
struct Lane {
    now: Moment,
    known: Arc<Known>,
    fences: Option<Box<Fences>>,
    agents: Option<Box<[Agent; 3]>>,
    beside: Shared,
    /// What its last strong write to global memory told others, and whether it saw such ones.
    told: Option<Told>,
    saw: bool,
}

impl Lane {
    fn agent(&mut self, engine: Engine) -> &mut Agent {
        &mut self.agents.get_or_insert_default()[engine as usize]
    }
}

/// What participants leave behind for those who come later: split
/// barriers, cluster barriers, mbarriers.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    known: GridKnown,
    beside: Shared,
}

/// The side of a handshake that has no fence: a thread tells another of its writes by an atomic or a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The one that writes and then tells.
    Writer,
    /// The one that is told and then reads.
    Reader,
}

/// What a strong write lets others know: what its thread knew, and its moment, at the fence before; nothing without one.
#[derive(Clone, Debug)]
struct Told(Option<(Arc<Known>, Moment)>);

/// What is kept of a block that told others of what it did.
#[derive(Debug)]
struct Ended {
    /// What it told of itself.
    released: BlockKnown,
}

/// Blocks of which it is kept.
const ENDED: usize = 4096;

/// The clocks of one launch. A launch knows all that came before it on its
/// stream, so clocks begin anew with each.
#[derive(Debug)]
pub struct Clocks {
    /// Digits of a block's number.
    levels: u32,
    threads: u32,
    cluster: u32,
    /// The lanes of resident blocks.
    blocks: FxHashMap<u32, Box<[Lane]>>,
    channels: Channels,
    beside: beside::Carried,
    /// Whether beliefs are kept.
    believes: bool,
    ended: FxHashMap<u32, Ended>,
}

impl Clocks {
    /// The clocks of a grid of `blocks` blocks with `threads` threads each, `cluster` blocks a cluster (1 for none).
    #[must_use]
    pub fn new(blocks: u32, threads: u32, cluster: u32) -> Clocks {
        Clocks {
            levels: grid::levels(blocks),
            threads,
            cluster: cluster.max(1),
            blocks: FxHashMap::default(),
            channels: Channels::default(),
            beside: beside::Carried::default(),
            believes: false,
            ended: FxHashMap::default(),
        }
    }

    /// Keeps what threads believe, too; see `beside`.
    pub(crate) fn keep_beliefs(&mut self) {
        self.believes = true;
    }

    /// A block becomes resident.
    pub fn start_block(&mut self, block: u32) {
        let known = Arc::new(Known::default());
        let lane = || Lane {
            now: 1,
            known: known.clone(),
            fences: None,
            agents: None,
            beside: None,
            told: None,
            saw: false,
        };
        self.blocks.insert(block, (0..self.threads).map(|_| lane()).collect());
    }

    /// A block has ended: what it did stays known to those who know it.
    pub fn end_block(&mut self, block: u32) {
        if let Some(lanes) = self.blocks.remove(&block)
            && self.ended.len() < ENDED
            && lanes.iter().any(|lane| lane.told.is_some())
        {
            self.ended.insert(block, Ended { released: released(&lanes) });
        }
    }

    /// Which side of a handshake has no fence, if another lane's write was told to others, this block saw something, and a fence is all that is missing.
    pub(crate) fn missing_fence(
        &self,
        me: Place,
        warp: Warp,
        lane: u32,
        at: Moment,
    ) -> Option<Side> {
        if warp.block == me.block || warp.warp & AGENT != 0 {
            return None;
        }
        let mine = self.blocks.get(&me.block)?;
        let has = |known: &GridKnown| {
            known.get(self.levels, warp.block).is_some_and(|k| k.of(warp.warp, lane) >= at)
        };
        let mut pending = mine.iter().filter_map(|l| l.fences.as_ref()).flat_map(|f| &f.pending);
        if pending.any(has) {
            return Some(Side::Reader);
        }
        let released = match self.blocks.get(&warp.block) {
            Some(lanes) if lanes.iter().any(|l| l.told.is_some()) => {
                released(lanes).of(warp.warp, lane)
            }
            Some(_) => return None,
            None => self.ended.get(&warp.block)?.released.of(warp.warp, lane),
        };
        (released < at && mine.iter().any(|l| l.saw)).then_some(Side::Writer)
    }

    /// Whether a lane has learned, of some matter, of a moment of lane `lane` of `warp`.
    pub(crate) fn has_learned(
        &self,
        me: Place,
        matter: Matter,
        warp: Warp,
        lane: u32,
        at: Moment,
    ) -> bool {
        let lanes = self.blocks.get(&me.block).map_or(&[][..], |lanes| lanes);
        let beside = lanes.get(me.thread as usize).and_then(|l| l.beside.as_ref());
        let known = beside.and_then(|b| b.of(matter).get(self.levels, warp.block));
        known.is_some_and(|known| known.of(warp.warp, lane) >= at)
    }

    /// Whether a thread of a block has issued bulk copies.
    pub(crate) fn has_bulk_copies(&self, block: u32) -> bool {
        let lanes = self.blocks.get(&block).map_or(&[][..], |lanes| lanes);
        let agents = lanes.iter().filter_map(|lane| lane.agents.as_ref());
        agents.into_iter().any(|agents| agents[Engine::Bulk as usize].issued.is_some())
    }

    /// `fence.proxy.async`: what the lanes know and did may be read by bulk copies.
    pub(crate) fn fence_proxy(&mut self, warp: Warp, mask: u32, matters: &[Matter]) {
        let levels = self.levels;
        for number in lanes(mask) {
            let Some(lane) = self.lane_mut(Place::of_lane(warp, number)) else { continue };
            let known = everything(levels, warp, number, lane);
            let mut beside = lane.beside.as_deref().cloned().unwrap_or_default();
            for &matter in matters {
                beside.learn(matter, &known);
            }
            lane.beside = Some(Arc::new(beside));
            lane.now += 1;
        }
    }

    fn home(&self, block: u32) -> Home {
        Home { block, cluster: block / self.cluster }
    }

    /// Whether two threads are within each other's reach.
    pub(crate) fn includes(&self, scope: Scope, a: u32, b: u32) -> bool {
        match scope {
            Scope::Block => a == b,
            Scope::Cluster => a / self.cluster == b / self.cluster,
            Scope::Device | Scope::System => true,
        }
    }

    /// The lanes of a warp that the block has.
    fn existing(&self, warp: u32) -> u32 {
        let first = warp.saturating_mul(LANES as u32);
        match self.threads.saturating_sub(first) {
            0 => 0,
            n => u32::MAX >> (LANES as u32).saturating_sub(n),
        }
    }

    /// A resident block's lanes; none for a block that is not resident.
    fn lanes_mut(&mut self, block: u32) -> &mut [Lane] {
        self.blocks.get_mut(&block).map_or(&mut [], |lanes| lanes)
    }

    fn lane_mut(&mut self, place: Place) -> Option<&mut Lane> {
        self.lanes_mut(place.block).get_mut(place.thread as usize)
    }

    /// What a lane knows, and its moment.
    pub(crate) fn observer(&self, place: Place) -> Option<(&Arc<Known>, Moment)> {
        self.observers(place.block).of(place.thread)
    }

    /// The lanes of a block; none of one that is not resident.
    pub(crate) fn observers(&self, block: u32) -> Observers<'_> {
        Observers(self.blocks.get(&block).map_or(&[], |lanes| lanes))
    }

    /// The present moment of a lane's agent; the first, if it has done nothing yet.
    pub(crate) fn moment_of_agent(&self, place: Place, engine: Engine) -> Moment {
        let lane = self.blocks.get(&place.block).and_then(|b| b.get(place.thread as usize));
        let agents = lane.and_then(|lane| lane.agents.as_ref());
        agents.map_or(1, |agents| agents[engine as usize].now)
    }

    /// Whether an observer in block `me` knows a moment of lane `lane` of `warp`, which may be an agents' warp.
    #[inline]
    pub(crate) fn knows(&self, known: &Known, me: u32, warp: Warp, lane: u32, at: Moment) -> bool {
        if warp.block == me {
            known.own.of(warp.warp, lane) >= at
        } else {
            let there = known.grid.get(self.levels, warp.block);
            there.is_some_and(|there| there.of(warp.warp, lane) >= at)
        }
    }

    /// Whether an observer in block `me` knows a moment of every lane of a warp.
    pub(crate) fn knows_all(&self, known: &Known, me: u32, warp: Warp, at: Moment) -> bool {
        if warp.block == me {
            known.own.of_each(warp.warp) >= at
        } else {
            let there = known.grid.get(self.levels, warp.block);
            there.is_some_and(|there| there.of_each(warp.warp) >= at)
        }
    }

    /// Whether blocks have clusters.
    pub(crate) fn has_clusters(&self) -> bool {
        self.cluster > 1
    }

    /// Whether some thread of a block knows a moment of lane `lane` of `warp`.
    pub(crate) fn block_knows(&self, block: u32, warp: Warp, lane: u32, at: Moment) -> bool {
        let all = self.blocks.get(&block).map_or(&[][..], |lanes| lanes);
        // Neighbours mostly share what they know.
        let each = all.chunk_by(|a, b| Arc::ptr_eq(&a.known, &b.known)).filter_map(<[Lane]>::first);
        each.into_iter().any(|l| self.knows(&l.known, block, warp, lane, at))
    }

    /// `bar.warp.sync`, or another instruction that converges lanes: they learn from each other.
    pub fn sync_warp(&mut self, warp: Warp, mask: u32) {
        let mask = mask & self.existing(warp.warp);
        let first = warp.warp as usize * LANES;
        let lanes_of_block = self.lanes_mut(warp.block);
        let Some(leader) = lanes(mask).next().map(|lane| first + lane as usize) else { return };
        if leader >= lanes_of_block.len() {
            return;
        }
        let end = lanes_of_block.len().min(first + LANES);
        let warp_lanes = &mut lanes_of_block[first..end];
        let (mut known, latest) = pooled(warp_lanes, mask);
        known.own.raise(warp.warp, mask, |lane| warp_lanes[lane as usize].now);
        let beside = beside::pooled(lanes(mask).map(|lane| &warp_lanes[lane as usize].beside));
        settle(warp_lanes, mask, &Arc::new(known), &beside, latest + 1);
    }

    /// `bar.sync`, `barrier.sync`, `bar.red`: the threads that wait, a mask for each warp, learn from each other and from who arrived at the gate before.
    pub fn sync_block(&mut self, block: u32, waiting: &[u32], arrived: Option<&Gate>) {
        let masks: Vec<u32> = (0_u32..).zip(waiting).map(|(w, m)| m & self.existing(w)).collect();
        let count: u32 = masks.iter().map(|m| m.count_ones()).sum();
        let whole = count == self.threads;
        let levels = self.levels;
        let block_lanes = self.lanes_mut(block);
        if block_lanes.is_empty() || count == 0 {
            return;
        }
        let (mut all, mut latest) = (Known::default(), 0);
        let mut beside = arrived.and_then(|gate| gate.beside.clone());
        for (warp_lanes, &mask) in block_lanes.chunks(LANES).zip(&masks) {
            let (known, last) = pooled(warp_lanes, mask);
            all.join(&known);
            latest = latest.max(last);
            for other in lanes(mask).filter_map(|l| warp_lanes[l as usize].beside.as_ref()) {
                beside::join(&mut beside, other);
            }
        }
        if whole {
            all.own = all.own.with_all(latest);
        } else {
            for (warp, (warp_lanes, &mask)) in (0..).zip(block_lanes.chunks(LANES).zip(&masks)) {
                all.own.raise(warp, mask, |lane| warp_lanes[lane as usize].now);
            }
        }
        if let Some(gate) = arrived {
            take_up(&mut all, levels, block, &gate.known);
        }
        let all = Arc::new(all);
        for (warp_lanes, &mask) in block_lanes.chunks_mut(LANES).zip(&masks) {
            settle(warp_lanes, mask, &all, &beside, latest + 1);
        }
    }

    /// `bar.arrive`, `barrier.cluster.arrive`, `mbarrier.arrive`: what the lanes know and did stays at the gate.
    pub fn arrive(&mut self, gate: &mut Gate, warp: Warp, mask: u32) {
        let mask = mask & self.existing(warp.warp);
        let levels = self.levels;
        let Some(warp_lanes) = self.lanes_mut(warp.block).chunks_mut(LANES).nth(warp.warp as usize)
        else {
            return;
        };
        let (mut known, _) = pooled(warp_lanes, mask);
        known.own.raise(warp.warp, mask, |lane| warp_lanes[lane as usize].now);
        for lane in lanes(mask) {
            let lane = &mut warp_lanes[lane as usize];
            lane.now += 1;
            if let Some(beside) = &lane.beside {
                beside::join(&mut gate.beside, beside);
            }
        }
        gate.known.join(&known.grid);
        gate.known.learn(levels, warp.block, &known.own);
    }

    /// `barrier.cluster.wait`, a successful `mbarrier.test_wait`: the lanes learn what was left at the gate.
    pub fn depart(&mut self, gate: &Gate, warp: Warp, mask: u32) {
        let levels = self.levels;
        self.teach(warp, mask, |known| take_up(known, levels, warp.block, &gate.known));
        if let Some(beside) = &gate.beside {
            for lane in lanes(mask) {
                if let Some(lane) = self.lane_mut(Place::of_lane(warp, lane)) {
                    beside::join(&mut lane.beside, beside);
                }
            }
        }
    }

    /// Changes what lanes know; those that shared their knowledge go on sharing it.
    fn teach(&mut self, warp: Warp, mask: u32, mut news: impl FnMut(&mut Known)) {
        let mut last: Option<(Arc<Known>, Arc<Known>)> = None;
        for lane in lanes(mask) {
            let Some(lane) = self.lane_mut(Place::of_lane(warp, lane)) else { continue };
            let taught = match &last {
                Some((before, after)) if Arc::ptr_eq(before, &lane.known) => after.clone(),
                _ => {
                    let mut known = Known::clone(&lane.known);
                    news(&mut known);
                    Arc::new(known)
                }
            };
            last = Some((lane.known.clone(), taught.clone()));
            lane.known = taught;
        }
    }

    /// `fence`, `membar`: takes up what strong reads saw, and lets strong writes that follow carry what is known now.
    pub fn fence(&mut self, warp: Warp, mask: u32, scope: Scope) {
        let levels = self.levels;
        for lane in lanes(mask) {
            let Some(lane) = self.lane_mut(Place::of_lane(warp, lane)) else { continue };
            let fences = lane.fences.get_or_insert_default();
            let seen = &mut fences.pending[..=reach(scope)];
            if seen.iter().any(|p| !p.is_empty()) {
                let mut known = Known::clone(&lane.known);
                for pending in seen {
                    take_up(&mut known, levels, warp.block, &core::mem::take(pending));
                }
                lane.known = Arc::new(known);
            }
            // A fence serves every scope within its own.
            for released in &mut fences.released[..=reach(scope)] {
                *released = Some((lane.known.clone(), lane.now));
            }
            lane.now += 1;
        }
    }

    /// A strong access of one lane, after the access itself has been checked.
    pub fn strong(&mut self, place: Place, key: Key, strong: Strong) {
        let home = self.home(place.block);
        if strong.reads && !self.channels.is_empty() {
            let seen = self.channels.acquire(key, home, strong.scope);
            self.see(place, seen, strong.acquires);
        }
        let global = key.shared_of.is_none();
        if let Some(lane) = self.lane_mut(place) {
            lane.saw |= strong.reads && global;
            if strong.writes && global {
                let fenced = lane.fences.as_ref().map(|f| &f.released[reach(Scope::Device)]);
                let released = strong.releases.then(|| (lane.known.clone(), lane.now));
                lane.told = Some(Told(released.or_else(|| fenced.cloned().flatten())));
            }
        }
        self.hand_on(place, key, strong);
        if strong.writes {
            if !strong.reads && !self.channels.is_empty() {
                self.channels.overwrite(key);
            }
            self.publish(place, key, strong);
        }
    }

    /// What is known beside happens-before goes along with strong accesses, with fences or without.
    fn hand_on(&mut self, place: Place, key: Key, strong: Strong) {
        if strong.reads && !self.beside.is_empty() {
            let carried = self.beside.at(key).cloned();
            if let (Some(carried), Some(lane)) = (carried, self.lane_mut(place)) {
                beside::join(&mut lane.beside, &carried);
            }
        }
        if !strong.writes {
            return;
        }
        if !strong.reads && !self.beside.is_empty() {
            self.beside.clear(key);
        }
        let (levels, believes) = (self.levels, self.believes);
        let Some(lane) = self.lane_mut(place) else { return };
        let told = if believes {
            let known = everything(levels, place.warp(), place.lane(), lane);
            let mut told = lane.beside.as_deref().cloned().unwrap_or_default();
            told.learn(Matter::Belief, &known);
            lane.now += 1;
            Arc::new(told)
        } else {
            let Some(told) = lane.beside.clone() else { return };
            told
        };
        self.beside.add(key, &told);
    }

    /// Takes note of what a strong read saw, or learns it at once.
    fn see(&mut self, place: Place, seen: Carried, acquires: bool) {
        if seen.iter().all(GridKnown::is_empty) {
            return;
        }
        let levels = self.levels;
        let Some(lane) = self.lane_mut(place) else { return };
        if acquires {
            let mut known = Known::clone(&lane.known);
            for seen in &seen {
                take_up(&mut known, levels, place.block, seen);
            }
            lane.known = Arc::new(known);
        } else {
            let fences = lane.fences.get_or_insert_default();
            for (pending, seen) in fences.pending.iter_mut().zip(&seen) {
                pending.join(seen);
            }
        }
    }

    /// Lets an address carry what the lane released.
    fn publish(&mut self, place: Place, key: Key, strong: Strong) {
        let (levels, home) = (self.levels, self.home(place.block));
        let Some(lane) = self.lane_mut(place) else { return };
        let mut releases: [Option<(Arc<Known>, Moment)>; REACHES] = Default::default();
        if strong.releases {
            releases[reach(strong.scope)] = Some((lane.known.clone(), lane.now));
            lane.now += 1;
        }
        if let Some(fences) = &lane.fences {
            for (release, fence) in releases.iter_mut().zip(&fences.released) {
                if release.is_none() {
                    release.clone_from(fence);
                }
            }
        }
        let scopes = [Scope::Block, Scope::Cluster, Scope::Device];
        let mut widest: Option<(Arc<Known>, Moment)> = None;
        for (release, scope) in releases.into_iter().zip(scopes).rev() {
            let Some((known, moment)) = release else { continue };
            // What a wider fence let go of reaches the narrower scopes as well.
            if widest.as_ref().is_some_and(|(k, m)| Arc::ptr_eq(k, &known) && *m == moment) {
                continue;
            }
            widest = Some((known.clone(), moment));
            let mut own = known.own.clone();
            own.raise(place.warp().warp, 1 << place.lane(), |_| moment);
            let mut told = known.grid.clone();
            told.learn(levels, place.block, &own);
            self.channels.release(key, home, scope.min(strong.scope), &told);
        }
    }

    /// A weak write took the place of a strong one: the value there carries nothing from then on.
    pub(crate) fn overwrite(&mut self, key: Key) {
        self.beside.clear(key);
        self.channels.overwrite(key);
    }

    /// The lanes issue copies: their agents know what they know, and nothing that they do later.
    pub(crate) fn issue_copies(&mut self, warp: Warp, mask: u32, engine: Engine) {
        for lane in lanes(mask) {
            if let Some(lane) = self.lane_mut(Place::of_lane(warp, lane)) {
                let issued = (lane.known.clone(), lane.now);
                lane.agent(engine).issued = Some(issued);
                lane.now += 1;
            }
        }
    }

    /// `cp.async.commit_group`, `cp.async.bulk.commit_group`: closes a group of copies.
    pub fn commit_copies(&mut self, warp: Warp, mask: u32, engine: Engine) {
        for lane in lanes(mask) {
            if let Some(lane) = self.lane_mut(Place::of_lane(warp, lane)) {
                let agent = lane.agent(engine);
                agent.groups.push_back(agent.now);
                agent.now += 1;
            }
        }
    }

    /// `cp.async.wait_group`, `cp.async.bulk.wait_group`: each lane learns what its copies did, all groups but the `pending` latest.
    pub fn wait_copies(&mut self, warp: Warp, mask: u32, engine: Engine, pending: usize) {
        for lane in lanes(mask) {
            let Some(state) = self.lane_mut(Place::of_lane(warp, lane)) else { continue };
            let groups = &mut state.agent(engine).groups;
            let done = groups.drain(..groups.len().saturating_sub(pending)).next_back();
            if let Some(moment) = done {
                let mut known = Known::clone(&state.known);
                known.own.raise(engine.agents_of(warp.warp), 1 << lane, |_| moment);
                state.known = Arc::new(known);
            }
        }
    }

    /// `cp.async.wait_all`: each lane learns what all its copies did.
    pub fn wait_all_copies(&mut self, warp: Warp, mask: u32, engine: Engine) {
        self.commit_copies(warp, mask, engine);
        self.wait_copies(warp, mask, engine, 0);
    }

    /// `cp.async.mbarrier.arrive`, the completion of a bulk copy at an mbarrier: what the lanes' copies did so far stays at the gate.
    pub fn complete_copies(&mut self, gate: &mut Gate, warp: Warp, mask: u32, engine: Engine) {
        let levels = self.levels;
        for lane in lanes(mask) {
            let Some(state) = self.lane_mut(Place::of_lane(warp, lane)) else { continue };
            let agent = state.agent(engine);
            let Some((known, issued)) = &agent.issued else { continue };
            let mut own = known.own.clone();
            own.raise(warp.warp, 1 << lane, |_| *issued);
            own.raise(engine.agents_of(warp.warp), 1 << lane, |_| agent.now);
            gate.known.join(&known.grid);
            gate.known.learn(levels, warp.block, &own);
            agent.now += 1;
        }
    }
}

/// What a lane knows and did.
fn everything(levels: u32, warp: Warp, number: u32, lane: &Lane) -> GridKnown {
    let mut own = lane.known.own.clone();
    own.raise(warp.warp, 1 << number, |_| lane.now);
    let mut known = lane.known.grid.clone();
    known.learn(levels, warp.block, &own);
    known
}

/// What a block's lanes have told others of their own block.
fn released(block_lanes: &[Lane]) -> BlockKnown {
    let mut all = BlockKnown::default();
    for (thread, lane) in (0_u32..).zip(block_lanes) {
        let Some(Told(Some((known, moment)))) = &lane.told else { continue };
        all.join(&known.own);
        all.raise(thread / LANES as u32, 1 << (thread % LANES as u32), |_| *moment);
    }
    all
}

/// Learns what others let go of; of its own block, too.
fn take_up(known: &mut Known, levels: u32, block: u32, news: &GridKnown) {
    known.grid.join(news);
    if let Some(own) = news.get(levels, block) {
        known.own.join(own);
    }
}

/// All that some lanes of a warp know, without what they did themselves, and their latest moment.
fn pooled(warp_lanes: &[Lane], mask: u32) -> (Known, Moment) {
    let mut some = lanes(mask).map(|lane| &warp_lanes[lane as usize]);
    let Some(first) = some.next() else { return (Known::default(), 0) };
    let (mut all, mut latest) = (Known::clone(&first.known), first.now);
    let mut last = &first.known;
    for lane in some {
        latest = latest.max(lane.now);
        // Lanes that met before share what they know.
        if !Arc::ptr_eq(last, &lane.known) {
            all.join(&lane.known);
            last = &lane.known;
        }
    }
    (all, latest)
}

/// The lanes of a block, of which some are asked what they know.
#[derive(Clone, Copy)]
pub(crate) struct Observers<'a>(&'a [Lane]);

impl<'a> Observers<'a> {
    /// What a thread knows, and its moment.
    #[inline]
    pub(crate) fn of(self, thread: u32) -> Option<(&'a Arc<Known>, Moment)> {
        self.0.get(thread as usize).map(|lane| (&lane.known, lane.now))
    }
}

/// Gives lanes their common knowledge and moment.
fn settle(warp_lanes: &mut [Lane], mask: u32, known: &Arc<Known>, beside: &Shared, now: Moment) {
    for lane in lanes(mask) {
        let lane = &mut warp_lanes[lane as usize];
        lane.known = known.clone();
        lane.beside.clone_from(beside);
        lane.now = now;
    }
}
