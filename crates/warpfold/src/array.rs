//! What reductions take: arrays wherever they lie.

use crate::devices::DeviceArray;
use warpfold_core::layout::Input;
use warpfold_core::{DType, Error, Result};

/// An array as a [`Reduction`](crate::Reduction) takes it: an [`Input`] in the host's
/// memory, and with the features `cuda` and `sim` a `DeviceArray` in that of a device.
///
/// Nobody names it: whatever is one or the other becomes it by itself.
#[derive(Clone, Debug)]
pub struct Array<'a> {
    place: Place<'a>,
}

/// Where an array lies.
#[derive(Clone, Debug)]
pub(crate) enum Place<'a> {
    Host(Input<'a>),
    #[cfg_attr(
        not(any(feature = "cuda", feature = "sim")),
        expect(dead_code, reason = "without devices there are no arrays on them")
    )]
    Device(DeviceArray<'a>),
}

/// Two arrays that lie in one place.
#[cfg_attr(
    not(any(feature = "cuda", feature = "sim")),
    expect(clippy::large_enum_variant, reason = "without devices the other one has no values")
)]
pub(crate) enum Pair<'a> {
    Host([Input<'a>; 2]),
    Device([DeviceArray<'a>; 2]),
}

impl<'a, T: Into<Input<'a>>> From<T> for Array<'a> {
    fn from(input: T) -> Array<'a> {
        Array { place: Place::Host(input.into()) }
    }
}

#[cfg(any(feature = "cuda", feature = "sim"))]
impl<'a> From<DeviceArray<'a>> for Array<'a> {
    fn from(array: DeviceArray<'a>) -> Array<'a> {
        Array { place: Place::Device(array) }
    }
}

#[cfg(any(feature = "cuda", feature = "sim"))]
impl<'a> From<&'a DeviceArray<'a>> for Array<'a> {
    fn from(array: &'a DeviceArray<'a>) -> Array<'a> {
        array.clone().into()
    }
}

impl<'a> Array<'a> {
    pub(crate) fn into_place(self) -> Place<'a> {
        self.place
    }

    /// What lies in the host's memory.
    pub(crate) fn on_host(&self) -> Option<&Input<'a>> {
        match &self.place {
            Place::Host(input) => Some(input),
            Place::Device(_) => None,
        }
    }

    /// The type of the elements, and the shape.
    ///
    /// # Errors
    /// An array of something else than numbers.
    pub(crate) fn about(&self) -> Result<(DType, Vec<usize>)> {
        Ok(match &self.place {
            Place::Host(input) => {
                let view = input.view()?;
                (view.dtype(), view.shape().to_vec())
            }
            Place::Device(array) => (array.dtype(), array.shape().to_vec()),
        })
    }
}

impl<'a> Pair<'a> {
    /// # Errors
    /// One of them lies in the host's memory, and the other in a device's.
    pub(crate) fn new(left: Array<'a>, right: Array<'a>) -> Result<Pair<'a>> {
        match (left.place, right.place) {
            (Place::Host(left), Place::Host(right)) => Ok(Pair::Host([left, right])),
            (Place::Device(left), Place::Device(right)) => Ok(Pair::Device([left, right])),
            _ => Err(Error::DeviceMemory {
                what: "one of two arrays lies in the host's memory, the other in a device's".into(),
                hint: "copy one of them to where the other is",
            }),
        }
    }
}
