//! The device runtime: a library that modules need whose kernels launch kernels.
//!
//! It comes with the toolkit and with the wheels of the runtime, not with the
//! driver, which links it.

use crate::toolkit::{self, folders};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// The library's file.
const FILE: &str = "libcudadevrt.a";

/// Names the library, where it is in no usual place.
pub const VARIABLE: &str = "WARPFOLD_CUDADEVRT";

/// Whether a module calls functions of the device runtime.
pub(crate) fn is_needed(ptx: &str) -> bool {
    ptx.lines().any(|line| line.starts_with(".extern .func") && line.contains(" __cudaCDP2"))
}

/// Where the library is: where the variable says, in a toolkit, or in a wheel of the
/// Python that is active.
///
/// # Errors
/// [`Error::Library`] if it is nowhere.
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

/// Where packages are that a user has installed alone.
fn user_site() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| Path::new(&home).join(".local"))
}

/// The folders of a toolkit that it may be in.
fn in_toolkit(root: PathBuf) -> Vec<PathBuf> {
    ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"]
        .map(|folder| root.join(folder))
        .into()
}

/// The folders of a Python installation that it may be in: `lib/python3.12/site-packages/nvidia/cu13/lib`.
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
