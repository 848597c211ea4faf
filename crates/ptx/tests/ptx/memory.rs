//! What a memory refuses, and how it says so.

use proptest::prelude::*;
use warpfold_ptx::finding::{Act, Fault, Findings, Kind, Space};
use warpfold_ptx::memory::{Global, MemoryError, Region, Request, global};
use warpfold_ptx::place::{LANES, Line, Warp, lanes};

const MIB: u64 = 1 << 20;

fn device() -> Global {
    Global::new(MIB, true)
}

fn request(addresses: &[u64; LANES], active: u32, size: u32, act: Act) -> Request<'_> {
    Request {
        addresses,
        active,
        size,
        act,
        warp: Warp { block: 3, warp: 1 },
        line: Line { ptx: 7, source: None },
    }
}

/// One lane's access: the fault, if any, and whether the lane may go on.
fn global_access(memory: &Global, address: u64, size: u32, act: Act) -> (Option<Fault>, bool) {
    let mut faults = Vec::new();
    let sound =
        memory.check(&request(&[address; LANES], 1 << 4, size, act), &mut |f| faults.push(f));
    assert!(faults.len() <= 1 && (sound == 0 || sound == 1 << 4));
    (faults.pop(), sound != 0)
}

#[track_caller]
fn assert_refused(memory: &Global, address: u64, size: u32, kind: Kind, says: &str) {
    let (fault, sound) = global_access(memory, address, size, Act::Write);
    let fault = fault.unwrap();
    assert_eq!((fault.kind, sound), (kind, false));
    assert!(fault.detail.contains(says), "{}", fault.detail);
    assert_eq!((fault.place.block, fault.place.thread, fault.line.ptx), (3, 36, 7));
}

#[test]
fn allocations_are_aligned_apart_and_never_at_an_old_address() {
    let mut memory = device();
    let first = memory.allocate(1).unwrap();
    let second = memory.allocate(1000).unwrap();
    assert_eq!(first, global::BASE);
    assert!(second.is_multiple_of(256) && second - first >= MIB);
    memory.free(second).unwrap();
    assert!(memory.allocate(1000).unwrap() > second);
}

#[test]
fn memory_that_is_full_is_an_error_and_freed_memory_counts_again() {
    let mut memory = device();
    let most = memory.allocate(MIB - 10).unwrap();
    assert_eq!(memory.allocate(11), Err(MemoryError::Full { asked: 11, free: 10, limit: MIB }));
    assert_eq!(
        memory.allocate(u64::MAX),
        Err(MemoryError::Full { asked: u64::MAX, free: 10, limit: MIB })
    );
    memory.free(most).unwrap();
    assert_eq!(memory.in_use(), 0);
    memory.allocate(MIB).unwrap();
    assert_eq!(memory.allocate(0), Err(MemoryError::Empty));
}

#[test]
fn more_than_addresses_or_the_host_have_is_an_error() {
    let mut memory = Global::new(u64::MAX, true);
    assert!(matches!(memory.allocate(u64::MAX), Err(MemoryError::Full { .. })));
    assert!(matches!(memory.allocate(1 << 62), Err(MemoryError::Host { .. })));
    assert_eq!(memory.in_use(), 0);
}

#[test]
fn only_living_beginnings_can_be_freed_and_once() {
    let mut memory = device();
    let base = memory.allocate(64).unwrap();
    let inside = memory.free(base + 4).unwrap_err();
    assert!(inside.to_string().contains("lies inside"), "{inside}");
    memory.free(base).unwrap();
    let twice = memory.free(base).unwrap_err();
    assert!(twice.to_string().contains("has been freed"), "{twice}");
    assert!(matches!(memory.free(17), Err(MemoryError::NotAllocated { address: 17, .. })));
}

#[test]
fn an_access_out_of_bounds_names_the_nearest_allocation() {
    let mut memory = device();
    let base = memory.allocate(4000).unwrap();
    let next = memory.allocate(80).unwrap();
    assert_refused(
        &memory,
        base + 4004,
        4,
        Kind::OutOfBounds,
        "4 bytes past the end of an allocation of 4000 bytes",
    );
    assert_refused(
        &memory,
        base + 3992,
        16,
        Kind::OutOfBounds,
        "leaves an allocation of 4000 bytes by 8",
    );
    assert_refused(
        &memory,
        next - 8,
        8,
        Kind::OutOfBounds,
        "8 bytes before an allocation of 80 bytes",
    );
    assert_refused(
        &memory,
        base - 1,
        1,
        Kind::OutOfBounds,
        "1 byte before an allocation of 4000 bytes",
    );
    assert_refused(&memory, 0, 4, Kind::OutOfBounds, "before an allocation");
    assert_refused(
        &memory,
        u64::MAX - 3,
        4,
        Kind::OutOfBounds,
        "past the end of an allocation of 80 bytes",
    );
    assert_refused(&device(), 64, 4, Kind::OutOfBounds, "nothing is allocated");
}

#[test]
fn use_after_free_is_told_from_an_access_out_of_bounds() {
    let mut memory = device();
    let base = memory.allocate(4000).unwrap();
    memory.free(base).unwrap();
    assert_refused(&memory, base + 40, 4, Kind::Freed, "40 bytes into an allocation of 4000");
    assert_refused(&memory, base + 4000, 4, Kind::OutOfBounds, "nothing is allocated");
}

#[test]
fn misaligned_accesses_are_refused() {
    let mut memory = device();
    let base = memory.allocate(64).unwrap();
    assert_refused(&memory, base + 6, 4, Kind::Misaligned, "2 bytes past a multiple of 4");
    assert_refused(&memory, base + 8, 16, Kind::Misaligned, "8 bytes past a multiple of 16");
}

#[test]
fn a_read_of_unwritten_bytes_is_found_and_goes_on() {
    let mut memory = device();
    let base = memory.allocate(64).unwrap();
    memory.write(base, &[1; 13]).unwrap();
    assert_eq!(global_access(&memory, base + 8, 4, Act::Read), (None, true));
    for (address, size, act) in
        [(base + 12, 4, Act::Read), (base, 16, Act::Read), (base + 16, 8, Act::Atomic)]
    {
        let (fault, sound) = global_access(&memory, address, size, act);
        assert_eq!((fault.unwrap().kind, sound), (Kind::Uninitialised, true));
    }
    let (fault, _) = global_access(&memory, base, 16, Act::Read);
    assert!(fault.unwrap().detail.contains("byte 13 of the 16"));
    assert_eq!(global_access(&memory, base + 16, 8, Act::Write), (None, true));
    // Without the check nobody asks.
    let mut plain = Global::new(MIB, false);
    let base = plain.allocate(64).unwrap();
    assert_eq!(global_access(&plain, base, 4, Act::Read), (None, true));
}

#[test]
fn a_kernels_stores_initialise() {
    let mut memory = device();
    let base = memory.allocate(8).unwrap();
    let view = memory.view(base + 4).unwrap();
    view.bytes.store((base + 4 - view.base) as usize, 2, 0xabcd);
    assert_eq!(global_access(&memory, base + 4, 2, Act::Read), (None, true));
    let mut out = [0; 8];
    memory.read(base, &mut out).unwrap();
    assert_eq!(out, [255, 255, 255, 255, 0xcd, 0xab, 255, 255]);
}

#[test]
fn copies_stay_inside_one_allocation() {
    let mut memory = device();
    let base = memory.allocate(100).unwrap();
    memory.fill(base + 50, 50, 9).unwrap();
    assert!(memory.write(base + 100, &[]).is_ok());
    let over = memory.write(base + 96, &[0; 8]).unwrap_err();
    assert!(over.to_string().contains("ends 4 bytes earlier"), "{over}");
    assert!(matches!(memory.read(base - 4, &mut [0; 4]), Err(MemoryError::OutOfBounds { .. })));
    assert!(matches!(memory.fill(base, usize::MAX, 0), Err(MemoryError::OutOfBounds { .. })));
    memory.free(base).unwrap();
    let freed = memory.read(base, &mut [0; 4]).unwrap_err();
    assert!(freed.to_string().contains("has been freed"), "{freed}");
}

#[test]
fn lanes_may_mean_different_allocations() {
    let mut memory = device();
    let bases = [memory.allocate(64).unwrap(), memory.allocate(64).unwrap()];
    let addresses = core::array::from_fn(|lane| bases[lane % 2] + lane as u64 / 2 * 4);
    let mut faults = Vec::new();
    let sound =
        memory.check(&request(&addresses, u32::MAX, 4, Act::Write), &mut |f| faults.push(f));
    assert_eq!((sound, faults), (u32::MAX, vec![]));
}

fn region_faults(
    region: &Region,
    addresses: &[u64; LANES],
    active: u32,
    act: Act,
) -> (Vec<Fault>, u32) {
    let mut faults = Vec::new();
    let sound = region.check(&request(addresses, active, 4, act), &mut |f| faults.push(f));
    (faults, sound)
}

#[test]
fn shared_memory_ends_where_it_ends() {
    let region = Region::new(Space::Shared, 64, true).unwrap();
    let addresses = core::array::from_fn(|lane| lane as u64 * 4);
    let (faults, sound) = region_faults(&region, &addresses, u32::MAX, Act::Write);
    assert_eq!((faults.len(), sound), (16, 0xffff));
    assert!(
        faults[1].detail.contains("4 bytes past the 64 bytes of shared memory"),
        "{}",
        faults[1].detail
    );
    let (faults, _) = region_faults(&region, &[u64::MAX - 3; LANES], 1, Act::Read);
    assert_eq!(faults[0].kind, Kind::OutOfBounds);
}

#[test]
fn a_new_block_finds_shared_memory_uninitialised() {
    let mut region = Region::new(Space::Shared, 64, true).unwrap();
    region.bytes().store(8, 4, 1);
    assert_eq!(region_faults(&region, &[8; LANES], 1, Act::Read), (vec![], 1));
    region.reset();
    let (faults, sound) = region_faults(&region, &[8; LANES], 1, Act::Read);
    assert_eq!((faults[0].kind, sound), (Kind::Uninitialised, 1));
}

#[test]
fn each_thread_has_its_own_local_memory() {
    let region = Region::local(20, 64, true).unwrap();
    // Thread 33 is lane 1 of warp 1.
    region.bytes().store(region.start(33) + 4, 4, 1);
    let (faults, sound) = region_faults(&region, &[4; LANES], 0b11, Act::Read);
    assert_eq!((faults.len(), sound), (1, 0b11));
    assert_eq!((faults[0].place.thread, faults[0].access.unwrap().address), (32, 4));
    let (faults, sound) = region_faults(&region, &[20; LANES], 1, Act::Write);
    assert_eq!((faults[0].kind, sound), (Kind::OutOfBounds, 0));
    assert!(Region::local(usize::MAX, 1024, true).is_err());
}

#[test]
fn constants_are_written_and_stay_so() {
    let region = Region::of(Space::Const, &[1, 2, 3, 4]).unwrap();
    assert_eq!(region_faults(&region, &[0; LANES], 1, Act::Read), (vec![], 1));
    let (faults, sound) = region_faults(&region, &[0; LANES], 1, Act::Write);
    assert_eq!((faults[0].kind, sound), (Kind::ReadOnly, 0));
}

#[test]
fn a_fault_reads_well() {
    let mut memory = device();
    let base = memory.allocate(4000).unwrap();
    let mut findings = Findings::new("sum".into(), Vec::new().into());
    let (fault, _) = global_access(&memory, base + 4000, 4, Act::Read);
    findings.report(fault.unwrap());
    let text = findings.all()[0].to_string();
    assert_eq!(
        text,
        "access out of bounds in kernel `sum` at PTX line 7: block 3, thread 36 (warp 1, lane 4), read of 4 bytes of global \
         memory at 0x7000000000fa0, right behind an allocation of 4000 bytes. hint: an index is not compared with \
         the number of elements, or the buffer is too small"
    );
}

proptest! {
    #[test]
    fn a_warps_check_is_that_of_its_lanes(
        offsets in prop::array::uniform32(-8_i64..72), active: u32, power in 0_u32..5, write: bool,
        written in prop::collection::vec((0_usize..64, 0_usize..64), 0..4),
    ) {
        let mut memory = device();
        let base = memory.allocate(64).unwrap();
        let mut bits = [false; 64];
        for (at, len) in written {
            let len = len.min(64 - at);
            memory.fill(base + at as u64, len, 0).unwrap();
            bits[at..at + len].fill(true);
        }
        let size = 1_u32 << power;
        let act = if write { Act::Write } else { Act::Read };
        let addresses = offsets.map(|o| base.wrapping_add_signed(o));
        let mut faults = Vec::new();
        let sound = memory.check(&request(&addresses, active, size, act), &mut |f| faults.push((f.place.lane(), f.kind)));
        let (mut expected, mut goes_on) = (Vec::new(), 0);
        for lane in lanes(active) {
            let (first, end) = (offsets[lane as usize], offsets[lane as usize] + i64::from(size));
            if first < 0 || end > 64 {
                expected.push((lane, Kind::OutOfBounds));
            } else if first % i64::from(size) != 0 {
                expected.push((lane, Kind::Misaligned));
            } else {
                goes_on |= 1 << lane;
                if !write && bits[first as usize..end as usize].contains(&false) {
                    expected.push((lane, Kind::Uninitialised));
                }
            }
        }
        prop_assert_eq!((faults, sound), (expected, goes_on));
    }
}
