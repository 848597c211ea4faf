//! Arrow arrays of numbers and truth values, with their nulls.

use super::Input;
use crate::Error;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};

/// The validity bitmap, and the bit of the first row.
fn valid(array: &dyn Array) -> Option<(&[u8], usize)> {
    array.nulls().map(|nulls| (nulls.validity(), nulls.offset()))
}

macro_rules! numbers {
    ($($t:ty),*) => {
        $(
            impl<'a> From<&'a PrimitiveArray<$t>> for Input<'a> {
                fn from(array: &'a PrimitiveArray<$t>) -> Input<'a> {
                    Input::from(&array.values()[..]).with_bits(valid(array))
                }
            }
        )*

        /// An array whose type is known at run time. One that does not hold
        /// numbers or truth values is refused where it is reduced.
        impl<'a> From<&'a dyn Array> for Input<'a> {
            fn from(array: &'a dyn Array) -> Input<'a> {
                $(
                    if let Some(array) = array.as_any().downcast_ref::<PrimitiveArray<$t>>() {
                        return Input::from(array);
                    }
                )*
                if let Some(array) = array.as_any().downcast_ref::<BooleanArray>() {
                    return Input::from(array);
                }
                Input::refused(Error::NotNumbers { found: array.data_type().to_string() })
            }
        }
    };
}
numbers!(
    Int8Type,
    Int16Type,
    Int32Type,
    Int64Type,
    UInt8Type,
    UInt16Type,
    UInt32Type,
    UInt64Type,
    Float16Type,
    Float32Type,
    Float64Type
);

impl<'a> From<&'a BooleanArray> for Input<'a> {
    fn from(array: &'a BooleanArray) -> Input<'a> {
        Input::of_bits(array.values().iter()).with_bits(valid(array))
    }
}

impl<'a> From<&'a ArrayRef> for Input<'a> {
    fn from(array: &'a ArrayRef) -> Input<'a> {
        Input::from(&**array)
    }
}
