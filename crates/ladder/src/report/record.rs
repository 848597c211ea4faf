//! What a report is made of: rungs and experiments, as they were saved.

use crate::experiments::{Experiment, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use warpfold_cuda::Limits;

/// Everything that was measured on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The version of warpfold that measured.
    pub warpfold: String,
    /// When it was measured: `2026-11-22 15:46`, UTC.
    #[serde(default)]
    pub measured: Option<String>,
    /// The device.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// What `ladder run` says of rungs.
    #[serde(default)]
    pub rungs: Vec<Value>,
    /// Experiments.
    #[serde(default)]
    pub experiments: Vec<Trial>,
}

/// The line that says what a device is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The compute capability: `9.0`.
    pub capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the L2 cache.
    #[serde(default)]
    pub l2_bytes: u64,
    /// Bytes of memory.
    #[serde(default)]
    pub memory: u64,
}

impl From<&Limits> for Machine {
    fn from(limits: &Limits) -> Machine {
        let (major, minor) = limits.capability;
        Machine {
            name: limits.name.clone(),
            capability: format!("{major}.{minor}"),
            multiprocessors: limits.multiprocessors,
            l2_bytes: limits.l2_bytes,
            memory: limits.memory,
        }
    }
}

/// An experiment and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its name.
    pub experiment: String,
    /// What it shows.
    #[serde(default)]
    pub title: String,
    /// The texts that have it.
    #[serde(default)]
    pub texts: Vec<String>,
    /// What was expected.
    #[serde(default)]
    pub expectation: String,
    /// The device with the clock, if there was one.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Trial {
    /// The outcome of an experiment on a device.
    #[must_use]
    pub fn new(experiment: &Experiment, machine: Option<Machine>, outcome: Outcome) -> Trial {
        Trial {
            experiment: experiment.id.into(),
            title: experiment.title.into(),
            texts: experiment.texts.iter().map(|text| text.name().into()).collect(),
            expectation: experiment.expectation.into(),
            machine,
            outcome,
        }
    }
}

/// What a profiler said of a launch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Profiled {
    /// The kernel.
    #[serde(default)]
    pub kernel: String,
    /// What was counted, by the texts' names.
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

/// Something about times that makes them doubtful.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Suspicion {
    /// What it is.
    #[serde(default)]
    pub what: String,
    /// What may help.
    #[serde(default)]
    pub hint: String,
}

/// What `ladder run` says of a rung, as far as a report needs it. Fields that are
/// missing were not measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Measured {
    /// The rung's name.
    pub rung: String,
    /// When it was measured, as the file that it was saved in says.
    #[serde(default)]
    pub on: Option<String>,
    /// The type of the elements.
    #[serde(default)]
    pub dtype: String,
    /// The operation.
    #[serde(default)]
    pub op: String,
    /// How many elements.
    #[serde(default)]
    pub n: u64,
    /// Threads of a block.
    #[serde(default)]
    pub block: u64,
    /// Blocks for each multiprocessor, where they were asked for.
    #[serde(default)]
    pub per_multiprocessor: Option<u64>,
    /// Blocks of each launch.
    #[serde(default)]
    pub grid: Vec<u64>,
    /// Seconds of a run.
    #[serde(default)]
    pub median: Option<f64>,
    /// Half of the intervals lie between them.
    #[serde(default)]
    pub quartiles: Option<(f64, f64)>,
    /// Bytes of input for each nanosecond.
    #[serde(default)]
    pub gbps: Option<f64>,
    /// The part of the rate at which the device reads.
    #[serde(default)]
    pub of_ceiling: Option<f64>,
    /// That rate, and what it was measured with.
    #[serde(default)]
    pub ceiling_gbps: Option<f64>,
    /// What the ceiling was measured with.
    #[serde(default)]
    pub ceiling_by: Option<String>,
    /// Whether the input lay in the L2 cache.
    #[serde(default)]
    pub in_l2: Option<bool>,
    /// Times as fast as `neighbored`.
    #[serde(default)]
    pub over_neighbored: Option<f64>,
    /// Times as fast as the rung that it is compared with, if that was measured, too.
    #[serde(default)]
    pub over_baseline: Option<f64>,
    /// What came of the expectations.
    #[serde(default)]
    pub verdict: Option<String>,
    /// Expectations that failed, and why.
    #[serde(default)]
    pub unexpected: Option<Vec<String>>,
    /// Registers of a thread.
    #[serde(default)]
    pub registers: Option<u64>,
    /// Bytes of static shared memory of a block.
    #[serde(default)]
    pub static_shared: Option<u64>,
    /// Bytes of dynamic shared memory of a block.
    #[serde(default)]
    pub dynamic_shared: Option<u64>,
    /// Bytes of local memory of a thread.
    #[serde(default)]
    pub local_bytes: Option<u64>,
    /// Theoretical occupancy, from 0 to 1.
    #[serde(default)]
    pub occupancy: Option<f64>,
    /// What keeps it from being higher.
    #[serde(default)]
    pub limited_by: Option<Vec<String>>,
    /// What was counted.
    #[serde(default)]
    pub counters: Option<BTreeMap<String, Value>>,
    /// What a profiler said of each launch.
    #[serde(default)]
    pub profile: Option<Vec<Profiled>>,
    /// What is suspicious about the times.
    #[serde(default)]
    pub warnings: Option<Vec<Suspicion>>,
    /// Whether the answer was right.
    #[serde(default)]
    pub right: Option<bool>,
    /// What was wrong.
    #[serde(default)]
    pub wrong: Option<String>,
    /// Why it was not run.
    #[serde(default)]
    pub skipped: Option<String>,
    /// The device's name.
    #[serde(default)]
    pub device: Option<String>,
    /// Its compute capability.
    #[serde(default)]
    pub capability: Option<String>,
    /// Its multiprocessors.
    #[serde(default)]
    pub multiprocessors: Option<u32>,
    /// Whether the interpreter played it.
    #[serde(default)]
    pub simulated: Option<bool>,
}

/// A moment as records have it, to the minute: `2026-11-22 15:46`, UTC.
#[must_use]
pub fn stamp(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Years begin in March, so that the day that some have more is their last.
    let since = days + 719_468;
    let (era, day) = (since / 146_097, since % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + next;
    format!("{year:04}-{month:02}-{date:02} {:02}:{:02}", minutes / 60, minutes % 60)
}

impl Document {
    /// Whether an answer in it is wrong.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.rungs.iter().any(|rung| rung["right"] == false)
            || self.experiments.iter().any(|trial| !trial.outcome.wrong.is_empty())
    }

    /// The document, a line for each rung and experiment.
    ///
    /// # Errors
    /// None: every part of it can be written.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let rungs: Vec<String> = self.rungs.iter().map(Value::to_string).collect();
        let trials: Vec<String> =
            self.experiments.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        Ok(format!(
            "{{\"warpfold\":{},\n\"measured\":{},\n\"machine\":{},\n\"rungs\":[\n{}\n],\n\"experiments\":[\n{}\n]}}",
            serde_json::to_string(&self.warpfold)?,
            serde_json::to_string(&self.measured)?,
            serde_json::to_string(&self.machine)?,
            rungs.join(",\n"),
            trials.join(",\n")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_written_as_dates() {
        let at = |seconds| stamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(951_782_399), "2000-02-28 23:59");
        assert_eq!(at(951_782_400), "2000-02-29 00:00");
        assert_eq!(at(1_795_362_360), "2026-11-22 15:46");
        assert_eq!(at(4_102_444_799), "2099-12-31 23:59");
    }
}
