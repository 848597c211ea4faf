//! NVIDIA's run-time compiler, where it is on this machine: CUDA C++ becomes PTX, without a GPU, a driver or `nvcc`.

use super::Failed;
use crate::cache;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use libloading::Library;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use warpfold_cuda::toolkit;

/// The path of the library, if it is not in one of the usual places.
pub const VARIABLE: &str = "WARPFOLD_NVRTC";

/// The wheel that [`fetch`] asks for.
const WHEEL: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";

/// The folder of compilers below the user's cache folder.
const CACHE: &str = "nvrtc";

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Message = unsafe extern "C" fn(c_int) -> *const c_char;

/// The compiler, loaded.
pub struct Nvrtc {
    path: PathBuf,
    library: Library,
}

impl Nvrtc {
    /// The compiler of this machine: the one that [`VARIABLE`] names, a toolkit's, a Python wheel's, or one that [`fetch`] brought.
    ///
    /// # Errors
    /// There is none, or it cannot be loaded.
    pub fn find() -> Result<Nvrtc, Failed> {
        if let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) {
            return Nvrtc::load(&path);
        }
        let found = folders().into_iter().find_map(|folder| library_in(&folder));
        let missing = || Failed::NoCompiler {
            why: "NVRTC, NVIDIA's run-time compiler, was not found".into(),
        };
        Nvrtc::load(&found.ok_or_else(missing)?)
    }

    fn load(path: &Path) -> Result<Nvrtc, Failed> {
        let failed = |e: libloading::Error| Failed::NoCompiler {
            why: format!("{} cannot be loaded: {e}", path.display()),
        };
        // It asks for its builtins by name: where they are loaded already, they are found.
        for builtins in files_in(path.parent().unwrap_or(Path::new("/")), "libnvrtc-builtins.so") {
            // SAFETY: a part of the compiler, whose initialisers may run; the user has installed it, or named it.
            if let Ok(library) = unsafe { Library::new(&builtins) } {
                core::mem::forget(library);
            }
        }
        // SAFETY: as above.
        let library = unsafe { Library::new(path) }.map_err(failed)?;
        Ok(Nvrtc { path: path.to_path_buf(), library })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A function of the library.
    fn function<F: Copy>(&self, name: &str) -> Result<F, Failed> {
        // SAFETY: callers ask for the types that the documentation of NVRTC gives these names, which have not changed since its first
        // version.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        found
            .map(|function| *function)
            .map_err(|e| Failed::NoCompiler { why: format!("{}: {e}", self.path.display()) })
    }

    /// Compiles a source that needs no headers, for a compute capability such as 75 and newer ones, with line numbers.
    ///
    /// # Errors
    /// What the compiler says of the source.
    pub fn compile(&self, name: &str, source: &str, compute: u32) -> Result<String, Failed> {
        let nul = |text: &str| {
            CString::new(text)
                .map_err(|_| Failed::Source { why: "there is a NUL character in it".into() })
        };
        let launches = source.contains("<<<") || source.contains("__cudaCDP2");
        let (source, name) = (nul(source)?, nul(name)?);
        let architecture = nul(&format!("--gpu-architecture=compute_{compute}"))?;
        let create: Create = self.function("nvrtcCreateProgram")?;
        let compile: Compile = self.function("nvrtcCompileProgram")?;
        let destroy: Destroy = self.function("nvrtcDestroyProgram")?;
        let mut program: Program = ptr::null_mut();
        // SAFETY: all strings end with NUL and are copied; there are no headers.
        let status = unsafe {
            create(&raw mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        self.check("creating a program", status)?;
        let mut flags = vec![architecture.as_c_str(), c"--std=c++17", c"-lineinfo"];
        // What launches from the device is linked with the device runtime.
        flags.extend(launches.then_some(c"-rdc=true"));
        let flags: Vec<_> = flags.into_iter().map(CStr::as_ptr).collect();
        // SAFETY: the program was created above; there are as many options as are said.
        let status = unsafe { compile(program, flags.len() as c_int, flags.as_ptr()) };
        let log = self.text(program, "ProgramLog");
        let ptx = if status == 0 { self.text(program, "PTX") } else { Ok(String::new()) };
        // SAFETY: it was created above and is not used any more.
        unsafe { destroy(&raw mut program) };
        if status != 0 {
            return Err(Failed::Source { why: log?.trim_end().into() });
        }
        ptx
    }

    /// A text of a program.
    fn text(&self, program: Program, what: &str) -> Result<String, Failed> {
        let size: Size = self.function(&format!("nvrtcGet{what}Size"))?;
        let text: Text = self.function(&format!("nvrtcGet{what}"))?;
        let mut bytes = 0;
        // SAFETY: the program exists.
        self.check("asking for a text", unsafe { size(program, &raw mut bytes) })?;
        let mut buffer = vec![0_u8; bytes];
        // SAFETY: the buffer has the size that was asked for.
        self.check("reading a text", unsafe { text(program, buffer.as_mut_ptr().cast()) })?;
        let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
        buffer.truncate(end);
        Ok(String::from_utf8_lossy(&buffer).into_owned())
    }

    fn check(&self, doing: &str, status: c_int) -> Result<(), Failed> {
        if status == 0 {
            return Ok(());
        }
        let message: Message = self.function("nvrtcGetErrorString")?;
        // SAFETY: it gives a text, which is never freed, for every number.
        let text = unsafe { CStr::from_ptr(message(status)) };
        Err(Failed::NoCompiler {
            why: format!("{}, {doing}: {}", self.path.display(), text.to_string_lossy()),
        })
    }
}

/// Folders that may hold the compiler: toolkits, environments of Python, and the cache.
fn folders() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut all: Vec<PathBuf> = toolkit::roots()
        .into_iter()
        .flat_map(|root| ["lib64", "targets/x86_64-linux/lib", "lib"].map(|l| root.join(l)))
        .collect();
    let home = variable("HOME").map(|home| home.join(".local"));
    let roots = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).chain(home);
    for root in roots.chain(["/usr/local", "/usr"].map(PathBuf::from)) {
        for python in within(&root.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                all.extend(libraries_below(&python.join(packages)));
            }
        }
    }
    if let Ok(cache) = cache::folder(CACHE) {
        all.extend(libraries_below(&cache));
        for wheel in within(&cache, "nvidia-cuda-nvrtc") {
            all.extend(libraries_below(&wheel));
        }
    }
    all
}

/// The folders of NVIDIA's wheels in a folder of packages.
fn libraries_below(packages: &Path) -> Vec<PathBuf> {
    within(&packages.join("nvidia"), "cu").into_iter().map(|package| package.join("lib")).collect()
}

/// The folders within another whose names begin so, the last one first.
fn within(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let mut found = files_in(folder, begin);
    found.retain(|path| path.is_dir());
    found
}

fn files_in(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(begin)))
        .map(|entry| entry.path())
        .collect();
    found.sort_unstable();
    found.reverse();
    found
}

fn library_in(folder: &Path) -> Option<PathBuf> {
    files_in(folder, "libnvrtc.so").into_iter().find(|path| path.is_file())
}

/// What [`fetch`] is doing.
#[derive(Debug)]
pub enum Fetching<'a> {
    /// It begins.
    Begins {
        /// Bytes that come from the registry.
        download: u64,
        /// Bytes of the files that are made of them.
        unpacked: u64,
        /// Where they will be.
        folder: &'a Path,
    },
    /// So many bytes have come or were unpacked, of all attempts together.
    Bytes(u64),
    /// An attempt has failed, and another one begins.
    Again {
        /// What pip said.
        why: String,
    },
}

/// Bytes of the wheel, and of its files, on Linux.
const DOWNLOAD: u64 = 89_568_129;
const UNPACKED: u64 = 227_449_426;

/// A download that breaks off is begun again.
const ATTEMPTS: u32 = 3;

/// Brings the compiler's wheel from the package registry to the user's cache folder, with pip, unless it is there. Everything is made in a
/// folder beside its place and moved there when it is whole and has been loaded: what breaks off leaves nothing that could be taken for a
/// compiler. Each step is told.
///
/// # Errors
/// No folder that only the user can write to, no pip, or what pip says.
pub fn fetch(told: &mut dyn FnMut(Fetching<'_>)) -> Result<(), Failed> {
    let failed = |why: String| Failed::Fetch { why };
    let cache = cache::folder(CACHE).map_err(failed)?;
    let folder = cache.join(WHEEL.replace("==", "-"));
    if loaded_from(&folder).is_ok() {
        return Ok(());
    }
    // What was killed could not clean up.
    for left in within(&cache, PARTIAL).iter().filter(|left| !is_being_made(left)) {
        let _ = std::fs::remove_dir_all(left);
    }
    told(Fetching::Begins { download: DOWNLOAD, unpacked: UNPACKED, folder: &folder });
    let partial = Partial(cache.join(format!("{PARTIAL}{}", std::process::id())));
    let mut attempt = 1;
    loop {
        let why = match install(&partial.0, told) {
            Ok(()) => match loaded_from(&partial.0.join("wheel")) {
                Ok(()) => break,
                Err(error) => error.to_string(),
            },
            Err(Failure::NoPip(why)) => return Err(failed(why)),
            Err(Failure::Pip(why)) => why,
        };
        if attempt == ATTEMPTS {
            return Err(failed(format!("{why} ({ATTEMPTS} attempts)")));
        }
        attempt += 1;
        told(Fetching::Again { why });
    }
    let moved = |e: std::io::Error| failed(format!("{}: {e}", folder.display()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(moved)?;
    }
    std::fs::rename(partial.0.join("wheel"), &folder).map_err(moved)
}

/// How the names of folders begin in which a wheel is being made: nobody looks for a compiler there.
const PARTIAL: &str = ".partial-";

/// Whether the process that makes such a folder is there; it is not asked where there is no /proc.
fn is_being_made(partial: &Path) -> bool {
    let process = partial.file_name().and_then(|name| name.to_str()?.strip_prefix(PARTIAL));
    let proc = Path::new("/proc");
    !proc.is_dir() || process.is_some_and(|process| proc.join(process).exists())
}

/// A folder that goes, whatever happens.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

enum Failure {
    NoPip(String),
    Pip(String),
}

/// The compiler in a wheel's folder, if it can be loaded.
fn loaded_from(wheel: &Path) -> Result<(), Failed> {
    let found = libraries_below(wheel).iter().find_map(|folder| library_in(folder));
    let missing = || Failed::NoCompiler { why: "the wheel has no library for this machine".into() };
    Nvrtc::load(&found.ok_or_else(missing)?).map(drop)
}

/// Has pip make `partial/wheel`, and tells how many bytes are in `partial`, where pip's temporary files are, too.
fn install(partial: &Path, told: &mut dyn FnMut(Fetching<'_>)) -> Result<(), Failure> {
    let place = |e: std::io::Error| Failure::NoPip(format!("{}: {e}", partial.display()));
    // What a broken download has left is not taken up.
    if partial.exists() {
        std::fs::remove_dir_all(partial).map_err(place)?;
    }
    let temporary = partial.join("pip");
    std::fs::create_dir_all(&temporary).map_err(place)?;
    let said = std::fs::File::create(partial.join("said")).map_err(place)?;
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    command.args(["--no-cache-dir", "--only-binary", ":all:", "--target"]);
    command.arg(partial.join("wheel")).arg(WHEEL).env("TMPDIR", &temporary);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    let no_pip = |e: std::io::Error| Failure::NoPip(format!("python3: {e}"));
    let mut child = command.spawn().map_err(no_pip)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(no_pip)? {
            break status;
        }
        told(Fetching::Bytes(bytes_below(partial)));
        std::thread::sleep(LOOK);
    };
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read_to_string(partial.join("said")).unwrap_or_default();
    let last = said.trim().lines().last().unwrap_or("no message");
    let why = format!("pip: {last}");
    Err(if last.contains("No module named pip") { Failure::NoPip(why) } else { Failure::Pip(why) })
}

/// How often the bytes are counted.
const LOOK: Duration = Duration::from_millis(100);

/// Bytes of the files below a folder, as far as they can be seen while they come and go.
fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}
