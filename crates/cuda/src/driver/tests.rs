//! On a driver for tests, `tests/fake_driver.c`: which calls are made, in which
//! context, and what comes of those that fail. Skips aloud without a C compiler.

use super::*;
use crate::Buffer;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// A driver for tests, and what it knows.
struct Fake {
    loaded: &'static Loaded,
    library: libloading::Library,
    folder: tempfile::TempDir,
}

/// A library made of the C source; each has its own state.
fn compiled(defines: &[&str]) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libfake.so.1");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    let mut command = Command::new(&compiler);
    command.args(["-shared", "-fPIC", "-o"]).arg(&path);
    command.args(defines.iter().map(|define| format!("-D{define}")));
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_driver.c"));
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}", compiler.display());
            Some((folder, path))
        }
        Err(error) => {
            println!("SKIPPED: {}: {error}", compiler.display());
            None
        }
    }
}

fn load(path: &OsStr) -> Result<&'static Loaded> {
    // SAFETY: there is no such library, or it is the one made for these tests.
    let loaded = unsafe { Loaded::new(path) }?;
    Ok(Box::leak(Box::new(loaded)))
}

impl Fake {
    fn new(defines: &[&str]) -> Option<Fake> {
        let (folder, path) = compiled(defines)?;
        let loaded = load(path.as_os_str()).expect("a whole driver");
        // SAFETY: the same library.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        Some(Fake { loaded, library, folder })
    }

    fn open(&self, ordinal: u32) -> Driver {
        Driver::open_in(self.loaded, ordinal).unwrap()
    }

    /// Asks for something without an argument.
    fn ask<T>(&self, name: &str) -> T {
        // SAFETY: the functions that are asked have this type.
        unsafe { self.library.get::<extern "C" fn() -> T>(name).unwrap()() }
    }

    fn of_device<T>(&self, name: &str, ordinal: c_int) -> T {
        // SAFETY: as above.
        unsafe { self.library.get::<extern "C" fn(c_int) -> T>(name).unwrap()(ordinal) }
    }

    /// The context that is current on this thread, and how many are below it.
    fn current(&self) -> (*mut c_void, c_int) {
        (self.ask("fake_current"), self.ask("fake_depth"))
    }

    fn set_current(&self, context: *mut c_void) {
        // SAFETY: the function has this type.
        let set = unsafe { self.library.get::<extern "C" fn(*mut c_void)>("fake_set_current") };
        set.unwrap()(context);
    }

    fn alive(&self) -> c_int {
        self.ask("fake_alive")
    }

    /// What the calls since the last question were.
    fn calls(&self) -> Vec<String> {
        let text = |name| {
            // SAFETY: the text ends in a zero byte and stays.
            unsafe { CStr::from_ptr(self.ask::<*const core::ffi::c_char>(name)) }
        };
        let calls = text("fake_calls").to_str().unwrap();
        let calls = calls.split_whitespace().map(Into::into).collect();
        self.ask::<()>("fake_forget_calls");
        calls
    }

    fn launched(&self) -> String {
        // SAFETY: as above.
        let text = unsafe { CStr::from_ptr(self.ask("fake_launched")) };
        text.to_str().unwrap().into()
    }

    /// Lets a call fail from now on, after so many that do not, on this thread.
    fn fail(&self, name: Option<&CStr>, with: c_int, after: c_int) {
        type Fail = extern "C" fn(*const core::ffi::c_char, c_int, c_int);
        let name = name.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: the function has this type; names are literals or leaked.
        unsafe { self.library.get::<Fail>("fake_fail").unwrap()(name, with, after) }
    }
}

fn unavailable(error: Error) -> (String, String) {
    match error {
        Error::Unavailable { why, hint } => (why, hint),
        other => panic!("{other:?}"),
    }
}

const PTX: &str = ".version 8.0\n.entry fill .entry other";

#[test]
fn a_library_that_is_not_there_is_named() {
    let error = load("libwarpfold-has-none.so.1".as_ref()).err().unwrap();
    let (why, hint) = unavailable(error);
    assert!(why.contains("libwarpfold-has-none.so.1"), "{why}");
    assert!(hint.contains("version 525"), "{hint}");
    assert!(load("lib\0cuda".as_ref()).is_err());
}

#[test]
fn a_file_that_is_no_library_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libcuda.so.1");
    std::fs::write(&path, "no library at all").unwrap();
    let (why, _) = unavailable(load(path.as_os_str()).err().unwrap());
    assert!(why.contains("libcuda.so.1"), "{why}");
}

#[test]
fn a_function_that_is_not_there_is_named() {
    for name in ["cuInit", "cuGetErrorName", "cuLaunchKernelEx", "cuEventDestroy_v2"] {
        let Some((_folder, path)) = compiled(&[&format!("{name}=gone")]) else { return };
        let (why, hint) = unavailable(load(path.as_os_str()).err().unwrap());
        assert!(why.ends_with(&format!("has no {name}")), "{why}");
        assert!(hint.contains("version 525"), "{hint}");
    }
}

#[test]
fn a_driver_that_is_too_old_is_refused_before_anything_else() {
    let Some((_folder, path)) = compiled(&["VERSION=11080"]) else { return };
    let (why, hint) = unavailable(load(path.as_os_str()).err().unwrap());
    assert_eq!(why, "the driver supports CUDA 11.8, but 12.0 is needed");
    assert!(hint.contains("version 525"), "{hint}");
}

#[test]
fn devices_are_counted_and_described() {
    let Some(fake) = Fake::new(&[]) else { return };
    let limits = fake.loaded.limits(fake.loaded.device(0).unwrap()).unwrap();
    assert_eq!(limits.name, "Fake 0");
    assert_eq!((limits.capability, limits.multiprocessors), ((9, 0), 116));
    assert_eq!((limits.threads_per_block, limits.shared_per_block), (101, 197));
    assert_eq!((limits.l2_bytes, limits.memory), (138, 80 << 30));
    // A name that fills its room is no reason to read on.
    assert_eq!(fake.loaded.limits(1).unwrap().name, "x".repeat(128));
    let (why, _) = unavailable(fake.loaded.device(2).unwrap_err());
    assert_eq!(why, "device 2 was requested, but there are 2");
}

#[test]
fn what_the_driver_says_is_told() {
    let Some(fake) = Fake::new(&[]) else { return };
    let driver = fake.open(0);
    let said = |error: Error| match error {
        Error::Driver { doing, name, text } => (doing, name, text),
        other => panic!("{other:?}"),
    };
    let refused = driver.allocate(1 << 40).unwrap_err();
    assert!(refused.is_out_of_memory());
    let (doing, name, text) = said(refused);
    assert_eq!(doing, "allocating 1099511627776 bytes");
    assert_eq!((&*name, &*text), ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"));
    // A number of a driver newer than we are.
    fake.fail(Some(c"cuMemAlloc_v2"), 98_765, 0);
    let (_, name, text) = said(driver.allocate(1).unwrap_err());
    assert_eq!((&*name, &*text), ("CUDA error 98765", "no description"));
    fake.fail(None, 0, 0);
    let (_, _, text) = said(driver.load("m", "broken").unwrap_err());
    assert_eq!(text, "no description: ptxas: line 1: broken");
    assert!(driver.load("m", "zero\0byte").is_err());
    let module = driver.load("m", PTX).unwrap();
    let (doing, name, _) = said(driver.kernel(module, "absent").unwrap_err());
    assert_eq!((&*doing, &*name), ("finding kernel absent", "CUDA_ERROR_NOT_FOUND"));
    assert!(driver.kernel(module, "a\0b").is_err());
    for (name, call) in [(c"cuInit", 0), (c"cuDriverGetVersion", 1)] {
        fake.fail(Some(name), 1, 0);
        let path = fake.folder.path().join("libfake.so.1");
        let (doing, ..) = said(load(path.as_os_str()).err().unwrap());
        assert_eq!(doing, ["initialising the driver", "querying the driver's version"][call]);
    }
}

/// Makes every call, ignores its result, and checks what is current after each.
fn every_call(fake: &Fake, driver: &Driver, note: &str) {
    let before = fake.current();
    let unchanged = |call: &str| assert_eq!(fake.current(), before, "{note}: {call}");
    let stream = driver.stream().unwrap_or(Stream::DEFAULT);
    unchanged("stream");
    if let Ok(pinned) = driver.allocate_pinned(100) {
        unchanged("allocate_pinned");
        // SAFETY: allocated with as many bytes.
        let bytes = unsafe { core::slice::from_raw_parts(pinned.as_ptr(), 100) };
        assert!(bytes.iter().all(|&byte| byte == 0), "{note}");
        let _ = driver.is_pinned(bytes);
        unchanged("is_pinned");
        let _ = driver.address_of_pinned(pinned);
        unchanged("address_of_pinned");
        // SAFETY: given above, and not used any more.
        let _ = unsafe { driver.free_pinned(pinned, 100) };
    }
    unchanged("pinned memory");
    let owner: &dyn Device = driver;
    if let Ok(buffer) = Buffer::new(owner, 4096) {
        unchanged("allocate");
        let _ = buffer.fill(stream, 0..4096, 1);
        unchanged("fill");
        let _ = buffer.copy_in(stream, 0, &[2; 8]);
        unchanged("copy_in");
        let mut bytes = [0; 8];
        let _ = buffer.copy_out(stream, 0, &mut bytes);
        unchanged("copy_out");
        let address = buffer.address();
        // SAFETY: the buffer has as many bytes; they are copied at once.
        unsafe {
            let _ = driver.start_copy_in(stream, address, bytes.as_ptr(), 8);
            unchanged("start_copy_in");
            let _ = driver.start_copy_out(stream, address, bytes.as_mut_ptr(), 8);
            unchanged("start_copy_out");
        }
        let _ = driver.why_unreadable(address, 4096);
        let _ = driver.why_unreadable(address, 8 << 20);
        unchanged("why_unreadable");
        let module = driver.load("m", PTX);
        unchanged("load");
        let kernel = module.and_then(|module| driver.kernel(module, "fill"));
        unchanged("kernel");
        if let Ok(kernel) = kernel {
            let _ = driver.resident_blocks(kernel, 128, 100 << 10);
            unchanged("resident_blocks");
            let _ = driver.footprint(kernel);
            unchanged("footprint");
            let launch = Launch::linear(8, 32);
            let arguments = [Argument::from(address), Argument::from(7u8)];
            // SAFETY: the kernel takes these, and writes eight bytes of the buffer.
            let _ = unsafe { driver.launch(stream, kernel, &launch, &arguments) };
            unchanged("launch");
        }
        let _ = buffer.free();
        unchanged("free");
    }
    let _ = driver.load("m", "broken");
    unchanged("load of what is broken");
    let _ = driver.wait(stream);
    unchanged("wait");
    let _ = driver.is_done(stream);
    unchanged("is_done");
    let foreign = Stream(12_345);
    assert!(driver.wait(foreign).is_err() && driver.is_done(foreign).is_err(), "{note}");
    unchanged("a stream of nobody");
    let _ = driver.time(stream, &mut || {
        unchanged("within time");
        driver.wait(stream)
    });
    unchanged("time");
    let failed = driver.time(stream, &mut || Err(Error::ForeignHandle { what: "the work" }));
    assert!(failed.is_err(), "{note}");
    unchanged("time of what fails");
    if let Ok(held) = driver.make_current() {
        assert_eq!(fake.current().0, driver.context, "{note}");
        let _ = driver.wait(stream);
        assert_eq!(fake.current().0, driver.context, "{note}");
        drop(held);
    }
    unchanged("make_current");
    // SAFETY: the stream is the driver's.
    let _ = unsafe { driver.adopt_stream(stream.0 as *mut c_void) };
    unchanged("adopt_stream");
}

/// Callers who have no context, this device's, another's of CUDA and one of their own.
fn callers(fake: &Fake) -> [*mut c_void; 4] {
    let of = |ordinal| fake.of_device("fake_primary", ordinal);
    [ptr::null_mut(), of(0), of(1), 0x1234 as *mut c_void]
}

#[test]
fn what_is_current_stays_so_whatever_fails() {
    let Some(fake) = Fake::new(&[]) else { return };
    for caller in callers(&fake) {
        fake.set_current(caller);
        let alive = fake.alive();
        let driver = fake.open(0);
        every_call(&fake, &driver, "nothing fails");
        drop(driver);
        assert_eq!(fake.current().0, caller);
        assert_eq!((fake.alive(), fake.ask::<c_int>("fake_balance")), (alive, 0));
        assert_eq!(fake.of_device::<c_int>("fake_retained", 0), 0);
        // Without these nothing can be put right.
        let needed = ["cuCtxPopCurrent_v2", "cuDevicePrimaryCtxRelease_v2"];
        for name in Api::NAMES.iter().filter(|name| !needed.contains(name)) {
            let name: &'static CStr = Box::leak(CString::new(*name).unwrap().into());
            for after in 0..4 {
                let Ok(driver) = Driver::open_in(fake.loaded, 0) else { continue };
                fake.fail(Some(name), 201, after);
                every_call(&fake, &driver, &format!("{name:?} after {after}, {caller:?}"));
                drop(driver);
                fake.fail(None, 0, 0);
                assert_eq!(fake.current().0, caller, "{name:?}");
                assert_eq!(fake.ask::<c_int>("fake_balance"), 0, "{name:?}");
                assert_eq!(fake.of_device::<c_int>("fake_retained", 0), 0, "{name:?}");
            }
        }
    }
}

#[test]
fn a_context_that_is_current_already_costs_one_call() {
    let Some(fake) = Fake::new(&[]) else { return };
    let driver = fake.open(0);
    fake.calls();
    drop(Buffer::new(&driver as &dyn Device, 1).unwrap());
    let (get, push, pop) = ("cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2");
    let apart = [get, push, "cuMemAlloc_v2", pop, get, push, "cuMemFree_v2", pop];
    assert_eq!(fake.calls(), apart);
    let held = driver.make_current().unwrap();
    fake.calls();
    drop(Buffer::new(&driver as &dyn Device, 1).unwrap());
    assert_eq!(fake.calls(), [get, "cuMemAlloc_v2", get, "cuMemFree_v2"]);
    drop(held);
    assert_eq!(fake.calls(), [pop]);
}

#[test]
fn two_devices_do_not_get_into_each_others_way() {
    let Some(fake) = Fake::new(&[]) else { return };
    let (one, two) = (fake.open(0), fake.open(1));
    let outer = one.make_current().unwrap();
    every_call(&fake, &two, "the second within the first");
    let inner = two.make_current().unwrap();
    every_call(&fake, &one, "the first within the second");
    drop(inner);
    assert_eq!(fake.current().0, one.context);
    drop(outer);
    assert_eq!(fake.current().1, 0);
}

#[test]
fn launches_arrive_as_they_were_asked_for() {
    let Some(fake) = Fake::new(&[]) else { return };
    let driver = fake.open(0);
    let kernel = driver.kernel(driver.load("m", PTX).unwrap(), "fill").unwrap();
    let buffer = Buffer::new(&driver as &dyn Device, 16).unwrap();
    buffer.fill(Stream::DEFAULT, 0..16, 1).unwrap();
    let arguments = [Argument::from(buffer.address()), Argument::from(9u8)];
    let launch = Launch { grid: [12, 2, 3], block: [32, 4, 5], ..Launch::linear(1, 1) };
    let launch = launch.shared(100_000).clusters(4).cooperative().dependent();
    // SAFETY: the kernel takes these, and writes as many bytes as there are blocks.
    unsafe { driver.launch(Stream::DEFAULT, kernel, &launch, &arguments).unwrap() };
    assert_eq!(
        fake.launched(),
        "12.2.3 of 32.4.5 shared 100000 cluster 4.1.1 attribute 2 = 1 attribute 6 = 1"
    );
    let mut bytes = [0; 16];
    buffer.copy_out(Stream::DEFAULT, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 1, 1, 1]);
    // More shared memory than a block can have.
    let too_much = launch.shared(1 << 20);
    // SAFETY: as above.
    assert!(unsafe { driver.launch(Stream::DEFAULT, kernel, &too_much, &arguments) }.is_err());
    // Shared memory is asked for once.
    fake.calls();
    // SAFETY: as above.
    unsafe { driver.launch(Stream::DEFAULT, kernel, &launch, &arguments).unwrap() };
    assert!(!fake.calls().contains(&"cuFuncSetAttribute".into()));
}

#[test]
fn an_older_driver_gets_no_dependent_launches() {
    let Some(fake) = Fake::new(&["VERSION=12020"]) else { return };
    let driver = fake.open(0);
    let kernel = driver.kernel(driver.load("m", PTX).unwrap(), "other").unwrap();
    // SAFETY: the kernel does nothing.
    unsafe { driver.launch(Stream::DEFAULT, kernel, &Launch::linear(3, 32).dependent(), &[]) }
        .unwrap();
    assert_eq!(fake.launched(), "3.1.1 of 32.1.1 shared 0");
}

#[test]
fn handles_of_another_device_are_refused() {
    let Some(fake) = Fake::new(&[]) else { return };
    let (one, two) = (fake.open(0), fake.open(1));
    let (stream, module) = (one.stream().unwrap(), one.load("m", PTX).unwrap());
    let kernel = one.kernel(module, "fill").unwrap();
    assert_eq!(two.wait(stream).unwrap_err(), Error::ForeignHandle { what: "the stream" });
    assert!(two.kernel(module, "fill").is_err());
    assert!(two.footprint(kernel).is_err() && two.resident_blocks(kernel, 1, 0).is_err());
    // SAFETY: the launch is refused.
    let launched = unsafe { two.launch(Stream::DEFAULT, kernel, &Launch::linear(1, 1), &[]) };
    assert_eq!(launched.unwrap_err(), Error::ForeignHandle { what: "the kernel" });
    // A stream that other code has made, and that `two` now knows. SAFETY: the fake
    // driver's streams belong to every context.
    let adopted = unsafe { two.adopt_stream(stream.0 as *mut c_void) }.unwrap();
    assert!(two.wait(adopted).is_ok());
    assert_eq!((one.calls_on(stream), two.calls_on(adopted)), (Some(0), None));
}

#[test]
fn times_are_the_devices() {
    let Some(fake) = Fake::new(&[]) else { return };
    let driver = fake.open(0);
    let stream = driver.stream().unwrap();
    let alive = fake.alive();
    let mut runs = 0;
    let time = driver.time(stream, &mut || {
        runs += 1;
        Ok(())
    });
    assert_eq!((time, runs), (Ok(Some(Duration::from_micros(1500))), 1));
    assert_eq!(driver.is_done(stream), Ok(false));
    assert_eq!(fake.alive(), alive, "events were kept");
}

/// Whatever fails, the linker's state goes.
#[test]
fn modules_are_linked_with_the_device_runtime() {
    let Some(fake) = Fake::new(&[]) else { return };
    let driver = fake.open(0);
    let library = std::path::Path::new("/a/toolkit/libcudadevrt.a");
    let alive = fake.alive();
    let _current = driver.make_current().unwrap();
    let link = || link::Linked::new(driver.api(), "m", c"needs it", library).map(drop);
    link().unwrap();
    assert_eq!(fake.alive(), alive);
    for name in [c"cuLinkCreate_v2", c"cuLinkAddData_v2", c"cuLinkAddFile_v2", c"cuLinkComplete"] {
        fake.fail(Some(name), 1, 0);
        let said = link().unwrap_err().to_string();
        assert!(said.contains("linking m with /a/toolkit/libcudadevrt.a"), "{said}");
        assert_eq!(fake.alive(), alive, "{name:?}");
    }
    fake.fail(None, 0, 0);
    let bad = std::path::Path::new("/a\0b/libcudadevrt.a");
    assert!(link::Linked::new(driver.api(), "m", c"needs it", bad).is_err());
}

#[test]
fn threads_share_a_device() {
    let Some(fake) = Fake::new(&[]) else { return };
    let driver = fake.open(0);
    let (fake, driver) = (&fake, &driver);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                for round in 0..50 {
                    every_call(fake, driver, &format!("round {round}"));
                }
                assert_eq!(fake.current().1, 0);
            });
        }
    });
}

#[test]
fn a_machine_without_a_driver_or_a_device_is_an_error_with_a_hint() {
    match Driver::probe() {
        Ok(count) => assert!(Driver::open(count).is_err(), "there are only {count}"),
        Err(error) => {
            // A driver that finds no device says so itself.
            let known = matches!(error, Error::Unavailable { .. } | Error::Driver { .. });
            assert!(known && error.hint().is_some(), "{error}");
            assert_eq!(Driver::open(0).err(), Some(error));
        }
    }
}
