//! A device, a sample kernel on it, and the lines where the samples say their faults are.

use crate::common::{self, COMPUTE};
use std::path::PathBuf;
use warpfold_ptx::device::{Device, ModuleId, Report, Setup};
use warpfold_ptx::finding::Kind;
use warpfold_ptx::machine::{Arg, Checks, Options, Schedule, Shape};

/// Every schedule, with several seeds where there are any.
pub(crate) fn schedules() -> Vec<Schedule> {
    let mut all = vec![Schedule::Lockstep];
    all.extend([0, 1, 7].map(|seed| Schedule::Adversarial { seed }));
    all.extend([1, 2, 3].map(|seed| Schedule::Random { seed }));
    all
}

/// The compilers and architectures that a sample's PTX is committed for.
pub(crate) fn builds(sample: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for compiler in ["12.0", "13.0"] {
        for compute in COMPUTE {
            let name = format!("{compiler}/{sample}");
            if let Some(text) = common::sample(&name, compute) {
                found.push((PathBuf::from(format!("{name}.{compute}")), text));
            }
        }
    }
    assert!(!found.is_empty(), "no PTX of {sample}");
    found
}

/// The source lines that `// fault: NAME` marks.
pub(crate) fn fault_lines(sample: &str, name: &str) -> Vec<u32> {
    let path = common::kernels().join(format!("{sample}.cu"));
    let text = std::fs::read_to_string(path).unwrap();
    let marked = |line: &str| {
        line.split_once("// fault:")
            .is_some_and(|(_, names)| names.split_whitespace().any(|n| n == name))
    };
    (1..).zip(text.lines()).filter(|(_, line)| marked(line)).map(|(n, _)| n).collect()
}

/// Options with every check.
pub(crate) fn checked(schedule: Schedule) -> Options {
    Options { schedule, counters: true, instructions: 50_000_000, ..Options::default() }
}

/// Options without any check.
pub(crate) fn plain(schedule: Schedule) -> Options {
    Options { checks: Checks::NONE, schedule, instructions: 20_000_000, ..Options::default() }
}

/// A device with one module.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) module: ModuleId,
}

impl Bench {
    pub(crate) fn new(ptx: &str, options: Options) -> Bench {
        let mut device = Device::new(Setup { options, ..Setup::default() });
        let module = device.load(ptx).unwrap_or_else(|e| panic!("{e}"));
        Bench { device, module }
    }

    pub(crate) fn upload<T: Plain>(&mut self, values: &[T]) -> u64 {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.bytes()).collect();
        let address = self.device.allocate(bytes.len() as u64).unwrap();
        self.device.write(address, &bytes).unwrap();
        address
    }

    pub(crate) fn room<T: Plain>(&mut self, n: usize) -> u64 {
        self.device.allocate((n * T::SIZE) as u64).unwrap()
    }

    pub(crate) fn download<T: Plain>(&self, address: u64, n: usize) -> Vec<T> {
        let mut bytes = vec![0; n * T::SIZE];
        self.device.read(address, &mut bytes).unwrap();
        bytes.chunks(T::SIZE).map(T::of).collect()
    }

    pub(crate) fn launch(&mut self, kernel: &str, shape: Shape, args: &[Arg<'_>]) -> Vec<Report> {
        let kernel = self.device.kernel(self.module, kernel).unwrap();
        self.device.run_to_end(kernel, &shape, args).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Launches, and demands that nothing is found.
    pub(crate) fn launch_clean(
        &mut self,
        kernel: &str,
        shape: Shape,
        args: &[Arg<'_>],
    ) -> Vec<Report> {
        let reports = self.launch(kernel, shape, args);
        for report in &reports {
            assert!(report.outcome.is_clean(), "{kernel}: {}", describe(report));
        }
        reports
    }
}

/// What a report says, for messages.
pub(crate) fn describe(report: &Report) -> String {
    let findings = report.outcome.findings.all().iter().map(ToString::to_string);
    let halt = report.outcome.halt.iter().map(ToString::to_string);
    findings.chain(halt).collect::<Vec<_>>().join("\n")
}

/// The kinds and source lines found in a report; of two parties, both lines.
pub(crate) fn found(report: &Report) -> Vec<(Kind, Vec<u32>)> {
    let line = |l: warpfold_ptx::place::Line| l.source.map_or(0, |(_, line)| line);
    let all = report.outcome.findings.all().iter();
    all.map(|f| {
        let lines = [Some(f.fault.line), f.fault.other.map(|o| o.line)];
        (f.fault.kind, lines.into_iter().flatten().map(line).collect())
    })
    .collect()
}

/// Values that buffers hold.
pub(crate) trait Plain: Copy {
    const SIZE: usize;
    fn bytes(&self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($t:ty)+) => {
        $(impl Plain for $t {
            const SIZE: usize = size_of::<$t>();
            fn bytes(&self) -> Vec<u8> { self.to_le_bytes().to_vec() }
            fn of(bytes: &[u8]) -> Self { Self::from_le_bytes(bytes.try_into().unwrap()) }
        })+
    };
}

plain!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);
