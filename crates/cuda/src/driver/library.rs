//! The library file of the driver.

#[cfg(all(any(unix, windows), target_pointer_width = "64"))]
pub(super) use dynamic::Library;
#[cfg(not(all(any(unix, windows), target_pointer_width = "64")))]
pub(super) use none::Library;

/// The driver's library, which only the driver installs. A file of the name without a
/// version is the toolkit's stub, in which every call fails.
pub(super) const NAME: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

#[cfg(all(any(unix, windows), target_pointer_width = "64"))]
mod dynamic {
    use std::ffi::OsStr;
    use std::mem::ManuallyDrop;

    /// A library that stays loaded: the driver has threads that run its code.
    pub(in super::super) struct Library(ManuallyDrop<libloading::Library>);

    impl Library {
        /// # Errors
        /// The loader's message, with the name.
        ///
        /// # Safety
        /// The initialisers of a library of this name may be run.
        pub(in super::super) unsafe fn open(name: &OsStr) -> Result<Library, String> {
            // SAFETY: the caller's promise.
            let library = unsafe { open(name) };
            let library = library.map_err(|error| {
                let (name, text) = (name.to_string_lossy(), words(&error));
                if text.contains(&*name) { text } else { format!("{name}: {text}") }
            })?;
            Ok(Library(ManuallyDrop::new(library)))
        }

        /// A function, if the library has it. The name ends in a zero byte.
        ///
        /// # Safety
        /// `T` is the type of a pointer to the function with this name.
        pub(in super::super) unsafe fn function<T: Copy>(&self, name: &str) -> Option<T> {
            const { assert!(size_of::<Option<T>>() == size_of::<*const ()>()) };
            // SAFETY: a pointer that may be null is an `Option` of a function's; of
            // what type the caller says.
            let found = unsafe { self.0.get::<Option<T>>(name.as_bytes()) };
            found.ok().and_then(|symbol| *symbol)
        }
    }

    /// The loader's own message, which is the error's source on some systems.
    fn words(error: &libloading::Error) -> String {
        core::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
    }

    #[cfg(unix)]
    unsafe fn open(name: &OsStr) -> Result<libloading::Library, libloading::Error> {
        // SAFETY: passed on from the caller.
        unsafe { libloading::Library::new(name) }
    }

    /// From the system's folder alone: a file of this name beside the program or
    /// in the current folder is not the driver's.
    #[cfg(windows)]
    unsafe fn open(name: &OsStr) -> Result<libloading::Library, libloading::Error> {
        use libloading::os::windows::{LOAD_LIBRARY_SEARCH_SYSTEM32, Library};
        // SAFETY: passed on from the caller.
        unsafe { Library::load_with_flags(name, LOAD_LIBRARY_SEARCH_SYSTEM32) }.map(Into::into)
    }
}

#[cfg(not(all(any(unix, windows), target_pointer_width = "64")))]
mod none {
    use core::convert::Infallible;
    use std::ffi::OsStr;

    /// There is no driver for this kind of machine.
    pub(in super::super) struct Library(Infallible);

    impl Library {
        /// # Errors
        /// Always.
        ///
        /// # Safety
        /// None; the signature is that of other machines.
        pub(in super::super) unsafe fn open(name: &OsStr) -> Result<Library, String> {
            Err(format!("there is no {} for this kind of machine", name.to_string_lossy()))
        }

        /// # Safety
        /// It cannot be called, since there is no value of this type.
        pub(in super::super) unsafe fn function<T: Copy>(&self, _name: &str) -> Option<T> {
            match self.0 {}
        }
    }
}
