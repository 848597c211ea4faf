//! Matrices added in blocks of many shapes.

use super::place::{Place, counters, counting};
use super::{Bench, Experiment, Needs, Outcome, Table, largest, number};
use crate::chart::{Bar, Chart};
use crate::error::Result;
use crate::occupancy::multiprocessor;
use crate::rung::Text;
use warpfold_cuda::{Argument, Launch};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "matrix-add-shapes",
    texts: &[Text::P],
    title: "matrices added in blocks of many shapes",
    expectation: "the best shape is wide enough for whole sectors and has many blocks: it has neither the highest occupancy nor the highest load throughput. Blocks a few threads wide move sectors of which they use a part",
    needs: Needs::Kernels,
    run,
};

/// Threads of a block along x and y.
const SHAPES: [(u32, u32); 17] = [
    (1, 256),
    (2, 128),
    (4, 64),
    (8, 32),
    (16, 16),
    (32, 2),
    (32, 4),
    (32, 8),
    (32, 16),
    (32, 32),
    (64, 2),
    (64, 4),
    (128, 1),
    (128, 2),
    (256, 1),
    (512, 1),
    (1024, 1),
];
/// Width and height: of what no shape divides, to be added right; of what the
/// interpreter counts, in whole warps; and of what a device is timed on.
const RAGGED: (u32, u32) = (67, 35);
const COUNTED: (u32, u32) = (1024, 32);
const TIMED: (u32, u32) = (8192, 8192);

/// A matrix; the sum of the two is exact.
fn matrix(seed: u32, elements: u64) -> Vec<u8> {
    let element = |i: u64| ((i as u32).wrapping_mul(2654435761).wrapping_add(seed) >> 12) as f32;
    (0..elements).flat_map(|i| element(i).to_le_bytes()).collect()
}

struct Matrices<'a, 'd> {
    place: &'a Place<'d>,
    size: (u32, u32),
    arguments: Vec<Argument>,
    sum: u64,
    wanted: Vec<u8>,
}

impl<'a, 'd> Matrices<'a, 'd> {
    fn new(place: &'a Place<'d>, size: (u32, u32)) -> Result<Matrices<'a, 'd>> {
        let elements = u64::from(size.0) * u64::from(size.1);
        let (a, b) = (matrix(1, elements), matrix(77, elements));
        let sum = place.room(4 * elements)?;
        let arguments = vec![
            place.upload(&a)?.into(),
            place.upload(&b)?.into(),
            sum.into(),
            size.0.into(),
            size.1.into(),
        ];
        let float = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let pairs = a.chunks_exact(4).zip(b.chunks_exact(4));
        let wanted = pairs.flat_map(|(a, b)| (float(a) + float(b)).to_le_bytes()).collect();
        Ok(Matrices { place, size, arguments, sum, wanted })
    }

    fn launch(&self, (x, y): (u32, u32)) -> Launch {
        let grid = [self.size.0.div_ceil(x), self.size.1.div_ceil(y), 1];
        Launch { grid, block: [x, y, 1], ..Launch::linear(1, 1) }
    }

    /// Adds once, and compares.
    fn is_right(&self, shape: (u32, u32)) -> Result<bool> {
        let kernel = self.place.kernel("matrix_add", "matrix_add")?;
        let bytes = self.wanted.len() as u64;
        self.place.clear(self.sum, bytes)?;
        self.place.launch(kernel, &self.launch(shape), &self.arguments)?;
        self.place.wait()?;
        Ok(self.place.download(self.sum, bytes)? == self.wanted)
    }

    fn time(&self, shape: (u32, u32)) -> Result<Option<f64>> {
        let kernel = self.place.kernel("matrix_add", "matrix_add")?;
        self.place.time(kernel, &self.launch(shape), &self.arguments)
    }

    /// The part of `warps` warps of each multiprocessor that were there, on average
    /// over the time that the kernel ran: each warp says when it came and went.
    fn achieved(&self, shape: (u32, u32), warps: u32) -> Result<f64> {
        let kernel = self.place.kernel("matrix_add", "matrix_add_observed")?;
        let launch = self.launch(shape);
        let blocks = u64::from(launch.grid[0]) * u64::from(launch.grid[1]);
        let all = blocks * u64::from((shape.0 * shape.1).div_ceil(32));
        let (began, ended) = (self.place.room(8 * all)?, self.place.room(8 * all)?);
        let mut arguments = self.arguments.clone();
        arguments.extend([Argument::from(began), Argument::from(ended)]);
        // The first run finds its code and pages not there yet.
        for _ in 0..2 {
            self.place.launch(kernel, &launch, &arguments)?;
        }
        self.place.wait()?;
        let times = |address| -> Result<Vec<u64>> {
            let bytes = self.place.download(address, 8 * all)?;
            let word = |b: &[u8]| b.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            Ok(bytes.chunks_exact(8).map(word).collect())
        };
        let (began, ended) = (times(began)?, times(ended)?);
        let first = began.iter().min().copied().unwrap_or(0);
        let last = ended.iter().max().copied().unwrap_or(0);
        let there: u64 =
            ended.iter().zip(&began).map(|(end, begin)| end.saturating_sub(*begin)).sum();
        let multiprocessors = self.place.device().limits().multiprocessors;
        let room = last.saturating_sub(first) as f64 * f64::from(multiprocessors * warps);
        Ok(there as f64 / room)
    }
}

/// What one shape gave.
struct Row {
    shape: (u32, u32),
    time: Option<f64>,
    occupancy: Option<f64>,
    throughput: Option<f64>,
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let sim = counting();
    let small = Place::new(EXPERIMENT.id, &sim);
    let ragged = Matrices::new(&small, RAGGED)?;
    let small = Matrices::new(&small, COUNTED)?;
    let place = bench.place(EXPERIMENT.id);
    let large = match &place {
        Some(place) => Some(Matrices::new(place, TIMED)?),
        None => None,
    };
    counters(&sim);
    let mut table = Table::new(
        "Shapes of a block",
        &[
            "block",
            "time, us",
            "GB/s",
            "theoretical occupancy, %",
            "achieved occupancy, %",
            "sectors per request",
            "load efficiency, %",
            "load throughput, GB/s",
        ],
    );
    let mut rows = Vec::new();
    for (i, shape) in SHAPES.into_iter().enumerate() {
        bench.tell(i, SHAPES.len());
        let mut right = ragged.is_right(shape)?;
        counters(&sim);
        right &= small.is_right(shape)?;
        let loads = counters(&sim).global_loads;
        let (mut time, mut theoretical, mut achieved) = (None, None, None);
        if let Some(large) = &large {
            right &= large.is_right(shape)?;
            time = large.time(shape)?;
            let device = large.place.device();
            if let Some(known) = multiprocessor(device.limits().capability) {
                let kernel = large.place.kernel("matrix_add", "matrix_add")?;
                let threads = shape.0 * shape.1;
                let resident = large.place.done(device.resident_blocks(kernel, threads, 0))?;
                let warps = resident * threads.div_ceil(32);
                theoretical = Some(100.0 * f64::from(warps) / f64::from(known.warps));
                achieved = Some(100.0 * large.achieved(shape, known.warps)?);
            }
        }
        if !right {
            outcome.wrong.push(format!("{} x {}: not the sum of the matrices", shape.0, shape.1));
        }
        let read = 8.0 * f64::from(TIMED.0) * f64::from(TIMED.1);
        let efficiency = loads.efficiency();
        let throughput = time.zip(efficiency).map(|(time, e)| read / e / time / 1e9);
        table.rows.push(vec![
            format!("{} x {}", shape.0, shape.1).into(),
            time.map(|time| time * 1e6).into(),
            time.map(|time| 1.5 * read / time / 1e9).into(),
            theoretical.into(),
            achieved.into(),
            loads.sectors_per_request().into(),
            efficiency.map(|e| 100.0 * e).into(),
            throughput.into(),
        ]);
        rows.push(Row { shape, time, occupancy: achieved, throughput });
    }
    let name = |(x, y): (u32, u32)| format!("{x} x {y}");
    let best_of = |value: fn(&Row) -> Option<f64>| {
        largest(rows.iter().filter_map(|row| Some((row.shape, value(row)?))))
    };
    if let (Some((fastest, _)), Some((fullest, _)), Some((busiest, _))) = (
        best_of(|row| row.time.map(|time| -time)),
        best_of(|row| row.occupancy),
        best_of(|row| row.throughput),
    ) {
        outcome.findings.push(format!(
            "the fastest shape is {}; the highest occupancy has {}, and the highest load throughput {}",
            name(fastest),
            name(fullest),
            name(busiest)
        ));
    }
    let bars = |value: fn(&Row) -> Option<f64>| -> Vec<Bar> {
        rows.iter().filter_map(|row| Some(Bar::new(name(row.shape), value(row)?))).collect()
    };
    let times = bars(|row| row.time.map(|time| time * 1e6));
    if times.is_empty() {
        let sectors = table.rows.iter().filter_map(|row| match (&row[0], &row[5]) {
            (name, super::Cell::Number(x)) => Some(Bar::new(name.shown(), *x)),
            _ => None,
        });
        let title = "Sectors of a warp's load by the shape of a block";
        outcome.charts.push(Chart::bars(title, "sectors per request", sectors.collect()));
    } else {
        outcome.charts.push(Chart::bars("Time by the shape of a block", "us", times));
        let occupancy = bars(|row| row.occupancy);
        let title = "Achieved occupancy by the shape of a block";
        outcome.charts.push(Chart::bars(title, "%", occupancy));
    }
    let fewest = table.rows.iter().filter_map(|row| match row[5] {
        super::Cell::Number(sectors) => Some(sectors),
        _ => None,
    });
    let (least, most) = fewest.fold((f64::MAX, 0.0), |(a, b): (f64, f64), x| (a.min(x), b.max(x)));
    outcome.findings.push(format!(
        "a load takes from {} sectors, where the lanes of a warp are in one row, to {}, where each is in its own",
        number(least),
        number(most)
    ));
    outcome.tables.push(table);
    Ok(outcome)
}
