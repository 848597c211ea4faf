//! DLPack, both ways: capsules with a version, and those of before.

mod abi;
mod exchange;
mod export;
mod import;

pub(crate) use abi::{CPU, CUDA, CUDA_HOST, CUDA_MANAGED};
pub(crate) use exchange::{Exchange, Room};
pub(crate) use export::{Exportable, capsule};
pub(crate) use import::{Managed, Tensor, import};
