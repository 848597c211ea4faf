//! A rung under Nsight Compute: the counters of the hardware, by the names that the
//! texts have for them.
//!
//! The profiler runs this program again, for one rung and one run; what it measures is
//! not a time, since it runs each kernel several times.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use warpfold_cuda::toolkit;
use warpfold_ladder::Question;

/// A counter: the texts' name, the profiler's, and what its value is multiplied by.
struct Metric {
    name: &'static str,
    of: &'static str,
    scale: f64,
}

const fn metric(name: &'static str, of: &'static str) -> Metric {
    Metric { name, of, scale: 1.0 }
}

const METRICS: [Metric; 19] = [
    metric("achieved_occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    metric("gld_efficiency", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"),
    metric("gst_efficiency", "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"),
    metric("gld_throughput", "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second"),
    metric("gst_throughput", "l1tex__t_bytes_pipe_lsu_mem_global_op_st.sum.per_second"),
    metric("gld_transactions", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    metric("gst_transactions", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    metric(
        "gld_transactions_per_request",
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    ),
    metric("global_hit_rate", "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"),
    metric("branch_efficiency", "smsp__sass_average_branch_targets_threads_uniform.pct"),
    // Of 32 lanes, in percent.
    Metric {
        name: "warp_execution_efficiency",
        of: "smsp__thread_inst_executed_per_inst_executed.ratio",
        scale: 100.0 / 32.0,
    },
    metric("inst_per_warp", "smsp__average_inst_executed_per_warp.ratio"),
    metric(
        "shared_load_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    ),
    metric(
        "shared_store_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ),
    metric("dram_read_throughput", "dram__bytes_read.sum.per_second"),
    metric("dram_write_throughput", "dram__bytes_write.sum.per_second"),
    metric(
        "stall_memory_dependency",
        "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
    ),
    metric("stall_sync", "smsp__warp_issue_stalled_barrier_per_warp_active.pct"),
    metric("inst_executed", "smsp__inst_executed.sum"),
];

/// What the profiler counted of one launch.
pub(super) struct Profile {
    kernel: String,
    /// By the texts' names; without those that this device does not have.
    values: Vec<(&'static str, f64)>,
}

/// Why there is no profile.
#[derive(Debug)]
pub(super) struct Unavailable {
    pub(super) why: String,
    pub(super) hint: String,
    /// Whether it would be the same for every rung.
    pub(super) lasts: bool,
}

/// The profiler: in `PATH`, or where installers put it.
pub(super) fn find() -> Result<PathBuf, Unavailable> {
    toolkit::program("ncu").ok_or_else(|| Unavailable {
        why: "Nsight Compute (ncu) was not found".into(),
        hint: "install the CUDA toolkit or nsight-compute, and add ncu to PATH".into(),
        lasts: true,
    })
}

/// What the profiler counts while this program runs a rung once on a device.
pub(super) fn take(
    profiler: &Path,
    program: &Path,
    question: &Question,
    seed: u64,
    device: &str,
) -> Result<Vec<Profile>, Unavailable> {
    let failed = |why: String| Unavailable {
        why,
        hint: "run ncu directly for more details".into(),
        lasts: false,
    };
    let metrics: Vec<&str> = METRICS.iter().map(|m| m.of).collect();
    let mut command = Command::new(profiler);
    command.args(["--csv", "--page", "raw", "--print-units", "base", "--metrics"]);
    command.arg(metrics.join(",")).arg(program).args(["ladder", "run", question.rung().id]);
    for (flag, value) in [
        ("-n", question.n().to_string()),
        ("--dtype", question.dtype().name().into()),
        ("--op", question.op().name().into()),
        ("--block", question.block().to_string()),
        ("--seed", seed.to_string()),
        ("--device", device.into()),
    ] {
        command.arg(flag).arg(value);
    }
    let output = command.args(["--once", "--quiet"]).output();
    let output = output.map_err(|e| failed(format!("{}: {e}", profiler.display())))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    if said.contains("ERR_NVGPUCTRPERM") {
        return Err(Unavailable {
            why: "the driver allows only administrators to read the device's counters".into(),
            hint: "run as root, or load the driver's module with NVreg_RestrictProfilingToAdminUsers=0"
                .into(),
            lasts: true,
        });
    }
    let profiles = parse(&text);
    if profiles.is_empty() {
        let mut lines =
            said.lines().filter(|line| line.contains("==ERROR==") || line.contains("error"));
        let last = lines.next_back().or(said.lines().rfind(|line| !line.trim().is_empty()));
        let said = last.unwrap_or("nothing").trim();
        return Err(failed(format!("ncu reported no counters: {said}")));
    }
    Ok(profiles)
}

/// The launches in what the profiler prints: notes, a header, a row of units, and a
/// row for each launch.
fn parse(text: &str) -> Vec<Profile> {
    let mut rows = text.lines().filter(|line| line.starts_with('"')).map(cells);
    let Some(header) = rows.next() else { return Vec::new() };
    let column = |name: &str| header.iter().position(|cell| cell == name);
    let (Some(kernel), Some(id)) = (column("Kernel Name"), column("ID")) else { return Vec::new() };
    let profile = |row: Vec<String>| {
        // The row of units has no number.
        row.get(id)?.parse::<u64>().ok()?;
        let value = |m: &Metric| {
            let cell = row.get(column(m.of)?)?.replace(',', "");
            Some((m.name, cell.parse::<f64>().ok()? * m.scale))
        };
        let values = METRICS.iter().filter_map(value).collect();
        Some(Profile { kernel: row.get(kernel)?.clone(), values })
    };
    rows.filter_map(profile).collect()
}

/// The cells of a line in which all are quoted, quotes in them twice.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('"');
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    inner.split("\",\"").map(|cell| cell.replace("\"\"", "\"")).collect()
}

impl Profile {
    /// As an object.
    pub(super) fn object(&self) -> Value {
        let values = self.values.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        json!({ "kernel": self.kernel, "metrics": Value::Object(values.collect()) })
    }

    /// Kernel, counter and value, a row each.
    pub(super) fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        let row = |(name, value): &(&str, f64)| {
            let value =
                if value.fract() == 0.0 { value.to_string() } else { format!("{value:.2}") };
            vec![self.kernel.clone(), (*name).into(), value]
        };
        self.values.iter().map(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use warpfold::{DType, Op};
    use warpfold_ladder::find as rung;

    const PRINTED: &str = r#"==PROF== Connected to process 41
==PROF== Profiling "warp_shuffle": 0%....50%....100% - 1 pass
"ID","Process ID","Kernel Name","Block Size","smsp__thread_inst_executed_per_inst_executed.ratio","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","dram__bytes_read.sum.per_second","smsp__inst_executed.sum"
"","","","","","sector","byte/second","inst"
"0","41","warp_shuffle(const float *, float *, unsigned long)","(256, 1, 1)","31.5","1,250","3,000,000,000.5","n/a"
"1","41","warp_shuffle_again","(256, 1, 1)","16","4","2","17"
"#;

    #[test]
    fn launches_are_read_with_the_texts_names() {
        let found = parse(PRINTED);
        assert_eq!(found.len(), 2);
        assert!(found[0].kernel.starts_with("warp_shuffle(const float *, float"));
        let expected = [
            ("gld_transactions", 1250.0),
            ("warp_execution_efficiency", 31.5 * 100.0 / 32.0),
            ("dram_read_throughput", 3_000_000_000.5),
        ];
        assert_eq!(found[0].values, expected, "what is n/a is left out");
        assert_eq!(found[1].values.last(), Some(&("inst_executed", 17.0)));
        assert_eq!(found[1].object()["metrics"]["warp_execution_efficiency"], 50.0);
        assert_eq!(found[1].rows().count(), 4);
        for nothing in ["", "==ERROR== no device\n", "\"ID\",\"else\"\n\"0\",\"1\"\n"] {
            assert!(parse(nothing).is_empty());
        }
    }

    /// A script in the profiler's place sees what it is told to run.
    #[cfg(unix)]
    #[test]
    fn the_profiler_is_run_and_its_refusals_are_told() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let profiler = folder.path().join("ncu");
        let write = |body: &str| {
            fs::write(&profiler, format!("#!/bin/sh\n{body}\n")).unwrap();
            fs::set_permissions(&profiler, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let question =
            Question::new(rung("warp-shuffle").unwrap(), DType::F32, Op::Sum, 1003, 64).unwrap();
        let run = || take(&profiler, Path::new("/bin/warpfold"), &question, 5, "cuda:0");
        let told = folder.path().join("told");
        write(&format!("echo \"$@\" > {}\ncat <<'END'\n{PRINTED}END", told.display()));
        assert_eq!(run().unwrap_or_else(|e| panic!("{e:?}")).len(), 2);
        let told = fs::read_to_string(told).unwrap();
        for part in [
            "--metrics sm__warps_active.avg.pct_of_peak_sustained_active,",
            "/bin/warpfold ladder run warp-shuffle -n 1003 --dtype f32 --op sum --block 64",
            "--seed 5 --device cuda:0 --once --quiet",
        ] {
            assert!(told.contains(part), "{told}");
        }
        write("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'\nexit 1");
        let refused = run().err().unwrap();
        assert!(refused.hint.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{refused:?}");
        assert!(refused.lasts);
        write("echo '==ERROR== no kernels were profiled'");
        let refused = run().err().unwrap();
        assert!(refused.why.contains("no kernels were profiled") && !refused.lasts);
        fs::remove_file(&profiler).unwrap();
        assert!(run().err().unwrap().why.contains("ncu"));
    }
}
