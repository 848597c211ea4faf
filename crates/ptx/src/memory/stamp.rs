//! Who made an access, when, and by which instruction.
//!
//! The lanes of a warp that execute an instruction in the same moment share
//! one stamp, so that shadow memory holds a small number for each access.

use crate::clock::{Moment, Scope, issuer};
use crate::finding::{Act, Party};
use crate::place::{Line, Place, Warp};

/// One warp instruction's access in one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The warp; for asynchronous copies that of the agents.
    pub(super) warp: Warp,
    pub(super) moment: Moment,
    pub(super) act: Act,
    pub(super) scope: Scope,
    /// The bytes of each lane.
    pub(super) size: u8,
    /// The load, where its value may be thrown away; else 0.
    pub(super) load: u32,
    pub(super) line: Line,
}

impl Stamp {
    /// The party that a lane of the stamp is.
    pub(super) fn party(&self, lane: u32) -> Party {
        let warp = Warp { warp: issuer(self.warp.warp), ..self.warp };
        Party { place: Place::of_lane(warp, lane), line: self.line, act: Some(self.act) }
    }
}

/// The lanes of one stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The stamp's number.
    pub(super) stamp: u32,
    /// Whether a strong read saw the value of the latest write that the cell holds, and does not come after it otherwise.
    pub(super) sees: bool,
    /// The lanes.
    pub(super) lanes: u32,
}

/// The accesses that one half of a cell remembers, packed into 32 bits:
/// nothing, one lane of one stamp, or the number of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot(u32);

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    One { stamp: u32, sees: bool, lane: u32 },
    Set(u32),
}

const LANE_BITS: u32 = 5;
const STAMP_BITS: u32 = 25;
const SEES: u32 = 1 << (LANE_BITS + STAMP_BITS);
const SET: u32 = 1 << 31;

/// Stamps that slots can number.
pub(super) const STAMPS: usize = 1 << STAMP_BITS;

impl Slot {
    pub(super) const NOTHING: Slot = Slot(0);

    /// One lane of a stamp; stamps are numbered from 1.
    #[inline]
    pub(super) fn one(stamp: u32, sees: bool, lane: u32) -> Slot {
        Slot(stamp << LANE_BITS | lane | if sees { SEES } else { 0 })
    }

    pub(super) fn set(number: u32) -> Slot {
        Slot(number | SET)
    }

    #[inline]
    pub(super) fn held(self) -> Held {
        if self.0 == 0 {
            Held::Nothing
        } else if self.0 & SET != 0 {
            Held::Set(self.0 & !SET)
        } else {
            let stamp = (self.0 & !SEES) >> LANE_BITS;
            let lane = self.0 & ((1 << LANE_BITS) - 1);
            Held::One { stamp, sees: self.0 & SEES != 0, lane }
        }
    }
}

/// Sets of entries, for the cells whose accesses did not come one after the other.
#[derive(Debug, Default)]
pub(super) struct Sets {
    sets: Vec<Vec<Entry>>,
    free: Vec<u32>,
    entries: usize,
}

impl Sets {
    /// The bytes they take, about.
    pub(super) fn bytes(&self) -> usize {
        self.sets.len() * size_of::<Vec<Entry>>() + self.entries * size_of::<Entry>()
    }

    /// Moves what a slot holds into `out` and leaves nothing.
    pub(super) fn take(&mut self, slot: &mut Slot, out: &mut Vec<Entry>) {
        out.clear();
        match core::mem::take(slot).held() {
            Held::Nothing => {}
            Held::One { stamp, sees, lane } => out.push(Entry { stamp, sees, lanes: 1 << lane }),
            Held::Set(number) => {
                out.append(&mut self.sets[number as usize]);
                self.entries -= out.len();
                self.release(number);
            }
        }
    }

    /// A slot that holds these entries.
    pub(super) fn put(&mut self, entries: &[Entry]) -> Slot {
        match entries {
            [] => Slot::NOTHING,
            [Entry { stamp, sees, lanes }] if lanes.is_power_of_two() => {
                Slot::one(*stamp, *sees, lanes.trailing_zeros())
            }
            _ => {
                let number = self.free.pop().unwrap_or_else(|| {
                    self.sets.push(Vec::new());
                    (self.sets.len() - 1) as u32
                });
                self.sets[number as usize].extend_from_slice(entries);
                self.entries += entries.len();
                Slot::set(number)
            }
        }
    }

    /// A second slot with the same entries.
    pub(super) fn duplicate(&mut self, slot: Slot) -> Slot {
        match slot.held() {
            Held::Set(number) => {
                let entries = self.sets[number as usize].clone();
                self.put(&entries)
            }
            _ => slot,
        }
    }

    /// The entries of a set, and room for one more.
    pub(super) fn get(&self, number: u32) -> &[Entry] {
        &self.sets[number as usize]
    }

    /// What a slot holds.
    pub(super) fn entries(&self, slot: Slot) -> impl Iterator<Item = Entry> {
        let (one, many) = match slot.held() {
            Held::Nothing => (None, &[][..]),
            Held::One { stamp, sees, lane } => {
                (Some(Entry { stamp, sees, lanes: 1 << lane }), &[][..])
            }
            Held::Set(number) => (None, self.get(number)),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Adds lanes to the last entry of a set.
    pub(super) fn widen_last(&mut self, number: u32, lanes: u32) {
        if let Some(last) = self.sets[number as usize].last_mut() {
            last.lanes |= lanes;
        }
    }

    /// Adds an entry to a set.
    pub(super) fn push(&mut self, number: u32, entry: Entry) {
        self.sets[number as usize].push(entry);
        self.entries += 1;
    }

    /// Forgets what a slot holds.
    pub(super) fn discard(&mut self, slot: Slot) {
        if let Held::Set(number) = slot.held() {
            let set = &mut self.sets[number as usize];
            self.entries -= set.len();
            set.clear();
            self.release(number);
        }
    }

    fn release(&mut self, number: u32) {
        // A set that once was long gives its memory back.
        self.sets[number as usize].shrink_to(8);
        self.free.push(number);
    }

    /// Visits every entry of every set.
    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&mut Entry)) {
        self.sets.iter_mut().flatten().for_each(&mut visit);
    }
}
