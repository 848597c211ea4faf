//! Constants, and the bits that they give a register.

use crate::ir::{Class, Type};

/// A constant as the text gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// An integer of 64 bits.
    Int(u64),
    /// A float by its bits: `0f3F800000`.
    Single(u32),
    /// A double by its bits (`0d3FF0000000000000`) or in decimal.
    Double(f64),
}

impl Number {
    /// Reads a spelling without a sign.
    pub(super) fn parse(text: &str) -> Option<Number> {
        let digits =
            |prefixes: [&str; 2]| prefixes.into_iter().find_map(|prefix| text.strip_prefix(prefix));
        if let Some(bits) = digits(["0f", "0F"]) {
            return (bits.len() == 8)
                .then(|| hex(bits))
                .flatten()
                .map(|b| Number::Single(b as u32));
        }
        if let Some(bits) = digits(["0d", "0D"]) {
            return (bits.len() == 16)
                .then(|| hex(bits))
                .flatten()
                .map(|b| Number::Double(f64::from_bits(b)));
        }
        let unsigned = text.strip_suffix('U').unwrap_or(text);
        if let Some(bits) = digits(["0x", "0X"]) {
            return hex(bits.strip_suffix('U').unwrap_or(bits)).map(Number::Int);
        }
        if let Some(bits) = digits(["0b", "0B"]) {
            return radix(bits.strip_suffix('U').unwrap_or(bits), 2).map(Number::Int);
        }
        if text.contains(['.', 'e', 'E']) {
            return text.parse().ok().map(Number::Double);
        }
        if unsigned.len() > 1 && unsigned.starts_with('0') {
            return radix(unsigned, 8).map(Number::Int);
        }
        radix(unsigned, 10).map(Number::Int)
    }

    /// The number with a minus before it.
    pub(super) fn negated(self) -> Number {
        match self {
            Number::Int(value) => Number::Int(value.wrapping_neg()),
            Number::Single(bits) => Number::Single(bits ^ 1 << 31),
            Number::Double(value) => Number::Double(-value),
        }
    }

    /// The bits in a register of a type; `None` where PTX has no such conversion.
    ///
    /// Integers have 64 bits and are cut to the type. Numbers of 16-bit formats are written as their bits.
    pub(super) fn bits(self, ty: Type) -> Option<u64> {
        match (self, ty.class()) {
            (Number::Int(value), Class::Predicate) => Some(u64::from(value != 0)),
            (Number::Int(_), Class::Float) if ty.bits() > 16 => None,
            (Number::Int(value), _) => Some(value & ty.mask()),
            (Number::Single(bits), _) if ty == Type::F32 || ty == Type::B32 || ty == Type::Tf32 => {
                Some(u64::from(bits))
            }
            (Number::Single(bits), _) if ty == Type::F64 => {
                Some(f64::from(f32::from_bits(bits)).to_bits())
            }
            (Number::Double(value), _) if ty == Type::F64 || ty == Type::B64 => {
                Some(value.to_bits())
            }
            (Number::Double(value), _) if ty == Type::F32 => {
                Some(u64::from((value as f32).to_bits()))
            }
            _ => None,
        }
    }
}

fn hex(digits: &str) -> Option<u64> {
    radix(digits, 16)
}

fn radix(digits: &str, base: u32) -> Option<u64> {
    // from_str_radix would take a plus sign.
    digits.chars().all(|c| c.is_digit(base)).then(|| u64::from_str_radix(digits, base).ok())?
}

#[cfg(test)]
mod tests {
    use super::Number;
    use crate::ir::Type;

    fn bits(text: &str, ty: Type) -> Option<u64> {
        Number::parse(text)?.bits(ty)
    }

    #[test]
    fn every_spelling() {
        assert_eq!(bits("42", Type::U32), Some(42));
        assert_eq!(bits("0x7fU", Type::B8), Some(0x7f));
        assert_eq!(bits("017", Type::S16), Some(15));
        assert_eq!(bits("0b101", Type::B32), Some(5));
        assert_eq!(bits("18446744073709551615", Type::U64), Some(u64::MAX));
        assert_eq!(bits("0f3F800000", Type::F32), Some(0x3f80_0000));
        assert_eq!(bits("0d3FF0000000000000", Type::F64), Some(0x3ff0_0000_0000_0000));
        assert_eq!(bits("1.5e0", Type::F64), Some(1.5_f64.to_bits()));
    }

    #[test]
    fn what_does_not_fit_the_type() {
        assert_eq!(Number::Int(1).negated().bits(Type::S16), Some(0xffff));
        assert_eq!(bits("0f3F800000", Type::F64), Some(1.0_f64.to_bits()));
        assert_eq!(bits("0d3FF8000000000000", Type::F32), Some(u64::from(1.5_f32.to_bits())));
        assert_eq!(bits("1", Type::F32), None);
        assert_eq!(bits("0f3F800000", Type::U32), None);
        assert_eq!(bits("1.0", Type::F16), None);
    }

    #[test]
    fn broken_spellings() {
        for text in
            ["0x", "0f3F80", "0dxyz", "09", "0b2", "18446744073709551616", "1z", "0x+1", "1e"]
        {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }
}
