//! PTX that is run on the CPU, for the module `warpfold.ptx`, which knows arrays and arguments. What comes here is bytes.

use crate::errors::text;
use crate::run;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use warpfold_ptx::descriptor::{
    Addressing, DescriptorError, Im2col, Image, Swizzle, TensorMap, Texel,
};
use warpfold_ptx::device::{Device, DeviceError, Report, Setup};
use warpfold_ptx::finding::{Finding, Party, Space};
use warpfold_ptx::info::unset_constants;
use warpfold_ptx::ir::{Module, Type};
use warpfold_ptx::machine::{Arg, Checks, Halt, Options, Schedule, Shape, Watch};
use warpfold_ptx::place::{Line, Place};

/// Bytes behind a buffer's end that are still told as its own.
const FAR: u64 = 1 << 20;

/// PTX, read once and run as often as wanted.
#[pyclass(frozen, module = "warpfold.ptx", name = "Module")]
pub(crate) struct PtxModule {
    module: Module,
}

/// A launch, as `warpfold.ptx` hands it over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Launch {
    kernel: String,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared: u32,
    cooperative: bool,
    schedule: String,
    seed: u64,
    checks: String,
    limit: u64,
    /// Memory, and whether the kernel gets what it holds.
    buffers: Vec<(PyBuffer<u8>, bool)>,
    arguments: Vec<Argument>,
    symbols: BTreeMap<String, PyBuffer<u8>>,
}

/// An argument's bytes, and the addresses in them: the place, the buffer and the byte of it, and what else the kernel is told of the memory there.
type Argument = (Vec<u8>, Vec<(usize, usize, u64, Option<Described>)>);

/// Memory that is more than bytes to a kernel. Directions are counted from the innermost.
#[derive(FromPyObject)]
enum Described {
    #[pyo3(transparent)]
    Image(Picture),
    #[pyo3(transparent)]
    Tensor(Tensor),
}

/// A texture or a surface.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Picture {
    element: String,
    parts: u32,
    extent: Vec<u32>,
    addressing: Vec<String>,
    normalized: bool,
    unit: bool,
}

/// A tensor map.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Tensor {
    element: String,
    extent: Vec<u64>,
    tile: Vec<u32>,
    steps: Vec<u32>,
    swizzle: u64,
    nan: bool,
    /// The corners of a box of pixels.
    box_of_pixels: Option<(Vec<i32>, Vec<i32>)>,
}

#[pymethods]
impl PtxModule {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<PtxModule> {
        let module = py.detach(|| warpfold_ptx::parse::parse(text));
        let module = module.map_err(|error| failure(&error.into()))?;
        Ok(PtxModule { module })
    }

    /// The names of the kernels.
    #[getter]
    fn kernels(&self) -> Vec<&str> {
        self.module.kernels().map(|kernel| kernel.name.as_str()).collect()
    }

    /// The parameters of a kernel: name, type and, for an array of them, how many.
    fn parameters(&self, kernel: &str) -> PyResult<Vec<(&str, &'static str, Option<u64>)>> {
        let found = self.module.kernel(kernel).map(|k| &self.module.functions[k.index()]);
        let found = found.ok_or_else(|| {
            let kernels = self.module.kernels().map(|k| k.name.clone()).collect();
            failure(&DeviceError::NoKernel { name: kernel.into(), kernels })
        })?;
        let all = found.parameters.iter();
        Ok(all.map(|p| (p.name.as_str(), p.ty.name(), p.length)).collect())
    }

    /// Runs a kernel: what each launch gave, and the constants that nobody set. The buffers hold what it left.
    fn _run<'py>(
        &self,
        py: Python<'py>,
        launch: Launch,
    ) -> PyResult<(Bound<'py, PyList>, Vec<String>)> {
        let bytes = |buffer: &PyBuffer<u8>| buffer.to_vec(py);
        let mut buffers = Vec::new();
        for (buffer, given) in &launch.buffers {
            buffers.push((bytes(buffer)?, *given));
        }
        let mut symbols = Vec::new();
        for (name, value) in &launch.symbols {
            symbols.push((name.as_str(), bytes(value)?));
        }
        let work = Work {
            shape: launch.shape(),
            options: launch.options()?,
            kernel: &launch.kernel,
            arguments: &launch.arguments,
            symbols,
        };
        let module = self.module.clone();
        let done = run::heard(py, |stop| work.run(module, &mut buffers, ends_with(stop)))?;
        let done = done.map_err(|error| failure(&error))?;
        for ((buffer, _), (bytes, _)) in launch.buffers.iter().zip(&buffers) {
            write_back(py, buffer, bytes)?;
        }
        let reports = done.reports.iter().map(|report| self.told(py, report, &done.placed));
        let reports = reports.collect::<PyResult<Vec<_>>>()?;
        let unset = unset_constants(&self.module, &launch.kernel).into_iter();
        let unset = unset.filter(|name| !launch.symbols.contains_key(*name));
        Ok((PyList::new(py, reports)?, unset.map(Into::into).collect()))
    }
}

impl Launch {
    fn shape(&self) -> Shape {
        let &Launch { grid, block, cluster, shared, cooperative, .. } = self;
        Shape { grid, block, cluster, shared, cooperative }
    }

    /// # Errors
    /// Names that there are not.
    fn options(&self) -> PyResult<Options> {
        let seed = self.seed;
        let schedule = match self.schedule.as_str() {
            "lockstep" => Schedule::Lockstep,
            "random" => Schedule::Random { seed },
            "adversarial" => Schedule::Adversarial { seed },
            other => {
                let what = format!("there is no schedule {other:?}");
                let hint = "use \"lockstep\", \"random\" or \"adversarial\"";
                return Err(PyValueError::new_err(text(what, Some(hint.into()))));
            }
        };
        let checks: Checks = self
            .checks
            .parse()
            .map_err(|error| PyValueError::new_err(format!("checks: {error}")))?;
        Ok(Options { checks, schedule, instructions: self.limit, ..Options::default() })
    }
}

/// What is done without the interpreter's lock.
struct Work<'a> {
    shape: Shape,
    options: Options,
    kernel: &'a str,
    arguments: &'a [Argument],
    symbols: Vec<(&'a str, Vec<u8>)>,
}

/// What was done.
struct Done {
    reports: Vec<Report>,
    placed: Placed,
}

impl Work<'_> {
    fn run(
        &self,
        module: Module,
        buffers: &mut [(Vec<u8>, bool)],
        watch: Watch,
    ) -> Result<Done, DeviceError> {
        let mut device = Device::new(Setup { options: self.options, ..Setup::default() });
        device.set_watch(Some(watch));
        let module = device.load_module(module)?;
        let kernel = device.kernel(module, self.kernel)?;
        // Who names a size of shared memory wants it.
        device.opt_in_to_shared(kernel)?;
        for (name, bytes) in &self.symbols {
            device.write_variable(module, name, bytes)?;
        }
        let placed = Placed::new(&mut device, buffers)?;
        let mut passed = Vec::new();
        for argument in self.arguments {
            passed.push(placed.linked(&mut device, argument)?);
        }
        let args: Vec<_> = passed.iter().map(Passed::arg).collect();
        let reports = device.run_to_end(kernel, &self.shape, &args)?;
        for (&(address, len), (bytes, _)) in placed.0.iter().zip(buffers) {
            if len > 0 {
                device.read(address, bytes)?;
            }
        }
        Ok(Done { reports, placed })
    }
}

/// Where the buffers lie in the device's memory, and their bytes. Those without any have no address.
struct Placed(Vec<(u64, u64)>);

impl Placed {
    fn new(device: &mut Device, buffers: &[(Vec<u8>, bool)]) -> Result<Placed, DeviceError> {
        let place = |(bytes, given): &(Vec<u8>, bool)| {
            if bytes.is_empty() {
                return Ok((0, 0));
            }
            let address = device.allocate(bytes.len() as u64)?;
            if *given {
                device.write(address, bytes)?;
            }
            Ok((address, bytes.len() as u64))
        };
        buffers.iter().map(place).collect::<Result<_, _>>().map(Placed)
    }

    /// An argument with its addresses, handles and tensor maps.
    ///
    /// # Errors
    /// Textures, surfaces and tensor maps that there are not.
    fn linked(
        &self,
        device: &mut Device,
        (bytes, addresses): &Argument,
    ) -> Result<Passed, DeviceError> {
        let mut bytes = bytes.clone();
        for (at, buffer, offset, described) in addresses {
            let (address, _) = self.0.get(*buffer).copied().unwrap_or_default();
            let address = if address == 0 { 0 } else { address + offset };
            let alone = bytes.len() == 8 && addresses.len() == 1;
            let mut put = |value: &[u8]| {
                if let Some(room) = bytes.get_mut(*at..at + value.len()) {
                    room.copy_from_slice(value);
                }
            };
            match described {
                Some(Described::Image(picture)) => {
                    let handle = device.image(&picture.over(address)?)?;
                    put(&handle.to_le_bytes());
                }
                Some(Described::Tensor(tensor)) => put(&tensor.over(address)?.encode()?),
                None if alone => return Ok(Passed::Pointer(address)),
                None => put(&address.to_le_bytes()),
            }
        }
        Ok(Passed::Bytes(bytes))
    }

    /// The buffer that an address is in or right behind, and the byte of it.
    fn find(&self, address: u64) -> Option<(usize, u64)> {
        let below =
            self.0.iter().enumerate().filter(|(_, (base, _))| *base != 0 && *base <= address);
        let (buffer, &(base, len)) = below.max_by_key(|(_, (base, _))| *base)?;
        let offset = address - base;
        (offset < len.saturating_add(FAR)).then_some((buffer, offset))
    }
}

impl Picture {
    /// The texture or surface at an address.
    fn over(&self, address: u64) -> Result<Image, DescriptorError> {
        let texel = Texel { part: element(&self.element)?, parts: self.parts };
        let mut addressing = [Addressing::Clamp; 3];
        for (to, name) in addressing.iter_mut().zip(&self.addressing) {
            *to = Addressing::from_name(name).ok_or_else(|| {
                DescriptorError::new(format!("{name:?} is not clamp, wrap, mirror or border"))
            })?;
        }
        let &Picture { normalized, unit, .. } = self;
        Ok(Image { addressing, normalized, unit, ..Image::tight(address, texel, &self.extent) })
    }
}

impl Tensor {
    /// The map of the tensor at an address.
    fn over(&self, address: u64) -> Result<TensorMap, DescriptorError> {
        let element = element(&self.element)?;
        let swizzle = Swizzle::of_span(self.swizzle).ok_or_else(|| {
            DescriptorError::new(format!("a swizzle of {}: 0, 32, 64 or 128", self.swizzle))
        })?;
        let im2col = self.box_of_pixels.clone().map(|(lower, upper)| Im2col { lower, upper });
        Ok(TensorMap {
            steps: self.steps.clone(),
            swizzle,
            nan_outside: self.nan,
            im2col,
            ..TensorMap::tight(address, element, &self.extent, &self.tile)
        })
    }
}

/// The type that PTX has for elements of one of NumPy's.
fn element(name: &str) -> Result<Type, DescriptorError> {
    let ptx =
        name.replace("uint", "u").replace("int", "s").replace("bfloat", "bf").replace("float", "f");
    Type::from_name(&ptx).ok_or_else(|| {
        DescriptorError::new(format!("textures and tensors have no elements of type {name}"))
    })
}

/// What the kernel gets for a parameter.
enum Passed {
    Pointer(u64),
    Bytes(Vec<u8>),
}

impl Passed {
    fn arg(&self) -> Arg<'_> {
        match self {
            Passed::Pointer(address) => Arg::Pointer(*address),
            Passed::Bytes(bytes) => Arg::Bytes(bytes),
        }
    }
}

/// Copies what the kernel left. Memory that may only be read must not have changed.
///
/// # Errors
/// It has.
fn write_back(py: Python<'_>, buffer: &PyBuffer<u8>, bytes: &[u8]) -> PyResult<()> {
    if !buffer.readonly() {
        return buffer.copy_from_slice(py, bytes);
    }
    if buffer.to_vec(py)? == bytes {
        return Ok(());
    }
    let hint = "hand over a copy of the array, or set its flag writeable";
    let what = "the kernel wrote to an array that may only be read";
    Err(PyValueError::new_err(text(what, Some(hint.into()))))
}

/// A watch that ends a launch once the flag is set.
fn ends_with(stop: &Arc<AtomicBool>) -> Watch {
    let stop = stop.clone();
    Arc::new(move |_| match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
}

fn failure(error: &DeviceError) -> PyErr {
    PyValueError::new_err(text(error, error.hint()))
}

impl PtxModule {
    /// What a launch gave, by the names that the command line's JSON has.
    fn told<'py>(
        &self,
        py: Python<'py>,
        report: &Report,
        placed: &Placed,
    ) -> PyResult<Bound<'py, PyDict>> {
        let outcome = &report.outcome;
        let found = outcome.findings.all().iter().map(|f| self.found(py, f, placed));
        let dict = PyDict::new(py);
        dict.set_item("kernel", &*report.kernel)?;
        dict.set_item("from_device", report.from_device)?;
        dict.set_item("instructions", outcome.instructions)?;
        dict.set_item("lane_instructions", outcome.lane_instructions)?;
        dict.set_item("findings", found.collect::<PyResult<Vec<_>>>()?)?;
        dict.set_item("findings_left_out", outcome.findings.left_out())?;
        dict.set_item("accesses_forgotten", outcome.forgotten)?;
        dict.set_item("output", String::from_utf8_lossy(&outcome.output))?;
        dict.set_item("halt", outcome.halt.as_ref().map(|halt| halted(py, halt)).transpose()?)?;
        Ok(dict)
    }

    fn found<'py>(
        &self,
        py: Python<'py>,
        finding: &Finding,
        placed: &Placed,
    ) -> PyResult<Bound<'py, PyDict>> {
        let fault = &finding.fault;
        let dict = PyDict::new(py);
        dict.set_item("kind", fault.kind.name())?;
        dict.set_item("title", fault.kind.title())?;
        dict.set_item("remark", fault.kind.is_remark())?;
        dict.set_item("message", finding.to_string())?;
        dict.set_item("hint", fault.hint())?;
        dict.set_item("kernel", &*finding.kernel)?;
        dict.set_item("count", finding.count)?;
        dict.set_item("detail", &*fault.detail)?;
        position(&dict, fault.line, finding.file.as_deref(), fault.place)?;
        if let Some(access) = fault.access {
            let its = PyDict::new(py);
            its.set_item("act", access.act.to_string())?;
            its.set_item("space", access.space.to_string())?;
            its.set_item("address", access.address)?;
            its.set_item("bytes", access.size)?;
            let global = access.space == Space::Global;
            its.set_item("place", global.then(|| placed.find(access.address)).flatten())?;
            dict.set_item("access", its)?;
        }
        let inlined =
            self.module.inlined_around(fault.line).into_iter().map(|around| {
                (around.function.as_deref(), self.module.file(around.at.0), around.at.1)
            });
        dict.set_item("inlined", inlined.collect::<Vec<_>>())?;
        if let Some(Party { place, line, act }) = fault.other {
            let other = PyDict::new(py);
            other.set_item("act", act.map(|act| act.to_string()))?;
            position(&other, line, finding.other_file.as_deref(), place)?;
            dict.set_item("other", other)?;
        }
        Ok(dict)
    }
}

fn position(
    dict: &Bound<'_, PyDict>,
    line: Line,
    file: Option<&str>,
    place: Place,
) -> PyResult<()> {
    dict.set_item("file", file)?;
    dict.set_item("source_line", line.source.map(|(_, line)| line))?;
    dict.set_item("ptx_line", line.ptx)?;
    dict.set_item("block", place.block)?;
    dict.set_item("warp", place.warp().warp)?;
    dict.set_item("lane", place.lane())
}

fn halted<'py>(py: Python<'py>, halt: &Halt) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", halt.name())?;
    dict.set_item("message", halt.to_string())?;
    dict.set_item("hint", halt.hint())?;
    Ok(dict)
}
