//! A fault found in a kernel: what it is, where it is, which other thread took part, and the
//! usual cause.

use crate::clock::Side;
use crate::name::demangled;
use crate::place::{Line, Place};
use core::fmt;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// A memory that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Device memory, seen by all blocks.
    Global,
    /// A block's memory.
    Shared,
    /// A thread's memory.
    Local,
    /// Constant banks.
    Const,
    /// A kernel's parameters.
    Param,
    /// An address outside all windows.
    Unknown,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "constant",
            Space::Param => "parameter",
            Space::Unknown => "unmapped",
        })
    }
}

/// What an instruction did to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A load through `volatile`.
    VolatileRead,
    /// A store through `volatile`.
    VolatileWrite,
    /// A relaxed or acquiring load.
    StrongRead,
    /// A relaxed or releasing store.
    StrongWrite,
    /// An atomic read-modify-write.
    Atomic,
    /// The reading half of an asynchronous copy.
    AsyncRead,
    /// The writing half of an asynchronous copy.
    AsyncWrite,
}

impl Act {
    /// Whether memory may change.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Act::Read | Act::VolatileRead | Act::StrongRead | Act::AsyncRead)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Act::Read => "read",
            Act::Write => "write",
            Act::VolatileRead => "volatile read",
            Act::VolatileWrite => "volatile write",
            Act::StrongRead => "strong read",
            Act::StrongWrite => "strong write",
            Act::Atomic => "atomic",
            Act::AsyncRead => "asynchronous copy's read",
            Act::AsyncWrite => "asynchronous copy's write",
        })
    }
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An access outside every allocation of its space.
    OutOfBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// An access to an allocation that has been freed.
    Freed,
    /// A read of bytes that were never written.
    Uninitialised,
    /// Two accesses of different threads, one of them a write, without an order between them.
    Race,
    /// Two stores of the same value to the same bytes without an order between them. A remark.
    SameValue,
    /// A race of a load whose value no lane uses. A remark.
    DiscardedRead,
    /// Strong accesses whose scopes do not include each other's thread.
    NarrowScope,
    /// Conflicting `volatile` accesses without an order between them: to shared memory, of the lanes of a warp to global memory, or of two blocks
    /// where the reader relies on an atomic that the writer carried out later.
    UnorderedVolatile,
    /// A bulk copy reads what a thread stored, without a `fence.proxy.async` between the two.
    MissingProxyFence,
    /// A barrier of the block that some threads did not reach, since they had ended. A remark: since compute capability 7.0 they count as
    /// arrived.
    PartialBarrier,
    /// Warps at one barrier that do not agree about its threads, or wait at different ones.
    BarrierMismatch,
    /// A warp instruction's mask does not name a lane that executes it.
    MaskOmitsLane,
    /// A warp instruction's mask names a lane that does not execute it.
    MaskNamesAbsentLane,
    /// A warp instruction's mask names a lane that has ended. A remark: such lanes are not waited for.
    MaskNamesEndedLane,
    /// A shuffle reads from a lane that takes no part in it.
    ShuffleFromInactive,
    /// A store to read-only memory.
    ReadOnly,
}

impl Kind {
    /// Whether it is a remark: legal or harmless on devices since compute capability 7.0, and told in [strict
    /// mode](crate::machine::Checks::strict) only.
    #[must_use]
    pub fn is_remark(self) -> bool {
        matches!(
            self,
            Kind::SameValue | Kind::DiscardedRead | Kind::PartialBarrier | Kind::MaskNamesEndedLane
        )
    }

    /// A short name, stable, for machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::Freed => "freed",
            Kind::Uninitialised => "uninitialised",
            Kind::Race => "race",
            Kind::SameValue => "same-value",
            Kind::DiscardedRead => "discarded-read",
            Kind::NarrowScope => "narrow-scope",
            Kind::UnorderedVolatile => "unordered-volatile",
            Kind::MissingProxyFence => "missing-proxy-fence",
            Kind::PartialBarrier => "partial-barrier",
            Kind::BarrierMismatch => "barrier-mismatch",
            Kind::MaskOmitsLane => "mask-omits-lane",
            Kind::MaskNamesAbsentLane => "mask-names-absent-lane",
            Kind::MaskNamesEndedLane => "mask-names-ended-lane",
            Kind::ShuffleFromInactive => "shuffle-from-inactive-lane",
            Kind::ReadOnly => "read-only",
        }
    }

    /// The name used in messages.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "access out of bounds",
            Kind::Misaligned => "misaligned access",
            Kind::Freed => "use of freed memory",
            Kind::Uninitialised => "use of uninitialised memory",
            Kind::Race => "data race",
            Kind::SameValue => "the same value stored twice without an order",
            Kind::DiscardedRead => "data race of a load whose value is thrown away",
            Kind::NarrowScope => "data race between atomics of too narrow a scope",
            Kind::UnorderedVolatile => "unordered volatile accesses",
            Kind::MissingProxyFence => "bulk copy of stored bytes without a proxy fence",
            Kind::PartialBarrier => "barrier reached by part of a block",
            Kind::BarrierMismatch => "barriers that disagree",
            Kind::MaskOmitsLane => "mask omits a lane that executes the instruction",
            Kind::MaskNamesAbsentLane => "mask names a lane that does not execute the instruction",
            Kind::MaskNamesEndedLane => "mask names a lane that has ended",
            Kind::ShuffleFromInactive => "shuffle from an inactive lane",
            Kind::ReadOnly => "write to read-only memory",
        }
    }

    /// The usual cause of the fault, or the usual repair.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Kind::OutOfBounds => {
                "an index is not compared with the number of elements, or the buffer is too small"
            }
            Kind::Misaligned => {
                "a pointer was cast to a wider type, or a vector load starts at an element that is not the vector's first"
            }
            Kind::Freed => {
                "the buffer was freed, or its block or thread ended, while a pointer to it was still used"
            }
            Kind::Uninitialised => {
                "an element is read that no thread stored: a missing store, a store under a condition, or an earlier kernel that did not run"
            }
            Kind::Race => {
                "a barrier is missing (__syncthreads, __syncwarp), or a __threadfence on one of the two sides of an atomic, or the atomic itself"
            }
            Kind::SameValue => {
                "PTX gives such a program no meaning, but every device stores the value: let one thread store it"
            }
            Kind::DiscardedRead => {
                "PTX gives such a program no meaning, but no thread looks at what it loads there: put the load under the condition of its use"
            }
            Kind::NarrowScope => {
                "use the device-wide form of the atomic when blocks share the address"
            }
            Kind::UnorderedVolatile => {
                "volatile gives lanes of a warp no order since compute capability 7.0: put __syncwarp() between the steps"
            }
            Kind::MissingProxyFence => {
                "bulk copies do not see a thread's stores by themselves: put fence.proxy.async (cuda::ptx::fence_proxy_async) behind the stores, before the barrier"
            }
            Kind::PartialBarrier => {
                "threads return before __syncthreads: devices before compute capability 7.0 may hang there"
            }
            Kind::BarrierMismatch => {
                "all warps must name the same barrier with the same number of threads"
            }
            Kind::MaskOmitsLane => {
                "the mask must contain the executing lanes: use 0xffffffff, or compute it with __ballot_sync before the branch"
            }
            Kind::MaskNamesAbsentLane => {
                "a lane named in the mask took another branch: compute the mask with __ballot_sync before the branch"
            }
            Kind::MaskNamesEndedLane => {
                "a lane named in the mask has returned: devices before compute capability 7.0 may hang there"
            }
            Kind::ShuffleFromInactive => {
                "the source lane is not in the mask or has returned, so its value is undefined"
            }
            Kind::ReadOnly => "constant banks and parameters cannot be stored to",
        }
    }
}

/// The bytes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The memory.
    pub space: Space,
    /// What was done.
    pub act: Act,
    /// The first byte's address: generic in global memory, else within the space.
    pub address: u64,
    /// The number of bytes.
    pub size: u32,
}

/// The other thread of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    /// Its thread.
    pub place: Place,
    /// Its instruction.
    pub line: Line,
    /// What it did, where it accessed memory.
    pub act: Option<Act>,
}

/// A fault as a checker saw it, before it is given names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub kind: Kind,
    /// The instruction at which it was found.
    pub line: Line,
    /// The thread in which it was found.
    pub place: Place,
    /// The bytes of the access, for faults of memory.
    pub access: Option<Access>,
    /// The other thread.
    pub other: Option<Party>,
    /// Of a race, the side of the handshake that has no fence, where a fence is all that is missing.
    pub missing: Option<Side>,
    /// What else is known: the nearest allocation, masks, barriers. A clause without a full stop, or empty.
    pub detail: Cow<'static, str>,
}

impl Fault {
    /// A fault of control flow: no memory is involved.
    #[must_use]
    pub fn of_control(
        kind: Kind,
        line: Line,
        place: Place,
        detail: impl Into<Cow<'static, str>>,
    ) -> Fault {
        Fault { kind, line, place, access: None, other: None, missing: None, detail: detail.into() }
    }

    /// Whether an asynchronous copy takes part.
    fn is_of_copy(&self) -> bool {
        let acts = [self.access.map(|a| a.act), self.other.and_then(|o| o.act)];
        acts.into_iter().flatten().any(|act| matches!(act, Act::AsyncRead | Act::AsyncWrite))
    }

    /// The usual cause of the fault, or the usual repair.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match (self.kind, self.missing) {
            (Kind::Race, Some(Side::Writer)) => {
                "the writer has no fence: put __threadfence() between its write and the atomic that tells of it"
            }
            (Kind::Race, Some(Side::Reader)) => {
                "the reader has no fence: put __threadfence() between the atomic that tells of the write and its read"
            }
            (Kind::UnorderedVolatile, Some(Side::Writer)) => {
                "volatile orders nothing between blocks, and the writer has no fence: put __threadfence() between its write and the atomic that tells of it"
            }
            (Kind::UnorderedVolatile, Some(Side::Reader)) => {
                "volatile orders nothing between blocks, and the reader has no fence: put __threadfence() between the atomic that tells of the write and its read"
            }
            (Kind::Race | Kind::Freed, _) if self.is_of_copy() => {
                "a copy is not waited for: cp.async.wait_group, cp.async.bulk.wait_group or its mbarrier, and a barrier for other threads than the one that waits"
            }
            (kind, _) => kind.hint(),
        }
    }
}

/// A fault with names, and how often it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kernel.
    pub kernel: Arc<str>,
    /// The source file of the instruction, if the text tells.
    pub file: Option<Arc<str>>,
    /// The source file of the other party's instruction.
    pub other_file: Option<Arc<str>>,
    /// The first fault of this kind at this line.
    pub fault: Fault,
    /// How often a fault of this kind was met at this line with this other line.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = &self.fault;
        write!(f, "{} in kernel `{}` at ", fault.kind.title(), demangled(&self.kernel))?;
        write_line(f, fault.line, self.file.as_deref())?;
        write!(f, ": {}", fault.place)?;
        if let Some(access) = fault.access {
            let Access { space, act, address, size } = access;
            write!(f, ", {act} of {size} byte{} of {space} memory at {address:#x}", plural(size))?;
        }
        if !fault.detail.is_empty() {
            write!(f, ", {}", fault.detail)?;
        }
        if let Some(other) = &fault.other {
            write!(f, "; the other party is {}", other.place)?;
            if let Some(act) = other.act {
                write!(f, ", {act}")?;
            }
            f.write_str(" at ")?;
            write_line(f, other.line, self.other_file.as_deref())?;
        }
        if self.count > 1 {
            write!(f, "; met {} times", self.count)?;
        }
        write!(f, ". hint: {}", fault.hint())
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, line: Line, file: Option<&str>) -> fmt::Result {
    match (line.source, file) {
        (Some((_, source)), Some(file)) => write!(f, "{file}:{source} (PTX line {})", line.ptx),
        (Some((_, source)), None) => write!(f, "source line {source} (PTX line {})", line.ptx),
        (None, _) => write!(f, "PTX line {}", line.ptx),
    }
}

fn plural(n: u32) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// Kind, line and other line: what makes two faults the same finding.
type Key = (Kind, Line, Option<Line>);

/// What an undefined value decides may be many things; it is one finding for the access that made it.
fn key(fault: &Fault) -> Key {
    let made = matches!(fault.kind, Kind::Uninitialised | Kind::ShuffleFromInactive);
    (fault.kind, fault.line, fault.other.filter(|_| !made).map(|o| o.line))
}

/// The findings of a launch: each kind once for a pair of lines, with a count.
#[derive(Clone, Debug)]
pub struct Findings {
    kernel: Arc<str>,
    files: Arc<[Arc<str>]>,
    capacity: usize,
    found: Vec<Finding>,
    index: HashMap<Key, usize>,
    left_out: u64,
}

impl Findings {
    /// Different findings that a launch keeps unless told otherwise.
    pub const CAPACITY: usize = 1000;

    /// No findings yet. `files` are the module's source files, as [`Line::source`] counts them.
    #[must_use]
    pub fn new(kernel: Arc<str>, files: Arc<[Arc<str>]>) -> Findings {
        let (found, index) = (Vec::new(), HashMap::new());
        Findings { kernel, files, capacity: Self::CAPACITY, found, index, left_out: 0 }
    }

    /// Keeps at most this many different findings.
    #[must_use]
    pub fn with_capacity(mut self, capacity: usize) -> Findings {
        self.capacity = capacity;
        self
    }

    /// Takes note of a fault.
    pub fn report(&mut self, fault: Fault) {
        let key = key(&fault);
        if let Some(&at) = self.index.get(&key) {
            self.found[at].count += 1;
        } else if self.found.len() < self.capacity {
            let finding = self.named(fault, 1);
            self.index.insert(key, self.found.len());
            self.found.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    fn named(&self, fault: Fault, count: u64) -> Finding {
        let file =
            |line: Line| line.source.and_then(|(file, _)| self.files.get(file as usize).cloned());
        let other_file = fault.other.and_then(|o| file(o.line));
        Finding { kernel: self.kernel.clone(), file: file(fault.line), other_file, fault, count }
    }

    /// Adds the findings of another part of the same launch, in its order.
    pub fn merge(&mut self, other: Findings) {
        self.left_out += other.left_out;
        for finding in other.found {
            let fault = &finding.fault;
            let key = key(fault);
            if let Some(&at) = self.index.get(&key) {
                self.found[at].count += finding.count;
            } else if self.found.len() < self.capacity {
                self.index.insert(key, self.found.len());
                self.found.push(finding);
            } else {
                self.left_out += finding.count;
            }
        }
    }

    /// The findings in the order in which they were first met.
    #[must_use]
    pub fn all(&self) -> &[Finding] {
        &self.found
    }

    /// Faults that were not kept, since the list was full.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The number of faults, with repetitions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.found.iter().map(|f| f.count).sum::<u64>() + self.left_out
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.left_out == 0
    }

    /// The findings that are faults, without remarks.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter().filter(|f| !f.fault.kind.is_remark())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(ptx: u32, other: Option<u32>) -> Fault {
        let line = |n| Line { ptx: n, source: Some((0, n / 10)) };
        let place = Place { block: 2, thread: 37 };
        let party = |n| Party {
            place: Place { block: 2, thread: 5 },
            line: line(n),
            act: Some(Act::Write),
        };
        let access = Access { space: Space::Shared, act: Act::Read, address: 0x94, size: 4 };
        Fault {
            kind: Kind::Race,
            line: line(ptx),
            place,
            access: Some(access),
            other: other.map(party),
            missing: None,
            detail: Cow::Borrowed(""),
        }
    }

    fn findings() -> Findings {
        Findings::new("sum".into(), vec!["sum.cu".into()].into())
    }

    #[test]
    fn a_finding_names_both_parties() {
        let mut findings = findings();
        findings.report(fault(120, Some(90)));
        let text = findings.all()[0].to_string();
        assert_eq!(
            text,
            "data race in kernel `sum` at sum.cu:12 (PTX line 120): block 2, thread 37 (warp 1, lane 5), \
             read of 4 bytes of shared memory at 0x94; the other party is block 2, thread 5 (warp 0, lane 5), \
             write at sum.cu:9 (PTX line 90). hint: a barrier is missing (__syncthreads, __syncwarp), or a \
             __threadfence on one of the two sides of an atomic, or the atomic itself"
        );
    }

    #[test]
    fn a_pair_of_lines_is_one_finding() {
        let mut findings = findings();
        for _ in 0..3 {
            findings.report(fault(120, Some(90)));
        }
        findings.report(fault(120, Some(91)));
        findings.report(fault(120, None));
        let counts: Vec<u64> = findings.all().iter().map(|f| f.count).collect();
        assert_eq!(counts, [3, 1, 1]);
        assert!(findings.all()[0].to_string().contains("met 3 times"));
    }

    #[test]
    fn beyond_the_capacity_faults_are_only_counted() {
        let mut findings = findings().with_capacity(2);
        for ptx in 0..5 {
            findings.report(fault(ptx, None));
        }
        findings.report(fault(0, None));
        assert_eq!((findings.all().len(), findings.left_out()), (2, 3));
        assert_eq!(findings.all()[0].count, 2);
    }

    #[test]
    fn merging_adds_counts_and_keeps_the_order() {
        let (mut first, mut second) = (findings(), findings());
        first.report(fault(1, None));
        second.report(fault(2, None));
        second.report(fault(1, None));
        first.merge(second);
        let lines: Vec<_> = first.all().iter().map(|f| (f.fault.line.ptx, f.count)).collect();
        assert_eq!(lines, [(1, 2), (2, 1)]);
    }

    #[test]
    fn a_source_file_that_the_module_does_not_list_is_no_panic() {
        let mut findings = Findings::new("k".into(), Vec::new().into());
        findings.report(fault(120, Some(90)));
        assert!(findings.all()[0].to_string().contains("source line 12 (PTX line 120)"));
    }
}
