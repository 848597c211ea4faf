//! Arrow arrays as columns of keys: numbers, truth values, texts, and dictionaries of texts.

use super::keys::{Items, KeyColumn, Keys, TextRows};
use arrow_array::types::{
    ArrowDictionaryKeyType, BinaryType, BinaryViewType, ByteArrayType, ByteViewType, Int8Type,
    Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type, StringViewType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, GenericByteArray, GenericByteViewArray};
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

    fn for_each(&self, rows: Range<usize>, each: &mut dyn FnMut(Option<&[u8]>)) {
        for row in rows {
            each(self.is_valid(row).then(|| self.value(row).as_ref()));
        }
    }
}

impl<T: ByteViewType + ?Sized> TextRows for &GenericByteViewArray<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn for_each(&self, rows: Range<usize>, each: &mut dyn FnMut(Option<&[u8]>)) {
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

    fn for_each(&self, rows: Range<usize>, each: &mut dyn FnMut(Option<&[u8]>)) {
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

/// An array whose type is known at run time. One that holds no numbers, truth values or
/// texts is refused where it is reduced.
impl<'a> From<&'a dyn Array> for KeyColumn<'a> {
    fn from(array: &'a dyn Array) -> KeyColumn<'a> {
        match texts(array) {
            Some(texts) => KeyColumn { items: Items::Foreign(texts) },
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
