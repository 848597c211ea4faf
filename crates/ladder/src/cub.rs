//! NVIDIA's CUB as a rung, where its compiler is on the machine.

use crate::cache;
use crate::error::{Error, Result};
use crate::lab::{Lab, STREAM, Timing};
use crate::memory::Memory;
use crate::question::Question;
use crate::rung::Rung;
use crate::runner::{self, Runner};
use core::ffi::{CStr, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use warpfold_core::op::Numbers;
use warpfold_core::{DType, Scalar};
use warpfold_cuda::{Address, toolkit};

pub(crate) const SOURCE: &str = include_str!("../peers/cub.cu");

/// The function that sums elements of a type.
type Sum = unsafe extern "C" fn(*mut c_void, *mut usize, *const c_void, *mut c_void, u64) -> c_int;
/// The function that returns the message of an error.
type Text = unsafe extern "C" fn(c_int) -> *const c_char;

/// A question to CUB.
pub(crate) struct Cub<'a> {
    memory: Memory<'a>,
    id: &'static str,
    sum: Sum,
    text: Text,
    len: u64,
    workspace: Address,
    bytes: usize,
    /// The address of the answer, and its type.
    out: Address,
    added: DType,
}

impl<'a> Cub<'a> {
    pub(crate) fn new(
        lab: &'a Lab,
        question: &Question,
        elements: &Numbers,
        copies: u64,
    ) -> Result<Cub<'a>> {
        let rung = question.rung;
        if !lab.has_clock(question)? {
            return Err(Error::Missing {
                rung,
                why: "it is compiled for CUDA devices, and the interpreter is not one".into(),
                hint: "use a CUDA device, and install nvcc".into(),
            });
        }
        let library = library(rung)?;
        let (sum, text) = functions(rung, library, question.dtype)?;
        let memory = Memory::new(lab.device(), question, elements, copies)?;
        let (workspace, bytes, out) = (0, 0, 0);
        let (id, len, added) = (rung.id, question.n, question.added());
        let mut cub = Cub { memory, id, sum, text, len, workspace, bytes, out, added };
        cub.out = cub.memory.allocate(added.size() as u64)?;
        cub.bytes = cub.memory.done(cub.call(0, 0, 0))?;
        // No workspace asks for its size.
        cub.workspace = cub.memory.allocate(cub.bytes.max(1) as u64)?;
        Ok(cub)
    }

    /// Calls it. Without a workspace it returns the size that it needs.
    fn call(
        &self,
        workspace: Address,
        bytes: usize,
        input: Address,
    ) -> warpfold_cuda::Result<usize> {
        let mut bytes = bytes;
        // CUB works on the device that is current.
        let _current = self.memory.device.make_current()?;
        let pointer = |address: Address| address as *mut c_void;
        // SAFETY: the function is one of the source above; the device is current; the
        // array, the workspace and the answer are as long as they must be, and stay
        // until the stream was waited for.
        let error = unsafe {
            (self.sum)(
                pointer(workspace),
                &raw mut bytes,
                pointer(input),
                pointer(self.out),
                self.len,
            )
        };
        if error == 0 {
            return Ok(bytes);
        }
        // SAFETY: the runtime gives a text, which is never freed, for every number.
        let text = unsafe { CStr::from_ptr((self.text)(error)) };
        Err(warpfold_cuda::Error::Driver {
            doing: "running CUB".into(),
            name: format!("cudaError {error}"),
            text: text.to_string_lossy().into_owned(),
        })
    }

    fn start(&self, turn: usize) -> warpfold_cuda::Result<()> {
        self.call(self.workspace, self.bytes, self.memory.input(turn)).map(drop)
    }
}

impl Runner for Cub<'_> {
    fn answer(&self) -> Result<Scalar> {
        self.memory.done(self.start(0))?;
        let mut bits = [0; 8];
        let size = self.added.size();
        self.memory.done(self.memory.device.wait(STREAM))?;
        self.memory.read(self.out, &mut bits[..size])?;
        Ok(Scalar::from_bits(self.added, u64::from_le_bytes(bits)))
    }

    fn times(&self, timing: &Timing, runs: u32) -> Result<Vec<Duration>> {
        runner::on_device(self.memory.device, self.id, timing, runs, &|turn| self.start(turn))
    }
}

/// The function for a type, and the one for errors.
fn functions(
    rung: &'static Rung,
    library: &libloading::Library,
    dtype: DType,
) -> Result<(Sum, Text)> {
    let missing = |error: libloading::Error| not_here(rung, error.to_string());
    // SAFETY: the library was compiled from the source above, whose functions have
    // these types; it is never unloaded.
    unsafe {
        let sum = library.get::<Sum>(format!("warpfold_cub_{dtype}\0").as_bytes());
        let text = library.get::<Text>(b"warpfold_cub_error\0");
        Ok((*sum.map_err(missing)?, *text.map_err(missing)?))
    }
}

fn not_here(rung: &'static Rung, why: String) -> Error {
    let hint = "install the CUDA toolkit, which contains CUB, and add nvcc to PATH".into();
    Error::Missing { rung, why, hint }
}

fn not_kept(rung: &'static Rung, why: String) -> Error {
    let hint = "set XDG_CACHE_HOME to a folder that only you can write to".into();
    Error::Missing { rung, why, hint }
}

/// The compiled library, loaded once and never unloaded.
fn library(rung: &'static Rung) -> Result<&'static libloading::Library> {
    static LOADED: Mutex<Option<&'static libloading::Library>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = *loaded {
        return Ok(library);
    }
    let nvcc = toolkit::program("nvcc");
    let nvcc = nvcc.ok_or_else(|| not_here(rung, "nvcc was not found".into()))?;
    let cache = cache::folder("cub").map_err(|why| not_kept(rung, why))?;
    let path = compiled(&nvcc, &cache).map_err(|why| not_here(rung, why))?;
    // SAFETY: it was compiled from the source above, which has no initialisers but
    // those of the runtime, and the file is where no other user can put one.
    let library = unsafe { libloading::Library::new(&path) };
    let library = library.map_err(|e| not_here(rung, format!("{}: {e}", path.display())))?;
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    *loaded = Some(library);
    Ok(library)
}

/// The library in our folder, compiled unless this compiler has compiled it before; or
/// the compiler's message.
fn compiled(nvcc: &Path, cache: &Path) -> Result<PathBuf, String> {
    let run = |command: &mut Command| {
        let output = command.output().map_err(|e| format!("{}: {e}", nvcc.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() { Ok(said) } else { Err(said) }
    };
    let version = run(Command::new(nvcc).arg("--version"))?;
    let mut hasher = DefaultHasher::new();
    (SOURCE, nvcc, version).hash(&mut hasher);
    let path = cache.join(format!("cub-{:016x}.so", hasher.finish()));
    if path.is_file() {
        return Ok(path);
    }
    let failed = |e: std::io::Error| format!("{}: {e}", cache.display());
    // A process that compiles at the same time does not see half a file.
    let part = |extension: &str| path.with_extension(format!("{}.{extension}", std::process::id()));
    let (source, part) = (part("cu"), part("so"));
    std::fs::write(&source, SOURCE).map_err(failed)?;
    let mut command = Command::new(nvcc);
    command.args(["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC", "-o"]);
    let said = run(command.arg(&part).arg(&source));
    let _ = std::fs::remove_file(&source);
    said.map_err(|said| {
        let line = said.lines().find(|line| line.contains("error")).or(said.lines().next());
        format!("nvcc cannot compile CUB: {}", line.unwrap_or("no message").trim())
    })?;
    std::fs::rename(&part, &path).map_err(failed)?;
    Ok(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A script in the compiler's place: it is asked once, and what it refuses is told.
    #[test]
    fn it_is_compiled_once_for_each_compiler() {
        let root = std::env::temp_dir().join(format!("warpfold-cub-{}", std::process::id()));
        fs::create_dir_all(root.join("cache")).unwrap();
        let (nvcc, cache, calls) = (root.join("nvcc"), root.join("cache"), root.join("calls"));
        let write = |version: &str, body: &str| {
            let version = format!("[ \"$1\" = --version ] && echo {version} && exit");
            fs::write(&nvcc, format!("#!/bin/sh\n{version}\n{body}\n")).unwrap();
            fs::set_permissions(&nvcc, fs::Permissions::from_mode(0o755)).unwrap();
        };
        // -O3 -std -arch -shared -Xcompiler -fPIC -o FILE SOURCE
        let body = format!("echo \"$@\" >> {}; cp \"$9\" \"$8\"", calls.display());
        write("13.0", &body);
        let path = compiled(&nvcc, &cache).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), SOURCE);
        assert_eq!(compiled(&nvcc, &cache).unwrap(), path);
        assert_eq!(fs::read_to_string(&calls).unwrap().lines().count(), 1);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing is left over");
        write("13.1", &body);
        assert_ne!(compiled(&nvcc, &cache).unwrap(), path, "another compiler, another library");
        write("13.2", "echo 'cub.cu(3): fatal error: no such file'; exit 1");
        assert!(compiled(&nvcc, &cache).unwrap_err().contains("no such file"));
        fs::remove_file(&nvcc).unwrap();
        assert!(compiled(&nvcc, &cache).unwrap_err().contains("nvcc"));
        fs::remove_dir_all(&root).unwrap();
    }
}
