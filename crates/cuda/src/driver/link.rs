//! Modules: the driver's compiler and linker, and their messages.

use super::Driver;
use super::api::{Api, CUlinkState, CUmodule, JitInput, JitOption};
use crate::device::ModuleId;
use crate::{Error, Result, device_runtime};
use core::ffi::{CStr, c_uint, c_void};
use core::ptr;
use std::ffi::CString;
use std::path::Path;

/// The compiler's messages about a module.
struct Log(Vec<u8>);

impl Log {
    /// Buffers for them.
    const BYTES: usize = 16 << 10;

    const OPTIONS: [JitOption; 2] =
        [JitOption::ERROR_LOG_BUFFER, JitOption::ERROR_LOG_BUFFER_SIZE_BYTES];

    fn new() -> Log {
        Log(vec![0; Log::BYTES])
    }

    /// The values of the options.
    fn values(&mut self) -> [*mut c_void; 2] {
        [self.0.as_mut_ptr().cast(), ptr::without_provenance_mut(Log::BYTES)]
    }

    /// The driver's message, and those of its compiler.
    fn tell(&self, error: Error) -> Error {
        let log = CStr::from_bytes_until_nul(&self.0).unwrap_or_default().to_string_lossy();
        match error {
            Error::Driver { doing, name, text } if !log.trim().is_empty() => {
                Error::Driver { doing, name, text: format!("{text}: {}", log.trim()) }
            }
            other => other,
        }
    }
}

impl Driver {
    /// Compiles PTX and loads it; a context is current.
    pub(super) fn compile(&self, name: &str, ptx: &str) -> Result<ModuleId> {
        let image = CString::new(ptx).map_err(|_| Error::Driver {
            doing: format!("loading {name}"),
            name: "CUDA_ERROR_INVALID_PTX".into(),
            text: "the text holds a zero byte".into(),
        })?;
        let linked = match device_runtime::is_needed(ptx) {
            true => Some(Linked::new(self.api(), name, &image, &device_runtime::find()?)?),
            false => None,
        };
        let start = linked.as_ref().map_or(image.as_ptr().cast(), |linked| linked.image);
        // SAFETY: the text ends in a zero byte, or the linker made it; either lives
        // until the call returns.
        unsafe { self.load_image(name, start) }
    }

    /// # Safety
    /// The image is PTX that ends in a zero byte, or machine code; a context is
    /// current.
    unsafe fn load_image(&self, name: &str, image: *const c_void) -> Result<ModuleId> {
        let mut log = Log::new();
        let (mut options, mut values) = (Log::OPTIONS, log.values());
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: the image is the caller's promise; the two options and their
        // values belong together, and the log is as long as they say.
        let loaded = unsafe {
            (self.api().cuModuleLoadDataEx)(
                &raw mut module,
                image,
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let loaded = self.api().check(loaded, || format!("loading {name}"));
        loaded.map_err(|error| log.tell(error))?;
        self.handles().modules.insert(module as u64);
        Ok(ModuleId(module as u64))
    }
}

/// A module linked with the device runtime.
pub(super) struct Linked<'a> {
    api: &'a Api,
    state: CUlinkState,
    /// Its machine code, which lives as long as the linker's state.
    image: *const c_void,
    /// The buffers for the linker's messages, which live as long as its state.
    log: Log,
    /// The addresses of these buffers.
    _values: Box<[*mut c_void; 2]>,
}

impl<'a> Linked<'a> {
    /// Links PTX with a library; a context is current until the value is dropped.
    pub(super) fn new(api: &'a Api, name: &str, ptx: &CStr, library: &Path) -> Result<Linked<'a>> {
        let doing = || format!("linking {name} with {}", library.display());
        let path = CString::new(library.as_os_str().as_encoded_bytes());
        let path = path.map_err(|_| Error::Library {
            why: format!("{} has a zero byte in its name", library.display()),
            hint: "give it another name".into(),
        })?;
        let mut log = Log::new();
        let (mut options, mut values) = (Log::OPTIONS, Box::new(log.values()));
        let mut state = ptr::null_mut();
        // SAFETY: options and values belong together; the values and the log, which is
        // as long as they say, live as long as the state.
        let created = unsafe {
            (api.cuLinkCreate_v2)(
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
                &raw mut state,
            )
        };
        api.check(created, doing)?;
        let mut linked = Linked { api, state, image: ptr::null(), log, _values: values };
        let bytes = ptx.to_bytes_with_nul();
        // SAFETY: the text is as long as is said, zero byte included; there are no
        // options.
        let added = unsafe {
            (api.cuLinkAddData_v2)(
                state,
                JitInput::PTX,
                bytes.as_ptr().cast_mut().cast(),
                bytes.len(),
                c"warpfold".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        api.check(added, doing).map_err(|e| linked.log.tell(e))?;
        // SAFETY: the path ends in a zero byte; there are no options.
        let added = unsafe {
            (api.cuLinkAddFile_v2)(
                state,
                JitInput::LIBRARY,
                path.as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let (mut image, mut size) = (ptr::null_mut(), 0);
        let completed = api.check(added, doing).and_then(|()| {
            // SAFETY: an address and a size are written.
            let completed = unsafe { (api.cuLinkComplete)(state, &raw mut image, &raw mut size) };
            api.check(completed, doing)
        });
        // A library of another age than the driver is as good as none.
        completed.map_err(|error| Error::Library {
            why: linked.log.tell(error).to_string(),
            hint: format!(
                "use a library that is not newer than the driver; {} sets its path",
                device_runtime::VARIABLE
            ),
        })?;
        linked.image = image;
        Ok(linked)
    }
}

impl Drop for Linked<'_> {
    fn drop(&mut self) {
        // Errors cannot be reported here. SAFETY: created in `new`, and owned by
        // nothing else.
        let _ = unsafe { (self.api.cuLinkDestroy)(self.state) };
    }
}
