//! What is known of the threads of one block: up to which of its moments
//! everything that a thread did comes before now.

use crate::place::{LANES, lanes};
use std::sync::Arc;

/// A moment of a thread's life. It moves on whenever others may learn what
/// the thread did so far; 0 is before its first.
pub(crate) type Moment = u32;

/// Moments of a warp's lanes.
type Moments = [Moment; LANES];

/// Marks the warp number of the agents that carry out the asynchronous
/// copies of a warp's lanes, which are threads of their own.
pub(crate) const AGENT: u32 = 1 << 30;

/// One moment for all threads of the block, as after a barrier of all of
/// them, and later ones for the warps of which more is known.
///
/// A barrier of the whole block is two words, whatever the block's size.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockKnown {
    /// Known of every thread, agents excepted.
    all: Moment,
    /// Ascending by warp.
    warps: Option<Arc<[(u32, Moments)]>>,
}

impl BlockKnown {
    /// All threads up to a moment; of agents, what `self` knows.
    pub(crate) fn with_all(&self, all: Moment) -> BlockKnown {
        let mut known = BlockKnown { all, warps: self.warps.clone() };
        known.drop_implied();
        known
    }

    /// The last moment known of a lane.
    #[inline]
    pub(crate) fn of(&self, warp: u32, lane: u32) -> Moment {
        let all = self.of_all(warp);
        self.entry(warp).map_or(all, |moments| moments[lane as usize].max(all))
    }

    /// The last moment known of each lane of a warp.
    pub(crate) fn of_each(&self, warp: u32) -> Moment {
        let least = self.entry(warp).and_then(|moments| moments.iter().copied().min());
        least.unwrap_or(0).max(self.of_all(warp))
    }

    /// What the block's common moment says of a warp's lanes.
    #[inline]
    fn of_all(&self, warp: u32) -> Moment {
        if warp & AGENT == 0 { self.all } else { 0 }
    }

    #[inline]
    fn entry(&self, warp: u32) -> Option<&Moments> {
        let warps = self.warps.as_deref()?;
        let at = match warps {
            [(only, _)] => (*only == warp).then_some(0),
            _ => warps.binary_search_by_key(&warp, |&(w, _)| w).ok(),
        };
        at.map(|at| &warps[at].1)
    }

    /// Learns each of some lanes' moments.
    pub(crate) fn raise(&mut self, warp: u32, mask: u32, moment: impl Fn(u32) -> Moment) {
        let mut one = [0; LANES];
        for lane in lanes(mask) {
            one[lane as usize] = moment(lane);
        }
        self.learn(&[(warp, one)]);
    }

    /// Learns all that `other` knows.
    pub(crate) fn join(&mut self, other: &BlockKnown) {
        let same = match (&self.warps, &other.warps) {
            (_, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, Some(_)) => false,
        };
        let risen = other.all > self.all;
        self.all = self.all.max(other.all);
        if self.warps.is_none() && self.all == other.all {
            self.warps.clone_from(&other.warps);
        } else if !same {
            self.learn(other.warps.as_deref().unwrap_or_default());
        } else if risen {
            self.drop_implied();
        }
    }

    /// Learns moments of some warps, ascending.
    fn learn(&mut self, news: &[(u32, Moments)]) {
        if news.iter().all(|(warp, moments)| self.covers_warp(*warp, moments)) {
            return;
        }
        let mut merged = Vec::with_capacity(news.len() + 1);
        let mut old = self.warps.as_deref().unwrap_or_default().iter().peekable();
        for &(warp, mut moments) in news {
            while let Some(entry) = old.next_if(|(w, _)| *w < warp) {
                merged.push(*entry);
            }
            if let Some((_, before)) = old.next_if(|(w, _)| *w == warp) {
                for (moment, &before) in moments.iter_mut().zip(before) {
                    *moment = before.max(*moment);
                }
            }
            merged.push((warp, moments));
        }
        merged.extend(old);
        self.keep(merged);
    }

    fn drop_implied(&mut self) {
        let implied = |(warp, moments): &(u32, Moments)| self.implies(*warp, moments);
        if let Some(warps) = &self.warps
            && warps.iter().any(implied)
        {
            self.keep(warps.to_vec());
        }
    }

    fn keep(&mut self, mut warps: Vec<(u32, Moments)>) {
        warps.retain(|(warp, moments)| !self.implies(*warp, moments));
        self.warps = (!warps.is_empty()).then(|| warps.into());
    }

    /// Whether the block's common moment already says as much.
    fn implies(&self, warp: u32, moments: &Moments) -> bool {
        let all = self.of_all(warp);
        moments.iter().all(|&moment| moment <= all)
    }

    fn covers_warp(&self, warp: u32, moments: &Moments) -> bool {
        let all = self.of_all(warp);
        match self.entry(warp) {
            Some(own) => own.iter().zip(moments).all(|(&own, &m)| m <= own.max(all)),
            None => self.implies(warp, moments),
        }
    }

    /// Whether `other` surely has nothing new.
    pub(crate) fn covers(&self, other: &BlockKnown) -> bool {
        self.all >= other.all
            && other.warps.iter().flat_map(|w| w.iter()).all(|(w, m)| self.covers_warp(*w, m))
    }
}
