//! Names and numbers in `serde`'s formats.
//!
//! Names are strings. Numbers keep every bit: integers and truth values are
//! themselves; floats are their bits in binary formats, and their digits as strings
//! in formats for people, whose readers may round and which may have no NaN.

use crate::element::{Bool8, bf16, f16};
use crate::op::{Decimal, Numbers, Scalar};
use crate::{DType, Element, NanPolicy, Op};
use core::fmt;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

macro_rules! named {
    ($($t:ty),*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Named(PhantomData))
            }
        }
    )*};
}
named!(Op, DType, NanPolicy);

struct Named<T>(PhantomData<T>);

impl<T: core::str::FromStr<Err = crate::Error>> Visitor<'_> for Named<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        name.parse().map_err(E::custom)
    }
}

/// A float that keeps its bits: a string where people read.
#[derive(Clone, Copy)]
struct Float<T>(T);

/// Floats by their bits and their digits.
trait Digits: Element {
    fn of(scalar: f64) -> Self;
    fn scalar(self) -> Scalar;
}

macro_rules! digits {
    ($($t:ty, $variant:ident, $narrow:expr;)*) => {$(
        impl Digits for $t {
            fn of(number: f64) -> $t {
                $narrow(number)
            }
            fn scalar(self) -> Scalar {
                Scalar::$variant(self)
            }
        }
    )*};
}
digits! {
    f16, F16, f16::from_f64;
    bf16, BF16, bf16::from_f64;
    // The nearest f32 of the nearest f64 is that of the shortest digits.
    f32, F32, |x| x as f32;
    f64, F64, |x| x;
}

impl<T: Digits> Serialize for Float<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            to.collect_str(&self.0.scalar())
        } else {
            to.serialize_u64(self.0.bits())
        }
    }
}

impl<'de, T: Digits> Deserialize<'de> for Float<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            from.deserialize_any(Read(PhantomData)).map(Float)
        } else {
            let bits = u64::deserialize(from)?;
            Ok(Float(T::from_bits(bits)))
        }
    }
}

struct Read<T>(PhantomData<T>);

impl<T: Digits> Visitor<'_> for Read<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or its digits as a string")
    }
    fn visit_str<E: de::Error>(self, digits: &str) -> Result<T, E> {
        digits.parse().map(T::of).map_err(E::custom)
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        Ok(T::of(number))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        Ok(T::of(number as f64))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Ok(T::of(number as f64))
    }
}

/// Its digits as a string.
impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

macro_rules! numbers {
    ($($name:literal, $variant:ident, $t:ty, $wire:ty, $pack:expr, $unpack:expr;)*) => {
        /// Numbers under the name of their type: `{"i8": [1, 2]}`.
        #[derive(Serialize, Deserialize)]
        #[serde(rename = "Numbers")]
        enum Typed {
            #[serde(rename = "decimal")]
            Decimal(Vec<Decimal>),
            $(#[serde(rename = $name)] $variant(Vec<$wire>),)*
        }

        impl Serialize for Numbers {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if let Some(decimals) = self.decimals() {
                    return Typed::Decimal(decimals.to_vec()).serialize(to);
                }
                match self.dtype() {
                    $(DType::$variant => {
                        let items: &[$t] = self.as_slice().unwrap_or(&[]);
                        Typed::$variant(items.iter().copied().map($pack).collect())
                    })*
                }
                .serialize(to)
            }
        }

        impl<'de> Deserialize<'de> for Numbers {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok(match Typed::deserialize(from)? {
                    Typed::Decimal(decimals) => Numbers::of_decimals(decimals),
                    $(Typed::$variant(items) => {
                        let items: Vec<$t> = items.into_iter().map($unpack).collect();
                        Numbers::of(&items)
                    })*
                })
            }
        }
    };
}
numbers! {
    "bool", Bool, Bool8, bool, bool::from, Bool8::from;
    "i8", I8, i8, i8, |x| x, |x| x;
    "i16", I16, i16, i16, |x| x, |x| x;
    "i32", I32, i32, i32, |x| x, |x| x;
    "i64", I64, i64, i64, |x| x, |x| x;
    "u8", U8, u8, u8, |x| x, |x| x;
    "u16", U16, u16, u16, |x| x, |x| x;
    "u32", U32, u32, u32, |x| x, |x| x;
    "u64", U64, u64, u64, |x| x, |x| x;
    "f16", F16, f16, Float<f16>, Float, |x: Float<f16>| x.0;
    "bf16", BF16, bf16, Float<bf16>, Float, |x: Float<bf16>| x.0;
    "f32", F32, f32, Float<f32>, Float, |x: Float<f32>| x.0;
    "f64", F64, f64, Float<f64>, Float, |x: Float<f64>| x.0;
}
