//! The catalogue of operations, and of the states that answer them.
//!
//! Everything that is told of an operation without its arithmetic is told here, once:
//! [`Op`] and [`Kind`] are made of the entries, and so are their names, codes, types,
//! and the help texts of the command line. An entry that lacks a field does not compile.
//!
//! An operation on a new state begins with its entries. The compiler then asks for the
//! state in `with_state!`, for its CPU kernel, and for what else is listed in
//! CONTRIBUTING.md.

use crate::DType;

/// What is known of an operation.
pub(super) struct OpEntry {
    /// Stands for it in byte forms; never reused.
    code: u8,
    /// On the command line and in messages.
    name: &'static str,
    /// What it computes, in one line.
    about: &'static str,
    /// What its answers depend on, where that is not obvious.
    note: Option<&'static str>,
    /// How many arrays it takes.
    arrays: usize,
    elements: Elements,
    answer: Answer,
    /// The two operations whose answers it gives together, if it is such a pair.
    pair: Option<(Op, Op)>,
    /// The state that answers it.
    state: Kind,
}

/// The elements that an operation is defined for.
#[derive(Clone, Copy)]
enum Elements {
    All,
    /// Integers and truth values.
    Integers,
}

/// The type of an operation's answer, where the caller does not ask for one.
#[derive(Clone, Copy)]
enum Answer {
    /// That of the elements.
    Element,
    Bool,
    /// A count or a position: u64.
    Count,
    /// Floats: that of the elements; else the 64-bit integer with their sign.
    Total,
    /// Floats: that of the elements; else u64.
    Magnitude,
    /// Floats: that of the elements; else f64.
    Real,
}

/// What is known of a kind of states.
pub(super) struct KindEntry {
    /// Stands for it in byte forms; never reused.
    code: u8,
    order: Order,
    /// Another kind whose states answer all that this one's do.
    covered_by: Option<Kind>,
}

/// What a kind of states knows of the order of the elements.
enum Order {
    /// Nothing: the order does not matter.
    Free,
    /// The positions of some elements, which are answers.
    Positions,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $op:ident { $($field:ident: $value:expr,)* })*) => {
        /// A reduction operation.
        ///
        /// ```
        /// use warpfold_core::Op;
        ///
        /// assert_eq!("argmax".parse(), Ok(Op::ArgMax));
        /// assert_eq!(format!("{} is {}", Op::Var, Op::Var.about()), "var is the variance, divided by n - ddof");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Op {
            $($(#[$doc])* $op,)*
        }

        impl Op {
            /// Every operation, in the order of the documentation's tables.
            pub const ALL: [Op; [$(Op::$op),*].len()] = [$(Op::$op),*];

            const fn entry(self) -> &'static OpEntry {
                match self {
                    $(Op::$op => &OpEntry { $($field: $value,)* },)*
                }
            }
        }
    };
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident { $($field:ident: $value:expr,)* })*) => {
        /// The kind of state that an operation needs. Operations of one kind share a pass over
        /// the data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: [Kind; [$(Kind::$kind),*].len()] = [$(Kind::$kind),*];

            const fn entry(self) -> &'static KindEntry {
                match self {
                    $(Kind::$kind => &KindEntry { $($field: $value,)* },)*
                }
            }
        }
    };
}

operations! {
    /// The sum of all elements.
    Sum {
        code: 1,
        name: "sum",
        about: "the sum of all elements",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Total,
        pair: None,
        state: Kind::Sum,
    }
    /// The sum divided by the count.
    Mean {
        code: 2,
        name: "mean",
        about: "the arithmetic mean",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Real,
        pair: None,
        state: Kind::Sum,
    }
    /// The sum of absolute values.
    Norm1 {
        code: 3,
        name: "norm1",
        about: "the sum of absolute values",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Total,
        pair: None,
        state: Kind::AbsSum,
    }
    /// The square root of the sum of squares.
    Norm2 {
        code: 4,
        name: "norm2",
        about: "the square root of the sum of squares",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Real,
        pair: None,
        state: Kind::SquareSum,
    }
    /// The largest absolute value.
    NormInf {
        code: 5,
        name: "norm-inf",
        about: "the largest absolute value",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Magnitude,
        pair: None,
        state: Kind::Extrema,
    }
    /// The sum of squares.
    SumSq {
        code: 6,
        name: "sumsq",
        about: "the sum of squares",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Total,
        pair: None,
        state: Kind::SquareSum,
    }
    /// The sum of products of two arrays.
    Dot {
        code: 7,
        name: "dot",
        about: "the sum of products of two arrays",
        note: None,
        arrays: 2,
        elements: Elements::All,
        answer: Answer::Total,
        pair: None,
        state: Kind::Dot,
    }
    /// The mean squared deviation from the mean.
    Var {
        code: 8,
        name: "var",
        about: "the variance, divided by n - ddof",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Real,
        pair: None,
        state: Kind::Moments,
    }
    /// The square root of the variance.
    Std {
        code: 9,
        name: "std",
        about: "the standard deviation, divided by n - ddof",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Real,
        pair: None,
        state: Kind::Moments,
    }
    /// The smallest element.
    Min {
        code: 10,
        name: "min",
        about: "the smallest element",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Element,
        pair: None,
        state: Kind::Extrema,
    }
    /// The largest element.
    Max {
        code: 11,
        name: "max",
        about: "the largest element",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Element,
        pair: None,
        state: Kind::Extrema,
    }
    /// The smallest and the largest element.
    MinMax {
        code: 12,
        name: "minmax",
        about: "the smallest and the largest element",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Element,
        pair: Some((Op::Min, Op::Max)),
        state: Kind::Extrema,
    }
    /// The largest element minus the smallest.
    Range {
        code: 13,
        name: "range",
        about: "the largest element minus the smallest",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Magnitude,
        pair: None,
        state: Kind::Extrema,
    }
    /// The index of the first smallest element.
    ArgMin {
        code: 14,
        name: "argmin",
        about: "the index of the first smallest element",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Count,
        pair: None,
        state: Kind::ArgExtrema,
    }
    /// The index of the first largest element.
    ArgMax {
        code: 15,
        name: "argmax",
        about: "the index of the first largest element",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Count,
        pair: None,
        state: Kind::ArgExtrema,
    }
    /// The indices of the first smallest and the first largest element.
    ArgMinMax {
        code: 16,
        name: "argminmax",
        about: "the indices of the first smallest and first largest element",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Count,
        pair: Some((Op::ArgMin, Op::ArgMax)),
        state: Kind::ArgExtrema,
    }
    /// Whether any element is true (not zero; NaN counts as true).
    Any {
        code: 17,
        name: "any",
        about: "whether any element is not zero",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Bool,
        pair: None,
        state: Kind::Counts,
    }
    /// Whether all elements are true.
    All {
        code: 18,
        name: "all",
        about: "whether all elements are not zero",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Bool,
        pair: None,
        state: Kind::Counts,
    }
    /// How many elements there are (under `nan = omit`, how many are not NaN).
    Count {
        code: 19,
        name: "count",
        about: "how many elements there are",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Count,
        pair: None,
        state: Kind::Counts,
    }
    /// How many elements are not zero (NaN counts as non-zero).
    CountNonzero {
        code: 20,
        name: "count-nonzero",
        about: "how many elements are not zero",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Count,
        pair: None,
        state: Kind::Counts,
    }
    /// How many elements are NaN.
    CountNan {
        code: 21,
        name: "count-nan",
        about: "how many elements are NaN",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Count,
        pair: None,
        state: Kind::Counts,
    }
    /// The bitwise and of all elements.
    And {
        code: 22,
        name: "and",
        about: "the bitwise and of all integers",
        note: None,
        arrays: 1,
        elements: Elements::Integers,
        answer: Answer::Element,
        pair: None,
        state: Kind::Bits,
    }
    /// The bitwise or of all elements.
    Or {
        code: 23,
        name: "or",
        about: "the bitwise or of all integers",
        note: None,
        arrays: 1,
        elements: Elements::Integers,
        answer: Answer::Element,
        pair: None,
        state: Kind::Bits,
    }
    /// The bitwise exclusive or of all elements.
    Xor {
        code: 24,
        name: "xor",
        about: "the bitwise exclusive or of all integers",
        note: None,
        arrays: 1,
        elements: Elements::Integers,
        answer: Answer::Element,
        pair: None,
        state: Kind::Bits,
    }
    /// The product of all elements.
    Prod {
        code: 25,
        name: "prod",
        about: "the product of all elements",
        note: Some("Products of integers are exact; --out f64 rounds them once. Products of floats \
            round each factor's logarithm by itself: the same bits in any order."),
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Total,
        pair: None,
        state: Kind::Prod,
    }
    /// The logarithm of the sum of exponentials.
    LogSumExp {
        code: 26,
        name: "logsumexp",
        about: "the logarithm of the sum of exponentials",
        note: None,
        arrays: 1,
        elements: Elements::All,
        answer: Answer::Real,
        pair: None,
        state: Kind::LogSumExp,
    }
}

kinds! {
    /// Exact sum.
    Sum { code: 1, order: Order::Free, covered_by: Some(Kind::Moments), }
    /// Exact sum of absolute values.
    AbsSum { code: 2, order: Order::Free, covered_by: None, }
    /// Exact sum of squares.
    SquareSum { code: 3, order: Order::Free, covered_by: Some(Kind::Moments), }
    /// Exact sum and sum of squares.
    Moments { code: 4, order: Order::Free, covered_by: None, }
    /// Exact sum of products of two arrays.
    Dot { code: 5, order: Order::Free, covered_by: None, }
    /// Smallest and largest value.
    Extrema { code: 6, order: Order::Free, covered_by: Some(Kind::ArgExtrema), }
    /// Smallest and largest value with their positions.
    ArgExtrema { code: 7, order: Order::Positions, covered_by: None, }
    /// Numbers of elements, of non-zero ones and of NaNs.
    Counts { code: 8, order: Order::Free, covered_by: None, }
    /// Bitwise and, or, exclusive or.
    Bits { code: 9, order: Order::Free, covered_by: None, }
    /// Product.
    Prod { code: 17, order: Order::Free, covered_by: None, }
    /// Logarithm of a sum of exponentials.
    LogSumExp { code: 16, order: Order::Free, covered_by: None, }
}

/// Codes of kinds that earlier versions wrote, and what their states were: taken for good.
const RETIRED: [(u8, &str); 6] = [
    (10, "a product whose floats were multiplied in the order of positions"),
    (11, "a logsumexp that was folded in the order of positions"),
    (12, "a plain sum"),
    (13, "a plain sum of absolute values"),
    (14, "a plain sum of squares"),
    (15, "a plain sum of products"),
];

impl Op {
    /// The name used on the command line and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// One line on what the operation computes.
    #[must_use]
    pub const fn about(self) -> &'static str {
        self.entry().about
    }

    /// What the answers depend on, where that is not obvious: a few sentences for
    /// the help of the command line.
    #[must_use]
    pub const fn note(self) -> Option<&'static str> {
        self.entry().note
    }

    /// How many arrays it takes: 2 for `dot`, else 1.
    #[must_use]
    pub const fn arity(self) -> usize {
        self.entry().arrays
    }

    /// Whether it is defined for elements of type `dtype`.
    #[must_use]
    pub const fn supports(self, dtype: DType) -> bool {
        match self.entry().elements {
            Elements::All => true,
            Elements::Integers => !dtype.is_float(),
        }
    }

    /// A small number that stands for the operation in byte forms; never
    /// reused.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.entry().code
    }

    /// The operation whose [`code`](Self::code) is `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.code() == code)
    }

    /// The operation called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The type of the answer over elements of type `dtype`, where the caller
    /// does not ask for one.
    #[must_use]
    pub const fn answer_type(self, dtype: DType) -> DType {
        let own = dtype.is_float();
        match self.entry().answer {
            Answer::Bool => DType::Bool,
            Answer::Count => DType::U64,
            Answer::Element => dtype,
            Answer::Total | Answer::Magnitude | Answer::Real if own => dtype,
            Answer::Real => DType::F64,
            Answer::Total if dtype.is_signed_int() => DType::I64,
            Answer::Total | Answer::Magnitude => DType::U64,
        }
    }

    /// The two operations whose answers it gives together: of `minmax`, `min` and
    /// `max`.
    #[must_use]
    pub const fn pair(self) -> Option<(Op, Op)> {
        self.entry().pair
    }

    /// The state that answers it.
    #[must_use]
    pub const fn kind(self) -> Kind {
        self.entry().state
    }
}

impl Kind {
    /// The code of the kind in byte forms; never reused.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.entry().code
    }

    /// The kind whose [`code`](Self::code) is `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// What a state with this code was, if earlier versions wrote it and this one has
    /// no such kind.
    pub(super) fn retired(code: u8) -> Option<&'static str> {
        RETIRED.into_iter().find(|&(taken, _)| taken == code).map(|(_, was)| was)
    }

    /// Whether absorbing needs to know where a run begins.
    ///
    /// Exact sums, counts and extrema do not depend on the order of the
    /// elements; positions do.
    #[must_use]
    pub const fn is_positional(self) -> bool {
        !matches!(self.entry().order, Order::Free)
    }

    /// Whether positions are answers of its states.
    #[must_use]
    pub const fn has_positions(self) -> bool {
        matches!(self.entry().order, Order::Positions)
    }

    /// Another kind whose states answer all that this one's do: where both are
    /// wanted, it is enough.
    #[must_use]
    pub const fn covered_by(self) -> Option<Kind> {
        self.entry().covered_by
    }

    /// Whether states of this kind absorb pairs, of two arrays.
    #[must_use]
    pub const fn takes_pairs(self) -> bool {
        TAKEN[self as usize] & PAIRS != 0
    }

    /// Whether some operation needs this kind over elements of type `dtype`.
    #[must_use]
    pub const fn supports(self, dtype: DType) -> bool {
        TAKEN[self as usize] >> dtype as u32 & 1 == 1
    }
}

/// What operations of each kind take, in the order of [`Kind::ALL`]: a bit for each type of elements,
/// and the last one if there are pairs. Every short reduction asks for it.
const TAKEN: [u32; Kind::ALL.len()] = {
    let (mut taken, mut i) = ([0; Kind::ALL.len()], 0);
    while i < Op::ALL.len() {
        let op = Op::ALL[i];
        let (kind, mut j) = (op.kind() as usize, 0);
        taken[kind] |= if op.arity() == 2 { PAIRS } else { 0 };
        while j < DType::ALL.len() {
            taken[kind] |= (op.supports(DType::ALL[j]) as u32) << DType::ALL[j] as u32;
            j += 1;
        }
        i += 1;
    }
    taken
};
const PAIRS: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Files hold these numbers: an entry may be added, none may change.
    #[test]
    fn codes_stay_what_they_are() {
        let ops = [
            "sum",
            "mean",
            "norm1",
            "norm2",
            "norm-inf",
            "sumsq",
            "dot",
            "var",
            "std",
            "min",
            "max",
            "minmax",
            "range",
            "argmin",
            "argmax",
            "argminmax",
            "any",
            "all",
            "count",
            "count-nonzero",
            "count-nan",
            "and",
            "or",
            "xor",
            "prod",
            "logsumexp",
        ];
        for (op, code) in ops.into_iter().zip(1..) {
            assert_eq!(Op::from_code(code).map(Op::name), Some(op));
        }
        let kinds = [
            "Sum",
            "AbsSum",
            "SquareSum",
            "Moments",
            "Dot",
            "Extrema",
            "ArgExtrema",
            "Counts",
            "Bits",
            "Prod",
            "LogSumExp",
        ];
        for (kind, code) in kinds.into_iter().zip((1..=9).chain([17, 16])) {
            assert_eq!(
                Kind::from_code(code).map(|kind| format!("{kind:?}")).as_deref(),
                Some(kind)
            );
        }
        // Whoever adds an entry adds it here too.
        assert_eq!((Op::ALL.len(), Kind::ALL.len()), (ops.len(), kinds.len()));
    }

    #[test]
    fn no_code_and_no_name_is_taken_twice() {
        let ops: HashSet<u8> = Op::ALL.into_iter().map(Op::code).collect();
        let names: HashSet<&str> = Op::ALL.into_iter().map(Op::name).collect();
        assert_eq!((ops.len(), names.len()), (Op::ALL.len(), Op::ALL.len()));
        let retired = RETIRED.map(|(code, _)| code);
        let kinds: HashSet<u8> = Kind::ALL.into_iter().map(Kind::code).chain(retired).collect();
        assert_eq!(kinds.len(), Kind::ALL.len() + RETIRED.len());
        // 0 is what an empty byte says.
        assert!(!ops.contains(&0) && !kinds.contains(&0));
    }

    #[test]
    fn both_of_a_pair_answer_alike() {
        for op in Op::ALL {
            let Some((first, second)) = op.pair() else { continue };
            for half in [first, second] {
                assert!(half.pair().is_none() && half.kind() == op.kind(), "{op}");
                for dtype in DType::ALL {
                    assert_eq!(half.answer_type(dtype), op.answer_type(dtype), "{op}");
                }
            }
        }
    }

    #[test]
    fn every_kind_answers_some_operation_and_its_cover_answers_it_too() {
        for kind in Kind::ALL {
            assert!(DType::ALL.into_iter().any(|dtype| kind.supports(dtype)), "{kind:?}");
            let Some(cover) = kind.covered_by() else { continue };
            assert!(cover != kind && cover.covered_by().is_none(), "{kind:?}");
            for dtype in DType::ALL.into_iter().filter(|&dtype| kind.supports(dtype)) {
                let state = crate::op::AnyState::identity(cover, dtype).unwrap();
                for op in Op::ALL.into_iter().filter(|op| op.kind() == kind) {
                    let answer = state.finish(op, &crate::Rules::new());
                    let no = matches!(answer, Err(crate::Error::UnsupportedType { .. }));
                    assert!(!no, "{cover:?} does not answer {op} of {dtype}");
                }
            }
        }
    }
}
