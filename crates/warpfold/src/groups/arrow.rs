//! Arrow arrays as columns of keys: numbers, truth values, dates and times, texts, and
//! dictionaries of texts.

use super::keys::{Items, KeyColumn, Keys, TextRows};
use crate::unit::{Tick, Unit};
use arrow_array::types::{
    ArrowDictionaryKeyType, BinaryType, BinaryViewType, ByteArrayType, ByteViewType, Date32Type,
    Date64Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Int8Type, Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type,
    StringViewType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, GenericByteArray, GenericByteViewArray, PrimitiveArray,
};
use arrow_schema::{DataType, TimeUnit};
use core::fmt;
use core::ops::Range;
use std::sync::Arc;
use warpfold_core::layout::Input;

/// Texts of an array, by row. The bytes of strings are keys, and so are those of binary
/// arrays.
impl<T: ByteArrayType> TextRows for &GenericByteArray<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn for_each<'s>(&'s self, rows: Range<usize>, each: &mut dyn FnMut(Option<&'s [u8]>)) {
        for row in rows {
            each(self.is_valid(row).then(|| self.value(row).as_ref()));
        }
    }
}

impl<T: ByteViewType + ?Sized> TextRows for &GenericByteViewArray<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn for_each<'s>(&'s self, rows: Range<usize>, each: &mut dyn FnMut(Option<&'s [u8]>)) {
        for row in rows {
            each(self.is_valid(row).then(|| self.value(row).as_ref()));
        }
    }
}

/// Rows that are numbers of texts.
#[derive(Debug)]
struct Coded<'a, K: ArrowDictionaryKeyType> {
    codes: &'a DictionaryArray<K>,
    texts: Arc<dyn TextRows + 'a>,
}

impl<K: ArrowDictionaryKeyType + fmt::Debug> TextRows for Coded<'_, K> {
    fn count(&self) -> usize {
        self.codes.len()
    }

    fn for_each<'s>(&'s self, rows: Range<usize>, each: &mut dyn FnMut(Option<&'s [u8]>)) {
        for row in rows {
            // A code of no text is an error of whoever made the array: the row has no key.
            match self.codes.key(row).filter(|&code| code < self.texts.count()) {
                Some(code) => self.texts.for_each(code..code + 1, each),
                None => each(None),
            }
        }
    }
}

/// The rows of an array, if they are texts.
fn texts(array: &dyn Array) -> Option<Arc<dyn TextRows + '_>> {
    let any = array.as_any();
    macro_rules! one_of {
        ($($kind:ident<$t:ty>),*; $($key:ty),*) => {
            $(if let Some(array) = any.downcast_ref::<$kind<$t>>() {
                return Some(Arc::new(array));
            })*
            $(if let Some(codes) = any.downcast_ref::<DictionaryArray<$key>>() {
                let texts = texts(&**codes.values())?;
                return Some(Arc::new(Coded { codes, texts }));
            })*
        };
    }
    one_of! {
        GenericByteArray<Utf8Type>, GenericByteArray<LargeUtf8Type>,
        GenericByteArray<BinaryType>, GenericByteArray<LargeBinaryType>,
        GenericByteViewArray<StringViewType>, GenericByteViewArray<BinaryViewType>;
        Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type
    }
    None
}

/// What the integers of an array count.
fn unit(array: &dyn Array) -> Option<Unit> {
    let tick = |unit: &TimeUnit| match unit {
        TimeUnit::Second => Tick::Second,
        TimeUnit::Millisecond => Tick::Milli,
        TimeUnit::Microsecond => Tick::Micro,
        TimeUnit::Nanosecond => Tick::Nano,
    };
    Some(match array.data_type() {
        DataType::Date32 => Unit::Date(Tick::Day),
        DataType::Date64 => Unit::Date(Tick::Milli),
        DataType::Time32(unit) | DataType::Time64(unit) => Unit::Time(tick(unit)),
        DataType::Timestamp(unit, zone) => {
            Unit::Timestamp(tick(unit), zone.as_deref().map(str::to_owned))
        }
        DataType::Duration(unit) => Unit::Duration(tick(unit)),
        _ => return None,
    })
}

/// The integers of an array of dates or times, with its nulls.
fn integers(array: &dyn Array) -> Option<Input<'_>> {
    macro_rules! one_of {
        ($($t:ty),*) => {
            $(if let Some(array) = array.as_any().downcast_ref::<PrimitiveArray<$t>>() {
                let items = &array.values()[..];
                return match array.nulls() {
                    Some(nulls) => Input::masked(items, nulls.validity(), nulls.offset()).ok(),
                    None => Some(items.into()),
                };
            })*
        };
    }
    one_of! {
        Date32Type, Date64Type, Time32SecondType, Time32MillisecondType, Time64MicrosecondType,
        Time64NanosecondType, TimestampSecondType, TimestampMillisecondType,
        TimestampMicrosecondType, TimestampNanosecondType, DurationSecondType,
        DurationMillisecondType, DurationMicrosecondType, DurationNanosecondType
    }
    None
}

/// An array whose type is known at run time. One that holds no numbers, truth values, dates,
/// times or texts is refused where it is reduced.
impl<'a> From<&'a dyn Array> for KeyColumn<'a> {
    fn from(array: &'a dyn Array) -> KeyColumn<'a> {
        if let Some(texts) = texts(array) {
            return KeyColumn::of(Items::Foreign(texts));
        }
        match unit(array).zip(integers(array)) {
            Some((unit, integers)) => KeyColumn::from(integers).counting(unit),
            None => Input::from(array).into(),
        }
    }
}

impl<'a> From<&'a ArrayRef> for KeyColumn<'a> {
    fn from(array: &'a ArrayRef) -> KeyColumn<'a> {
        KeyColumn::from(&**array)
    }
}

impl<'a> From<&'a dyn Array> for Keys<'a> {
    fn from(array: &'a dyn Array) -> Keys<'a> {
        Keys::new([array.into()])
    }
}

impl<'a> From<&'a ArrayRef> for Keys<'a> {
    fn from(array: &'a ArrayRef) -> Keys<'a> {
        Keys::new([array.into()])
    }
}
