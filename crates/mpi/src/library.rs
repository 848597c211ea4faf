//! Which MPI library is loaded, and which interface it has.

use crate::calls::{Interface, Mpi};
use crate::{Calls, Error, Result};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use libloading::Library;
use libloading::os::unix::{Library as Opened, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

const STANDARD: &[&str] = if cfg!(target_os = "macos") {
    &["libmpi_abi.dylib", "libmpi_abi.1.dylib"]
} else {
    &["libmpi_abi.so", "libmpi_abi.so.1"]
};
const OPEN_MPI: &[&str] =
    if cfg!(target_os = "macos") { &["libmpi.40.dylib"] } else { &["libmpi.so.40"] };
const MPICH: &[&str] =
    if cfg!(target_os = "macos") { &["libmpi.12.dylib"] } else { &["libmpi.so.12"] };

/// The library that a user names.
const CHOICE: &str = "WARPFOLD_MPI_LIBRARY";

/// Loads a library, and tells its file and what it calls itself.
///
/// # Errors
/// No library, with the names that were tried; one of an unknown interface.
pub(crate) fn open() -> Result<(Box<dyn Calls>, String)> {
    let names = match std::env::var_os(CHOICE).filter(|name| !name.is_empty()) {
        Some(name) => vec![name],
        None => names(),
    };
    let mut tried = Vec::new();
    for name in names {
        // SAFETY: libraries of these names are MPI's, or the user has named one.
        match unsafe { Opened::open(Some(&name), RTLD_NOW | RTLD_GLOBAL) } {
            Ok(library) => return recognise(library.into(), &name),
            Err(error) => {
                let reason = core::error::Error::source(&error).map(ToString::to_string);
                tried.push(reason.unwrap_or_else(|| format!("{}: {error}", name.display())));
            }
        }
    }
    Err(Error::new(
        format!("no MPI library can be loaded: {}", tried.join("; ")),
        format!("install Open MPI or MPICH, or name the library: {CHOICE}=/path/to/libmpi.so"),
    ))
}

/// The names to try, first those of the launcher that has started this process: as the loader
/// finds them, then beside the launcher.
fn names() -> Vec<OsString> {
    let started_by = |variable: &str| std::env::var_os(variable).is_some();
    let families = if started_by("OMPI_COMM_WORLD_SIZE") {
        [OPEN_MPI, STANDARD, MPICH]
    } else if started_by("PMI_SIZE") {
        [STANDARD, MPICH, OPEN_MPI]
    } else {
        [STANDARD, OPEN_MPI, MPICH]
    };
    let beside = beside_launcher();
    let mut names = Vec::new();
    for name in families.into_iter().flatten() {
        names.push(name.into());
        // Files that are not there would only lengthen the message.
        let file = beside.as_ref().map(|folder| folder.join(name));
        names.extend(file.filter(|file| file.exists()).map(PathBuf::into_os_string));
    }
    names
}

/// The folder of libraries beside the launcher that the shell finds.
fn beside_launcher() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let launcher = std::env::split_paths(&path).find(|folder| folder.join("mpiexec").is_file());
    Some(launcher?.parent()?.join("lib"))
}

fn recognise(library: Library, name: &OsStr) -> Result<(Box<dyn Calls>, String)> {
    // The library has threads that run its code.
    let library: &'static Library = Box::leak(Box::new(library));
    let file = name.display();
    let wrong = |what: String| {
        Error::new(
            format!("{file}: {what}"),
            format!(
                "name a library of Open MPI, MPICH or the MPI 5 ABI: {CHOICE}=/path/to/libmpi.so"
            ),
        )
    };
    let version = version(library).map_err(|what| wrong(what.into()))?;
    let first = version.lines().next().unwrap_or_default().trim().to_string();
    let file_name = Path::new(name).file_name().unwrap_or(name).to_string_lossy();
    let calls = if file_name.contains("mpi_abi") {
        // SAFETY: a library of this name has the standard interface.
        unsafe { Mpi::new(library, standard()) }.map(|calls| Box::new(calls) as Box<dyn Calls>)
    } else if let Some(interface) = open_mpi(library) {
        // SAFETY: only Open MPI has variables of these names.
        unsafe { Mpi::new(library, interface) }.map(|calls| Box::new(calls) as Box<dyn Calls>)
    } else if ["MPICH", "Intel", "MVAPICH"].iter().any(|name| version.contains(name)) {
        // SAFETY: libraries that call themselves so share MPICH's interface.
        unsafe { Mpi::new(library, mpich()) }.map(|calls| Box::new(calls) as Box<dyn Calls>)
    } else {
        Err(format!("it calls itself {first}, whose interface is unknown"))
    };
    Ok((calls.map_err(wrong)?, format!("{file} ({first})")))
}

/// What a library calls itself.
fn version(library: &Library) -> Result<String, &'static str> {
    type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
    // SAFETY: a function of this name has this type in every MPI library.
    let ask = unsafe { library.get::<Version>(b"MPI_Get_library_version\0") };
    let ask = ask.map_err(|_| "this is no MPI library: it has no MPI_Get_library_version")?;
    let (mut text, mut len) = ([0u8; 8192], 0);
    // SAFETY: no library writes more than 8192 bytes, and none has to be initialised for it.
    let told = unsafe { ask(text.as_mut_ptr().cast(), &raw mut len) };
    let text = usize::try_from(len).ok().and_then(|len| text.get(..len)).filter(|_| told == 0);
    let text = text.ok_or("it does not tell its version")?;
    Ok(String::from_utf8_lossy(text).trim_end_matches('\0').to_string())
}

/// The interface of Open MPI: handles are addresses of variables.
fn open_mpi(library: &Library) -> Option<Interface<*mut c_void>> {
    let variable = |name: &[u8]| {
        // SAFETY: the address alone is used, and the library stays loaded.
        unsafe { library.get::<*mut c_void>(name).ok()?.try_as_raw_ptr() }
    };
    Some(Interface {
        world: variable(b"ompi_mpi_comm_world\0")?,
        int64: variable(b"ompi_mpi_int64_t\0")?,
        byte: variable(b"ompi_mpi_byte\0")?,
        sum: variable(b"ompi_mpi_op_sum\0")?,
        min: variable(b"ompi_mpi_op_min\0")?,
        max: variable(b"ompi_mpi_op_max\0")?,
        errors_return: variable(b"ompi_mpi_errors_return\0")?,
        in_place: 1,
        no_status: 0,
        funnelled: 1,
    })
}

/// The interface of MPICH: handles are integers.
fn mpich() -> Interface<c_int> {
    Interface {
        world: 0x4400_0000,
        int64: 0x4c00_083a,
        byte: 0x4c00_010d,
        sum: 0x5800_0003,
        min: 0x5800_0002,
        max: 0x5800_0001,
        errors_return: 0x5400_0001,
        in_place: usize::MAX,
        no_status: 1,
        funnelled: 1,
    }
}

/// The standard interface: handles are pointers, and those of constants small numbers.
fn standard() -> Interface<*mut c_void> {
    let handle = |number: usize| ptr::without_provenance_mut(number);
    Interface {
        world: handle(0x101),
        int64: handle(0x258),
        byte: handle(0x247),
        sum: handle(0x21),
        min: handle(0x22),
        max: handle(0x23),
        errors_return: handle(0x143),
        in_place: 1,
        no_status: 0,
        funnelled: 1024,
    }
}
