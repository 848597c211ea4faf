//! Launches of the sample kernels, described once and run on any device.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod altered;
pub(crate) mod arrays;
pub(crate) mod data;
pub(crate) mod machine;
pub(crate) mod profiled;
pub(crate) mod random;
pub(crate) mod views;

use std::path::PathBuf;
use std::sync::OnceLock;
use warpfold_cuda::{Archive, Argument, Buffer, Device, Launch, Result, Stream};

/// What a buffer holds before the launch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fill {
    /// Zeros, which are outputs mostly.
    Zero,
    /// 0, 1, 2, .. as 32-bit integers.
    Count,
    /// Random bits.
    Bits(u64),
    /// f32 between -2 and 2.
    F32(u64),
    /// f32 of any finite exponent.
    WideF32(u64),
    /// f64 between -2 and 2.
    F64(u64),
    /// f16 between -2 and 2.
    F16(u64),
    /// bf16 between -2 and 2.
    Bf16(u64),
}

/// A kernel's parameter.
#[derive(Clone, Debug)]
pub(crate) enum Parameter {
    /// The address of a buffer of so many bytes.
    Buffer(Fill, usize),
    /// A value.
    Value(Argument),
}

/// A launch, and all it needs.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The file of the kernel's PTX, without compiler and device.
    pub(crate) module: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) launch: Launch,
    pub(crate) parameters: Vec<Parameter>,
}

/// A parameter that is a value.
pub(crate) fn value(x: impl Into<Argument>) -> Parameter {
    Parameter::Value(x.into())
}

/// A buffer of zeros.
pub(crate) fn zeros(bytes: usize) -> Parameter {
    Parameter::Buffer(Fill::Zero, bytes)
}

/// A buffer.
pub(crate) fn buffer(fill: Fill, bytes: usize) -> Parameter {
    Parameter::Buffer(fill, bytes)
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// From 0 to `n - 1`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// The place of one of `n` things.
    pub(crate) fn place(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }
    /// From 0 to 1, with 53 random bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Between -2 and 2, with 24 random bits.
    fn small(&mut self) -> f32 {
        ((self.next() >> 40) as f32 / (1u64 << 24) as f32) * 4.0 - 2.0
    }
}

impl Fill {
    /// The bytes of a buffer.
    pub(crate) fn bytes(self, len: usize) -> Vec<u8> {
        let words = |size: usize, next: &mut dyn FnMut(usize) -> u64| -> Vec<u8> {
            (0..len.div_ceil(size))
                .flat_map(|i| next(i).to_le_bytes().into_iter().take(size))
                .take(len)
                .collect()
        };
        let seeded = |seed| Random(seed);
        match self {
            Fill::Zero => vec![0; len],
            Fill::Count => words(4, &mut |i| i as u64),
            Fill::Bits(seed) => {
                let mut random = seeded(seed);
                words(8, &mut |_| random.next())
            }
            Fill::F32(seed) => {
                let mut random = seeded(seed);
                words(4, &mut |_| random.small().to_bits().into())
            }
            Fill::WideF32(seed) => {
                let mut random = seeded(seed);
                words(4, &mut |_| {
                    let bits = random.next() as u32;
                    let finite =
                        if bits & 0x7f80_0000 == 0x7f80_0000 { bits ^ 0x4000_0000 } else { bits };
                    finite.into()
                })
            }
            Fill::F64(seed) => {
                let mut random = seeded(seed);
                words(8, &mut |_| {
                    (((random.next() >> 11) as f64 / (1u64 << 53) as f64) * 4.0 - 2.0).to_bits()
                })
            }
            // Signs, fractions, and exponents from 2^-6 to 2^0.
            Fill::F16(seed) => {
                let mut random = seeded(seed);
                words(2, &mut |_| {
                    let bits = random.next();
                    (bits & 0x83ff) | (9 + bits / 0x10000 % 7) << 10
                })
            }
            Fill::Bf16(seed) => {
                let mut random = seeded(seed);
                words(2, &mut |_| {
                    let bits = random.next();
                    (bits & 0x807f) | (121 + bits / 0x10000 % 7) << 7
                })
            }
        }
    }
}

/// FNV-1a of all buffers, one after the other.
pub(crate) fn checksum(buffers: &[Vec<u8>]) -> u64 {
    let bytes = buffers.iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The PTX of a sample for a compute capability.
pub(crate) fn ptx(module: &str, compiler: &str, compute: u32) -> std::sync::Arc<str> {
    static ARCHIVE: OnceLock<Archive> = OnceLock::new();
    let archive = ARCHIVE.get_or_init(|| {
        let path = kernels().join("kernels.archive");
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Archive::new(bytes.leak())
    });
    let text = archive.module(&format!("{compiler}/{module}"), (compute / 10, compute % 10));
    text.unwrap_or_else(|| panic!("no {module} for {compute} by {compiler}"))
}

/// Where the sample kernels lie: beside the test's source, or where
/// `WARPFOLD_KERNELS` says, for a machine that has only the binaries.
pub(crate) fn kernels() -> PathBuf {
    match std::env::var_os("WARPFOLD_KERNELS") {
        Some(path) => path.into(),
        None => concat!(env!("CARGO_MANIFEST_DIR"), "/../ptx/kernels").into(),
    }
}

impl Case {
    /// Runs it on a device; says what all buffers hold afterwards.
    pub(crate) fn run(&self, device: &dyn Device, compiler: &str) -> Result<Vec<Vec<u8>>> {
        let compute = if device.limits().capability.0 >= 9 { 90 } else { 75 };
        let module = device.load(self.module, &ptx(self.module, compiler, compute))?;
        let kernel = device.kernel(module, self.kernel)?;
        let stream = Stream::DEFAULT;
        let mut buffers: Vec<Buffer<'_>> = Vec::new();
        let mut arguments = Vec::new();
        for parameter in &self.parameters {
            match parameter.clone() {
                Parameter::Value(argument) => arguments.push(argument),
                Parameter::Buffer(fill, len) => {
                    let buffer = Buffer::new(device, len as u64)?;
                    buffer.copy_in(stream, 0, &fill.bytes(len))?;
                    arguments.push(Argument::from(buffer.address()));
                    buffers.push(buffer);
                }
            }
        }
        // SAFETY: cases are written for their kernels: parameters of their
        // types, and buffers as long as they need.
        unsafe { device.launch(stream, kernel, &self.launch, &arguments)? };
        device.wait(stream)?;
        let mut after = Vec::new();
        for buffer in buffers {
            let mut bytes = vec![0; buffer.len() as usize];
            buffer.copy_out(stream, 0, &mut bytes)?;
            buffer.free()?;
            after.push(bytes);
        }
        Ok(after)
    }
}
