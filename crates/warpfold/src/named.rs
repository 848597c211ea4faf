//! A question by the name of its operation.

use crate::reduction::Reduction;
use warpfold_core::Op;

macro_rules! named {
    ($($name:ident: $op:ident;)*) => {
        /// A question for each operation, over all axes until others are named:
        /// ```
        /// use warpfold::Reduction;
        ///
        /// let sums: Vec<f64> = Reduction::sum().axis(0).run(&[[1.0, 2.0], [3.0, 4.0]])?.try_into()?;
        /// assert_eq!(sums, [4.0, 6.0]);
        /// # Ok::<(), warpfold::Error>(())
        /// ```
        impl Reduction {
            $(
                #[doc = concat!("`Reduction::of(Op::", stringify!($op), ")`: see [`Op::", stringify!($op), "`].")]
                #[must_use]
                pub fn $name() -> Reduction {
                    Reduction::of(Op::$op)
                }
            )*
        }
    };
}
named! {
    sum: Sum;
    mean: Mean;
    norm1: Norm1;
    norm2: Norm2;
    norm_inf: NormInf;
    sumsq: SumSq;
    dot: Dot;
    var: Var;
    std: Std;
    min: Min;
    max: Max;
    minmax: MinMax;
    range: Range;
    argmin: ArgMin;
    argmax: ArgMax;
    argminmax: ArgMinMax;
    any: Any;
    all: All;
    count: Count;
    count_nonzero: CountNonzero;
    count_nan: CountNan;
    and: And;
    or: Or;
    xor: Xor;
    prod: Prod;
    logsumexp: LogSumExp;
}
