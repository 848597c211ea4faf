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
    /// Bytes of shared memory of all blocks.
    pub shared: u32,
    /// The most bytes of shared memory of one block.
    pub shared_per_block: u32,
    /// Bytes that the shared memory of a block is rounded up to a multiple of.
    pub shared_unit: u32,
    /// Bytes of shared memory that every block has beside its own.
    pub reserved: u32,
}

/// Registers of a multiprocessor, and the most that a block has.
const REGISTERS: u32 = 1 << 16;
/// The most registers of a thread.
const MOST_REGISTERS: u32 = 255;
/// Registers are allocated to warps in pieces of this size.
const REGISTER_UNIT: u32 = 256;
/// Parts of a multiprocessor that have their own registers.
const PARTITIONS: u32 = 4;
const LANES: u32 = 32;
const MOST_THREADS: u32 = 1024;

const fn row(
    capability: (u32, u32),
    warps: u32,
    blocks: u32,
    kib: (u32, u32),
    shared_unit: u32,
    reserved: u32,
) -> Multiprocessor {
    let (shared, shared_per_block) = (kib.0 << 10, kib.1 << 10);
    Multiprocessor { capability, warps, blocks, shared, shared_per_block, shared_unit, reserved }
}

/// The compute capabilities whose limits are known.
pub const KNOWN: [Multiprocessor; 7] = [
    row((7, 5), 32, 16, (64, 64), 256, 0),
    row((8, 0), 64, 32, (164, 163), 128, 1024),
    row((8, 6), 48, 16, (100, 99), 128, 1024),
    row((8, 9), 48, 24, (100, 99), 128, 1024),
    row((9, 0), 64, 32, (228, 227), 128, 1024),
    row((10, 0), 64, 32, (228, 227), 128, 1024),
    row((12, 0), 48, 24, (100, 99), 128, 1024),
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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// Too few or too many threads.
    #[error("a block has 1 to {MOST_THREADS} threads, not {0}")]
    Threads(u32),
    /// Too few or too many registers.
    #[error("a thread has 1 to {MOST_REGISTERS} registers, not {0}")]
    Registers(u32),
}

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
            (Resource::Registers, by_registers(warps, block.registers)),
            (Resource::Shared, self.by_shared(block.shared)),
        ];
        let blocks = room.iter().map(|(_, blocks)| *blocks).min().unwrap_or(0);
        Ok(Occupancy { multiprocessor: self, block, warps_per_block: warps, blocks, room })
    }

    fn by_shared(self, shared: u32) -> u32 {
        if shared > self.shared_per_block {
            return 0;
        }
        let taken = (shared + self.reserved).next_multiple_of(self.shared_unit);
        self.shared.checked_div(taken).unwrap_or(u32::MAX)
    }
}

/// Registers are allocated to whole warps, from one of four parts of the register file.
/// What is left in one part cannot be used by another. So a part holds a whole number
/// of warps, and the multiprocessor four times as many.
fn by_registers(warps: u32, registers: u32) -> u32 {
    let per_warp = (LANES * registers).next_multiple_of(REGISTER_UNIT);
    if per_warp * warps.next_multiple_of(PARTITIONS) > REGISTERS {
        return 0;
    }
    REGISTERS / PARTITIONS / per_warp * PARTITIONS / warps
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

    /// Advice, a sentence each.
    #[must_use]
    pub fn advice(&self) -> Vec<String> {
        let Block { threads, registers, .. } = self.block;
        let mut advice = Vec::new();
        let idle = self.warps_per_block * LANES - threads;
        if idle > 0 {
            advice.push(format!(
                "{idle} lanes of the last warp idle: {} threads would cost no more",
                threads + idle
            ));
        }
        if threads < 128 {
            advice.push("blocks of 128 to 256 threads fill the multiprocessor more easily".into());
        }
        let limits = |resource| self.limited_by().any(|r| r == resource);
        let full = self.multiprocessor.warps / self.warps_per_block;
        let full = full.min(self.multiprocessor.blocks);
        if limits(Resource::Registers) && self.blocks < full {
            let enough = (1..registers)
                .rev()
                .find(|&fewer| by_registers(self.warps_per_block, fewer) > self.blocks);
            if let Some(fewer) = enough {
                advice.push(format!("{fewer} registers a thread leave room for another block"));
            }
        }
        if limits(Resource::Shared) && self.blocks < full {
            let fewer = (0..self.block.shared)
                .rev()
                .find(|&shared| self.multiprocessor.by_shared(shared) > self.blocks);
            if let Some(fewer) = fewer {
                advice.push(format!(
                    "{fewer} bytes of shared memory a block leave room for another one"
                ));
            }
        }
        if limits(Resource::Blocks) && self.warps() < self.multiprocessor.warps {
            let threads = self.multiprocessor.warps / self.multiprocessor.blocks * LANES;
            advice.push(format!(
                "the number of blocks is at its limit: with {threads} threads they fill all warps"
            ));
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
            ((7, 5), 32, 16, 64, 64),
            ((8, 0), 64, 32, 164, 163),
            ((8, 6), 48, 16, 100, 99),
            ((8, 9), 48, 24, 100, 99),
            ((9, 0), 64, 32, 228, 227),
            ((10, 0), 64, 32, 228, 227),
            ((12, 0), 48, 24, 100, 99),
        ] {
            let found = blocks(capability, 32, 16, 0);
            assert_eq!(found.blocks, most, "{capability:?}");
            assert!(found.limited_by().any(|r| r == Resource::Blocks));
            let found = blocks(capability, 256, 16, 0);
            assert_eq!(found.warps(), warps, "{capability:?}");
            assert_eq!(found.part(), 1.0);
            // The largest block takes all of the shared memory, and 1 byte more does not fit.
            assert_eq!(blocks(capability, 64, 16, per_block << 10).blocks, 1);
            let found = blocks(capability, 64, 16, (per_block << 10) + 1);
            assert_eq!(found.blocks, 0);
            assert!(found.limited_by().eq([Resource::Shared]));
            // A quarter of it, less what the system keeps.
            let reserved = if capability == (7, 5) { 0 } else { 1 };
            let quarter = (shared << 10) / 4 - (reserved << 10);
            assert_eq!(blocks(capability, 64, 16, quarter).blocks, 4, "{capability:?}");
            assert_eq!(blocks(capability, 64, 16, quarter + 1).blocks, 3, "{capability:?}");
        }
        assert_eq!(multiprocessor((6, 1)), None);
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
