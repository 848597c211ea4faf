//! The library measured in memory, beside the rate at which this machine
//! reads.
//!
//! Cases over the same data take turns, round after round, so that a busy
//! moment hits all of them; the rate of pure reading is measured in the same
//! rounds. Figures are medians.

mod cases;
mod data;

use cases::{Case, Layout, Worker};
use data::{Buffers, Data};
use std::hint::black_box;
use std::time::{Duration, Instant};
use warpfold::internal::Isa;
use warpfold::{DType, Error, Reduction, Threads, View};
use warpfold_ladder::statistics::median;

/// What is measured, and how long.
pub(crate) struct Plan {
    pub(crate) elements: usize,
    pub(crate) threads: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) only: Option<String>,
}

/// What one case took.
pub(crate) struct Measurement {
    pub(crate) case: String,
    pub(crate) threads: usize,
    /// Elements of each array.
    pub(crate) elements: usize,
    /// Bytes of all arrays.
    pub(crate) bytes: usize,
    /// Nanoseconds of one call: the median, and the least.
    pub(crate) ns: f64,
    pub(crate) best_ns: f64,
    /// The speed as a part of that of reading, where it goes through memory.
    pub(crate) of_read: Option<f64>,
    /// The speed as a part of that of plain additions, where those are measured.
    pub(crate) of_plain: Option<f64>,
}

impl Measurement {
    /// Bytes of input for each nanosecond.
    pub(crate) fn gbps(&self) -> f64 {
        self.bytes as f64 / self.ns
    }
}

/// The rate of pure reading.
pub(crate) struct ReadRate {
    pub(crate) data: &'static str,
    pub(crate) threads: usize,
    pub(crate) gbps: f64,
}

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) cases: Vec<Measurement>,
    pub(crate) read: Vec<ReadRate>,
}

/// Measures; `progress` is told what comes next.
///
/// # Errors
/// What the reductions say.
pub(crate) fn run(plan: &Plan, mut progress: impl FnMut(&str)) -> Result<Results, Error> {
    let wanted = |case: &Case| plan.only.as_ref().is_none_or(|only| case.name.contains(&**only));
    let all: Vec<Case> = cases::all(plan.elements).into_iter().filter(wanted).collect();
    let mut results = Results::default();
    let mut buffers = Buffers::default();
    for data in Data::ALL {
        let group: Vec<&Case> = all.iter().filter(|c| c.data == data).collect();
        if group.is_empty() {
            continue;
        }
        progress(data.name());
        let paired = group.iter().any(|c| c.op.arity() == 2);
        buffers.fill(data, plan.elements, paired).map_err(|e| Error::Device {
            what: format!("cannot allocate {} elements: {e}", plan.elements),
            hint: "ask for fewer with --elements".into(),
        })?;
        for &threads in &plan.threads {
            measure_group(plan, data, &group, threads, &buffers, &mut results)?;
        }
    }
    Ok(results)
}

/// Times the cases of one kind of data in turns.
fn measure_group(
    plan: &Plan,
    data: Data,
    group: &[&Case],
    threads: usize,
    buffers: &Buffers,
    results: &mut Results,
) -> Result<(), Error> {
    let isa = Isa::active()?;
    let bytes = plan.elements * data.dtype().size();
    let mut reads = Vec::new();
    let mut samples = vec![Vec::new(); group.len()];
    // The first round warms caches, pools and pages, and does not count.
    for round in 0..=plan.rounds {
        let read = timed(|| {
            black_box(warpfold_cpu::read(buffers.words(bytes), isa, Threads::Exactly(threads)));
            Ok(())
        })?;
        if round > 0 {
            reads.push(read.as_nanos() as f64);
        }
        for (case, samples) in group.iter().zip(&mut samples) {
            let ns = call(case, data, threads, plan.elements, buffers)?;
            if round > 0 {
                samples.push(ns);
            }
        }
    }
    let read_rate = bytes as f64 / median(&mut reads);
    results.read.push(ReadRate { data: data.name(), threads, gbps: read_rate });
    let medians: Vec<f64> = samples.iter_mut().map(|s| median(s)).collect();
    for ((case, samples), &ns) in group.iter().zip(&samples).zip(&medians) {
        let elements = case.elements(plan.elements);
        let bytes = elements * data.dtype().size() * case.op.arity();
        let plain = group.iter().position(|other| case.is_exact_form_of(other));
        results.cases.push(Measurement {
            case: case.name.clone(),
            threads,
            elements,
            bytes,
            ns,
            best_ns: samples.iter().copied().fold(f64::INFINITY, f64::min),
            of_read: (!case.is_small()).then(|| bytes as f64 / ns / read_rate),
            of_plain: plain.map(|i| medians[i] / ns),
        });
    }
    Ok(())
}

/// Nanoseconds of one call.
fn call(
    case: &Case,
    data: Data,
    threads: usize,
    elements: usize,
    buffers: &Buffers,
) -> Result<f64, Error> {
    if let Layout::Small(len) = case.layout {
        return Ok(small_call(&buffers.f64s()[..len.min(elements)]));
    }
    if case.worker == Worker::PlainAdds {
        return plain_call(data, threads, elements, buffers);
    }
    let shape = case.shape(elements);
    let bytes = shape.iter().product::<usize>() * data.dtype().size();
    let left = View::from_bytes(data.dtype(), &buffers.first()[..bytes], &shape)?;
    let reduction = Reduction::of(case.op).wrap(true).threads(Threads::Exactly(threads));
    let reduction = match case.layout {
        Layout::Rows { axis, .. } => reduction.axis(axis),
        _ => reduction,
    };
    let time = if case.op.arity() == 2 {
        let right = View::from_bytes(data.dtype(), &buffers.second()[..bytes], &shape)?;
        timed(|| reduction.run_pair(&left, &right).map(|answer| drop(black_box(answer))))?
    } else {
        timed(|| reduction.run(&left).map(|answer| drop(black_box(answer))))?
    };
    Ok(time.as_nanos() as f64)
}

/// Nanoseconds of a sum by plain additions.
fn plain_call(
    data: Data,
    threads: usize,
    elements: usize,
    buffers: &Buffers,
) -> Result<f64, Error> {
    let (isa, threads) = (Isa::active()?, Threads::Exactly(threads));
    let time = if data.dtype() == DType::F32 {
        let items = &buffers.f32s()[..elements];
        timed(|| {
            black_box(warpfold_cpu::plain_sum(items, isa, threads));
            Ok(())
        })?
    } else {
        let items = &buffers.f64s()[..elements];
        timed(|| {
            black_box(warpfold_cpu::plain_sum(items, isa, threads));
            Ok(())
        })?
    };
    Ok(time.as_nanos() as f64)
}

/// A call too short for the clock: many, until a millisecond has passed.
fn small_call(items: &[f64]) -> f64 {
    let (mut calls, started) = (0u32, Instant::now());
    loop {
        for _ in 0..1000 {
            black_box(warpfold::sum(black_box(items)));
        }
        calls += 1000;
        let elapsed = started.elapsed();
        if elapsed > Duration::from_millis(2) {
            return elapsed.as_nanos() as f64 / f64::from(calls);
        }
    }
}

fn timed(work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

impl Case {
    /// Whether `plain` is this case with plain additions.
    fn is_exact_form_of(&self, plain: &Case) -> bool {
        self.worker == Worker::Library
            && plain.worker == Worker::PlainAdds
            && self.op == plain.op
            && self.layout == plain.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case runs, over few elements.
    #[test]
    fn every_case_is_measured() {
        let plan = Plan { elements: 1 << 16, threads: vec![1, 2], rounds: 1, only: None };
        let results = run(&plan, |_| ()).unwrap();
        assert_eq!(results.cases.len(), 2 * cases::all(plan.elements).len());
        assert!(results.cases.iter().all(|m| m.ns > 0.0 && m.gbps() > 0.0));
        assert!(results.cases.iter().any(|m| m.of_plain.is_some()));
        assert_eq!(results.read.len(), 2 * Data::ALL.len());
    }
}
