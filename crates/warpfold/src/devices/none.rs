//! What stands for devices where none is compiled in: types without values.

use super::compiled_out;
use crate::answer::Answer;
use crate::device::Device;
use crate::groups::on_devices::Made as MadeOfGroups;
use crate::partial::Partial;
use crate::reduction::Reduction;
use crate::segments::Segmented;
use crate::segments::parts::Made;
use core::convert::Infallible;
use core::marker::PhantomData;
use warpfold_core::layout::{Traversal, View};
use warpfold_core::op::{AnyState, Kind, Numbers, Op, RawRun, Rules};
use warpfold_core::{DType, Result, Scalar};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Bounds, Job};

/// An open device.
pub(crate) enum Opened {}

/// States on a device.
pub(crate) enum Fed {}

/// A copy of an array in a device's memory.
pub(crate) enum OnHost {}

/// An array in a device's memory.
#[derive(Clone, Debug)]
pub(crate) struct DeviceArray<'a>(Infallible, PhantomData<&'a ()>);

/// Opens the device that was named; `None` for the CPU.
///
/// # Errors
/// It is not compiled in.
pub(crate) fn of(device: Device) -> Result<Option<Opened>> {
    match device {
        Device::Auto | Device::Cpu => Ok(None),
        _ => Err(compiled_out(device)),
    }
}

/// No device explains anything.
pub(crate) fn remember_explanations() {}

/// How devices reduced: none did.
pub(crate) fn take_explanations() -> Vec<String> {
    Vec::new()
}

impl Opened {
    pub(crate) fn supports(&self, _: Kind, _: DType) -> bool {
        match *self {}
    }

    pub(crate) fn states(&self, _: &Job<'_>) -> Result<Vec<Vec<AnyState>>> {
        match *self {}
    }

    pub(crate) fn numbers(&self, _: &[Op], _: &Job<'_>) -> Result<Option<Vec<Numbers>>> {
        match *self {}
    }

    pub(crate) fn numbers_of_segments(
        &self,
        _: (&[Op], &Rules),
        _: &View<'_>,
        _: &Bounds<'_>,
        _: Option<Scalar>,
    ) -> Result<Made> {
        match *self {}
    }

    pub(crate) fn numbers_of_groups(
        &self,
        _: (&[Op], &Rules),
        _: &[View<'_>],
        _: &View<'_>,
        _: Option<usize>,
    ) -> Result<Option<MadeOfGroups>> {
        match *self {}
    }
}

pub(crate) fn knows(_: Op, _: DType, _: &Rules) -> bool {
    false
}

impl OnHost {
    pub(crate) fn view(&self) -> Result<View<'_>> {
        match *self {}
    }
}

impl Fed {
    pub(crate) fn new(opened: &Opened, _: Isa, _: &[Kind], _: DType, _: usize) -> Result<Fed> {
        match *opened {}
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        match *self {}
    }

    pub(crate) fn absorb(&mut self, _: RawRun<'_>, _: Option<&Traversal>, _: u64) -> Result<()> {
        match *self {}
    }

    pub(crate) fn absorb_from<E>(
        &mut self,
        _: u64,
        _: usize,
        _: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>> {
        match *self {}
    }

    pub(crate) fn absorb_around(
        &mut self,
        _: RawRun<'_>,
        _: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<()> {
        match *self {}
    }

    pub(crate) fn into_states(self) -> Result<Vec<AnyState>> {
        match self {}
    }
}

impl DeviceArray<'_> {
    pub(crate) fn dtype(&self) -> DType {
        match self.0 {}
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match self.0 {}
    }

    pub(crate) fn to_host(&self) -> Result<OnHost> {
        match self.0 {}
    }

    pub(crate) fn numbers_of_groups(
        &self,
        _: (&[Op], &Rules),
        _: &[&DeviceArray<'_>],
        _: Option<usize>,
    ) -> Result<Option<MadeOfGroups>> {
        match self.0 {}
    }

    pub(crate) fn check_beside(&self, _: &Reduction, _: Option<&DeviceArray<'_>>) -> Result<()> {
        match self.0 {}
    }
}

impl Reduction {
    pub(crate) fn run_in_place(
        &self,
        first: &DeviceArray<'_>,
        _: Option<&DeviceArray<'_>>,
    ) -> Result<Answer> {
        match first.0 {}
    }

    pub(crate) fn states_in_place(
        &self,
        first: &DeviceArray<'_>,
        _: Option<&DeviceArray<'_>>,
        _: u64,
    ) -> Result<Partial> {
        match first.0 {}
    }
}

impl Segmented<'_> {
    pub(crate) fn run_in_place(
        &self,
        first: &DeviceArray<'_>,
        _: Option<&DeviceArray<'_>>,
    ) -> Result<Answer> {
        match first.0 {}
    }
}
