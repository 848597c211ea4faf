//! Variables of a module that the host writes before a launch: `__device__` and `__constant__` ones, by their names.

use super::argument::{self, Argument, Buffer};
use super::buffers;
use crate::failure::Usage;
use anyhow::{Context, Result, bail};
use warpfold_ptx::device::{Device, DeviceError, ModuleId};
use warpfold_ptx::flow::CallGraph;
use warpfold_ptx::ir::{FunctionId, Module, Space};

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
        let found = device.module(module)?.variables.iter().find(|v| {
            v.name == *name && v.owner.is_none() && matches!(v.space, Space::Global | Space::Const)
        });
        let Some((space, size)) = found.map(|v| (v.space, v.size)) else {
            let what = format!("there is no __device__ or __constant__ variable {name}");
            return Err(Usage::new(what).hint(names(device.module(module)?)).into());
        };
        if bytes.len() as u64 > size {
            bail!("symbol {name} has {size} bytes, not {}", bytes.len());
        }
        if space == Space::Const {
            device.write_constant(module, name, &bytes)?;
        } else {
            let (address, _) = device.variable(module, name)?;
            device.write(address, &bytes)?;
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
/// A kernel that there is not.
pub(crate) fn unset(
    device: &Device,
    module: ModuleId,
    kernel: &str,
    symbols: &[Buffer],
) -> Result<Vec<String>, DeviceError> {
    let module = device.module(module)?;
    let Some(kernel) = module.function(kernel) else { return Ok(Vec::new()) };
    let reached = CallGraph::new(module).reachable(kernel).into_iter().chain([kernel]);
    let mut used: Vec<_> =
        reached.flat_map(|f: FunctionId| &module.functions[f.index()].variables).collect();
    used.sort_unstable();
    used.dedup();
    let variables = used.into_iter().map(|id| &module.variables[id.index()]);
    let left = variables.filter(|v| {
        v.space == Space::Const
            && v.owner.is_none()
            && !v.init.given
            && symbols.iter().all(|s| s.name != v.name)
    });
    Ok(left.map(|v| v.name.clone()).collect())
}
