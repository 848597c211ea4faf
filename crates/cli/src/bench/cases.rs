//! What is measured.

use super::data::Data;
use warpfold::Op;

/// How the elements lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// All of them, reduced to one number.
    Flat,
    /// A matrix with rows of this length, reduced along an axis.
    Rows { len: usize, axis: isize },
    /// Only so many, in cache.
    Small(usize),
}

/// What does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worker {
    /// The library.
    Library,
    /// Plain additions, which round: what an exact sum is measured against.
    PlainAdds,
}

/// One measurement.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) data: Data,
    pub(super) op: Op,
    pub(super) worker: Worker,
    pub(super) layout: Layout,
}

impl Case {
    fn flat(data: Data, op: Op, note: &str) -> Case {
        let name = format!("{op} {}{note}", data.dtype());
        Case { name, data, op, worker: Worker::Library, layout: Layout::Flat }
    }

    fn plain_sum(data: Data) -> Case {
        Case { worker: Worker::PlainAdds, ..Case::flat(data, Op::Sum, " plain") }
    }

    fn rows(data: Data, len: usize, axis: isize, note: &str) -> Case {
        let name = format!("sum {} axis {axis}{note}", data.dtype());
        let layout = Layout::Rows { len, axis };
        Case { name, data, op: Op::Sum, worker: Worker::Library, layout }
    }

    /// The shape of each array, of at most `elements` elements.
    pub(super) fn shape(&self, elements: usize) -> Vec<usize> {
        match self.layout {
            Layout::Flat => vec![elements],
            Layout::Rows { len, .. } => vec![elements / len, len],
            Layout::Small(len) => vec![len.min(elements)],
        }
    }

    /// The number of elements of each array.
    pub(super) fn elements(&self, elements: usize) -> usize {
        self.shape(elements).iter().product()
    }

    /// Whether it stays in cache.
    pub(super) fn is_small(&self) -> bool {
        matches!(self.layout, Layout::Small(_))
    }
}

/// Every case, for arrays of `elements` elements.
pub(super) fn all(elements: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for data in [Data::F64, Data::F32] {
        cases.push(Case::flat(data, Op::Sum, " exact"));
        cases.push(Case::plain_sum(data));
        for op in [Op::Min, Op::Max, Op::ArgMin, Op::ArgMax, Op::Var] {
            cases.push(Case::flat(data, op, ""));
        }
        cases.push(Case::flat(data, Op::Dot, " exact"));
        // As near to a square as powers of two come.
        let square = 1 << (elements.max(1).ilog2() / 2);
        cases.push(Case::rows(data, square, 0, ""));
        cases.push(Case::rows(data, square, 1, ""));
    }
    for (len, note) in [
        (16, " short rows"),
        (elements.min(1 << 15), " rows of 32768"),
        (elements / 16, " 16 rows"),
    ] {
        for axis in [0, 1] {
            cases.push(Case::rows(Data::F32, len.max(1), axis, note));
        }
    }
    cases.push(Case::flat(Data::F64, Op::Norm2, ""));
    cases.push(Case::flat(Data::F64, Op::Prod, ""));
    cases.push(Case::flat(Data::F32, Op::LogSumExp, ""));
    cases.push(Case::flat(Data::F16, Op::Sum, " exact"));
    cases.push(Case::flat(Data::BF16, Op::Sum, " exact"));
    for data in [Data::I8, Data::I32, Data::I64] {
        cases.push(Case::flat(data, Op::Sum, ""));
    }
    cases.push(Case::flat(Data::F64Wide, Op::Sum, " wide exponents"));
    cases.push(Case::flat(Data::F32Bits, Op::Sum, " random bits"));
    for len in [100, 1000] {
        cases.push(Case {
            name: format!("sum f64 {len} elements"),
            data: Data::F64,
            op: Op::Sum,
            worker: Worker::Library,
            layout: Layout::Small(len),
        });
    }
    cases
}
