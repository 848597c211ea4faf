//! Loads side by side, misaligned, and apart.

use super::place::{Place, counters, counting};
use super::{Bench, Experiment, Needs, Outcome, Table, largest, number};
use crate::chart::{Axis, Chart, Line};
use crate::error::Result;
use crate::rung::Text;
use warpfold_cuda::Launch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "coalescing",
    texts: &[Text::H, Text::P],
    title: "aligned, misaligned and strided loads",
    expectation: "32 lanes side by side are 4 sectors of one line; an offset that is no multiple of 8 words makes it 5, which caches hide nearly; any offset below a line makes it 2 lines, and a line that two warps take in parts costs most; a stride of s makes it 4 s until, from 8 words on, each lane has its own sector and an eighth of what moves is of use",
    needs: Needs::Kernels,
    run,
};

const BLOCK: u32 = 256;
/// Words of the array: on the interpreter, and on a device, where it is much larger
/// than the L2 cache.
const COUNTED: u64 = 1 << 14;
const TIMED: u64 = 1 << 27;
/// Offsets in words, and strides.
const OFFSETS: [u64; 9] = [0, 1, 2, 4, 8, 11, 16, 31, 32];
const STRIDES: [u64; 8] = [1, 2, 3, 4, 8, 16, 24, 32];
/// Blocks for each multiprocessor.
const BLOCKS: u32 = 8;

/// What the array holds, as the kernel fills it.
fn element(i: u64) -> u32 {
    let x = (i as u32).wrapping_mul(0x9e37_79b1);
    x ^ x >> 15
}

/// An array on a device, and where threads leave what they found.
struct Setup<'a, 'd> {
    place: &'a Place<'d>,
    words: u64,
    array: u64,
    out: u64,
    launch: Launch,
}

impl<'a, 'd> Setup<'a, 'd> {
    fn new(place: &'a Place<'d>, words: u64, blocks: u32) -> Result<Setup<'a, 'd>> {
        let launch = Launch::linear(blocks, BLOCK);
        let array = place.room(4 * words)?;
        let out = place.room(4 * u64::from(blocks * BLOCK))?;
        let fill = place.kernel("coalescing", "fill")?;
        place.launch(fill, &launch, &[array.into(), words.into()])?;
        place.wait()?;
        Ok(Setup { place, words, array, out, launch })
    }

    /// Elements that are read, by whole warps: all strides span the array.
    fn count(&self, stride: u64, offset: u64) -> u64 {
        (self.words - offset) / stride / 32 * 32
    }

    /// Whether the elements found are the right ones, and how long reading takes.
    fn read(&self, stride: u64, offset: u64) -> Result<(bool, Option<f64>)> {
        let kernel = self.place.kernel("coalescing", "read")?;
        let n = self.count(stride, offset);
        let arguments =
            [self.array.into(), self.out.into(), n.into(), stride.into(), offset.into()];
        self.place.launch(kernel, &self.launch, &arguments)?;
        self.place.wait()?;
        let threads = self.launch.grid[0] * BLOCK;
        let found = self.place.words(self.out, threads.into())?;
        let found = found.into_iter().fold(0, |all, x| all ^ x);
        let wanted = (0..n).fold(0, |all, i| all ^ element(offset + i * stride));
        Ok((found == wanted, self.place.time(kernel, &self.launch, &arguments)?))
    }
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let sim = counting();
    let small = Place::new(EXPERIMENT.id, &sim);
    let small = Setup::new(&small, COUNTED, 2)?;
    let place = bench.place(EXPERIMENT.id);
    let large = match &place {
        Some(place) => {
            let limits = place.device().limits();
            let words = TIMED.min(limits.memory / 16);
            Some(Setup::new(place, words, BLOCKS * limits.multiprocessors)?)
        }
        None => None,
    };
    counters(&sim);
    let offsets = OFFSETS.map(|offset| (1, offset));
    let strides = STRIDES.map(|stride| (stride, 0));
    let all = offsets.len() + strides.len();
    let mut done = 0;
    let mut best = Vec::new();
    for (title, by, cases) in [
        ("Offsets", "offset, words", offsets.as_slice()),
        ("Strides", "stride, words", strides.as_slice()),
    ] {
        let columns = [
            by,
            "lines per request",
            "sectors per request",
            "load efficiency, %",
            "useful GB/s",
            "moved GB/s",
            "time, us",
        ];
        let mut table = Table::new(title, &columns);
        let is_offset = by.starts_with("offset");
        let (mut counted_by, mut useful_by, mut moved_by) = (Vec::new(), Vec::new(), Vec::new());
        for &(stride, offset) in cases {
            bench.tell(done, all);
            done += 1;
            let (mut right, _) = small.read(stride, offset)?;
            let loads = counters(&sim).global_loads;
            let sectors = loads.sectors_per_request();
            let lines = (loads.requests > 0).then(|| loads.lines as f64 / loads.requests as f64);
            let mut time = None;
            let mut useful = None;
            if let Some(large) = &large {
                let (also, took) = large.read(stride, offset)?;
                right &= also;
                time = took;
                let bytes = 4.0 * large.count(stride, offset) as f64;
                useful = time.map(|time| bytes / time / 1e9);
            }
            if !right {
                outcome.wrong.push(format!("stride {stride}, offset {offset}: other elements"));
            }
            let efficiency = loads.efficiency();
            let moved = useful.zip(efficiency).map(|(useful, efficiency)| useful / efficiency);
            let x = if is_offset { offset } else { stride };
            // Offsets are not told apart by their sectors: 16 words off takes fewer than 1 word off, and is slower.
            let counted = if is_offset { lines } else { sectors };
            counted_by.extend(counted.map(|counted| (x as f64, counted)));
            useful_by.extend(useful.map(|useful| (x as f64, useful)));
            moved_by.extend(moved.map(|moved| (x as f64, moved)));
            best.extend(useful.map(|useful| ((stride, offset), useful)));
            table.rows.push(vec![
                x.into(),
                lines.into(),
                sectors.into(),
                efficiency.map(|e| 100.0 * e).into(),
                useful.into(),
                moved.into(),
                time.map(|time| time * 1e6).into(),
            ]);
        }
        outcome.tables.push(table);
        let line = |name: &str, points| Line { name: name.into(), points };
        let what = if is_offset { "lines" } else { "sectors" };
        outcome.charts.push(Chart::Lines {
            title: format!("{title}: {what} of a warp's load"),
            x: Axis::linear(by),
            y: Axis::linear(&format!("{what} per request")),
            lines: vec![line(what, counted_by)],
            marks: Vec::new(),
        });
        if !useful_by.is_empty() {
            outcome.charts.push(Chart::Lines {
                title: format!("{title}: bandwidth"),
                x: Axis::linear(by),
                y: Axis::linear("GB/s"),
                lines: vec![line("of use", useful_by), line("asked of the cache", moved_by)],
                marks: Vec::new(),
            });
        }
    }
    let of = |stride: u64, offset: u64| {
        best.iter().find(|(case, _)| *case == (stride, offset)).map(|(_, rate)| *rate)
    };
    if let (Some(aligned), Some(off), Some(apart)) = (of(1, 0), of(1, 1), of(32, 0)) {
        outcome.findings.push(format!(
            "an offset of one word costs {}% of the bandwidth; a stride of 32 words leaves {}% of it",
            number(100.0 * (1.0 - off / aligned)),
            number(100.0 * apart / aligned)
        ));
    }
    if let Some(((stride, offset), rate)) = largest(best.iter().copied()) {
        outcome.findings.push(format!(
            "the best is {} GB/s, at stride {stride} and offset {offset}",
            number(rate)
        ));
    }
    if let (Some(one), Some(half)) = (of(1, 1), of(1, 16)) {
        outcome.findings.push(format!(
            "half a line off reads {} GB/s, and a word off {}: both warps' loads touch 2 lines. A word off, the warp behind takes the whole of the second line, and this one finds its sector in the cache; half a line off, two warps take each line in halves, which is two requests for each line of memory, although there are 4 sectors instead of 5",
            number(half),
            number(one)
        ));
    }
    outcome.findings.push("lines are counted, too: an aligned warp touches 1 line of 128 bytes, and with any other offset below a line 2".into());
    outcome.findings.push("sectors are counted by the interpreter: an aligned warp takes 4, one that is a word off 5, one with a stride of 8 words or more 32".into());
    Ok(outcome)
}
