//! Elements of one output that lie together, if they are few: a plan of how to walk them
//! costs more than their answer.

use crate::axes::{direct, position};
use crate::exact::short;
use crate::reduce::{Job, Outputs, SMALL};
use crate::walks::{self, Walk};
use crate::worker::Worker;
use warpfold_core::op::{Kind, Numbers, Op, RawRun, Rules};
use warpfold_core::{DType, NanPolicy, Result};

/// From so many elements on, sums of floats in registers are worth a plan; and so are truth
/// values, which may be settled early.
const FEW: usize = 1024;

impl Job<'_> {
    /// The values of `ops`, if all elements are those of one output, few, and contiguous in C
    /// order.
    ///
    /// # Errors
    /// Disagreeing views, and the errors of finishing.
    pub(crate) fn values_of_few(
        &self,
        ops: &[(Op, usize)],
        rules: &Rules,
    ) -> Result<Option<Vec<Outputs>>> {
        let [Some(first), second] = self.views else { return Ok(None) };
        // Kept axes of one element have one output, too.
        let mut axes = first.shape().iter().zip(self.reduced);
        if self.initial.is_some()
            || self.marks.is_some()
            || first.is_empty()
            || !axes.all(|(&len, &reduced)| reduced || len == 1)
        {
            return Ok(None);
        }
        let dtype = first.dtype();
        let few = |kind: &Kind| match kind {
            // Variances are found in registers, however few.
            Kind::Moments if dtype.is_float() => false,
            Kind::Extrema | Kind::ArgExtrema | Kind::Bits => first.len() < SMALL / dtype.size(),
            _ => first.len() <= FEW,
        };
        if !self.kinds.iter().all(few) {
            return Ok(None);
        }
        if let Some(second) = second {
            first.check_pair(second)?;
        }
        let both = (first.contiguous(), second.map_or(Some(&[][..]), |view| view.contiguous()));
        let (Some(items), Some(others)) = both else { return Ok(None) };
        walks::note(Walk::Runs);
        if let (&[(Op::Sum, 0)], &[Kind::Sum]) = (ops, self.kinds)
            && let Some(sum) = self.short_sum(dtype, items, rules)
        {
            return Ok(Some(vec![Outputs::one(sum)]));
        }
        if let (&[(Op::Prod, 0)], &[Kind::Prod]) = (ops, self.kinds)
            && let Some(product) = self.short_product(dtype, items, rules)
        {
            return Ok(Some(vec![Outputs::one(product)]));
        }
        if let (&[(op, 0)], &[Kind::ArgExtrema]) = (ops, self.kinds)
            && rules.nan == NanPolicy::Propagate
            && rules.out.is_none()
        {
            let place = |op: Op| {
                let place = self.start + position(dtype, op, items, self.isa)?;
                Some(one_number(op.answer_type(dtype), place))
            };
            let (first, last) = op.pair().unwrap_or((op, op));
            if let Some(numbers) = place(first) {
                let second = if first == last { None } else { place(last) };
                return Ok(Some(vec![Outputs::Numbers { numbers, second }]));
            }
        }
        let run = RawRun { start: self.start, items, others };
        let mut workers = Vec::with_capacity(self.kinds.len());
        for &kind in self.kinds {
            let mut worker = Worker::new(kind, dtype, self.isa)?;
            worker.absorb(run)?;
            workers.push(worker);
        }
        let finish = |&(op, state): &(Op, usize)| {
            Ok(Outputs::Values(vec![workers[state].finish(op, rules)?]))
        };
        ops.iter().map(finish).collect::<Result<_>>().map(Some)
    }

    /// The sum of floats without a state, if it can be had so.
    fn short_sum(&self, dtype: DType, items: &[u8], rules: &Rules) -> Option<Numbers> {
        if rules.nan != NanPolicy::Propagate {
            return None;
        }
        let out = rules.out.unwrap_or(dtype);
        let bits = match (dtype, out) {
            (DType::F64, DType::F64) => {
                short::sum_f64(bytemuck::try_cast_slice(items).ok()?, self.isa)?.to_bits()
            }
            (DType::F32, DType::F32) => {
                short::sum_f32(bytemuck::try_cast_slice(items).ok()?, self.isa)?.to_bits().into()
            }
            (DType::F32, DType::F64) => {
                short::sum_f32_to_f64(bytemuck::try_cast_slice(items).ok()?, self.isa)?.to_bits()
            }
            _ => return None,
        };
        Some(one_number(out, bits))
    }

    /// The product of floats, likewise.
    fn short_product(&self, dtype: DType, items: &[u8], rules: &Rules) -> Option<Numbers> {
        if rules.out.is_some() || rules.nan != NanPolicy::Propagate {
            return None;
        }
        let bits = match dtype {
            DType::F64 => {
                let items: &[f64] = bytemuck::try_cast_slice(items).ok()?;
                direct::product(items, self.isa)?.to_bits()
            }
            DType::F32 => {
                let items: &[f32] = bytemuck::try_cast_slice(items).ok()?;
                direct::product(items, self.isa)?.to_bits().into()
            }
            _ => return None,
        };
        Some(one_number(dtype, bits))
    }
}

/// The answer with these bits.
fn one_number(dtype: DType, bits: u64) -> Numbers {
    let mut number = Numbers::zeros(dtype, 1);
    Numbers::set_bits(number.bytes_mut(), dtype, 0, bits);
    number
}
