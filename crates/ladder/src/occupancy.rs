//! Theoretical occupancy: how many warps a multiprocessor holds, and which resource
//! limits them.

use core::fmt;

/// What a multiprocessor of a compute capability holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// The compute capability, major and minor.
    pub capability: (u32, u32),
    /// The most warps.
    pub warps: u32,
    /// The most blocks.
    pub blocks: u32,
    /// Its registers.
    pub registers: u32,
    /// The most registers of one block.
    pub registers_per_block: u32,
    /// Parts that have their own registers.
    pub partitions: u32,
    /// Bytes of shared memory of all blocks.
    pub shared: u32,
    /// The most bytes of shared memory of one block.
    pub shared_per_block: u32,
    /// Bytes that the shared memory of a block is rounded up to a multiple of.
    pub shared_unit: u32,
    /// Bytes that every block has beside its own.
    pub reserved: u32,
    /// How much shared memory a multiprocessor may be set to have, in KiB, from the least to the most. Where there is a choice, the L1
    /// cache has the rest.
    pub carve_outs: &'static [u32],
}

/// The most registers of a thread.
const MOST_REGISTERS: u32 = 255;
/// Registers are allocated to warps in pieces of this size.
const REGISTER_UNIT: u32 = 256;
const LANES: u32 = 32;
const MOST_THREADS: u32 = 1024;

/// A multiprocessor with 65536 registers in four parts. `carve_outs` are in KiB.
const fn row(
    capability: (u32, u32),
    warps: u32,
    blocks: u32,
    shared_per_block: u32,
    carve_outs: &'static [u32],
) -> Multiprocessor {
    let system = capability.0 >= 8;
    Multiprocessor {
        capability,
        warps,
        blocks,
        registers: 1 << 16,
        registers_per_block: 1 << 16,
        partitions: 4,
        shared: carve_outs[carve_outs.len() - 1] << 10,
        shared_per_block: shared_per_block << 10,
        shared_unit: if system { 128 } else { 256 },
        reserved: if system { 1024 } else { 0 },
        carve_outs,
    }
}

const VOLTA: &[u32] = &[0, 8, 16, 32, 64, 96];
const TO_100: &[u32] = &[0, 8, 16, 32, 64, 100];
const TO_164: &[u32] = &[0, 8, 16, 32, 64, 100, 132, 164];
const TO_228: &[u32] = &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228];

/// The compute capabilities whose limits are known: the tables of the CUDA programming guides, and the occupancy calculator for the
/// older ones.
pub const KNOWN: [Multiprocessor; 22] = [
    row((3, 5), 64, 16, 48, &[16, 32, 48]),
    Multiprocessor { registers: 1 << 17, ..row((3, 7), 64, 16, 48, &[80, 96, 112]) },
    row((5, 0), 64, 32, 48, &[64]),
    row((5, 2), 64, 32, 48, &[96]),
    Multiprocessor { registers_per_block: 1 << 15, ..row((5, 3), 64, 32, 48, &[64]) },
    Multiprocessor { partitions: 2, ..row((6, 0), 64, 32, 48, &[64]) },
    row((6, 1), 64, 32, 48, &[96]),
    Multiprocessor { registers_per_block: 1 << 15, ..row((6, 2), 64, 32, 48, &[64]) },
    row((7, 0), 64, 32, 96, VOLTA),
    row((7, 2), 64, 32, 96, VOLTA),
    row((7, 5), 32, 16, 64, &[32, 64]),
    row((8, 0), 64, 32, 163, TO_164),
    row((8, 6), 48, 16, 99, TO_100),
    row((8, 7), 48, 16, 163, TO_164),
    row((8, 9), 48, 24, 99, TO_100),
    row((9, 0), 64, 32, 227, TO_228),
    row((10, 0), 64, 32, 227, TO_228),
    row((10, 1), 48, 24, 227, TO_228),
    row((10, 3), 64, 32, 227, TO_228),
    row((11, 0), 48, 24, 227, TO_228),
    row((12, 0), 48, 24, 99, TO_100),
    row((12, 1), 48, 24, 99, TO_100),
];

/// The multiprocessor of a compute capability.
#[must_use]
pub fn multiprocessor(capability: (u32, u32)) -> Option<Multiprocessor> {
    KNOWN.into_iter().find(|m| m.capability == capability)
}

/// The resources that a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its threads.
    pub threads: u32,
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of shared memory, static and dynamic.
    pub shared: u32,
}

/// The resources that limit blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Warps.
    Warps,
    /// Blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
}

impl Resource {
    /// The name used in messages: `shared memory`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Warps => "warps",
            Resource::Blocks => "blocks",
            Resource::Registers => "registers",
            Resource::Shared => "shared memory",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No device has such a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// Too few or too many threads.
    Threads(u32),
    /// Too few or too many registers.
    Registers(u32),
}

impl core::fmt::Display for Impossible {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Impossible::Threads(what) => {
                write!(f, "a block has 1 to {MOST_THREADS} threads, not {what}")
            }
            Impossible::Registers(what) => {
                write!(f, "a thread has 1 to {MOST_REGISTERS} registers, not {what}")
            }
        }
    }
}

impl core::error::Error for Impossible {}

/// How many blocks a multiprocessor holds, and why no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The multiprocessor.
    pub multiprocessor: Multiprocessor,
    /// The block.
    pub block: Block,
    /// Warps of a block.
    pub warps_per_block: u32,
    /// Blocks at once. 0: the block does not fit.
    pub blocks: u32,
    /// How many blocks each resource has room for. There is no limit by shared memory
    /// if a block takes none.
    pub room: [(Resource, u32); 4],
}

impl Multiprocessor {
    /// How many such blocks it holds.
    ///
    /// # Errors
    /// A block that no device has.
    pub fn occupancy(self, block: Block) -> Result<Occupancy, Impossible> {
        if !(1..=MOST_THREADS).contains(&block.threads) {
            return Err(Impossible::Threads(block.threads));
        }
        if !(1..=MOST_REGISTERS).contains(&block.registers) {
            return Err(Impossible::Registers(block.registers));
        }
        let warps = block.threads.div_ceil(LANES);
        let room = [
            (Resource::Warps, self.warps / warps),
            (Resource::Blocks, self.blocks),
            (Resource::Registers, self.by_registers(warps, block.registers)),
            (Resource::Shared, self.by_shared(block.shared)),
        ];
        let blocks = room.iter().map(|(_, blocks)| *blocks).min().unwrap_or(0);
        Ok(Occupancy { multiprocessor: self, block, warps_per_block: warps, blocks, room })
    }

    fn by_shared(self, shared: u32) -> u32 {
        if shared > self.shared_per_block {
            return 0;
        }
        self.shared.checked_div(self.shared_taken(shared)).unwrap_or(u32::MAX)
    }

    /// Bytes that a block takes.
    const fn shared_taken(self, shared: u32) -> u32 {
        (shared + self.reserved).next_multiple_of(self.shared_unit)
    }

    /// Registers are allocated to whole warps, from one of the parts of the register file.
    /// What is left in one part cannot be used by another. So a part holds a whole number
    /// of warps, and the multiprocessor as many times as many as it has parts.
    fn by_registers(self, warps: u32, registers: u32) -> u32 {
        let per_warp = (LANES * registers).next_multiple_of(REGISTER_UNIT);
        if per_warp * warps.next_multiple_of(self.partitions) > self.registers_per_block {
            return 0;
        }
        self.registers / self.partitions / per_warp * self.partitions / warps
    }
}

impl Occupancy {
    /// Warps at once.
    #[must_use]
    pub fn warps(&self) -> u32 {
        self.blocks * self.warps_per_block
    }

    /// The occupancy, from 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        f64::from(self.warps()) / f64::from(self.multiprocessor.warps)
    }

    /// The resources that are exhausted.
    pub fn limited_by(&self) -> impl Iterator<Item = Resource> {
        self.room.into_iter().filter(|(_, room)| *room == self.blocks).map(|(resource, _)| resource)
    }

    /// The least shared memory, in KiB, that the multiprocessor must be set to have for these blocks; the L1 cache may have the rest.
    #[must_use]
    pub fn carve_out(&self) -> Option<u32> {
        let bytes = self.blocks * self.multiprocessor.shared_taken(self.block.shared);
        (self.blocks > 0).then(|| {
            let all = self.multiprocessor.carve_outs.iter().copied();
            all.clone().find(|kib| kib << 10 >= bytes).or(all.last()).unwrap_or(0)
        })
    }

    /// Why such a block will not be launched.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        if self.blocks > 0 {
            return None;
        }
        let (Block { threads, registers, shared }, on) = (self.block, self.multiprocessor);
        let warps = self.warps_per_block;
        Some(if shared > on.shared_per_block {
            format!(
                "a block has at most {} bytes of shared memory, not {shared}",
                on.shared_per_block
            )
        } else {
            let per_warp = (LANES * registers).next_multiple_of(REGISTER_UNIT);
            format!(
                "{threads} threads of {registers} registers take {} registers, and a block has at most {}",
                per_warp * warps.next_multiple_of(on.partitions),
                on.registers_per_block
            )
        })
    }

    /// The block size nearest to this one that holds the most warps, if it holds more: with as many registers a thread, and as much
    /// shared memory a block.
    fn better(&self) -> Option<Occupancy> {
        let of = |warps: u32| {
            let block = Block { threads: warps * LANES, ..self.block };
            self.multiprocessor.occupancy(block).ok()
        };
        let all = || (1..=MOST_THREADS / LANES).filter_map(of);
        let most = all().map(|o| o.warps()).max().filter(|most| *most > self.warps())?;
        let distance = |o: &Occupancy| o.block.threads.abs_diff(self.block.threads);
        all().filter(|o| o.warps() == most).min_by_key(distance)
    }

    /// Advice, a sentence each.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let Block { threads, registers, .. } = self.block;
        let on = self.multiprocessor;
        let mut advice = Vec::new();
        let idle = self.warps_per_block * LANES - threads;
        if idle > 0 {
            advice.push(format!(
                "{idle} lanes of the last warp idle: {} threads would cost no more",
                threads + idle
            ));
        }
        if let Some(better) = self.better() {
            advice.push(format!(
                "blocks of {} threads would hold {} warps instead of {}",
                better.block.threads,
                better.warps(),
                self.warps()
            ));
        }
        let limits = |resource| self.limited_by().any(|r| r == resource);
        let full = on.warps / self.warps_per_block;
        let full = full.min(on.blocks);
        if limits(Resource::Registers) && self.blocks < full {
            let enough = (1..registers)
                .rev()
                .find(|&fewer| on.by_registers(self.warps_per_block, fewer) > self.blocks);
            if let Some(fewer) = enough {
                advice.push(format!("{fewer} registers a thread leave room for another block"));
            }
        }
        if limits(Resource::Shared) && self.blocks < full {
            let fewer =
                (0..self.block.shared).rev().find(|&shared| on.by_shared(shared) > self.blocks);
            if let Some(fewer) = fewer {
                advice.push(format!(
                    "{fewer} bytes of shared memory a block leave room for another one"
                ));
            }
        }
        advice.push("start many more blocks than all multiprocessors hold at once, or a loop in blocks that they do hold".into());
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(capability: (u32, u32), threads: u32, registers: u32, shared: u32) -> Occupancy {
        let block = Block { threads, registers, shared };
        multiprocessor(capability).unwrap().occupancy(block).unwrap()
    }

    #[test]
    fn registers_are_counted_in_four_parts() {
        let found = blocks((9, 0), 96, 65, 0);
        // The shortcut of all registers by those of a block says 10.
        assert_eq!((found.blocks, found.warps(), found.multiprocessor.warps), (9, 27, 64));
        assert!(found.limited_by().eq([Resource::Registers]));
        assert!(found.advice().iter().any(|a| a.contains("64 registers")), "{:?}", found.advice());
    }

    /// Each limit alone, on each row of the table.
    #[test]
    fn every_row_has_its_limits() {
        for (capability, warps, most, shared, per_block) in [
            ((3, 5), 64, 16, 48, 48),
            ((3, 7), 64, 16, 112, 48),
            ((5, 0), 64, 32, 64, 48),
            ((5, 2), 64, 32, 96, 48),
            ((6, 0), 64, 32, 64, 48),
            ((6, 1), 64, 32, 96, 48),
            ((7, 0), 64, 32, 96, 96),
            ((7, 2), 64, 32, 96, 96),
            ((7, 5), 32, 16, 64, 64),
            ((8, 0), 64, 32, 164, 163),
            ((8, 6), 48, 16, 100, 99),
            ((8, 7), 48, 16, 164, 163),
            ((8, 9), 48, 24, 100, 99),
            ((9, 0), 64, 32, 228, 227),
            ((10, 0), 64, 32, 228, 227),
            ((10, 3), 64, 32, 228, 227),
            ((11, 0), 48, 24, 228, 227),
            ((12, 0), 48, 24, 100, 99),
            ((12, 1), 48, 24, 100, 99),
        ] {
            let found = blocks(capability, 32, 16, 0);
            assert_eq!(found.blocks, most, "{capability:?}");
            assert!(found.limited_by().any(|r| r == Resource::Blocks));
            let found = blocks(capability, 256, 16, 0);
            assert_eq!(found.warps(), warps, "{capability:?}");
            assert_eq!(found.part(), 1.0);
            // The largest block, and 1 byte more does not fit.
            assert_eq!(blocks(capability, 64, 16, per_block << 10).blocks, shared / per_block);
            let found = blocks(capability, 64, 16, (per_block << 10) + 1);
            assert_eq!(found.blocks, 0);
            assert!(found.limited_by().eq([Resource::Shared]));
            assert!(found.refusal().is_some_and(|why| why.contains("bytes of shared memory")));
            // A quarter of it, less what the system keeps.
            let reserved = if capability < (8, 0) { 0 } else { 1 };
            let quarter = (shared << 10) / 4 - (reserved << 10);
            assert_eq!(blocks(capability, 64, 16, quarter).blocks, 4, "{capability:?}");
            assert_eq!(blocks(capability, 64, 16, quarter + 1).blocks, 3, "{capability:?}");
        }
        assert_eq!(multiprocessor((2, 0)), None);
        assert!(KNOWN.iter().is_sorted_by_key(|m| m.capability));
        assert!(KNOWN.iter().all(|m| m.carve_outs.is_sorted() && m.shared_per_block <= m.shared));
    }

    #[test]
    fn carve_outs_are_the_least_that_hold_the_blocks() {
        // 8 blocks of 1 KiB that the system keeps.
        assert_eq!(blocks((9, 0), 256, 32, 0).carve_out(), Some(8));
        // 4 blocks of 25 KiB are exactly 100 KiB, and a byte more takes the next step.
        assert_eq!(blocks((9, 0), 512, 32, 24 << 10).carve_out(), Some(100));
        assert_eq!(blocks((9, 0), 512, 32, (24 << 10) + 1).carve_out(), Some(132));
        assert_eq!(blocks((7, 5), 256, 32, 0).carve_out(), Some(32));
        assert_eq!(blocks((6, 1), 256, 32, 1).carve_out(), Some(96));
        assert_eq!(blocks((9, 0), 1024, 65, 0).carve_out(), None);
    }

    #[test]
    fn registers_of_older_devices() {
        // Twice as many for all blocks, and as many for one.
        assert_eq!(
            (blocks((3, 7), 1024, 64, 0).blocks, blocks((3, 7), 1024, 65, 0).blocks),
            (2, 0)
        );
        assert_eq!(
            (blocks((3, 5), 1024, 64, 0).blocks, blocks((3, 5), 1024, 32, 0).blocks),
            (1, 2)
        );
        // Half of them for one.
        assert_eq!((blocks((6, 2), 512, 64, 0).blocks, blocks((6, 2), 512, 65, 0).blocks), (2, 0));
        // Two parts: 7 warps of 4608 registers fit in one of 32768, and 3 in one of 16384.
        assert_eq!(
            (blocks((6, 0), 32, 168, 0).blocks, blocks((6, 1), 32, 168, 0).blocks),
            (12, 12)
        );
        assert_eq!(
            (blocks((6, 0), 32, 152, 0).blocks, blocks((6, 1), 32, 152, 0).blocks),
            (12, 12)
        );
        assert_eq!(
            (blocks((6, 0), 32, 144, 0).blocks, blocks((6, 1), 32, 144, 0).blocks),
            (14, 12)
        );
    }

    #[test]
    fn blocks_that_do_not_fit_say_why() {
        let found = blocks((9, 0), 1024, 65, 0);
        let why = found.refusal().unwrap();
        assert_eq!(
            why,
            "1024 threads of 65 registers take 73728 registers, and a block has at most 65536"
        );
        assert_eq!(blocks((9, 0), 1024, 64, 0).refusal(), None);
    }

    /// Whenever another block size would hold more, it is named, and it does.
    #[test]
    fn another_block_size_is_named_where_it_holds_more() {
        for (capability, threads, registers, shared) in [
            ((8, 6), 1024, 16, 0),
            ((9, 0), 768, 32, 0),
            ((9, 0), 32, 32, 0),
            ((7, 5), 96, 64, 0),
            ((9, 0), 1024, 65, 0),
        ] {
            let found = blocks(capability, threads, registers, shared);
            let told = found.advice().into_iter().find(|a| a.contains("would hold")).unwrap();
            let better: u32 = told.split(' ').nth(2).unwrap().parse().unwrap();
            let other = blocks(capability, better, registers, shared);
            assert!(other.warps() > found.warps(), "{told}");
            assert!(other.advice().iter().all(|a| !a.contains("would hold")), "{told}");
        }
        assert!(blocks((9, 0), 256, 32, 0).advice().iter().all(|a| !a.contains("would hold")));
    }

    #[test]
    fn registers_alone() {
        // 1024 threads of 64 registers are all there are; of 65, too many.
        assert_eq!(blocks((9, 0), 1024, 64, 0).blocks, 1);
        assert_eq!(blocks((9, 0), 1024, 65, 0).blocks, 0);
        assert_eq!(blocks((8, 0), 256, 32, 0).blocks, 8);
        assert_eq!(blocks((8, 0), 256, 33, 0).blocks, 6);
        assert_eq!(blocks((8, 0), 32, 255, 0).blocks, 8);
    }

    #[test]
    fn advice_leads_somewhere() {
        let found = blocks((8, 0), 80, 16, 0);
        assert_eq!(found.warps_per_block, 3);
        assert!(found.advice()[0].contains("16 lanes") && found.advice()[0].contains("96 threads"));
        let found = blocks((8, 0), 256, 40, 30 << 10);
        assert_eq!(found.blocks, 5);
        let text = found.advice().join("\n");
        let bytes: u32 = text
            .lines()
            .find_map(|line| line.split_once(" bytes"))
            .map(|(number, _)| number.parse().unwrap())
            .unwrap();
        assert_eq!(blocks((8, 0), 256, 40, bytes).blocks, 6);
        assert_eq!(blocks((8, 0), 256, 40, bytes + 1).blocks, 5);
    }

    #[test]
    fn blocks_that_no_device_has() {
        let sm = KNOWN[0];
        let of = |threads, registers| sm.occupancy(Block { threads, registers, shared: 0 });
        assert_eq!(of(0, 32), Err(Impossible::Threads(0)));
        assert_eq!(of(1025, 32), Err(Impossible::Threads(1025)));
        assert_eq!(of(32, 0), Err(Impossible::Registers(0)));
        assert_eq!(of(32, 256), Err(Impossible::Registers(256)));
        assert_eq!(
            sm.occupancy(Block { threads: 32, registers: 1, shared: u32::MAX }).unwrap().blocks,
            0
        );
    }
}
