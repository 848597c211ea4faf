//! Answers on their way to the user, whatever they will look like.

use crate::number::{self, Style};
use warpfold::{Answer, Column, Numbers, Op, Scalar, Unit};

/// The answers to all operations over all arrays.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) arrays: Vec<Array>,
    /// Whether one array's answers belong together, as in `stats`, rather
    /// than each standing for itself.
    pub(crate) as_record: bool,
}

/// The answers over one array.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) name: String,
    /// The shape of each answer.
    pub(crate) shape: Vec<usize>,
    pub(crate) answers: Vec<OpAnswer>,
    /// Rows that had no value.
    pub(crate) missing: u64,
}

/// The answers to one operation.
#[derive(Debug)]
pub(crate) struct OpAnswer {
    pub(crate) op: Op,
    /// `None` where there is no value: the smallest of nothing.
    pub(crate) column: Option<Column>,
    /// What the numbers count, if they are elements that do.
    pub(crate) unit: Option<Unit>,
}

/// One series of numbers with a name: half of `minmax`, all of `sum`.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'static str,
    /// All of them; `None` where there is no value.
    pub(crate) numbers: Option<&'a Numbers>,
    /// What they count.
    pub(crate) unit: Option<&'a Unit>,
}

impl Field<'_> {
    /// The number at `index` as it is printed, if it has a value.
    pub(crate) fn text(&self, index: usize, style: Style) -> Option<String> {
        let mut text = String::new();
        number::push_counted(&mut text, self.get(index)?, self.unit, style);
        Some(text)
    }

    /// The number at `index`, if it has a value.
    fn get(&self, index: usize) -> Option<Scalar> {
        self.numbers?.get(index)
    }
}

impl OpAnswer {
    /// The answers to an operation over elements that may count something.
    pub(crate) fn new(op: Op, column: Option<Column>, unit: Option<&Unit>) -> OpAnswer {
        let unit = unit.filter(|unit| unit.is_kept_by(op)).cloned();
        OpAnswer { op, column, unit }
    }

    /// The operation's series.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        let (first, second) = match self.op.pair() {
            Some((first, second)) => (first, Some(second)),
            None => (self.op, None),
        };
        let column = self.column.as_ref();
        let field = |op: Op, numbers| Field { name: op.name(), numbers, unit: self.unit.as_ref() };
        let first = field(first, column.map(|c| &c.numbers));
        let second = second.map(|op| field(op, column.and_then(|c| c.second.as_ref())));
        std::iter::once(first).chain(second)
    }
}

impl Array {
    /// The answers of a reduction.
    pub(crate) fn new(name: String, answer: Answer, missing: u64, unit: Option<&Unit>) -> Array {
        let shape = answer.shape().to_vec();
        let answers = answer
            .into_columns()
            .into_iter()
            .map(|column| OpAnswer::new(column.op, Some(column), unit))
            .collect();
        Array { name, shape, answers, missing }
    }

    /// All series of all operations.
    pub(crate) fn fields(&self) -> Vec<Field<'_>> {
        self.answers.iter().flat_map(OpAnswer::fields).collect()
    }
}

impl Report {
    /// How many rows a table would have.
    pub(crate) fn rows(&self) -> usize {
        let rows = |array: &Array| match array.shape[..] {
            [] => array.answers.len(),
            _ => array.shape.iter().product(),
        };
        self.arrays.iter().map(rows).sum()
    }

    /// Whether every answer is a scalar.
    pub(crate) fn is_scalar(&self) -> bool {
        self.arrays.iter().all(|a| a.shape.is_empty())
    }

    /// Whether arrays need names to tell them apart.
    pub(crate) fn is_named(&self) -> bool {
        self.arrays.len() > 1
    }

    /// Whether any array lacked values.
    pub(crate) fn has_missing(&self) -> bool {
        self.arrays.iter().any(|a| a.missing > 0)
    }
}

/// The indices of an array of this shape, in C order.
pub(crate) struct Indices {
    shape: Vec<usize>,
    next: Option<Vec<usize>>,
}

impl Indices {
    pub(crate) fn of(shape: &[usize]) -> Indices {
        let next = (!shape.contains(&0)).then(|| vec![0; shape.len()]);
        Indices { shape: shape.to_vec(), next }
    }
}

impl Iterator for Indices {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let current = self.next.take()?;
        let mut next = current.clone();
        for (digit, &len) in next.iter_mut().zip(&self.shape).rev() {
            *digit += 1;
            if *digit < len {
                self.next = Some(next);
                break;
            }
            *digit = 0;
        }
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::Indices;

    #[test]
    fn indices_run_through_the_last_axis_first() {
        let all: Vec<_> = Indices::of(&[2, 2]).collect();
        assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(Indices::of(&[]).count(), 1);
        assert_eq!(Indices::of(&[3, 0]).count(), 0);
    }
}
