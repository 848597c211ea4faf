//! A simulated device: memory, modules, and launches in the order of their streams.
//!
//! A launch runs when it is made, one after the other: every stream allows this order. The reports of launches are collected until
//! [`Device::synchronize`], as errors of a real device are.

use crate::descriptor::{DescriptorError, Image};
use crate::ir::{FunctionId, InitialAddress, Module, Space};
use crate::machine::{
    self, Addresses, Arg, CONST, DecodeError, DeviceLaunch, FUNCTION, Halt, Heap, LOCAL, Launch,
    LaunchError, Limits, Options, Outcome, PARAM, Program, SHARED, Shape, Watch,
};
use crate::memory::{Global, MemoryError, Region};
use crate::name::{self, demangled};
use crate::parse;
use parsed::{Parsed, Programs, lock};
use std::sync::Arc;

mod parsed;

/// Bytes of the heap that kernels allocate from, taken when the first such kernel is launched.
pub(crate) const HEAP: u64 = 8 << 20;

/// Bytes of the workspace of a cooperative grid.
const WORKSPACE: u64 = 256;

/// How deep launches from the device may nest.
const DEEPEST_LAUNCH: u32 = 24;

/// Bytes of the constant bank.
const CONSTANTS: u64 = 64 << 10;

/// Errors of a simulated device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DeviceError {
    /// The text is not PTX, or is not supported.
    Parse(parse::Error),
    /// The kernel has an instruction that cannot be run.
    Decode(DecodeError),
    /// Memory.
    Memory(MemoryError),
    /// A texture, a surface or a tensor map that there cannot be.
    Descriptor(DescriptorError),
    /// The launch is invalid.
    Launch(LaunchError),
    /// No kernel has this name.
    NoKernel {
        /// The name requested.
        name: String,
        /// The names that exist, as the module has them.
        kernels: Vec<String>,
    },
    /// No such variable in the module.
    NoVariable {
        /// The name requested.
        name: String,
    },
    /// More bytes than the variable has.
    VariableSize {
        /// The name requested.
        name: String,
        /// Its bytes.
        size: u64,
        /// Those to be written.
        given: u64,
    },
    /// More constants than the bank holds.
    Constants {
        /// What the module declares.
        asked: u64,
    },
    /// A handle of another device.
    Handle,
}

impl core::fmt::Display for DeviceError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DeviceError::Parse(error) => error.fmt(f),
            DeviceError::Decode(error) => error.fmt(f),
            DeviceError::Memory(error) => error.fmt(f),
            DeviceError::Descriptor(error) => error.fmt(f),
            DeviceError::Launch(error) => error.fmt(f),
            DeviceError::NoKernel { name, kernels } => {
                write!(f, "no kernel `{}` in the module; it has {}", demangled(name), list(kernels))
            }
            DeviceError::NoVariable { name } => {
                write!(f, "no variable `{name}` in global or constant memory of the module")
            }
            DeviceError::VariableSize { name, size, given } => {
                write!(f, "variable `{name}` has {size} bytes, not {given}")
            }
            DeviceError::Constants { asked } => {
                write!(f, "{asked} bytes of constant memory: at most {CONSTANTS}")
            }
            DeviceError::Handle => f.write_str("a handle of another device"),
        }
    }
}

impl core::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            DeviceError::Parse(error) => error.source(),
            DeviceError::Decode(error) => error.source(),
            DeviceError::Memory(error) => error.source(),
            DeviceError::Descriptor(error) => error.source(),
            DeviceError::Launch(error) => error.source(),
            _ => None,
        }
    }
}

impl From<parse::Error> for DeviceError {
    fn from(error: parse::Error) -> Self {
        DeviceError::Parse(error)
    }
}

impl From<DecodeError> for DeviceError {
    fn from(error: DecodeError) -> Self {
        DeviceError::Decode(error)
    }
}

impl From<MemoryError> for DeviceError {
    fn from(error: MemoryError) -> Self {
        DeviceError::Memory(error)
    }
}

impl From<DescriptorError> for DeviceError {
    fn from(error: DescriptorError) -> Self {
        DeviceError::Descriptor(error)
    }
}

impl From<LaunchError> for DeviceError {
    fn from(error: LaunchError) -> Self {
        DeviceError::Launch(error)
    }
}

impl DeviceError {
    /// What the caller can do, in one line without a full stop.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            DeviceError::Parse(error) => error.hint(),
            DeviceError::Memory(error) => Some(error.hint().into()),
            DeviceError::Launch(error) => Some(error.hint().into()),
            DeviceError::NoKernel { kernels, .. } if kernels.is_empty() => {
                Some("only functions declared with .entry can be launched".into())
            }
            DeviceError::NoKernel { .. } => Some(
                "C++ names are found with the arguments of their templates, and where two are the same, with their parameters"
                    .into(),
            ),
            DeviceError::Decode(_)
            | DeviceError::Descriptor(_)
            | DeviceError::NoVariable { .. }
            | DeviceError::VariableSize { .. }
            | DeviceError::Constants { .. }
            | DeviceError::Handle => None,
        }
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => name::list(names.iter().map(String::as_str)).join(", "),
    }
}

/// How a device is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How launches are run.
    pub options: Options,
    /// Bytes of device memory.
    pub memory: u64,
    /// The limits of launches.
    pub limits: Limits,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { options: Options::default(), memory: 4 << 30, limits: Limits::default() }
    }
}

/// A loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(usize);

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    module: ModuleId,
    function: FunctionId,
}

/// A queue of launches. All launches run when they are made; streams only separate their reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream(pub u32);

/// The report of one launch.
#[derive(Clone, Debug)]
pub struct Report {
    /// The kernel's name.
    pub kernel: Arc<str>,
    /// Whether a kernel launched it.
    pub from_device: bool,
    /// The result.
    pub outcome: Outcome,
}

struct Loaded {
    module: Arc<Module>,
    files: Arc<[Arc<str>]>,
    /// An address for each variable, in its own space.
    addresses: Vec<u64>,
    /// Allocations that are freed with the module.
    owned: Vec<u64>,
    constant: Region,
    programs: Arc<Programs>,
    /// Kernels that may use more than 48 KiB of shared memory.
    opted_in: Vec<u32>,
}

/// A simulated device.
pub struct Device {
    setup: Setup,
    global: Global,
    modules: Vec<Option<Loaded>>,
    heap: Option<Heap>,
    /// Of cooperative grids.
    workspace: Option<u64>,
    reports: Vec<(Stream, Report)>,
    watch: Option<Watch>,
}

impl Device {
    /// A device with empty memory.
    #[must_use]
    pub fn new(setup: Setup) -> Device {
        let global = Global::new(setup.memory, setup.options.checks.uninitialised);
        Device {
            setup,
            global,
            modules: Vec::new(),
            heap: None,
            workspace: None,
            reports: Vec::new(),
            watch: None,
        }
    }

    /// Has someone look at later launches while they run, or nobody: see [`Watch`].
    pub fn set_watch(&mut self, watch: Option<Watch>) {
        self.watch = watch;
    }

    /// The limits of launches.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.setup.limits
    }

    /// How launches are run.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.setup.options
    }

    /// Changes how later launches are run. Whether uninitialised memory is tracked was decided when the device was
    /// made.
    pub fn set_options(&mut self, options: Options) {
        self.setup.options = options;
    }

    /// Bytes of device memory that are free, and all of them.
    #[must_use]
    pub fn memory(&self) -> (u64, u64) {
        (self.global.limit() - self.global.in_use(), self.global.limit())
    }

    /// Allocates memory, which counts as uninitialised. The address is a multiple of
    /// 256.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Memory`] for 0 bytes, or more than are free.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, DeviceError> {
        Ok(self.global.allocate(bytes)?)
    }

    /// Frees memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Memory`] unless an allocation begins at the address.
    pub fn free(&mut self, address: u64) -> Result<(), DeviceError> {
        Ok(self.global.free(address)?)
    }

    /// Copies to the device.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Memory`] unless the bytes lie in one allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        Ok(self.global.write(address, bytes)?)
    }

    /// Copies from the device. Bytes that were never written read as ones.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Memory`] unless the bytes lie in one allocation.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.global.read(address, bytes)?)
    }

    /// Makes a texture or a surface over memory; its handle, the kernel's argument. It is freed as memory is.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Descriptor`] for an image that there cannot be, [`DeviceError::Memory`] if there is no room for its 64 bytes.
    pub fn image(&mut self, image: &Image) -> Result<u64, DeviceError> {
        let bytes = image.encode()?;
        let handle = self.global.allocate(bytes.len() as u64)?;
        self.global.write(handle, &bytes)?;
        Ok(handle)
    }

    /// Fills memory with one byte.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Memory`] unless the bytes lie in one allocation.
    pub fn fill(&mut self, address: u64, bytes: usize, byte: u8) -> Result<(), DeviceError> {
        Ok(self.global.fill(address, bytes, byte)?)
    }

    /// Loads PTX.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Parse`] for text that is not PTX or not supported, [`DeviceError::Memory`] and [`DeviceError::Constants`] if its variables do
    /// not fit.
    pub fn load(&mut self, text: &str) -> Result<ModuleId, DeviceError> {
        self.load_parsed(&parsed::text(text)?)
    }

    /// Loads a module that was parsed before.
    ///
    /// # Errors
    ///
    /// As [`Device::load`].
    pub fn load_module(&mut self, module: Module) -> Result<ModuleId, DeviceError> {
        self.load_parsed(&Parsed::new(module))
    }

    fn load_parsed(&mut self, parsed: &Parsed) -> Result<ModuleId, DeviceError> {
        let module = parsed.module.clone();
        let (mut addresses, mut owned) = (vec![0; module.variables.len()], Vec::new());
        let mut constants = 0u64;
        for (variable, address) in module.variables.iter().zip(&mut addresses) {
            match variable.space {
                Space::Global if variable.size > 0 => {
                    *address = self.global.allocate(variable.size)?;
                    owned.push(*address);
                    let len = usize::try_from(variable.size).unwrap_or(usize::MAX);
                    self.global.fill(*address, len, 0)?;
                    self.global.write(*address, &variable.init.bytes)?;
                }
                Space::Const => {
                    constants = constants
                        .checked_next_multiple_of(variable.align.max(1))
                        .unwrap_or(u64::MAX);
                    *address = constants;
                    constants = constants.saturating_add(variable.size);
                }
                _ => {}
            }
        }
        if constants > CONSTANTS {
            return Err(DeviceError::Constants { asked: constants });
        }
        let mut bank = vec![0u8; constants as usize];
        for (variable, &address) in module.variables.iter().zip(&addresses) {
            if variable.space == Space::Const {
                let (at, init) = (address as usize, &variable.init.bytes);
                bank[at..at + init.len()].copy_from_slice(init);
            }
        }
        self.link(&module, &addresses, &mut bank)?;
        let files: Arc<[Arc<str>]> = module.files.iter().map(|f| Arc::from(f.as_str())).collect();
        // Programs have the addresses of variables, which differ from device to device.
        let programs = if owned.is_empty() { parsed.programs.clone() } else { Arc::default() };
        self.modules.push(Some(Loaded {
            module,
            files,
            addresses,
            owned,
            constant: Region::of(crate::finding::Space::Const, &bank)?,
            programs,
            opted_in: Vec::new(),
        }));
        Ok(ModuleId(self.modules.len() - 1))
    }

    /// Writes the addresses that initialisers name.
    fn link(
        &mut self,
        module: &Module,
        addresses: &[u64],
        bank: &mut [u8],
    ) -> Result<(), DeviceError> {
        for (variable, &base) in module.variables.iter().zip(addresses) {
            for initial in &variable.init.addresses {
                let value = address_of(module, addresses, initial).to_le_bytes();
                let bytes = &value[..(initial.bytes as usize).min(8)];
                match variable.space {
                    Space::Global => self.global.write(base + initial.offset, bytes)?,
                    Space::Const => {
                        let at = (base + initial.offset) as usize;
                        if let Some(room) = bank.get_mut(at..at + bytes.len()) {
                            room.copy_from_slice(bytes);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Unloads a module, and frees the memory of its variables.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Handle`] if it is not loaded.
    pub fn unload(&mut self, id: ModuleId) -> Result<(), DeviceError> {
        let loaded =
            self.modules.get_mut(id.0).and_then(Option::take).ok_or(DeviceError::Handle)?;
        for address in loaded.owned {
            self.global.free(address)?;
        }
        Ok(())
    }

    fn loaded(&self, id: ModuleId) -> Result<&Loaded, DeviceError> {
        self.modules.get(id.0).and_then(Option::as_ref).ok_or(DeviceError::Handle)
    }

    /// A loaded module as it was parsed.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Handle`] if it is not loaded.
    pub fn module(&self, id: ModuleId) -> Result<&Module, DeviceError> {
        Ok(&self.loaded(id)?.module)
    }

    /// The kernel with this name: as the module has it, or as the source does, of which the parameters and the arguments of a template may be left out
    /// where that is not ambiguous.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoKernel`], which names the kernels of the module.
    pub fn kernel(&self, module: ModuleId, name: &str) -> Result<Kernel, DeviceError> {
        let its = &self.loaded(module)?.module;
        match its.kernel(name) {
            Some(function) => Ok(Kernel { module, function }),
            None => Err(DeviceError::NoKernel {
                name: name.to_owned(),
                kernels: its.kernels().map(|k| k.name.clone()).collect(),
            }),
        }
    }

    /// The address and size of a variable in global memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoVariable`] if there is none.
    pub fn variable(&self, module: ModuleId, name: &str) -> Result<(u64, u64), DeviceError> {
        let loaded = self.loaded(module)?;
        let mut all = loaded.module.variables.iter().zip(&loaded.addresses);
        all.find(|(v, _)| v.space == Space::Global && v.owner.is_none() && v.name == name)
            .map(|(v, &address)| (address, v.size))
            .ok_or_else(|| DeviceError::NoVariable { name: name.to_owned() })
    }

    /// Writes the first bytes of a variable in global or constant memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoVariable`] if there is none, [`DeviceError::VariableSize`] if it is smaller.
    pub fn write_variable(
        &mut self,
        module: ModuleId,
        name: &str,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let loaded =
            self.modules.get_mut(module.0).and_then(Option::as_mut).ok_or(DeviceError::Handle)?;
        let written = |space| matches!(space, Space::Global | Space::Const);
        let mut all = loaded.module.variables.iter().zip(&loaded.addresses);
        let found = all.find(|(v, _)| v.name == name && v.owner.is_none() && written(v.space));
        let Some((variable, &at)) = found else {
            return Err(DeviceError::NoVariable { name: name.to_owned() });
        };
        let (size, given) = (variable.size, bytes.len() as u64);
        if given > size {
            return Err(DeviceError::VariableSize { name: name.to_owned(), size, given });
        }
        match variable.space {
            Space::Const => loaded.constant.bytes_mut().write(at as usize, bytes),
            _ => self.global.write(at, bytes)?,
        }
        Ok(())
    }

    /// Lets a kernel use up to 227 KiB of shared memory, as `cudaFuncSetAttribute` does.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Handle`] if its module is not loaded.
    pub fn opt_in_to_shared(&mut self, kernel: Kernel) -> Result<(), DeviceError> {
        let loaded = self.modules.get_mut(kernel.module.0).and_then(Option::as_mut);
        loaded.ok_or(DeviceError::Handle)?.opted_in.push(kernel.function.0);
        Ok(())
    }

    /// The blocks of a shape that the device holds at once.
    ///
    /// # Errors
    ///
    /// As [`Device::launch`], but for the arguments.
    pub fn resident_blocks(&mut self, kernel: Kernel, shape: &Shape) -> Result<u32, DeviceError> {
        let program = self.program(kernel)?;
        let opted_in = self.loaded(kernel.module)?.opted_in.contains(&kernel.function.0);
        let shape = machine::check_shape(
            &Shape { cooperative: false, ..*shape },
            &program,
            &self.setup.limits,
            opted_in,
        )?;
        Ok(self.setup.limits.resident(&shape, program.static_shared()))
    }

    /// Bytes of shared memory that a block of a kernel has before the dynamic part.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Handle`] if its module is not loaded, [`DeviceError::Decode`] for an instruction that cannot be run.
    pub fn static_shared(&mut self, kernel: Kernel) -> Result<u64, DeviceError> {
        Ok(self.program(kernel)?.static_shared())
    }

    /// Runs a kernel, and the launches that it makes. [`Device::synchronize`] returns their reports. A kernel with faults is not an error of this
    /// call.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Launch`] for an invalid shape or invalid arguments, [`DeviceError::Decode`] for an instruction that cannot be
    /// run.
    pub fn launch(
        &mut self,
        kernel: Kernel,
        shape: &Shape,
        args: &[Arg<'_>],
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let loaded = self.loaded(kernel.module)?;
        let arguments = machine::lay_out(&loaded.module.functions[kernel.function.index()], args)?;
        self.run(kernel, shape, arguments, stream, 0)
    }

    /// [`Device::launch`] and [`Device::synchronize`] of one launch: its reports, and those of the
    /// launches that it made.
    ///
    /// # Errors
    ///
    /// As [`Device::launch`].
    pub fn run_to_end(
        &mut self,
        kernel: Kernel,
        shape: &Shape,
        args: &[Arg<'_>],
    ) -> Result<Vec<Report>, DeviceError> {
        let before = self.reports.len();
        self.launch(kernel, shape, args, Stream::default())?;
        Ok(self.reports.drain(before..).map(|(_, report)| report).collect())
    }

    fn run(
        &mut self,
        kernel: Kernel,
        shape: &Shape,
        arguments: Vec<u8>,
        stream: Stream,
        depth: u32,
    ) -> Result<(), DeviceError> {
        let program = self.program(kernel)?;
        if program.needs_heap() && self.heap.is_none() {
            let base = self.global.allocate(HEAP)?;
            self.heap = Some(Heap { next: base, end: base + HEAP, top: base + HEAP });
        }
        if depth == 0
            && let Some(heap) = &mut self.heap
        {
            // What was launched before has taken its arguments.
            heap.top = heap.end;
        }
        let workspace =
            if shape.cooperative && program.asks_environment() { self.workspace()? } else { 0 };
        let loaded = self.loaded(kernel.module)?;
        let opted_in = loaded.opted_in.contains(&kernel.function.0);
        let shape = machine::check_shape(shape, &program, &self.setup.limits, opted_in)?;
        let (outcome, heap) = machine::run(&Launch {
            module: &loaded.module,
            files: &loaded.files,
            program: &program,
            shape,
            arguments: &arguments,
            global: &self.global,
            constant: &loaded.constant,
            heap: self.heap,
            workspace,
            limits: &self.setup.limits,
            options: &self.setup.options,
            watch: self.watch.as_ref(),
        });
        self.heap = heap;
        let launches: Vec<DeviceLaunch> = outcome.launches.clone();
        let halted = outcome.halt.is_some();
        self.reports
            .push((stream, Report { kernel: program.name(), from_device: depth > 0, outcome }));
        if halted {
            return Ok(());
        }
        for next in launches {
            let kernel = Kernel { module: kernel.module, function: FunctionId(next.kernel) };
            if depth >= DEEPEST_LAUNCH {
                let what = format!("launches from the device nest more than {DEEPEST_LAUNCH} deep");
                self.refuse(kernel, stream, what);
            } else if let Err(error) =
                self.run(kernel, &next.shape, next.arguments, stream, depth + 1)
            {
                // The device learns of this asynchronously: it is part of the report.
                self.refuse(kernel, stream, error.to_string());
            }
        }
        Ok(())
    }

    /// What the driver gives a cooperative grid: the size of its workspace, and its barrier.
    fn workspace(&mut self) -> Result<u64, DeviceError> {
        let at = match self.workspace {
            Some(at) => at,
            None => self.global.allocate(WORKSPACE)?,
        };
        self.workspace = Some(at);
        self.global.fill(at, WORKSPACE as usize, 0)?;
        self.global.write(at, &(WORKSPACE as u32).to_le_bytes())?;
        Ok(at)
    }

    /// An invalid launch from the device.
    fn refuse(&mut self, kernel: Kernel, stream: Stream, what: String) {
        let Ok(loaded) = self.loaded(kernel.module) else { return };
        let name: Arc<str> = loaded.module.functions[kernel.function.index()].name.as_str().into();
        let outcome =
            Outcome::halted(name.clone(), loaded.files.clone(), Halt::DeviceLaunch { what });
        self.reports.push((stream, Report { kernel: name, from_device: true, outcome }));
    }

    fn program(&self, kernel: Kernel) -> Result<Arc<Program>, DeviceError> {
        let loaded = self.loaded(kernel.module)?;
        if let Some(program) = lock(&loaded.programs).get(&kernel.function.0) {
            return Ok(program.clone());
        }
        let addresses = Addresses { module: &loaded.module, of: &loaded.addresses };
        let program = Arc::new(machine::decode(&addresses, kernel.function)?);
        lock(&loaded.programs).insert(kernel.function.0, program.clone());
        Ok(program)
    }

    /// The reports of a stream's launches since the last call, in order.
    pub fn synchronize(&mut self, stream: Stream) -> Vec<Report> {
        let (mine, others) = self.reports.drain(..).partition(|(s, _)| *s == stream);
        self.reports = others;
        mine.into_iter().map(|(_, report): (Stream, Report)| report).collect()
    }

    /// Whether a stream has something to report.
    #[must_use]
    pub fn has_reports(&self, stream: Stream) -> bool {
        self.reports.iter().any(|(s, _)| *s == stream)
    }
}

/// The address that an initialiser asks for.
fn address_of(module: &Module, addresses: &[u64], initial: &InitialAddress) -> u64 {
    let base = match initial.of {
        crate::ir::Addressed::Function(id) => FUNCTION + u64::from(id.0) * 16,
        crate::ir::Addressed::Variable(id) => {
            let window = match module.variables[id.0 as usize].space {
                Space::Const => CONST,
                Space::Shared | Space::SharedCluster => SHARED,
                Space::Local => LOCAL,
                Space::Param => PARAM,
                Space::Global | Space::Generic => 0,
            };
            let lift = if initial.generic { window } else { 0 };
            addresses[id.0 as usize].wrapping_add(lift)
        }
    };
    base.wrapping_add_signed(initial.addend) >> initial.shift.min(63)
}
