//! Reductions at the speed of memory, with the same bits everywhere.
//!
//! Sums, means, variances, norms and dot products of floating-point numbers
//! are **exact** by default: the true value, rounded once. They are therefore
//! the same bits for any number of threads, any instruction set and any order
//! of the data, and they cost a few per cent more than plain ones.
//!
//! ```
//! // Plain adds lose the 1 and say 0.
//! assert_eq!(warpfold::sum(&[1e16, 1.0, -1e16]), 1.0);
//! assert_eq!(warpfold::mean(&[1.0f32, 2.0, 4.0]), 7.0 / 3.0);
//! assert_eq!(warpfold::argmax(&[3, 1, 4, 1, 5]), Some(4));
//! ```
//!
//! The functions at the root take [whatever holds numbers](Items), and [`ExactSum`] adds up
//! iterators.
//! [`Reduction`] is the whole library: several operations in one pass, axes,
//! strides, NaN policy, threads, and [`Partial`] states that can be
//! written down, sent and merged. [`Accumulator`] takes numbers, slices and bytes as
//! they come.
//!
//! ```
//! use warpfold::{Op, Reduction, View};
//!
//! let rows = [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let table = View::of_strided(&rows, 0, &[2, 3], &[3, 1])?;
//! let answer = Reduction::new([Op::Sum, Op::Max]).axis(0).run(&table)?;
//! assert_eq!(answer.shape(), [3]);
//! assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[5.0, 7.0, 9.0][..]));
//! assert_eq!(answer.slice::<f64>(Op::Max), Some(&[4.0, 5.0, 6.0][..]));
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `ndarray` | `ndarray` arrays and views are reduced as they are, and answers are such: `Answer::array`, `Answer::into_array` |
//! | `arrow` | Arrow arrays of numbers and truth values are reduced, nulls left out: see [`Input`] |
//! | `cuda` | CUDA devices: [`Device::Cuda`] |
//! | `cudarc` | slices of cudarc on its streams: `DeviceArray::of` |
//! | `sim` | the interpreter of the CUDA kernels: [`Device::Sim`] |
//! | `mpi` | ranks of an MPI program put partials together: `mpi::all_reduce` |
//! | `serde` | [`Op`], [`DType`], [`NanPolicy`], [`Rules`], [`Answer`], [`Partial`] and [`Accumulator`] are written and read |
//!
#![cfg_attr(feature = "ndarray", doc = "```")]
#![cfg_attr(not(feature = "ndarray"), doc = "```ignore")]
//! use ndarray::arr2;
//! use warpfold::{Op, Reduction};
//!
//! let table = arr2(&[[1.0, 2.0], [3.0, 4.0]]);
//! let answer = Reduction::of(Op::Sum).axis(0).run(&table)?;
//! assert_eq!(answer.slice::<f64>(Op::Sum), Some(&[4.0, 6.0][..]));
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! # Devices
//!
//! [`Reduction::device`] chooses a CUDA device or the interpreter of its kernels:
//! the same bits as on the CPU, and states that merge with the CPU's. By itself a
//! reduction stays on the CPU unless a device is expected to be done sooner. A device
//! whose feature is off is an error that names the feature.
//!
#![cfg_attr(feature = "sim", doc = "```")]
#![cfg_attr(not(feature = "sim"), doc = "```ignore")]
//! use warpfold::{Device, Op, Reduction};
//!
//! let question = Reduction::new([Op::Sum, Op::Max]);
//! let data = [0.1f32; 1000];
//! assert_eq!(question.clone().device(Device::Sim).run(&data)?, question.run(&data)?);
//! # Ok::<(), warpfold::Error>(())
//! ```
//!
//! Arrays that are in a device's memory are reduced where they lie: `DeviceArray` is taken
//! where a slice or a [`View`] is, and [`Partial`]s of both memories merge. Answers come to
//! the host, or stay on the device: `Reduction::run_into`, `Reduction::prepare`.
//!
//! # Numerics
//!
//! | case | result |
//! |---|---|
//! | finite values | the exact sum, rounded once, to nearest even |
//! | intermediate overflow | never matters: `[1e308, 1e308, -1e308]` sums to `1e308` |
//! | a NaN, or `+inf` with `-inf` | the canonical NaN |
//! | no elements | sums, dots and norms `+0`; mean, variance NaN; `min` and its kin have no value |
//! | `min`, `max` | NaN propagates, `-0 < +0` |
//! | `argmin`, `argmax` | the first occurrence, where -0 equals +0; a NaN wins |
//! | `prod` of floats | each factor's logarithm is rounded by itself and added exactly: the same bits in any order |
//! | `logsumexp` of floats | each exponential is rounded by itself and added exactly: the same bits in any order |
//! | `prod` of integers | the exact product, rounded once in a float type |
//!
//! [`NanPolicy`] changes what a NaN does.

#![deny(unsafe_code)]
#![warn(missing_debug_implementations)]

mod accumulator;
mod answer;
mod array;
mod cancel;
mod choice;
mod columns;
mod device;
mod devices;
mod explain;
mod functions;
mod gaps;
mod groups;
mod initial;
#[doc(hidden)]
pub mod internal;
mod items;
mod iterators;
#[cfg(feature = "mpi")]
pub mod mpi;
mod named;
#[cfg(feature = "ndarray")]
mod ndarray;
mod number;
mod partial;
mod pieces;
mod reduction;
mod segments;
#[cfg(feature = "serde")]
mod serial;
mod unit;
mod workers;

pub use accumulator::Accumulator;
pub use answer::{Answer, Column};
pub use array::Array;
pub use cancel::CancelToken;
pub use device::Device;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use devices::{DeviceArray, DeviceArrayMut, DeviceStream, Prepared, PreparedPartial};
pub use functions::{
    all, any, argmax, argmin, count_nan, count_nonzero, dot, dot_i128, logsumexp, max, mean, min,
    minmax, norm_inf, norm1, norm2, norm2 as norm, prod, range, std, sum, sum_i128, sumsq, var,
};
pub use groups::{GroupBy, GroupColumn, GroupPartial, Grouped, KeyColumn, KeyValues, Keys, Order};
pub use items::Items;
pub use iterators::{ExactSum, Term};
pub use number::{Answered, FloatNumber, IntegerNumber, Number};
pub use partial::Partial;
pub use reduction::Reduction;
pub use segments::{Boundaries, Segmented, Segments};
pub use unit::{Tick, Unit};

pub use warpfold_core::element::{Bool8, bf16, f16};
pub use warpfold_core::layout::{Axes, Input, View};
pub use warpfold_core::op::Decimal;
pub use warpfold_core::op::Numbers;
pub use warpfold_core::{DType, Element, Error, Item, NanPolicy, Op, Result, Rules, Scalar, Value};
pub use warpfold_cpu::Threads;
#[doc(hidden)]
pub use warpfold_cpu::{SMALL, Scatter};
#[cfg(feature = "cudarc")]
pub use warpfold_cuda::{CudarcSlice, CudarcSliceMut};

/// The Rust of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
