//! How many warps a multiprocessor holds, by arithmetic and by the driver.

use super::place::Place;
use super::{Bench, Cell, Experiment, Needs, Outcome, Table};
use crate::chart::{Axis, Chart, Line};
use crate::error::Result;
use crate::occupancy::{Block, KNOWN, Multiprocessor, multiprocessor};
use crate::rung::Text;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "occupancy",
    texts: &[Text::P],
    title: "how many warps a multiprocessor holds, and what limits them",
    expectation: "the least of what warps, blocks, registers and shared memory have room for; registers are given to whole warps in four separate parts, which the popular shortcut forgets. A real device's driver says the same for every kernel, block and amount of shared memory",
    needs: Needs::Nothing,
    run,
};

/// Threads of a block.
const THREADS: [u32; 12] = [32, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024];
/// Registers of a thread.
const REGISTERS: [u32; 5] = [32, 40, 64, 96, 128];
/// Bytes of dynamic shared memory that the driver is asked about.
const SHARED: [u32; 7] = [0, 1, 1024, 8192, 24576, 49152, 100_000];

/// The kernels that the driver is asked about.
const KERNELS: [(&str, &str); 8] = [
    ("divergence", "long_by_thread"),
    ("matrix_add", "matrix_add"),
    ("latency", "chase"),
    ("latency", "chain"),
    ("latency", "in_flight_1"),
    ("latency", "in_flight_8"),
    ("coalescing", "read"),
    ("bank_conflicts", "strided"),
];

fn limits(found: &crate::occupancy::Occupancy) -> String {
    found.limited_by().map(|resource| resource.name()).collect::<Vec<_>>().join(" and ")
}

/// The arithmetic for one block of every capability.
fn capabilities() -> Table {
    let mut table = Table::new(
        "Blocks of 256 threads by compute capability",
        &["compute capability", "registers", "blocks", "warps", "of", "occupancy, %", "limited by"],
    );
    for known in KNOWN {
        for registers in REGISTERS {
            let block = Block { threads: 256, registers, shared: 0 };
            if let Ok(found) = known.occupancy(block) {
                let (major, minor) = known.capability;
                table.rows.push(vec![
                    format!("{major}.{minor}").into(),
                    registers.into(),
                    found.blocks.into(),
                    found.warps().into(),
                    known.warps.into(),
                    (100.0 * found.part()).into(),
                    limits(&found).into(),
                ]);
            }
        }
    }
    table
}

fn chart(known: Multiprocessor) -> Chart {
    let line = |registers: u32| {
        let part = |threads: u32| {
            let found = known.occupancy(Block { threads, registers, shared: 0 }).ok()?;
            Some((f64::from(threads), 100.0 * found.part()))
        };
        let points = (1..=32).filter_map(|warps| part(32 * warps)).collect();
        Line { name: format!("{registers} registers"), points }
    };
    let (major, minor) = known.capability;
    Chart::Lines {
        title: format!("Theoretical occupancy, compute capability {major}.{minor}"),
        x: Axis::linear("threads of a block"),
        y: Axis::linear("occupancy, %"),
        lines: [32, 40, 64, 128].map(line).into(),
        marks: Vec::new(),
    }
}

/// What the driver says beside what was computed; nothing where it does not tell
/// how many registers a kernel has.
fn compare(place: &Place<'_>, known: Multiprocessor, outcome: &mut Outcome) -> Result<()> {
    let device = place.device();
    let mut table = Table::new(
        "The driver's answer beside the arithmetic",
        &["kernel", "registers", "cases", "agree"],
    );
    let mut all = 0;
    for (module, name) in KERNELS {
        let kernel = place.kernel(module, name)?;
        let footprint = place.done(device.footprint(kernel))?;
        let Some((footprint, registers)) = footprint.and_then(|f| Some((f, f.registers?))) else {
            continue;
        };
        let (mut cases, mut agree) = (0u32, 0u32);
        for threads in THREADS.into_iter().filter(|&threads| threads <= footprint.threads) {
            for dynamic in SHARED {
                let shared = footprint.shared + dynamic;
                if shared > device.limits().shared_per_block {
                    continue;
                }
                let Ok(computed) = known.occupancy(Block { threads, registers, shared }) else {
                    continue;
                };
                let said = place.done(device.resident_blocks(kernel, threads, dynamic))?;
                cases += 1;
                if said == computed.blocks {
                    agree += 1;
                } else {
                    outcome.wrong.push(format!(
                        "{name}, {threads} threads of {registers} registers, {shared} bytes: {} blocks computed, the driver says {said}",
                        computed.blocks
                    ));
                }
            }
        }
        all += cases;
        table.rows.push(vec![name.into(), registers.into(), cases.into(), agree.into()]);
    }
    if all == 0 {
        outcome.skipped.push(
            "the driver's answer: this device does not say how many registers a kernel has".into(),
        );
        return Ok(());
    }
    outcome.findings.push(match outcome.wrong.len() {
        0 => format!("the driver agrees in all of {all} cases"),
        wrong => format!("the driver says something else in {wrong} of {all} cases"),
    });
    outcome.tables.push(table);
    Ok(())
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let known = bench.lab.map(|lab| lab.device().limits().capability).map(multiprocessor);
    let shown = known.flatten().or(multiprocessor((9, 0)));
    if let Some(known) = shown {
        let (major, minor) = known.capability;
        let mut table = Table::new(
            &format!("Blocks of many sizes, compute capability {major}.{minor}"),
            &["threads", "registers", "blocks", "warps", "occupancy, %", "limited by"],
        );
        for threads in THREADS {
            for registers in REGISTERS {
                if let Ok(found) = known.occupancy(Block { threads, registers, shared: 0 }) {
                    table.rows.push(vec![
                        threads.into(),
                        registers.into(),
                        found.blocks.into(),
                        found.warps().into(),
                        Cell::from(100.0 * found.part()),
                        limits(&found).into(),
                    ]);
                }
            }
        }
        outcome.tables.push(table);
        outcome.charts.push(chart(known));
        if let Ok(found) = known.occupancy(Block { threads: 96, registers: 65, shared: 0 }) {
            let shortcut = 65536 / (65u32 * 96).next_multiple_of(256);
            outcome.findings.push(format!(
                "96 threads of 65 registers: {} blocks; the shortcut that divides all registers by those of a block says {shortcut}",
                found.blocks
            ));
        }
    }
    outcome.findings.push("advice: blocks of a multiple of 32 threads, 128 to 256 or more, and many more blocks than multiprocessors".into());
    outcome.tables.push(capabilities());
    match (bench.place(EXPERIMENT.id), known) {
        (Some(place), Some(Some(known))) => compare(&place, known, &mut outcome)?,
        (Some(_), _) => outcome
            .skipped
            .push("the driver's answer: the limits of this compute capability are not known".into()),
        (None, _) => outcome.skipped.push(
            "the driver's answer: the interpreter has no registers to run out of; --device cuda compares".into(),
        ),
    }
    Ok(outcome)
}
