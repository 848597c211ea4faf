//! The device runtime: the library for kernels that launch kernels.
//!
//! It comes with the toolkit and with the runtime's Python wheels. The driver links it,
//! but does not contain it.

use crate::toolkit::{self, folders};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The library's file.
const FILE: &str = "libcudadevrt.a";

/// The path of the library, if it is not in one of the usual places.
pub const VARIABLE: &str = "WARPFOLD_CUDADEVRT";

/// Whether a module calls functions of the device runtime.
pub(crate) fn is_needed(ptx: &str) -> bool {
    ptx.lines().any(|line| line.starts_with(".extern .func") && line.contains(" __cudaCDP2"))
}

/// The path of the library: from the variable, from a toolkit, or from a wheel of the
/// active Python.
///
/// # Errors
/// [`Error::Library`] if it was not found.
pub fn find() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(path) = variable(VARIABLE) {
        if path.is_file() {
            return Ok(path);
        }
        return Err(Error::Library {
            why: format!("{VARIABLE} is set to {}, which is not a file", path.display()),
            hint: format!("set it to the path of {FILE}"),
        });
    }
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable);
    let python = environments.chain(["/usr/local", "/usr"].map(PathBuf::from)).chain(user_site());
    let candidates =
        toolkit::roots().into_iter().flat_map(in_toolkit).chain(python.flat_map(in_python));
    candidates.map(|folder| folder.join(FILE)).find(|path| path.is_file()).ok_or_else(|| {
        Error::Library {
            why: format!("{FILE}, the device runtime, was not found"),
            hint: format!(
                "install the CUDA toolkit, or pip install nvidia-cuda-runtime, or set {VARIABLE} to its path"
            ),
        }
    })
}

/// The folder of the user's own Python packages.
fn user_site() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| Path::new(&home).join(".local"))
}

/// The folders of a toolkit that may contain it.
fn in_toolkit(root: PathBuf) -> Vec<PathBuf> {
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"]
        .map(|folder| root.join(folder))
        .into()
}

/// The folders of a Python installation that may contain it:
/// `lib/python3.12/site-packages/nvidia/cu13/lib`.
fn in_python(root: PathBuf) -> Vec<PathBuf> {
    let versions = folders(&root.join("lib"), |name| name.starts_with("python3"));
    let packages =
        versions.iter().flat_map(|v| ["site-packages", "dist-packages"].map(|p| v.join(p)));
    packages
        .flat_map(|p| folders(&p.join("nvidia"), |name| name.starts_with("cu")))
        .map(|package| package.join("lib"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_say_that_they_need_it() {
        let calls = ".extern .func (.param .b32 func_retval0) __cudaCDP2LaunchDeviceV2\n(\n)\n;";
        assert!(is_needed(calls));
        assert!(!is_needed(".extern .func (.param .b32 r) vprintf\n// __cudaCDP2LaunchDeviceV2"));
    }

    #[test]
    fn it_is_found_in_toolkits_and_wheels() {
        let root = std::env::temp_dir().join(format!("warpfold-devrt-{}", std::process::id()));
        let wheel = root.join("lib/python3.12/site-packages/nvidia/cu13/lib");
        std::fs::create_dir_all(&wheel).unwrap();
        assert!(in_python(root.clone()).contains(&wheel));
        assert!(in_toolkit(root.clone()).contains(&root.join("targets/x86_64-linux/lib")));
        assert!(in_python(root.join("none")).is_empty());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
