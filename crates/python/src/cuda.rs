//! Arrays in the memory of CUDA devices: reduced where they lie.
//!
//! Work is queued on the device's default stream, for which producers make their own wait.
//! Answers stay on the device, and a caller that takes them there does not wait. Freeing memory
//! of a device waits for all of its work, so that answers are left in memory of the caller's
//! library where it has functions for that, and in memory that is used again elsewhere.

pub(crate) mod groups;
mod segments;

use crate::answers::{as_here, one, type_of};
use crate::dense::{Dense, Owner};
use crate::dlpack::{CUDA, Exchange, Exportable, Room, Tensor, capsule};
use crate::errors::{OrRaise, exception};
use crate::import::Family;
use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use warpfold::internal::{check_process, engine_of, to_host};
use warpfold::{
    Answer, Column, DType, Device, DeviceStream, Numbers, Op, Reduction, Rules, Scalar,
};
use warpfold_cuda::engine::{Array, Chosen, DeviceView, Number};
use warpfold_cuda::{Buffer, Engine, Stream};

/// An array in a device's memory.
pub(crate) struct DeviceArray {
    ordinal: u32,
    view: DeviceView,
    owner: Arc<dyn Any + Send + Sync>,
    /// A stream that has to be done first: that of the CUDA array interface.
    after: Option<usize>,
}

/// An open device.
struct Opened {
    engine: Arc<Engine>,
    /// The device's default stream, as the library takes it.
    stream: DeviceStream,
    /// What the device may still be reading.
    reading: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    spare: Mutex<Vec<Buffer<'static>>>,
}

/// The bytes of answers whose memory is used again.
const SPARE: u64 = 4096;
/// How many such answers wait for their use.
const MOST_SPARE: usize = 256;

/// Bytes of a state that has no fixed length, and bytes of elements that make a byte of states
/// worth its way to the host.
const MOST_STATE: usize = 1024;
const WORTH_STATES: usize = 4;

/// The memory of an answer.
struct Memory {
    /// There until it is dropped.
    buffer: Option<Buffer<'static>>,
    opened: Arc<Opened>,
    /// Whether all that reads it is queued on the default stream, so that what is queued
    /// there later may write to it.
    ordered: AtomicBool,
}

impl Memory {
    /// Room for some bytes.
    fn new(opened: &Arc<Opened>, bytes: u64) -> warpfold_cuda::Result<Memory> {
        let spare = || opened.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = match if bytes <= SPARE { spare() } else { None } {
            Some(buffer) => buffer,
            None => Buffer::new(opened.engine.device(), bytes.max(SPARE))?,
        };
        let opened = Arc::clone(opened);
        Ok(Memory { buffer: Some(buffer), opened, ordered: AtomicBool::new(true) })
    }

    fn address(&self) -> u64 {
        self.buffer.as_ref().map_or(0, Buffer::address)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        if buffer.len() == SPARE && self.ordered.load(Ordering::Relaxed) {
            let mut spare = self.opened.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < MOST_SPARE {
                spare.push(buffer);
            }
        }
    }
}

/// The device of this number, opened once.
fn opened(py: Python<'_>, ordinal: u32) -> PyResult<Arc<Opened>> {
    static OPENED: OnceLock<Mutex<HashMap<u32, Arc<Opened>>>> = OnceLock::new();
    check_process().or_raise(py)?;
    let all = || OPENED.get_or_init(Mutex::default);
    // Opening takes long, and others wait for it without the interpreter's lock.
    if let Ok(all) = all().try_lock()
        && let Some(opened) = all.get(&ordinal)
    {
        return Ok(Arc::clone(opened));
    }
    let made = py.detach(|| -> warpfold::Result<Arc<Opened>> {
        let mut all = all().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = all.get(&ordinal) {
            return Ok(Arc::clone(opened));
        }
        // The library's own engine: memory that it keeps on the device is there once.
        let device = Device::Cuda(Some(ordinal));
        let (stream, engine) = (DeviceStream::default_of(device)?, engine_of(device)?);
        let (reading, spare) = (Mutex::default(), Mutex::default());
        let opened = Arc::new(Opened { engine, stream, reading, spare });
        all.insert(ordinal, Arc::clone(&opened));
        Ok(opened)
    });
    made.or_raise(py)
}

/// Refuses a device that a question names and that cannot read another one's memory.
///
/// # Errors
/// The device is not a CUDA one.
pub(crate) fn check_named(question: &Reduction) -> PyResult<()> {
    match question.named_device() {
        Device::Auto | Device::Cuda(_) | Device::CudaAll => Ok(()),
        other => Err(PyTypeError::new_err(format!(
            "the array lies on a CUDA device, and device=\"{other}\" cannot read it\nhint: leave device out, or move the array to the CPU"
        ))),
    }
}

/// The refusal of `out` for an array on a device.
pub(crate) fn no_out() -> PyErr {
    PyTypeError::new_err("answers of a device's arrays are new arrays there\nhint: leave out out=")
}

/// Numbers that were made on the host as an array of a library on the device of this number, or
/// of ours on the host where there is no library.
///
/// # Errors
/// What the device says; those of the library.
pub(crate) fn sent_to<'py>(
    py: Python<'py>,
    ordinal: u32,
    family: &Family<'py>,
    shape: &[usize],
    numbers: Numbers,
) -> PyResult<Bound<'py, PyAny>> {
    if !matches!(family, Family::Library(_) | Family::Exchange(_)) {
        return one(py, &Family::Ours, shape, numbers);
    }
    let opened = opened(py, ordinal)?;
    let made = py.detach(|| -> warpfold_cuda::Result<Memory> {
        let memory = Memory::new(&opened, numbers.bytes().len() as u64)?;
        if let Some(buffer) = &memory.buffer {
            buffer.copy_in(Stream::DEFAULT, 0, numbers.bytes())?;
        }
        opened.engine.device().wait(Stream::DEFAULT)?;
        Ok(memory)
    });
    let memory = Arc::new(made.map_err(|error| failure(py, &error))?);
    DeviceAnswer { memory, dtype: numbers.dtype(), shape: shape.to_vec(), ordinal }
        .given(py, family)
}

fn failure(py: Python<'_>, error: &warpfold_cuda::Error) -> PyErr {
    match error {
        warpfold_cuda::Error::Core(error) => exception(py, error),
        error => match error.hint() {
            Some(hint) => PyRuntimeError::new_err(format!("{error}\nhint: {hint}")),
            None => PyRuntimeError::new_err(error.to_string()),
        },
    }
}

impl DeviceArray {
    /// A tensor that came by DLPack.
    pub(crate) fn of_tensor(tensor: Tensor, managed: bool) -> DeviceArray {
        let Tensor { dtype, address, shape, strides, device, owner, .. } = tensor;
        // Managed memory is of no device: the first one reads it.
        let ordinal = if managed { 0 } else { u32::try_from(device.1).unwrap_or(0) };
        let view = DeviceView { address: address as u64, dtype, shape, strides };
        DeviceArray { ordinal, view, owner: Arc::new(Mutex::new(owner)), after: None }
    }

    /// The array that `__cuda_array_interface__`, version 3, describes.
    ///
    /// # Errors
    /// A description that lacks something or cannot be; elements that are not numbers; a
    /// mask.
    pub(crate) fn of_interface(
        x: &Bound<'_, PyAny>,
        interface: &Bound<'_, PyAny>,
    ) -> PyResult<DeviceArray> {
        let py = x.py();
        let interface = interface.cast::<PyDict>()?;
        let lies =
            |what: &str| PyValueError::new_err(format!("the CUDA array interface lies: {what}"));
        let get =
            |name: &str| interface.get_item(name).map(|item| item.filter(|item| !item.is_none()));
        let need = |name: &str| get(name)?.ok_or_else(|| lies(&format!("it has no {name:?}")));
        if get("mask")?.is_some() {
            return Err(PyTypeError::new_err(
                "a masked array on a device has elements without values\nhint: fill them first",
            ));
        }
        let kind: String = need("typestr")?.extract()?;
        let dtype = element_type(&kind)?;
        let shape: Vec<i64> = need("shape")?.extract()?;
        let shape: Option<Vec<usize>> =
            shape.into_iter().map(|n| usize::try_from(n).ok()).collect();
        let shape = shape.ok_or_else(|| lies("an axis of negative length"))?;
        let (address, _): (u64, bool) = need("data")?.extract()?;
        let strides = match get("strides")? {
            Some(strides) => strides.extract()?,
            None => crate::dense::c_strides(dtype.size(), &shape),
        };
        if strides.len() != shape.len() {
            return Err(lies("there must be one stride for each axis"));
        }
        if address == 0 && !shape.contains(&0) {
            return Err(lies("elements without a pointer"));
        }
        let after = match get("stream")? {
            Some(stream) => match stream.extract::<usize>()? {
                0 => return Err(lies("stream 0 is ambiguous: 1 is the legacy default stream")),
                // The legacy default stream is ours.
                1 => None,
                other => Some(other),
            },
            None => None,
        };
        let ordinal = match x.getattr_opt(intern!(py, "device"))? {
            Some(device) => match device.getattr_opt(intern!(py, "id"))? {
                Some(id) => id.extract()?,
                None => 0,
            },
            None => 0,
        };
        let view = DeviceView { address, dtype, shape, strides };
        Ok(DeviceArray { ordinal, view, owner: Arc::new(x.clone().unbind()), after })
    }

    /// The type of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.view.dtype
    }

    /// The shape.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// The number of the device.
    pub(crate) fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// The elements, if they are those of one axis and lie as kernels read them.
    fn run(&self) -> Option<Array> {
        let DeviceView { address, dtype, shape, strides } = &self.view;
        let (&[len], &[stride]) = (&shape[..], &strides[..]) else { return None };
        let follow = len < 2 || stride == dtype.size().cast_signed();
        let (address, dtype) = (*address, *dtype);
        let aligned = address.is_multiple_of(dtype.size() as u64);
        (follow && aligned).then_some(Array { address, len: len as u64, dtype })
    }

    /// The array as the library takes it, behind the work that its producer has queued.
    ///
    /// # Errors
    /// What the device says; an array that cannot be.
    pub(crate) fn lent(&self, py: Python<'_>) -> PyResult<warpfold::DeviceArray<'_>> {
        let opened = opened(py, self.ordinal)?;
        self.wait_for_its_stream(py)?;
        let DeviceView { address, dtype, shape, strides } = &self.view;
        // SAFETY: the producer made the elements readable on the default stream, and their
        // owner lives as long as this value, which the array borrows. Whoever the array is
        // given to is done with it when it returns: the library waits for what it queues.
        let array = unsafe {
            warpfold::DeviceArray::from_raw_strided(
                *dtype,
                *address,
                shape,
                strides,
                &opened.stream,
            )
        };
        array.or_raise(py)
    }

    /// A copy in the host's memory.
    ///
    /// # Errors
    /// As for [`lent`](Self::lent); no memory.
    pub(crate) fn copied(&self, py: Python<'_>) -> PyResult<Dense> {
        let lent = self.lent(py)?;
        let copy = py.detach(|| to_host(&lent)).or_raise(py)?;
        let view = copy.view().or_raise(py)?;
        let (dtype, origin) = (view.dtype(), view.origin());
        let (shape, strides) = (view.shape().to_vec(), view.strides().to_vec());
        // SAFETY: the copy has all elements of its view, and moving it leaves them where they are.
        unsafe { Dense::new(dtype, origin, shape, strides, Owner::Copy(copy)) }
    }

    /// Waits for the stream that the CUDA array interface names, if it names one.
    fn wait_for_its_stream(&self, py: Python<'_>) -> PyResult<()> {
        let Some(stream) = self.after else { return Ok(()) };
        let device = Device::Cuda(Some(self.ordinal));
        let waited = py.detach(|| {
            let stream = std::ptr::with_exposed_provenance_mut(stream);
            // SAFETY: by the interface it is a stream of the array's device, which lives as long
            // as the array.
            unsafe { DeviceStream::from_raw(device, stream) }?.wait()
        });
        waited.or_raise(py)
    }

    /// What the device answers to a question about elements that are chosen, if it is some of
    /// them: `None` for an operation that only the host finishes.
    ///
    /// # Errors
    /// What the device says, and those of the reduction.
    pub(crate) fn answers<'py>(
        &self,
        py: Python<'py>,
        question: &Reduction,
        family: &Family<'py>,
        chosen: Option<&Chosen>,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let dtype = self.view.dtype;
        for &op in question.ops() {
            if !op.supports(dtype) {
                return Err(exception(py, &warpfold::Error::UnsupportedType { op, dtype }));
            }
            if op.arity() != 1 {
                return Err(exception(
                    py,
                    &warpfold::Error::Arity { op, takes: op.arity(), given: 1 },
                ));
            }
        }
        let reduced = question.named_axes().resolve(self.view.shape.len());
        let reduced = reduced.map_err(|error| exception(py, &error))?;
        let shape = crate::run::output_shape(&self.view.shape, &reduced, question.keeps_dims());
        let opened = opened(py, self.ordinal)?;
        self.wait_for_its_stream(py)?;
        let other = Chosen { out: question.rules().out, ..Chosen::default() };
        let chosen = chosen.or_else(|| other.out.is_some().then_some(&other));
        let asked =
            Asked { array: self, opened: &opened, chosen, reduced: &reduced, shape: &shape };
        let leave = |numbers: &[Number], to: &[u64], own| asked.leave(numbers, to, own);
        asked.answers(py, question.ops(), question.rules(), family, leave)
    }

    /// Room for numbers on this array's device: memory of the library, if that gives some.
    fn room(
        &self,
        py: Python<'_>,
        dtype: DType,
        shape: &[usize],
        opened: &Arc<Opened>,
        family: &Family<'_>,
    ) -> PyResult<Place> {
        if let Family::Exchange(exchange) = family
            && !shape.contains(&0)
            && let Some(room) =
                exchange.allocate(py, dtype, shape, (CUDA, self.ordinal.cast_signed()))?
        {
            return Ok(Place::Its(*exchange, room));
        }
        let bytes = (shape.iter().product::<usize>() * dtype.size()) as u64;
        let own = py.detach(|| Memory::new(opened, bytes));
        own.map(Place::Own).map_err(|error| failure(py, &error))
    }

    /// What marks and an initial value choose of the elements, as the device takes it; `None`
    /// where only the host does: marks that are not in this device's memory, and what is no
    /// element.
    pub(crate) fn chosen(
        &self,
        marks: Option<&DeviceArray>,
        initial: Option<Scalar>,
        out: Option<DType>,
    ) -> Option<Chosen> {
        let marks = match marks {
            None => None,
            Some(marks) => {
                let (shape, theirs) = (&self.view.shape, &marks.view);
                let before = shape.len().checked_sub(theirs.shape.len())?;
                let step = |axis: usize| match axis.checked_sub(before) {
                    Some(i) if theirs.shape[i] == shape[axis] => Some(theirs.strides[i]),
                    Some(i) if theirs.shape[i] != 1 => None,
                    _ => Some(0),
                };
                let strides = (0..shape.len()).map(step).collect::<Option<Vec<isize>>>()?;
                let here = marks.ordinal == self.ordinal && marks.after.is_none();
                let view = DeviceView { shape: shape.clone(), strides, ..theirs.clone() };
                Some(Some(view).filter(|_| here)?)
            }
        };
        Some(Chosen { marks, initial: initial.map(Scalar::to_bits), out })
    }

    /// The answers to a question whose numbers the device does not make, on the host: from
    /// states, where these are few beside the elements, or from a copy of the elements.
    ///
    /// # Errors
    /// What the device says, and those of the reduction.
    pub(crate) fn on_host(&self, py: Python<'_>, question: Reduction) -> PyResult<Answer> {
        let reduced = question.named_axes().resolve(self.view.shape.len()).or_raise(py)?;
        let outputs: usize =
            crate::run::output_shape(&self.view.shape, &reduced, false).iter().product();
        let bytes =
            |&op: &Op| Engine::payload_len(op.kind(), self.view.dtype).unwrap_or(MOST_STATE);
        let states: usize = question.ops().iter().map(bytes).sum();
        let elements = self.view.shape.iter().product::<usize>() * self.view.dtype.size();
        if outputs.saturating_mul(states).saturating_mul(WORTH_STATES) <= elements {
            let lent = self.lent(py)?;
            return py.detach(|| question.run(&lent)).or_raise(py);
        }
        let copy = self.copied(py)?;
        crate::run::run(py, &question.device(Device::Cpu), [Some(&copy.view()), None])
    }

    /// An answer that was finished on the host, brought to the device; of elements of type
    /// `dtype`, as [`as_here`] takes it.
    ///
    /// # Errors
    /// Those of [`sent_to`].
    pub(crate) fn send_back<'py>(
        &self,
        py: Python<'py>,
        family: &Family<'py>,
        dtype: Option<DType>,
        shape: &[usize],
        column: Column,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Column { op, numbers, second, .. } = column;
        let send = |numbers: Numbers| {
            sent_to(py, self.ordinal, family, shape, as_here(op, dtype, numbers))
        };
        let first = send(numbers)?;
        match second {
            None => Ok(first),
            Some(second) => Ok((first, send(second)?).into_pyobject(py)?.into_any()),
        }
    }
}

/// Where a number goes: memory of the array's library, or of this one.
enum Place {
    Its(Exchange, Room),
    Own(Memory),
}

impl Place {
    fn address(&self) -> u64 {
        match self {
            Place::Its(_, room) => room.address,
            Place::Own(memory) => memory.address(),
        }
    }

    /// Numbers that were left there, as an array.
    fn given<'py>(
        self,
        py: Python<'py>,
        ordinal: u32,
        dtype: DType,
        shape: &[usize],
        family: &Family<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let memory = match self {
            Place::Its(exchange, room) => return exchange.array_in(py, room),
            Place::Own(memory) => Arc::new(memory),
        };
        DeviceAnswer { memory, dtype, shape: shape.to_vec(), ordinal }.given(py, family)
    }
}

/// What is asked of an array of a device.
struct Asked<'a> {
    array: &'a DeviceArray,
    opened: &'a Arc<Opened>,
    /// What is reduced in the place of all elements.
    chosen: Option<&'a Chosen>,
    reduced: &'a [bool],
    /// The shape of the answers.
    shape: &'a [usize],
}

impl Asked<'_> {
    /// The answers to operations, which `leave` leaves on the device; `None` for those that only the
    /// host can finish under these rules. Memory of this library may be given away before the
    /// device is done, which `leave` is told.
    fn answers<'py>(
        &self,
        py: Python<'py>,
        ops: &[Op],
        rules: &Rules,
        family: &Family<'py>,
        leave: impl FnOnce(&[Number], &[u64], bool) -> warpfold_cuda::Result<Vec<bool>> + Send,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let rules = rules.out(None);
        let parts = |&op: &Op| parts_of(op, self.array.view.dtype, &rules);
        let numbers: Vec<Number> = ops.iter().flat_map(parts).flatten().collect();
        let place = |number: &Number| {
            self.array.room(py, self.type_of(number.op), self.shape, self.opened, family)
        };
        let places = numbers.iter().map(place).collect::<PyResult<Vec<_>>>()?;
        let to: Vec<u64> = places.iter().map(Place::address).collect();
        let own = places.iter().any(|place| matches!(place, Place::Own(_)));
        let made = py.detach(|| leave(&numbers, &to, own));
        let mut made = made.map_err(|error| failure(py, &error))?.into_iter();
        let mut given = numbers.iter().zip(places);
        let mut answer = |op: &Op| -> PyResult<Option<Bound<'py, PyAny>>> {
            let mut array = |part: Option<Number>| {
                let Some((number, place)) = part.and_then(|_| given.next()) else {
                    return Ok(None);
                };
                if made.next() != Some(true) {
                    return Ok(None);
                }
                place
                    .given(py, self.array.ordinal, self.type_of(number.op), self.shape, family)
                    .map(Some)
            };
            let [first, second] = parts(op);
            Ok(match (array(first)?, array(second)?) {
                (Some(one), None) if second.is_none() => Some(one),
                (Some(first), Some(second)) => Some((first, second).into_pyobject(py)?.into_any()),
                _ => None,
            })
        };
        ops.iter().map(&mut answer).collect()
    }

    /// The type of the answers, as Python has them.
    fn type_of(&self, op: Op) -> DType {
        let asked = self.chosen.and_then(|chosen| chosen.out);
        asked.unwrap_or_else(|| type_of(op, self.array.view.dtype))
    }

    /// Queues the numbers, and says which of them the device makes. Memory of this library may be
    /// given away before the device is done: then `keeps` the array until it is.
    fn leave(
        &self,
        numbers: &[Number],
        to: &[u64],
        keeps: bool,
    ) -> warpfold_cuda::Result<Vec<bool>> {
        let (engine, view, reduced) = (&self.opened.engine, &self.array.view, self.reduced);
        let stream = Stream::DEFAULT;
        // Held until the launch is queued: another thread forgets arrays once the stream is done.
        let lock = || self.opened.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reading = keeps.then(lock);
        if let Some(reading) = &mut reading {
            if engine.device().is_done(stream)? {
                reading.clear();
            }
            // Before the launch: nothing that fails later may free what a kernel reads.
            reading.push(Arc::clone(&self.array.owner));
        }
        // A library of the array works on the default stream, too. What it frees it gives to later
        // work of that stream, as after an operation of its own: nothing has to be kept.
        let Some(chosen) = self.chosen else {
            // SAFETY: the producer made the elements readable on the default stream, and they are
            // kept until the stream is done; the memory was had for the work of this stream, for
            // as many answers.
            let made = unsafe { engine.each_into(numbers, view, reduced, to, stream)? };
            return Ok(made.to_vec());
        };
        let one = |(&number, &to): (&Number, &u64)| {
            // SAFETY: as above; marks are read like elements.
            unsafe { engine.numbers_of_chosen_into(number, view, chosen, reduced, to, stream) }
        };
        numbers.iter().zip(to).map(one).collect()
    }
}

/// The numbers of an operation, one or two, as the device knows it under some rules; none where it
/// does not.
fn parts_of(op: Op, dtype: DType, rules: &Rules) -> [Option<Number>; 2] {
    let Some(number) = Number::under(op, dtype, rules) else { return [None; 2] };
    match op.pair() {
        Some((op, other)) => [Some(Number { op, ..number }), Some(Number { op: other, ..number })],
        None => [Some(number), None],
    }
}

/// The type of elements by the array interface's string: `<f4`.
fn element_type(text: &str) -> PyResult<DType> {
    let refused = |hint: &str| {
        PyTypeError::new_err(format!(
            "the array holds {text:?}, not real numbers of this machine\nhint: {hint}"
        ))
    };
    let (order, kind) =
        text.split_at_checked(1).ok_or_else(|| refused("give its type as \"<f4\""))?;
    let dtype = match kind {
        "b1" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" | "c16" => return Err(refused("reduce x.real and x.imag")),
        _ => return Err(refused("cast it to a type of numbers; bfloat16 comes by DLPack")),
    };
    let foreign = if cfg!(target_endian = "little") { ">" } else { "<" };
    if order == foreign && dtype.size() > 1 {
        return Err(refused("copy it to this machine's byte order"));
    }
    Ok(dtype)
}

/// Answers in a device's memory, which the library of the array takes by DLPack.
#[pyclass(frozen, module = "warpfold", name = "DeviceArray")]
pub(crate) struct DeviceAnswer {
    memory: Arc<Memory>,
    dtype: DType,
    shape: Vec<usize>,
    ordinal: u32,
}

impl DeviceAnswer {
    /// The answers as an array of a library.
    fn given<'py>(self, py: Python<'py>, family: &Family<'py>) -> PyResult<Bound<'py, PyAny>> {
        match family {
            Family::Exchange(exchange) => exchange.array(py, self.exportable()),
            Family::Library(from_dlpack) => from_dlpack.call1((Bound::new(py, self)?,)),
            _ => Ok(Bound::new(py, self)?.into_any()),
        }
    }

    fn exportable(&self) -> Exportable {
        Exportable {
            dtype: self.dtype,
            address: self.memory.address() as usize,
            shape: self.shape.clone(),
            is_complex: false,
            device: (CUDA, self.ordinal.cast_signed()),
            owner: Box::new(Arc::clone(&self.memory)),
        }
    }
}

#[pymethods]
impl DeviceAnswer {
    /// Where the array is, as DLPack says it: a CUDA device, and which.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (CUDA, self.ordinal.cast_signed())
    }

    /// The array as a capsule of DLPack.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if dl_device.is_some_and(|device| device != self.__dlpack_device__()) || copy == Some(true)
        {
            return Err(PyBufferError::new_err(
                "the answers are handed over where they are, without a copy",
            ));
        }
        // The default stream's own consumers, and those who wait themselves, need no wait.
        if !matches!(stream, None | Some(-1..=1)) {
            let opened = &self.memory.opened;
            let waited = py.detach(|| opened.engine.device().wait(Stream::DEFAULT));
            waited.map_err(|error| failure(py, &error))?;
        }
        if !matches!(stream, None | Some(0 | 1)) {
            // It is read elsewhere: freeing it waits for that.
            self.memory.ordered.store(false, Ordering::Relaxed);
        }
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        capsule(py, self.exportable(), versioned)
    }
}
