//! The functions of an MPI library. Interfaces differ in what a handle is, an integer or a
//! pointer, and in a few numbers; the functions are the same.

use crate::{Calls, How};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use libloading::Library;

/// What differs between interfaces.
pub(crate) struct Interface<H> {
    pub(crate) world: H,
    pub(crate) int64: H,
    pub(crate) byte: H,
    pub(crate) sum: H,
    pub(crate) min: H,
    pub(crate) max: H,
    pub(crate) errors_return: H,
    /// The address that stands for a buffer that is read and written.
    pub(crate) in_place: usize,
    /// The address that stands for a status that nobody reads.
    pub(crate) no_status: usize,
    /// The number of `MPI_THREAD_FUNNELED`.
    pub(crate) funnelled: c_int,
}

/// Declares the functions with their types, and how they are found.
macro_rules! functions {
    ($($field:ident: $name:literal ($($argument:ty),*);)*) => {
        struct Functions<H> {
            $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Copy> Functions<H> {
            /// # Errors
            /// The name of a function that the library does not have.
            ///
            /// # Safety
            /// The library is one of MPI, whose handles are of type `H`.
            unsafe fn find(library: &Library) -> Result<Self, String> {
                Ok(Functions {
                    $($field: {
                        // SAFETY: functions of these names have these types in every MPI library.
                        let found = unsafe { library.get(concat!($name, "\0").as_bytes()) };
                        *found.map_err(|_| format!("it has no {}", $name))?
                    },)*
                })
            }
        }
    };
}

functions! {
    initialized: "MPI_Initialized" (*mut c_int);
    init_thread: "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize: "MPI_Finalize" ();
    abort: "MPI_Abort" (H, c_int);
    comm_dup: "MPI_Comm_dup" (H, *mut H);
    comm_set_errhandler: "MPI_Comm_set_errhandler" (H, H);
    comm_rank: "MPI_Comm_rank" (H, *mut c_int);
    comm_size: "MPI_Comm_size" (H, *mut c_int);
    processor_name: "MPI_Get_processor_name" (*mut c_char, *mut c_int);
    error_string: "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    all_reduce: "MPI_Allreduce" (*const c_void, *mut c_void, c_int, H, H, H);
    all_gather: "MPI_Allgather" (*const c_void, c_int, H, *mut c_void, c_int, H, H);
    bcast: "MPI_Bcast" (*mut c_void, c_int, H, c_int, H);
    send: "MPI_Send" (*const c_void, c_int, H, c_int, c_int, H);
    recv: "MPI_Recv" (*mut c_void, c_int, H, c_int, c_int, H, *mut c_void);
}

/// A library, and the communicator that is used.
pub(crate) struct Mpi<H> {
    functions: Functions<H>,
    interface: Interface<H>,
}

/// Bytes or numbers of one call: counts are `int`.
const MOST: usize = 1 << 30;
/// The tag of every message: a copy of the communicator has no others.
const TAG: c_int = 1;
/// The longest text of an error in any library.
const MOST_TEXT: usize = 1024;

/// The text that `write` writes.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> Option<String> {
    let (mut text, mut len) = ([0u8; MOST_TEXT], 0);
    let code = write(text.as_mut_ptr().cast(), &raw mut len);
    let text = text.get(..usize::try_from(len).ok()?).filter(|_| code == 0)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

impl<H: Copy> Mpi<H> {
    /// # Errors
    /// The name of a function that the library does not have.
    ///
    /// # Safety
    /// The library has the interface, and stays loaded.
    pub(crate) unsafe fn new(library: &Library, interface: Interface<H>) -> Result<Self, String> {
        // SAFETY: the caller's promise.
        Ok(Mpi { functions: unsafe { Functions::find(library) }?, interface })
    }

    /// What a call says, if it has failed.
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let told = text(|at, len| {
            // SAFETY: the buffer is as long as texts of any library may be.
            unsafe { (self.functions.error_string)(code, at, len) }
        });
        Err(told.unwrap_or_else(|| format!("error {code}")))
    }

    fn number(&self, ask: unsafe extern "C" fn(H, *mut c_int) -> c_int) -> Result<usize, String> {
        let mut number = 0;
        // SAFETY: the communicator is valid, and the number is written.
        self.check(unsafe { ask(self.interface.world, &raw mut number) })?;
        usize::try_from(number).map_err(|_| format!("a rank or size of {number}"))
    }
}

impl<H: Copy> Calls for Mpi<H> {
    fn initialised(&self) -> Result<bool, String> {
        let mut flag = 0;
        // SAFETY: the function may be called at any time.
        self.check(unsafe { (self.functions.initialized)(&raw mut flag) })?;
        Ok(flag != 0)
    }

    fn initialise(&self) -> Result<(), String> {
        let (null, mut level) = (ptr::null_mut(), 0);
        let needed = self.interface.funnelled;
        // SAFETY: no arguments are passed on, which the standard allows.
        let done =
            unsafe { (self.functions.init_thread)(null, ptr::null_mut(), needed, &raw mut level) };
        self.check(done)
    }

    fn join(&mut self) -> Result<(usize, usize), String> {
        let mut own = self.interface.world;
        // SAFETY: all ranks call it, and the handle is written.
        self.check(unsafe { (self.functions.comm_dup)(self.interface.world, &raw mut own) })?;
        self.interface.world = own;
        // SAFETY: both handles are valid.
        self.check(unsafe {
            (self.functions.comm_set_errhandler)(own, self.interface.errors_return)
        })?;
        Ok((self.number(self.functions.comm_rank)?, self.number(self.functions.comm_size)?))
    }

    fn host(&self) -> Result<String, String> {
        let told = text(|at, len| {
            // SAFETY: the buffer is as long as texts of any library may be.
            unsafe { (self.functions.processor_name)(at, len) }
        });
        told.ok_or_else(|| "the host has no name".into())
    }

    fn all_reduce(&self, numbers: &mut [i64], how: How) -> Result<(), String> {
        let Interface { world, int64, sum, min, max, in_place, .. } = self.interface;
        let op = match how {
            How::Sum => sum,
            How::Min => min,
            How::Max => max,
        };
        for part in numbers.chunks_mut(MOST) {
            let (to, count) = (part.as_mut_ptr().cast(), part.len() as c_int);
            // SAFETY: `to` has `count` numbers; `in_place` says that they are read there, too.
            let done = unsafe {
                (self.functions.all_reduce)(
                    ptr::without_provenance(in_place),
                    to,
                    count,
                    int64,
                    op,
                    world,
                )
            };
            self.check(done)?;
        }
        Ok(())
    }

    fn all_gather(&self, number: i64, all: &mut [i64]) -> Result<(), String> {
        if self.number(self.functions.comm_size)? != all.len() {
            return Err("a gather of another size".into());
        }
        let Interface { world, int64, .. } = self.interface;
        let (from, to) = ((&raw const number).cast(), all.as_mut_ptr().cast());
        // SAFETY: `to` has room for a number of each rank.
        self.check(unsafe { (self.functions.all_gather)(from, 1, int64, to, 1, int64, world) })
    }

    fn broadcast(&self, bytes: &mut [u8], root: usize) -> Result<(), String> {
        let Interface { world, byte, .. } = self.interface;
        for part in bytes.chunks_mut(MOST) {
            let (at, count) = (part.as_mut_ptr().cast(), part.len() as c_int);
            // SAFETY: `at` has `count` bytes.
            self.check(unsafe { (self.functions.bcast)(at, count, byte, root as c_int, world) })?;
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8], to: usize) -> Result<(), String> {
        let Interface { world, byte, .. } = self.interface;
        for part in bytes.chunks(MOST) {
            let (from, count) = (part.as_ptr().cast(), part.len() as c_int);
            // SAFETY: `from` has `count` bytes.
            self.check(unsafe {
                (self.functions.send)(from, count, byte, to as c_int, TAG, world)
            })?;
        }
        Ok(())
    }

    fn receive(&self, bytes: &mut [u8], from: usize) -> Result<(), String> {
        let Interface { world, byte, no_status, .. } = self.interface;
        for part in bytes.chunks_mut(MOST) {
            let (to, count) = (part.as_mut_ptr().cast(), part.len() as c_int);
            let status = ptr::without_provenance_mut(no_status);
            // SAFETY: `to` has `count` bytes, and no status is written.
            self.check(unsafe {
                (self.functions.recv)(to, count, byte, from as c_int, TAG, world, status)
            })?;
        }
        Ok(())
    }

    fn finalise(&self) -> Result<(), String> {
        // SAFETY: nothing of MPI is called afterwards.
        self.check(unsafe { (self.functions.finalize)() })
    }

    fn abort(&self, status: i32) {
        // SAFETY: the communicator is valid. There is nobody to tell that it failed.
        unsafe { (self.functions.abort)(self.interface.world, status) };
    }
}
