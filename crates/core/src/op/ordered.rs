//! Which state answers `prod` and `logsumexp` for each element type.

use super::{FloatLogSumExp, FloatProd, IntLogSumExp, IntProd, State};
use crate::element::{Bool8, Element, bf16, f16};

/// An element type with the states that differ between floats, which round, and
/// integers, which are counted or multiplied exactly.
pub trait Ordered: Element {
    /// The state of `prod`.
    type Prod: State<Item = Self>;
    /// The state of `logsumexp`.
    type LogSumExp: State<Item = Self>;
}

macro_rules! ordered {
    ($prod:ident, $lse:ident: $($t:ty),*) => {$(
        impl Ordered for $t {
            type Prod = $prod<$t>;
            type LogSumExp = $lse<$t>;
        }
    )*};
}
ordered!(FloatProd, FloatLogSumExp: f16, bf16, f32, f64);
ordered!(IntProd, IntLogSumExp: Bool8, i8, i16, i32, i64, u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Kind;
    use crate::{DType, with_element};

    #[test]
    fn every_type_has_its_states() {
        for dtype in DType::ALL {
            let (prod, lse) = with_element!(dtype, T => (
                <T as Ordered>::Prod::identity(Kind::Prod).kind(),
                <T as Ordered>::LogSumExp::identity(Kind::LogSumExp).kind(),
            ));
            assert_eq!((prod, lse), (Kind::Prod, Kind::LogSumExp));
        }
    }
}
