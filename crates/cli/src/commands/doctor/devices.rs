//! The CUDA devices of this machine, what `--device auto` makes of them, and the
//! kernels.

use crate::output::quoted;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use warpfold::internal::Kind;
use warpfold::{DType, Op, Reduction};
use warpfold_cuda::engine::archive;
use warpfold_cuda::{Device, Driver, Engine, Limits, Result, Sim};

/// The driver and its devices, or why there are none.
pub(super) struct Devices(Result<Found>);

struct Found {
    /// The CUDA version that the driver knows.
    cuda: (u32, u32),
    devices: Vec<Limits>,
}

/// Bytes in a mebibyte, a gigabyte and a gibibyte.
const MIB: f64 = (1u64 << 20) as f64;
const GB: f64 = 1e9;
const GIB: f64 = (1u64 << 30) as f64;

impl Devices {
    /// Asks the driver; no device is opened.
    pub(super) fn find() -> Devices {
        let find = || {
            let cuda = Driver::version()?;
            let devices = (0..Driver::probe()?).map(Driver::describe).collect::<Result<_>>()?;
            Ok(Found { cuda, devices })
        };
        Devices(find())
    }

    fn all(&self) -> &[Limits] {
        self.0.as_ref().map_or(&[], |found| &found.devices)
    }

    pub(super) fn write(&self, verbose: bool, out: &mut dyn Write) -> std::io::Result<()> {
        match &self.0 {
            Ok(found) => writeln!(out, "driver        CUDA {}.{}", found.cuda.0, found.cuda.1)?,
            Err(error) => {
                writeln!(out, "cuda          {error}")?;
                if let (true, Some(hint)) = (verbose, error.hint()) {
                    writeln!(out, "              {hint}")?;
                }
            }
        }
        for (i, d) in self.all().iter().enumerate() {
            let ((major, minor), memory) = (d.capability, d.memory as f64 / GIB);
            let name = format!("cuda:{i}");
            let about = format!("compute capability {major}.{minor}, {memory:.1} GiB");
            writeln!(out, "{name:12}  {}, {about}", d.name)?;
        }
        writeln!(out, "device        cpu")?;
        if verbose {
            for line in self.why() {
                writeln!(out, "              {line}")?;
            }
            let (modules, bytes, packed) = archive::size();
            let (bytes, packed) = (bytes as f64 / MIB, packed as f64 / MIB);
            writeln!(out, "kernels       {modules} modules, {bytes:.1} MiB in {packed:.1} MiB")?;
            self.write_loads(out)?;
        }
        Ok(())
    }

    /// Why `--device auto` takes what it takes.
    fn why(&self) -> Vec<String> {
        let mut why = vec![
            "--device auto chooses it: sending data to a device takes longer than".into(),
            "reducing it on the CPU".into(),
        ];
        if self.all().is_empty() {
            why = vec!["--device auto chooses it: there is no other".into()];
        } else if Engine::supports(Kind::LogSumExp, DType::F64)
            && let Some(bytes) = Reduction::of(Op::LogSumExp).device_pays_from(DType::F64)
        {
            let from = bytes as f64 / GB;
            why.push(format!("cuda:0 is chosen for logsumexp of f64, from {from:.1} GB on"));
        }
        why
    }

    /// How long a kernel takes to load, on the interpreter and on each device.
    fn write_loads(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let milliseconds = |d: Duration| format!("{:.1} ms", d.as_secs_f64() * 1e3);
        let sim = timed(|| load(Arc::new(Sim::checking())));
        match sim {
            Ok(((), time)) => {
                writeln!(out, "sim           loads {KERNEL} in {}", milliseconds(time))?
            }
            Err(error) => writeln!(out, "sim           {error}")?,
        }
        for i in 0..self.all().len() as u32 {
            let name = format!("cuda:{i}");
            let opened = timed(|| Driver::open(i)).and_then(|(driver, opening)| {
                timed(|| load(Arc::new(driver))).map(|((), loading)| (opening, loading))
            });
            match opened {
                Ok((opening, loading)) => writeln!(
                    out,
                    "{name:12}  opens in {}, loads {KERNEL} in {}",
                    milliseconds(opening),
                    milliseconds(loading)
                )?,
                Err(error) => writeln!(out, "{name:12}  {error}")?,
            }
        }
        Ok(())
    }

    pub(super) fn json(&self) -> String {
        let (modules, bytes, packed) = archive::size();
        let driver = self.driver_json();
        format!(
            "{driver},\"kernels\":{{\"modules\":{modules},\"bytes\":{bytes},\"packed\":{packed}}}"
        )
    }

    fn driver_json(&self) -> String {
        match &self.0 {
            Ok(found) => {
                let devices: Vec<String> = found.devices.iter().map(device).collect();
                format!(
                    "{{\"available\":{},\"why\":null,\"version\":\"{}.{}\",\"devices\":[{}]}}",
                    !found.devices.is_empty(),
                    found.cuda.0,
                    found.cuda.1,
                    devices.join(",")
                )
            }
            Err(error) => format!(
                "{{\"available\":false,\"why\":{},\"version\":null,\"devices\":[]}}",
                quoted(&error.to_string())
            ),
        }
    }
}

/// The kernel that is loaded to see how long it takes.
const KERNEL: &str = "the exact sum of f64";

fn load(device: Arc<dyn Device>) -> Result<()> {
    Arc::new(Engine::new(device)).feeder(&[Kind::Sum], DType::F64, 1).map(drop)
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let begin = Instant::now();
    work().map(|done| (done, begin.elapsed()))
}

fn device(d: &Limits) -> String {
    format!(
        "{{\"name\":{},\"capability\":\"{}.{}\",\"multiprocessors\":{},\"memory\":{}}}",
        quoted(&d.name),
        d.capability.0,
        d.capability.1,
        d.multiprocessors,
        d.memory
    )
}
