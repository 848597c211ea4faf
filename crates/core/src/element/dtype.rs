//! The catalogue of element types.
//!
//! Everything that is told of a type without its arithmetic is told here, once. A new
//! one begins with its entry: what serves every type by [`DType::known`] or
//! [`with_element!`](crate::with_element) does not compile before it serves that one, too.

use core::fmt;

/// What is known of an element type.
struct Entry {
    /// Stands for it in byte forms; never reused.
    code: u8,
    /// On the command line and in messages.
    name: &'static str,
    /// Other names that are understood, NumPy's first.
    also: &'static [&'static str],
    /// Bytes of an element.
    size: usize,
    class: Class,
}

/// What the elements are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Truth,
    Signed,
    Unsigned,
    Float,
}

macro_rules! types {
    ($($(#[$doc:meta])* $dtype:ident { $($field:ident: $value:expr,)* })*) => {
        /// The type of an array's elements, known at run time.
        ///
        /// ```
        /// use warpfold_core::DType;
        ///
        /// assert_eq!("f32".parse(), Ok(DType::F32));
        /// assert_eq!((DType::F32.size(), DType::F32.to_string()), (4, "f32".into()));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DType {
            $($(#[$doc])* $dtype,)*
        }

        impl DType {
            /// Every element type, in the order of the documentation's tables.
            pub const ALL: [DType; [$(DType::$dtype),*].len()] = [$(DType::$dtype),*];

            /// The type as an enumeration that is complete.
            #[doc(hidden)]
            #[must_use]
            pub const fn known(self) -> Known {
                match self {
                    $(DType::$dtype => Known::$dtype,)*
                }
            }

            const fn entry(self) -> &'static Entry {
                match self {
                    $(DType::$dtype => &Entry { $($field: $value,)* },)*
                }
            }
        }

        /// [`DType`] for the crates of this workspace: each has to serve every type, so
        /// that a new one must not compile before it does.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug)]
        pub enum Known {
            $($dtype,)*
        }
    };
}

types! {
    /// Truth values, one byte each; any byte but 0 is true.
    Bool {
        code: 1,
        name: "bool",
        also: &["bool_"],
        size: 1,
        class: Class::Truth,
    }
    /// Signed 8-bit integers.
    I8 {
        code: 2,
        name: "i8",
        also: &["int8"],
        size: 1,
        class: Class::Signed,
    }
    /// Signed 16-bit integers.
    I16 {
        code: 3,
        name: "i16",
        also: &["int16"],
        size: 2,
        class: Class::Signed,
    }
    /// Signed 32-bit integers.
    I32 {
        code: 4,
        name: "i32",
        also: &["int32"],
        size: 4,
        class: Class::Signed,
    }
    /// Signed 64-bit integers.
    I64 {
        code: 5,
        name: "i64",
        also: &["int64"],
        size: 8,
        class: Class::Signed,
    }
    /// Unsigned 8-bit integers.
    U8 {
        code: 6,
        name: "u8",
        also: &["uint8"],
        size: 1,
        class: Class::Unsigned,
    }
    /// Unsigned 16-bit integers.
    U16 {
        code: 7,
        name: "u16",
        also: &["uint16"],
        size: 2,
        class: Class::Unsigned,
    }
    /// Unsigned 32-bit integers.
    U32 {
        code: 8,
        name: "u32",
        also: &["uint32"],
        size: 4,
        class: Class::Unsigned,
    }
    /// Unsigned 64-bit integers.
    U64 {
        code: 9,
        name: "u64",
        also: &["uint64"],
        size: 8,
        class: Class::Unsigned,
    }
    /// IEEE 754 binary16.
    F16 {
        code: 10,
        name: "f16",
        also: &["float16", "half"],
        size: 2,
        class: Class::Float,
    }
    /// The upper half of an IEEE 754 binary32.
    BF16 {
        code: 11,
        name: "bf16",
        also: &["bfloat16"],
        size: 2,
        class: Class::Float,
    }
    /// IEEE 754 binary32.
    F32 {
        code: 12,
        name: "f32",
        also: &["float32", "float"],
        size: 4,
        class: Class::Float,
    }
    /// IEEE 754 binary64.
    F64 {
        code: 13,
        name: "f64",
        also: &["float64", "double"],
        size: 8,
        class: Class::Float,
    }
}

impl DType {
    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        self.entry().size
    }

    /// The name used on the command line and in messages: `f32`, `i64`, `bool`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Other names that [`from_name`](Self::from_name) understands: NumPy's long one
    /// (`float32`) first.
    #[must_use]
    pub const fn other_names(self) -> &'static [&'static str] {
        self.entry().also
    }

    /// The type with this name; NumPy's long names (`float32`) are accepted too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name || d.other_names().contains(&name))
    }

    /// Whether the type is one of the four floating-point types.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.entry().class, Class::Float)
    }

    /// Whether the type is a signed integer type.
    #[must_use]
    pub const fn is_signed_int(self) -> bool {
        matches!(self.entry().class, Class::Signed)
    }

    /// Whether the type is an unsigned integer type (`bool` is not).
    #[must_use]
    pub const fn is_unsigned_int(self) -> bool {
        matches!(self.entry().class, Class::Unsigned)
    }

    /// The code of the type in byte forms; never reused.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.entry().code
    }

    /// The type whose [`code`](Self::code) is `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.code() == code)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, with_element};
    use std::collections::HashSet;

    /// Files hold these numbers: an entry may be added, none may change.
    #[test]
    fn codes_stay_what_they_are() {
        let names = [
            "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32",
            "f64",
        ];
        for (name, code) in names.into_iter().zip(1..) {
            assert_eq!(DType::from_code(code).map(DType::name), Some(name));
        }
        // Whoever adds an entry adds it here too.
        assert_eq!(DType::ALL.len(), names.len());
    }

    #[test]
    fn no_code_and_no_name_is_taken_twice() {
        let codes: HashSet<u8> = DType::ALL.into_iter().map(DType::code).collect();
        assert_eq!(codes.len(), DType::ALL.len());
        assert!(!codes.contains(&0));
        let names: Vec<&str> =
            DType::ALL.iter().flat_map(|d| [&[d.name()], d.other_names()].concat()).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for name in names {
            assert!(DType::from_name(name).is_some(), "{name}");
        }
    }

    /// The entry says of a type what its elements are.
    #[test]
    fn entries_are_true_of_their_elements() {
        for dtype in DType::ALL {
            with_element!(dtype, T => {
                assert_eq!((T::DTYPE, size_of::<T>()), (dtype, dtype.size()));
                let of = <T as Element>::from_bits;
                let ones = of(u64::MAX);
                let class = if ones.is_nan() {
                    Class::Float
                } else if ones.key() == of(1).key() {
                    Class::Truth
                } else if ones.key() < of(0).key() {
                    Class::Signed
                } else {
                    Class::Unsigned
                };
                assert!(class == dtype.entry().class, "{dtype}");
            });
        }
    }
}
