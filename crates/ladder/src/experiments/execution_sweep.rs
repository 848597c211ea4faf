//! Threads of a block against blocks of a multiprocessor.

use super::{Bench, Experiment, Needs, Outcome, Table, largest, number};
use crate::chart::Chart;
use crate::error::{Error, Result};
use crate::lab::Timing;
use crate::question::Question;
use crate::rung::Text;
use crate::statistics::median;
use crate::verdict::Verdict;
use warpfold_core::{DType, Op};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "execution-sweep",
    texts: &[Text::P],
    title: "threads of a block against blocks of a multiprocessor, for a rung",
    expectation: "what counts is threads at once: a diagonal of block x blocks of 1024 or more is about as good as any, fewer leave memory idle, and blocks beyond those that fit wait for a turn and cost little",
    needs: Needs::Clock,
    run,
};

const BLOCKS: [u32; 6] = [32, 64, 128, 256, 512, 1024];
const PER_MULTIPROCESSOR: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// 256 MiB of f32 and a ragged end.
const ELEMENTS: u64 = (1 << 26) + 3;

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let lab = bench.lab.ok_or(Error::NoClock { id: EXPERIMENT.id })?;
    let rung = bench.rung;
    if !rung.plan.has_free_grid() {
        return Err(Error::FixedGrid { rung });
    }
    let mut outcome = Outcome::default();
    let mut table = Table::new(
        &format!("{}: {ELEMENTS} f32", rung.id),
        &["threads of a block", "blocks of a multiprocessor", "threads", "time, us", "GB/s"],
    );
    let mut cells = Vec::new();
    let mut all = Vec::new();
    let timing = Timing { interval_bytes: 0, ..Timing::default() };
    let blocks: Vec<u32> = BLOCKS.into_iter().filter(|&block| rung.blocks.allow(block)).collect();
    for (i, &block) in blocks.iter().enumerate() {
        let mut row = Vec::new();
        for (j, per) in PER_MULTIPROCESSOR.into_iter().enumerate() {
            bench.tell(i * PER_MULTIPROCESSOR.len() + j, blocks.len() * PER_MULTIPROCESSOR.len());
            let question = Question::new(rung, DType::F32, Op::Sum, ELEMENTS, block)?;
            let measured = lab.measure(&question.on_each_multiprocessor(per), &timing, 1)?;
            if let Verdict::Wrong(mismatch) = &measured.verdict {
                outcome.wrong.push(mismatch.to_string());
            }
            let mut times: Vec<f64> = measured.times.iter().map(|t| t.as_secs_f64()).collect();
            let time = (!times.is_empty()).then(|| median(&mut times));
            let gbps = time.map(|time| 4.0 * ELEMENTS as f64 / time / 1e9);
            all.extend(gbps.map(|gbps| ((block, per), gbps)));
            row.push(gbps);
            table.rows.push(vec![
                block.into(),
                per.into(),
                (block * per).into(),
                time.map(|time| time * 1e6).into(),
                gbps.into(),
            ]);
        }
        cells.push(row);
    }
    if let Some(((block, per), gbps)) = largest(all) {
        outcome.findings.push(format!(
            "the best is {} GB/s, with {per} blocks of {block} threads on each multiprocessor",
            number(gbps)
        ));
    }
    outcome.tables.push(table);
    outcome.charts.push(Chart::Heat {
        title: format!("{}: bandwidth by shape of the launch", rung.id),
        unit: "GB/s".into(),
        across: "blocks of a multiprocessor".into(),
        columns: PER_MULTIPROCESSOR.map(|per| per.to_string()).into(),
        down: "threads of a block".into(),
        rows: blocks.iter().map(u32::to_string).collect(),
        cells,
    });
    Ok(outcome)
}
