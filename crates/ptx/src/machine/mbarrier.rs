//! Barriers that live in shared memory: `mbarrier`.
//!
//! A phase is complete when no arrival and no byte of a copy is pending. The eight bytes in shared memory hold nothing that a kernel may look at; the
//! state that arrivals give back is the phase's number and the arrivals that were pending.

use crate::clock::{Gate, Moment};
use crate::ir::Line;
use crate::place::Place;

/// A barrier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mbarrier {
    expected: u32,
    pending: u32,
    bytes: i64,
    phase: u32,
    /// What those who arrive in the present phase leave behind, and what those of complete phases left.
    present: Gate,
    complete: Gate,
    /// Who initialised it, when, and by which instruction.
    pub(crate) born: Option<Born>,
}

/// The initialisation of a barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Born {
    pub(crate) place: Place,
    pub(crate) moment: Moment,
    pub(crate) line: Line,
}

/// The bits of a state that count pending arrivals.
const PENDING_BITS: u32 = 20;

/// `mbarrier.pending_count`.
pub(crate) fn pending_of_state(state: u64) -> u64 {
    state & ((1 << PENDING_BITS) - 1)
}

impl Mbarrier {
    /// A barrier whose phases take `count` arrivals.
    pub(crate) fn new(count: u32) -> Mbarrier {
        Mbarrier { expected: count, pending: count, ..Mbarrier::default() }
    }

    /// The state that an arrival gives.
    pub(crate) fn state(&self) -> u64 {
        u64::from(self.phase) << PENDING_BITS | u64::from(self.pending)
    }

    /// What arriving lanes leave their knowledge at.
    pub(crate) fn gate(&mut self) -> &mut Gate {
        &mut self.present
    }

    /// What was known when the last complete phase was.
    pub(crate) fn learned(&self) -> &Gate {
        &self.complete
    }

    /// Some arrive; `drop` leaves the later phases without them, too.
    pub(crate) fn arrive(&mut self, count: u32, drop: bool) {
        if drop {
            self.expected = self.expected.saturating_sub(count);
        }
        self.pending = self.pending.saturating_sub(count);
        self.settle();
    }

    /// More bytes are expected in this phase.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.bytes = self.bytes.wrapping_add(bytes as i64);
    }

    /// Bytes have come.
    pub(crate) fn complete(&mut self, bytes: u64) {
        self.bytes = self.bytes.wrapping_sub(bytes as i64);
        self.settle();
    }

    fn settle(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase = self.phase.wrapping_add(1);
            self.pending = self.expected;
            self.complete = self.present.clone();
        }
    }

    /// Whether the phase of a state is complete.
    pub(crate) fn is_past(&self, state: u64) -> bool {
        (state >> PENDING_BITS) as u32 != self.phase
    }

    /// Whether the phase with this parity is complete: the present one has the other.
    pub(crate) fn is_past_parity(&self, parity: u64) -> bool {
        u64::from(self.phase & 1) != parity & 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_ends_with_the_last_arrival() {
        let mut barrier = Mbarrier::new(2);
        let state = barrier.state();
        assert_eq!(pending_of_state(state), 2);
        barrier.arrive(1, false);
        assert!(!barrier.is_past(state) && !barrier.is_past_parity(0));
        barrier.arrive(1, false);
        assert!(barrier.is_past(state) && barrier.is_past_parity(0) && !barrier.is_past_parity(1));
    }

    #[test]
    fn a_phase_waits_for_bytes_too() {
        let mut barrier = Mbarrier::new(1);
        barrier.expect(64);
        barrier.arrive(1, false);
        assert!(!barrier.is_past_parity(0));
        barrier.complete(64);
        assert!(barrier.is_past_parity(0));
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let mut barrier = Mbarrier::new(1);
        barrier.complete(32);
        barrier.expect(32);
        barrier.arrive(1, false);
        assert!(barrier.is_past_parity(0));
    }

    #[test]
    fn who_drops_is_not_expected_again() {
        let mut barrier = Mbarrier::new(2);
        barrier.arrive(1, true);
        barrier.arrive(1, false);
        barrier.arrive(1, false);
        assert!(barrier.is_past_parity(1), "two phases are complete");
    }
}
