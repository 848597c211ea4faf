//! The CUDA devices of this machine.

use crate::output::quoted;
use std::io::Write;
use warpfold_cuda::{Driver, Limits, Result};

/// The driver and its devices, or why there are none.
pub(super) struct Devices(Result<Found>);

struct Found {
    /// The CUDA version that the driver knows.
    cuda: (u32, u32),
    devices: Vec<Limits>,
}

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

    pub(super) fn write(&self, verbose: bool, out: &mut dyn Write) -> std::io::Result<()> {
        match &self.0 {
            Ok(found) => {
                writeln!(out, "driver        CUDA {}.{}", found.cuda.0, found.cuda.1)?;
                for (i, d) in found.devices.iter().enumerate() {
                    let (major, minor) = d.capability;
                    let memory = d.memory as f64 / (1u64 << 30) as f64;
                    writeln!(
                        out,
                        "{:12}  {}, compute capability {major}.{minor}, {memory:.1} GiB",
                        format!("cuda:{i}"),
                        d.name
                    )?;
                }
            }
            Err(error) => {
                writeln!(out, "cuda          {error}")?;
                if let (true, Some(hint)) = (verbose, error.hint()) {
                    writeln!(out, "              {hint}")?;
                }
            }
        }
        writeln!(out, "device        cpu")
    }

    pub(super) fn json(&self) -> String {
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
