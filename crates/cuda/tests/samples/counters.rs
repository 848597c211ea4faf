//! The interpreter counts what Nsight Compute counts on an H200:
//! `records/counters-h200.json`, made by `record_counters.py`.
//!
//! Requests, sectors, wavefronts and bank conflicts are equal. Instructions are
//! PTX on one side and machine code on the other, which has more address
//! arithmetic and merges instructions; and it predicates short branches, whose
//! switched-off lanes the profiler counts. They agree within the factors of
//! [`ALIKE`].

use serde_json::Value;
use warpfold_cuda::Sim;
use warpfold_ptx::count::Counters;
use warpfold_ptx::machine::{Checks, Options, Schedule};

type Counter = fn(&Counters) -> u64;

/// The profiler's metrics that are equal, and their counters.
#[rustfmt::skip]
const EQUAL: [(&str, Counter); 8] = [
    ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", |c| c.global_loads.requests),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", |c| c.global_loads.sectors),
    ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", |c| c.global_stores.requests),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", |c| c.global_stores.sectors),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", |c| c.shared_loads.wavefronts),
    ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", |c| c.shared_stores.wavefronts),
    ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", |c| c.shared_loads.conflicts),
    ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", |c| c.shared_stores.conflicts),
];

/// Those that agree within a factor, either way.
const ALIKE: [(&str, f64, Counter); 2] = [
    ("smsp__inst_executed.sum", 2.0, |c| c.instructions),
    ("smsp__thread_inst_executed.sum", 2.5, |c| c.lane_instructions),
];

#[test]
fn counts_are_those_of_the_profiler() {
    let record: Value = serde_json::from_str(include_str!("records/counters-h200.json")).unwrap();
    let launches = record["launches"].as_array().unwrap();
    let cases = crate::common::profiled::cases();
    assert_eq!(launches.len(), cases.len());
    let mut wrong = Vec::new();
    for (launch, (name, case)) in launches.iter().zip(cases) {
        assert_eq!(launch["name"], *name, "the record is of other cases");
        let sim = Sim::new(Options {
            checks: Checks::NONE,
            schedule: Schedule::Lockstep,
            counters: true,
            ..Options::default()
        });
        case.run(&sim, "13.0").unwrap();
        let report = sim.take_reports().pop().unwrap();
        let counted = report.outcome.counters.unwrap().total();
        for (metric, counter) in EQUAL {
            let (profiled, found) = (launch[metric].as_u64().unwrap(), counter(&counted));
            if profiled != found {
                wrong.push(format!("{name}: {metric} is {profiled}, counted {found}"));
            }
        }
        for (metric, tolerance, counter) in ALIKE {
            let (profiled, found) = (launch[metric].as_f64().unwrap(), counter(&counted) as f64);
            let ratio = found / profiled;
            if !(1.0 / tolerance..=tolerance).contains(&ratio) {
                wrong.push(format!("{name}: {metric} is {profiled}, counted {found} ({ratio:.2})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
