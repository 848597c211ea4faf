//! What a lane's access costs: loads and stores with bounds, writtenness and race checks, as a reduction makes them.
//!
//! `cargo run --release -p warpfold-ptx --example checked_access`

use std::hint::black_box;
use std::time::Instant;
use warpfold_ptx::clock::{Key, Scope, Strong};
use warpfold_ptx::count::{Banked, Traffic};
use warpfold_ptx::finding::{Act, Fault, Space};
use warpfold_ptx::memory::{Global, Races, Region, Request, Target};
use warpfold_ptx::place::{LANES, Line, Place, Warp};

const BLOCKS: u32 = 64;
const THREADS: u32 = 256;
const WARPS: u32 = THREADS / LANES as u32;
/// Elements that each thread reads.
const LOADS: u32 = 16;

/// One launch of a reduction's memory accesses, as a machine would order them.
struct Launch {
    races: Option<Races>,
    global: Global,
    shared: Region,
    input: u64,
    output: u64,
    accesses: u64,
    faults: u64,
}

impl Launch {
    fn new(check: bool) -> Result<Launch, Box<dyn std::error::Error>> {
        let mut global = Global::new(1 << 30, check);
        let len = u64::from(BLOCKS * THREADS * LOADS) * 4;
        let input = global.allocate(len)?;
        global.fill(input, len as usize, 1)?;
        let output = global.allocate(u64::from(BLOCKS) * 4)?;
        let shared = Region::new(Space::Shared, THREADS as usize * 4, check)?;
        let races = check.then(|| Races::new(BLOCKS, THREADS, 1));
        Ok(Launch { races, global, shared, input, output, accesses: 0, faults: 0 })
    }

    fn access(
        &mut self,
        warp: Warp,
        active: u32,
        act: Act,
        shared: bool,
        address: impl Fn(u32) -> u64,
    ) {
        let addresses: [u64; LANES] =
            core::array::from_fn(|lane| address(warp.warp * LANES as u32 + lane as u32));
        let line = Line::default();
        let request = Request { addresses: &addresses, active, size: 4, act, warp, line };
        let faults = &mut self.faults;
        let mut report = |_: Fault| *faults += 1;
        let target = if shared { Target::Shared { of: warp.block } } else { Target::Global };
        let sound = match target {
            Target::Shared { .. } => self.shared.check(&request, &mut report),
            Target::Global => self.global.check(&request, &mut report),
        };
        let view = if shared { None } else { self.global.view_all(&request) };
        let (base, bytes) = view.map_or((0, self.shared.bytes()), |v| (v.base, v.bytes));
        let mut sum = 0;
        for (lane, address) in addresses.iter().enumerate() {
            if sound >> lane & 1 == 1 {
                let offset = (address - base) as usize;
                match act {
                    Act::Write => bytes.store(offset, 4, 7),
                    _ => sum += bytes.load(offset, 4),
                }
            }
        }
        black_box(sum);
        if let Some(races) = &mut self.races {
            races.access(&request, target, Scope::System, None, &mut report);
        }
        self.accesses += u64::from(active.count_ones());
    }

    fn each_warp(&mut self, block: u32, mut step: impl FnMut(&mut Launch, Warp)) {
        (0..WARPS).for_each(|warp| step(self, Warp { block, warp }));
    }

    fn barrier(&mut self, block: u32) {
        if let Some(races) = &mut self.races {
            races.clocks.sync_block(block, &[u32::MAX; WARPS as usize], None);
        }
    }

    fn block(&mut self, block: u32) {
        if let Some(races) = &mut self.races {
            races.start_block(block);
        }
        self.shared.reset();
        let (input, output) = (self.input, self.output);
        for load in 0..LOADS {
            let first = (load * BLOCKS + block) * THREADS;
            self.each_warp(block, |l, warp| {
                l.access(warp, u32::MAX, Act::Read, false, |t| input + u64::from(first + t) * 4);
            });
        }
        self.each_warp(block, |l, warp| {
            l.access(warp, u32::MAX, Act::Write, true, |t| u64::from(t) * 4)
        });
        self.barrier(block);
        let mut half = THREADS / 2;
        while half > 0 {
            self.each_warp(block, |l, warp| {
                let left = half.saturating_sub(warp.warp * LANES as u32).min(LANES as u32);
                if left > 0 {
                    let active = u32::MAX >> (LANES as u32 - left);
                    l.access(warp, active, Act::Read, true, |t| {
                        u64::from((t + half) % THREADS) * 4
                    });
                    l.access(warp, active, Act::Read, true, |t| u64::from(t) * 4);
                    l.access(warp, active, Act::Write, true, |t| u64::from(t) * 4);
                }
            });
            self.barrier(block);
            half /= 2;
        }
        let warp = Warp { block, warp: 0 };
        self.access(warp, 1, Act::Write, false, |_| output + u64::from(block) * 4);
        if let Some(races) = &mut self.races {
            // The ticket.
            races.clocks.fence(warp, 1, Scope::Device);
            let ticket = Strong {
                reads: true,
                writes: true,
                acquires: false,
                releases: false,
                scope: Scope::Device,
            };
            races.clocks.strong(
                Place { block, thread: 0 },
                Key { shared_of: None, address: 0 },
                ticket,
            );
            races.end_block(block, &mut |_| {});
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for check in [false, true] {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let mut launch = Launch::new(check)?;
            let start = Instant::now();
            (0..BLOCKS).for_each(|block| launch.block(block));
            best = best.min(start.elapsed().as_secs_f64() * 1e9 / launch.accesses as f64);
            assert_eq!(launch.faults, 0);
            if let Some(races) = &launch.races {
                let buffers = u64::from(BLOCKS * THREADS * LOADS) * 4;
                let per_byte = races.bytes() as f64 / buffers as f64;
                assert!(per_byte <= 16.0, "{per_byte} bytes of shadow a byte");
            }
        }
        println!(
            "{best:.2} ns an access of a lane, {}",
            if check { "every check" } else { "bounds only" }
        );
    }
    count();
    Ok(())
}

/// What counting costs.
fn count() {
    let (mut traffic, mut banked) = (Traffic::default(), Banked::default());
    let start = Instant::now();
    let requests = 100_000_u64;
    for i in 0..requests {
        let addresses: [u64; LANES] = core::array::from_fn(|lane| i * 128 + lane as u64 * 4);
        traffic.add(black_box(&addresses), u32::MAX, 4);
        banked.add(black_box(&addresses), u32::MAX, 4);
    }
    let lanes = requests * LANES as u64;
    println!(
        "{:.2} ns to count an access of a lane in sectors and banks",
        start.elapsed().as_secs_f64() * 1e9 / lanes as f64
    );
    assert_eq!((traffic.sectors, banked.conflicts), (4 * requests, 0));
}
