//! What must be on its way at once to hide how long a thing takes.

use super::place::{Place, bytes_of, rate};
use super::{Bench, Experiment, Needs, Outcome, Table, largest, number};
use crate::chart::{Axis, Chart, Line, Mark};
use crate::data::SplitMix;
use crate::error::{Error, Result};
use crate::rung::Text;
use warpfold_cuda::Launch;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "latency",
    texts: &[Text::P, Text::F],
    title: "Little's law: the work in flight that hides latency",
    expectation: "work in flight = latency x throughput. A load that misses the caches takes several hundred nanoseconds: some tens of KiB in flight for each multiprocessor, however many threads carry them. A multiplication takes about 4 cycles: 16 warps, 4 for each of four schedulers. Below that the rate grows in proportion, and beyond it not at all; the corner is where the law puts it if latency does not grow with load, and later as far as it does",
    needs: Needs::Clock,
    run,
};

/// Loads that wait for each other, each of which says where the next one is: words
/// that are walked through, and steps that are timed.
const FAR: u64 = 1 << 26;
const NEAR: u64 = 1 << 21;
const NEAREST: u64 = 1 << 12;
const STEPS: u32 = 20_000;
/// A word of each cache line is used.
const LINE: u64 = 32;

/// Multiplications that wait for each other.
const ROUNDS: u32 = 1 << 14;
const FACTOR: f32 = 0.75;
const SUMMAND: f32 = 1.5;

/// Words that the bandwidth is measured on.
const ARRAY: u64 = 1 << 27;

/// Threads of a multiprocessor: they are one block.
const THREADS: [u32; 8] = [32, 64, 128, 256, 384, 512, 768, 1024];
/// 16-byte loads of a thread that are on their way at once.
const LOADS: [u32; 4] = [1, 2, 4, 8];

/// One cycle through a word of each line, in a random order (Sattolo, "An algorithm to
/// generate a random cyclic permutation", 1986).
fn cycle(words: u64) -> Vec<u32> {
    let lines = (words / LINE) as usize;
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut random = SplitMix(7);
    for i in (1..lines).rev() {
        let other = (random.next() % i as u64) as usize;
        order.swap(i, other);
    }
    let mut next = vec![0; words as usize];
    for (line, to) in order.into_iter().enumerate() {
        next[line * LINE as usize] = to * LINE as u32;
    }
    next
}

/// Nanoseconds of a load in a walk, and whether it came where it should.
fn chase(place: &Place<'_>, words: u64) -> Result<(Option<f64>, bool)> {
    let (kernel, threads) = if words > NEAREST { ("chase", 1) } else { ("chase_shared", 1024) };
    let next = cycle(words);
    let array = place.upload(&bytes_of(&next))?;
    let walk = place.zeros(8)?;
    let kernel = place.kernel("latency", kernel)?;
    let (launch, arguments) =
        (Launch::linear(1, threads), [array.into(), walk.into(), STEPS.into()]);
    let time = place.time(kernel, &launch, &arguments)?;
    let ended = place.words(walk, 2)?;
    let wanted = (0..ended[1]).fold(0, |at, _| next[at as usize]);
    let right = ended[0] == wanted && ended[1] >= STEPS;
    Ok((time.map(|time| time * 1e9 / f64::from(STEPS)), right))
}

/// Multiplications of every thread, one block for each multiprocessor: seconds, and
/// whether they are right.
fn chain(place: &Place<'_>, threads: u32) -> Result<(Option<f64>, bool)> {
    let blocks = place.device().limits().multiprocessors;
    let out = place.room(4 * u64::from(blocks * threads))?;
    let kernel = place.kernel("latency", "chain")?;
    let launch = alone(place, blocks, threads);
    let arguments = [out.into(), FACTOR.into(), SUMMAND.into(), ROUNDS.into()];
    let time = place.time(kernel, &launch, &arguments)?;
    let wanted: Vec<u32> = (0..threads)
        .map(|thread| {
            let mut x = thread as f32;
            for _ in 0..ROUNDS {
                let next = FACTOR.mul_add(x, SUMMAND);
                // It stays where it is.
                if next == x {
                    break;
                }
                x = next;
            }
            x.to_bits()
        })
        .collect();
    let found = place.words(out, u64::from(blocks * threads))?;
    let right = found.chunks(threads as usize).all(|block| block == wanted);
    Ok((time, right))
}

/// Blocks of which no two fit into one multiprocessor.
fn alone(place: &Place<'_>, blocks: u32, threads: u32) -> Launch {
    let most = place.device().limits().shared_per_block;
    Launch::linear(blocks, threads).shared(most / 2 + 2048)
}

/// A point of the sweep of bytes in flight.
struct Point {
    loads: u32,
    threads: u32,
    bytes: f64,
    gbps: f64,
}

fn sweep(place: &Place<'_>, bench: &Bench<'_>, outcome: &mut Outcome) -> Result<Vec<Point>> {
    let limits = place.device().limits();
    let blocks = limits.multiprocessors;
    let words = ARRAY.min(limits.memory / 16);
    let array = place.room(4 * words)?;
    let fill = place.kernel("coalescing", "fill")?;
    place.launch(fill, &Launch::linear(8 * blocks, 256), &[array.into(), words.into()])?;
    let out = place.room(4 * u64::from(blocks * 1024))?;
    let mut points = Vec::new();
    let mut wanted = None;
    let all = LOADS.len() * THREADS.len();
    for loads in LOADS {
        let kernel = place.kernel("latency", &format!("in_flight_{loads}"))?;
        for threads in THREADS {
            bench.tell(points.len(), all);
            let launch = alone(place, blocks, threads);
            let arguments = [array.into(), out.into(), (words / 4).into()];
            let time = place.time(kernel, &launch, &arguments)?;
            let found = place.words(out, u64::from(blocks * threads))?;
            let found = found.into_iter().fold(0, |all, x| all ^ x);
            let wanted = *wanted.get_or_insert_with(|| {
                let element = |i: u64| {
                    let x = (i as u32).wrapping_mul(0x9e37_79b1);
                    x ^ x >> 15
                };
                (0..words / 4 * 4).fold(0, |all, i| all ^ element(i))
            });
            if found != wanted {
                outcome.wrong.push(format!("{loads} loads of {threads} threads: other elements"));
            }
            let bytes = f64::from(threads * loads * 16);
            if let Some(gbps) = rate(words / 4 * 16, time) {
                points.push(Point { loads, threads, bytes, gbps });
            }
        }
    }
    Ok(points)
}

/// Why the knee comes later than the law with the latency of an idle memory says: the law holds at every point, with the latency that a
/// load has there.
fn under_load(points: &[Point], blocks: f64, best: f64) -> Option<String> {
    let nanoseconds = |point: &Point| point.bytes * blocks / point.gbps;
    let least = points.iter().min_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
    let reached = points.iter().filter(|point| point.gbps >= 0.9 * best);
    let knee = reached.min_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
    Some(format!(
        "the law holds with the latency under load, which is bytes in flight / rate: {} ns with {} KiB in flight, where a warp's load is four lines that arrive one after the other, and {} ns with {} KiB, where requests queue for the memory. With the latency of an idle memory it gives the least that is needed, not the knee",
        number(nanoseconds(least)),
        number(least.bytes / 1024.0),
        number(nanoseconds(knee)),
        number(knee.bytes / 1024.0)
    ))
}

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let place = bench.place(EXPERIMENT.id).ok_or(Error::NoClock { id: EXPERIMENT.id })?;
    let mut outcome = Outcome::default();
    let blocks = f64::from(place.device().limits().multiprocessors);

    let mut latencies = Table::new("How long one takes", &["what", "nanoseconds"]);
    let mut far = None;
    for (words, what) in [
        (FAR, "a load from memory, a random walk over 256 MiB"),
        (NEAR, "a load from the L2 cache, 8 MiB"),
        (NEAREST, "a load from shared memory, 16 KiB"),
    ] {
        let (time, right) = chase(&place, words)?;
        if !right {
            outcome.wrong.push(format!("{what}: the chain ended elsewhere"));
        }
        far = far.or(time);
        latencies.rows.push(vec![what.into(), time.into()]);
    }

    let mut arithmetic = Table::new(
        "Multiplications that wait for each other",
        &["warps of a multiprocessor", "time, us", "per nanosecond and multiprocessor"],
    );
    let mut rates = Vec::new();
    let mut one = None;
    for threads in THREADS {
        let (time, right) = chain(&place, threads)?;
        if !right {
            outcome.wrong.push(format!("{threads} threads: other products than the host's"));
        }
        let per_ns = time.map(|time| f64::from(threads) * f64::from(ROUNDS) / time / 1e9);
        let warps = threads / 32;
        one = one.or(time.map(|time| time * 1e9 / f64::from(ROUNDS)));
        rates.extend(per_ns.map(|rate| (f64::from(warps), rate)));
        arithmetic.rows.push(vec![warps.into(), time.map(|time| time * 1e6).into(), per_ns.into()]);
    }
    latencies.rows.push(vec!["a multiplication and addition of f32".into(), one.into()]);
    let mut marks = Vec::new();
    if let (Some(latency), Some((_, best))) = (one, largest(rates.iter().map(|&(w, r)| (w, r)))) {
        let needed = latency * best / 32.0;
        let knee = rates.iter().find(|(_, rate)| *rate >= 0.9 * best).map(|(warps, _)| *warps);
        marks.push(Mark { at: needed, text: format!("Little: {} warps", number(needed)) });
        outcome.findings.push(format!(
            "arithmetic: {} ns x {} per ns are {} warps in flight; measured, {} warps reach nine tenths of the best",
            number(latency),
            number(best),
            number(needed),
            knee.map_or("-".into(), number)
        ));
    }
    let arithmetic_chart = Chart::Lines {
        title: "Multiplications by warps".into(),
        x: Axis::linear("warps of a multiprocessor"),
        y: Axis::linear("per nanosecond and multiprocessor"),
        lines: vec![Line { name: "multiplications".into(), points: rates }],
        marks,
    };

    let points = sweep(&place, bench, &mut outcome)?;
    let mut bytes = Table::new(
        "Bytes in flight",
        &[
            "16-byte loads a thread",
            "threads of a multiprocessor",
            "KiB in flight",
            "GB/s",
            "ns of a load under this load",
        ],
    );
    for point in &points {
        bytes.rows.push(vec![
            point.loads.into(),
            point.threads.into(),
            (point.bytes / 1024.0).into(),
            point.gbps.into(),
            (point.bytes * blocks / point.gbps).into(),
        ]);
    }
    let line = |loads: u32| Line {
        name: format!("{loads} a thread"),
        points: points
            .iter()
            .filter(|point| point.loads == loads)
            .map(|point| (point.bytes / 1024.0, point.gbps))
            .collect(),
    };
    let mut marks = Vec::new();
    if let (Some(latency), Some((_, best))) = (far, largest(points.iter().map(|p| ((), p.gbps)))) {
        let needed = latency * best / blocks / 1024.0;
        marks.push(Mark { at: needed, text: format!("Little: {} KiB", number(needed)) });
        let enough = points.iter().filter(|point| point.gbps >= 0.9 * best);
        let knee = enough.map(|point| point.bytes / 1024.0).fold(f64::NAN, f64::min);
        outcome.findings.push(format!(
            "memory: {} ns x {} GB/s are {} KiB in flight for each multiprocessor; measured, {} KiB reach nine tenths of the best",
            number(latency),
            number(best),
            number(needed),
            number(knee)
        ));
        outcome.findings.extend(under_load(&points, blocks, best));
    }
    outcome.charts.push(Chart::Lines {
        title: "Bandwidth by bytes in flight".into(),
        x: Axis::log("KiB in flight for each multiprocessor"),
        y: Axis::linear("GB/s"),
        lines: LOADS.map(line).into(),
        marks,
    });
    outcome.charts.push(arithmetic_chart);
    outcome.tables.extend([latencies, bytes, arithmetic]);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the record of an H200: 132 multiprocessors.
    #[test]
    fn the_latency_under_load_is_what_the_law_needs() {
        let point = |kib: f64, gbps| Point { loads: 1, threads: 32, bytes: kib * 1024.0, gbps };
        let points =
            [point(0.5, 171.9), point(12.0, 3258.0), point(24.0, 4077.0), point(128.0, 4396.0)];
        let told = under_load(&points, 132.0, 4396.0).unwrap();
        assert!(
            told.contains("393.2 ns with 0.5 KiB") && told.contains("795.7 ns with 24 KiB"),
            "{told}"
        );
        assert_eq!(under_load(&[], 132.0, 1.0), None);
    }

    #[test]
    fn walks_end_where_they_should() {
        let sim = super::super::place::counting();
        for words in [NEAREST, 2 * NEAREST] {
            let place = Place::new(EXPERIMENT.id, &sim);
            assert_eq!(chase(&place, words).unwrap(), (None, true), "{words}");
        }
    }

    #[test]
    fn a_cycle_visits_every_line_once() {
        let next = cycle(LINE * 100);
        let mut at = 0;
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            assert!(seen.insert(at) && at % LINE as u32 == 0);
            at = next[at as usize];
        }
        assert_eq!(at, 0);
    }
}
