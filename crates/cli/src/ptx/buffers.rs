//! The kernel's buffers: made before the launch, shown and saved after it.

use super::argument::{Argument, Buffer};
use super::content::Content;
use super::described::Given;
use super::elements::Elements;
use super::scalar;
use crate::failure::Usage;
use crate::output::npy;
use crate::sink::{self, Sink};
use anyhow::{Context, Result, anyhow, ensure};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use warpfold::{DType, Scalar};
use warpfold_ptx::device::Device;
use warpfold_ptx::machine::Arg;

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// Elements behind a buffer's end that are still called by its name.
const FAR: u64 = 1 << 20;

/// A buffer in the device's memory.
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) count: u64,
    address: u64,
}

/// What a buffer holds after the launch.
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) values: Vec<Scalar>,
}

/// A buffer to be written to a `.npy` file.
#[derive(Clone, Debug)]
pub(crate) struct Save {
    name: String,
    path: PathBuf,
}

impl Save {
    /// Reads `NAME=FILE`.
    ///
    /// # Errors
    /// Anything else.
    pub(crate) fn parse(word: &str) -> Result<Save, String> {
        match word.split_once('=') {
            Some((name, file)) if !name.is_empty() && !file.is_empty() => {
                Ok(Save { name: name.into(), path: file.into() })
            }
            _ => Err("expected NAME=FILE, such as out=out.npy".into()),
        }
    }
}

/// A kernel's arguments, laid out in the device's memory.
pub(crate) struct Buffers {
    placed: Vec<Placed>,
    passed: Vec<Passed>,
}

/// What the kernel gets for one parameter.
enum Passed {
    Value(Arg<'static>),
    Bytes(Vec<u8>),
}

impl Buffers {
    /// Finds out what is wrong with the flags before files are read and hours of work done.
    ///
    /// # Errors
    /// Names that are given twice or to nothing, types and places that no `.npy` file can have.
    pub(crate) fn check(args: &[Argument], shows: &[String], saves: &[Save]) -> Result<()> {
        let mut known = HashSet::new();
        for arg in args.iter().flat_map(Argument::parts) {
            match arg {
                Argument::Buffer(buffer) if !known.insert(buffer.name.as_str()) => {
                    let what = format!("two buffers are called {}", buffer.name);
                    let hint = format!("--arg {} alone is the first one again", buffer.name);
                    return Err(Usage::new(what).hint(hint).into());
                }
                Argument::Again { name, .. } => is_known(name, &known)?,
                _ => {}
            }
        }
        shows.iter().try_for_each(|name| is_known(name, &known))?;
        let mut paths = HashSet::new();
        for Save { name, path } in saves {
            is_known(name, &known)?;
            if !paths.insert(path) {
                let what = format!("two buffers are saved to {}", path.display());
                return Err(Usage::new(what).into());
            }
            ensure!(
                path != Path::new("-"),
                Usage::new("buffers are saved to files, not to stdout")
            );
            for arg in args.iter().flat_map(Argument::parts) {
                if let Argument::Buffer(Buffer { name: own, dtype: Some(dtype), .. }) = arg
                    && own == name
                {
                    npy::header(*dtype, &[1])?;
                }
            }
            sink::check(path)?;
        }
        Ok(())
    }

    /// Allocates and fills the buffers.
    ///
    /// # Errors
    /// Files that cannot be read or do not fit, memory that does not suffice.
    pub(crate) fn place(device: &mut Device, args: &[Argument]) -> Result<Buffers> {
        let mut buffers = Buffers::none();
        buffers.add(device, args)?;
        Ok(buffers)
    }

    /// No buffers.
    pub(crate) fn none() -> Buffers {
        Buffers { placed: Vec::new(), passed: Vec::new() }
    }

    /// The arguments of the next launch, which may name the buffers of those before.
    ///
    /// # Errors
    /// As [`Buffers::place`].
    pub(crate) fn add(&mut self, device: &mut Device, args: &[Argument]) -> Result<()> {
        self.passed.clear();
        for arg in args {
            let passed = match arg {
                Argument::Struct(members) => {
                    let mut bytes = Layout::default();
                    for member in members {
                        bytes.push(&self.pass(device, member)?);
                    }
                    Passed::Bytes(bytes.finish())
                }
                other => self.pass(device, other)?,
            };
            self.passed.push(passed);
        }
        Ok(())
    }

    fn pass(&mut self, device: &mut Device, arg: &Argument) -> Result<Passed> {
        Ok(match arg {
            Argument::Scalar(scalar) => Passed::of(*scalar),
            Argument::Bytes(bytes) => Passed::Bytes(bytes.clone()),
            Argument::Again { name, offset } => {
                let address = self.named(name).map_or(0, |b| b.address);
                Passed::Value(Arg::Pointer(address.wrapping_add(*offset)))
            }
            Argument::Buffer(buffer) => {
                let placed = place(device, buffer)?;
                let address = placed.address;
                self.placed.push(placed);
                Passed::Value(Arg::Pointer(address))
            }
            Argument::Described { what, memory } => {
                self.pass(device, memory)?;
                let name = match &**memory {
                    Argument::Buffer(Buffer { name, .. }) | Argument::Again { name, .. } => name,
                    _ => return Err(anyhow!("no buffer")),
                };
                let buffer = self.named(name).ok_or_else(|| anyhow!("no buffer {name}"))?;
                let given = what.make(device, buffer.address, buffer.dtype, buffer.count);
                match given.with_context(|| format!("buffer {name}"))? {
                    Given::Bytes(bytes) => Passed::Bytes(bytes),
                    Given::Handle(handle) => Passed::Value(Arg::U64(handle)),
                }
            }
            Argument::Struct(_) => return Err(anyhow!("a struct in a struct")),
        })
    }

    fn named(&self, name: &str) -> Option<&Placed> {
        self.placed.iter().find(|b| b.name == name)
    }

    /// The element at an address, or how far behind which buffer it would be.
    pub(crate) fn element_at(&self, address: u64) -> Option<String> {
        let below = self.placed.iter().filter(|b| b.address <= address);
        let buffer = below.max_by_key(|b| b.address)?;
        let (size, distance) = (buffer.dtype.size() as u64, address - buffer.address);
        let (index, rest) = (distance / size, distance % size);
        if index > buffer.count.saturating_add(FAR) {
            return None;
        }
        let within = if rest == 0 { String::new() } else { format!(", byte {rest}") };
        Some(format!("{}[{index}]{within}", buffer.name))
    }

    /// What the kernel gets.
    pub(crate) fn arguments(&self) -> Vec<Arg<'_>> {
        let pass = |passed| match passed {
            &Passed::Value(arg) => arg,
            Passed::Bytes(bytes) => Arg::Bytes(bytes),
        };
        self.passed.iter().map(pass).collect()
    }

    /// What the named buffers hold now.
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub(crate) fn show(&self, device: &Device, names: &[String]) -> Result<Vec<Shown>> {
        let wanted = names.iter().filter_map(|name| self.named(name));
        wanted
            .map(|buffer| {
                let mut values = Vec::new();
                buffer.each(device, &mut |bytes| {
                    values.extend(scalar::all(buffer.dtype, bytes));
                    Ok(())
                })?;
                Ok(Shown { name: buffer.name.clone(), dtype: buffer.dtype, values })
            })
            .collect()
    }

    /// Writes buffers to files: all of them, or none.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn save(&self, device: &Device, saves: &[Save]) -> Result<()> {
        let mut sinks = Vec::new();
        for Save { name, path } in saves {
            let buffer = self.named(name).ok_or_else(|| anyhow!("no buffer {name}"))?;
            let mut sink = Sink::open(Some(path))?;
            sink.write_all(&npy::header(buffer.dtype, &[buffer.count as usize])?)?;
            buffer.each(device, &mut |bytes| Ok(sink.write_all(bytes)?))?;
            sinks.push(sink);
        }
        sinks.into_iter().try_for_each(Sink::commit)
    }
}

fn is_known(name: &str, known: &HashSet<&str>) -> Result<()> {
    if known.contains(name) {
        return Ok(());
    }
    let mut names: Vec<_> = known.iter().copied().collect();
    names.sort_unstable();
    let what = match &names[..] {
        [] => format!("there is no buffer {name}"),
        _ => format!("there is no buffer {name}; there are {}", names.join(", ")),
    };
    Err(Usage::new(what).hint(format!("--arg {name}:f32:1000=ones makes one")).into())
}

/// The type and the bytes of what a buffer would hold.
///
/// # Errors
/// Files that cannot be read or do not fit.
pub(crate) fn bytes(buffer: &Buffer) -> Result<(DType, Vec<u8>)> {
    let mut source = Source::open(buffer)?;
    let mut all = Vec::new();
    source.each(buffer, &mut |chunk| {
        all.extend_from_slice(chunk);
        Ok(())
    })?;
    Ok((source.dtype, all))
}

/// Where a buffer's elements come from, their type and their number.
struct Source {
    file: Option<Elements>,
    dtype: DType,
    count: u64,
}

impl Source {
    fn open(buffer: &Buffer) -> Result<Source> {
        let file = match &buffer.content {
            Content::File(file) => Some(Elements::open(file, buffer)?),
            _ => None,
        };
        let dtype = file.as_ref().map(Elements::dtype).or(buffer.dtype);
        let dtype = dtype.ok_or_else(|| anyhow!("no type"))?;
        let count = file.as_ref().map(|e| e.count).or(buffer.count).unwrap_or(0);
        Ok(Source { file, dtype, count })
    }

    /// Hands over the bytes of all elements; none of an uninitialised buffer.
    fn each(&mut self, buffer: &Buffer, write: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(elements) = &mut self.file {
            return elements.each(write);
        }
        let Some(mut numbers) = buffer.content.elements(self.dtype) else { return Ok(()) };
        let mut left = self.count;
        let mut chunk = Vec::with_capacity(CHUNK);
        while left > 0 {
            let now = left.min((CHUNK / self.dtype.size()) as u64);
            chunk.clear();
            numbers.by_ref().take(now as usize).for_each(|x| scalar::push(&mut chunk, x));
            write(&chunk)?;
            left -= now;
        }
        Ok(())
    }
}

fn place(device: &mut Device, buffer: &Buffer) -> Result<Placed> {
    let context = || format!("buffer {}", buffer.name);
    let mut source = Source::open(buffer).with_context(context)?;
    let Source { dtype, count, .. } = source;
    let bytes = count.checked_mul(dtype.size() as u64);
    let bytes = bytes.ok_or_else(|| anyhow!("too many elements")).with_context(context)?;
    let address = device.allocate(bytes).with_context(context)?;
    let mut end = address;
    let mut write = |chunk: &[u8]| -> Result<()> {
        device.write(end, chunk)?;
        end += chunk.len() as u64;
        Ok(())
    };
    source.each(buffer, &mut write).with_context(context)?;
    Ok(Placed { name: buffer.name.clone(), dtype, count, address })
}

impl Placed {
    /// Hands over the bytes of all elements.
    fn each(&self, device: &Device, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let total = self.count * self.dtype.size() as u64;
        let mut chunk = vec![0; CHUNK.min(total as usize)];
        let mut at = 0;
        while at < total {
            let now = ((total - at) as usize).min(CHUNK);
            device.read(self.address + at, &mut chunk[..now])?;
            take(&chunk[..now])?;
            at += now as u64;
        }
        Ok(())
    }
}

/// A struct as it is laid out: members at multiples of their sizes, bytes wherever they come.
#[derive(Default)]
struct Layout {
    bytes: Vec<u8>,
    align: usize,
}

impl Layout {
    fn push(&mut self, member: &Passed) {
        let (bytes, align) = match member {
            Passed::Bytes(bytes) => (bytes.clone(), 1),
            Passed::Value(arg) => {
                let bytes = arg.bytes();
                let align = bytes.len();
                (bytes, align)
            }
        };
        self.align = self.align.max(align);
        self.bytes.resize(self.bytes.len().next_multiple_of(align.max(1)), 0);
        self.bytes.extend(bytes);
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(self.align.max(1)), 0);
        self.bytes
    }
}

impl Passed {
    fn of(scalar: Scalar) -> Passed {
        let bits = scalar.to_bits();
        Passed::Value(match scalar {
            Scalar::F32(x) => Arg::F32(x),
            Scalar::F64(x) => Arg::F64(x),
            // Compilers pass them as structs.
            Scalar::F16(_) | Scalar::BF16(_) => {
                return Passed::Bytes((bits as u16).to_le_bytes().into());
            }
            Scalar::Int(x, _) if scalar.dtype() == DType::I32 => Arg::I32(x as i32),
            Scalar::Int(x, _) if scalar.dtype() == DType::I64 => Arg::I64(x),
            _ => match scalar.dtype().size() {
                1 => Arg::U8(bits as u8),
                2 => Arg::U16(bits as u16),
                4 => Arg::U32(bits as u32),
                _ => Arg::U64(bits),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::argument;
    use super::*;

    fn checked(args: &[&str], shows: &[&str], saves: &[&str]) -> Result<(), String> {
        let args: Vec<_> = args.iter().map(|w| argument::parse(w).unwrap()).collect();
        let shows: Vec<_> = shows.iter().map(ToString::to_string).collect();
        let saves: Vec<_> = saves.iter().map(|w| Save::parse(w).unwrap()).collect();
        Buffers::check(&args, &shows, &saves).map_err(|e| e.to_string())
    }

    #[test]
    fn names_are_known_and_different() {
        assert_eq!(checked(&["a:f32:1", "a", "a+4", "b:f32:1"], &["a"], &["b=b.npy"]), Ok(()));
        for (args, shows, saves, part) in [
            (&["a:f32:1", "a:f32:2"][..], &[][..], &[][..], "two buffers are called a"),
            (&["a", "a:f32:1"], &[], &[], "no buffer a"),
            (&["a:f32:1"], &["b"], &[], "no buffer b; there are a"),
            (&["a:f32:1"], &[], &["b=x.npy"], "no buffer b"),
            (&["a:f32:1"], &[], &["a=x.npy", "a=x.npy"], "saved to x.npy"),
            (&["a:f32:1"], &[], &["a=-"], "stdout"),
            (&["a:f32:1"], &[], &["a=none/x.npy"], "no directory"),
            (&["a:bf16:1"], &[], &["a=x.npy"], "bf16"),
        ] {
            let why = checked(args, shows, saves).unwrap_err();
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        }
    }

    #[test]
    fn a_struct_is_laid_out_as_c_does() {
        let mut layout = Layout::default();
        layout.push(&Passed::Value(Arg::U8(1)));
        layout.push(&Passed::Value(Arg::Pointer(0x0807_0605_0403_0201)));
        layout.push(&Passed::Bytes(vec![9, 9, 9]));
        layout.push(&Passed::Value(Arg::U16(0x1234)));
        let expected = [
            &[1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 0, 0x34, 0x12][..],
            &[0, 0],
        ];
        assert_eq!(layout.finish(), expected.concat());
    }

    #[test]
    fn addresses_are_elements_of_the_buffer_below_them() {
        let placed = |name: &str, address| Placed {
            name: name.into(),
            dtype: DType::F32,
            count: 10,
            address,
        };
        let buffers =
            Buffers { placed: vec![placed("b", 2000), placed("a", 1000)], passed: Vec::new() };
        let at = |address| buffers.element_at(address);
        assert_eq!((at(999), at(1000)), (None, Some("a[0]".into())));
        assert_eq!((at(1013), at(1040)), (Some("a[3], byte 1".into()), Some("a[10]".into())));
        assert_eq!((at(2004), at(u64::MAX)), (Some("b[1]".into()), None));
    }

    #[test]
    fn a_save_is_a_name_and_a_file() {
        for bad in ["out", "=x.npy", "out="] {
            assert!(Save::parse(bad).is_err(), "{bad}");
        }
    }
}
