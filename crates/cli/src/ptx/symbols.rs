//! Variables of a module that the host writes before a launch: `__device__` and `__constant__` ones, by their names.

use super::argument::{self, Argument, Buffer};
use super::buffers;
use crate::failure::Usage;
use anyhow::{Context, Result};
use warpfold_ptx::device::{Device, DeviceError, ModuleId};
use warpfold_ptx::info;
use warpfold_ptx::ir::{Module, Space};

/// Reads a `--set`: `NAME:TYPE:COUNT=CONTENT` or `NAME=@FILE`.
///
/// # Errors
/// Anything else.
pub(crate) fn parse(word: &str) -> Result<Buffer, String> {
    match argument::parse(word)? {
        Argument::Buffer(buffer) if buffer.has_content() => Ok(buffer),
        _ => Err("expected NAME:TYPE:COUNT=CONTENT or NAME=@FILE, such as scale:f32:1=0.5".into()),
    }
}

/// Writes variables of a module.
///
/// # Errors
/// A variable that there is not, or that is smaller; files that cannot be read.
pub(crate) fn set(device: &mut Device, module: ModuleId, symbols: &[Buffer]) -> Result<()> {
    for symbol in symbols {
        let name = &symbol.name;
        let (_, bytes) = buffers::bytes(symbol).with_context(|| format!("symbol {name}"))?;
        match device.write_variable(module, name, &bytes) {
            Err(DeviceError::NoVariable { .. }) => {
                let what = format!("there is no __device__ or __constant__ variable {name}");
                return Err(Usage::new(what).hint(names(device.module(module)?)).into());
            }
            written => written?,
        }
    }
    Ok(())
}

fn names(module: &Module) -> String {
    let ours = module.variables.iter().filter(|v| {
        v.owner.is_none() && !v.init.given && matches!(v.space, Space::Global | Space::Const)
    });
    let names: Vec<_> = ours.map(|v| v.name.as_str()).take(8).collect();
    match &names[..] {
        [] => "the file has no such variable without a value".into(),
        _ => format!("variables without a value: {}", names.join(", ")),
    }
}

/// The constants that a kernel uses and nobody gave a value.
///
/// # Errors
/// A module that is not loaded.
pub(crate) fn unset(
    device: &Device,
    module: ModuleId,
    kernel: &str,
    symbols: &[Buffer],
) -> Result<Vec<String>, DeviceError> {
    let unset = info::unset_constants(device.module(module)?, kernel).into_iter();
    Ok(unset.filter(|name| symbols.iter().all(|s| s.name != *name)).map(Into::into).collect())
}
