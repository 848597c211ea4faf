//! What DataFusion is told of a function.

use crate::arrays::{arrow_type, element_type};
use crate::grouped::Grouped;
use crate::whole::Whole;
use datafusion_common::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, exec_err, not_impl_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use std::sync::Arc;
use warpfold_core::{DType, Op, Rules};

/// An exact aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exact {
    name: &'static str,
    op: Op,
    ddof: u64,
    signature: Signature,
}

/// What is asked of values of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) op: Op,
    pub(crate) dtype: DType,
    pub(crate) rules: Rules,
    /// Of fewer values there is no answer.
    pub(crate) least: u64,
}

impl Exact {
    pub(crate) fn new(name: &'static str, op: Op, ddof: u64) -> Exact {
        Exact { name, op, ddof, signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn question(&self, args: &AccumulatorArgs<'_>) -> Result<Question> {
        if args.is_distinct {
            return not_impl_err!("{} of DISTINCT values", self.name);
        }
        let field = args.expr_fields.first().map(|field| field.data_type());
        let Some(dtype) = field.and_then(element_type) else {
            return exec_err!("{} of {field:?}", self.name);
        };
        let rules = Rules::new().ddof(self.ddof);
        Ok(Question { op: self.op, dtype, rules, least: self.ddof + 1 })
    }
}

impl AggregateUDFImpl for Exact {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [one] if element_type(one).is_some() => Ok(vec![one.clone()]),
            [DataType::Null] => Ok(vec![DataType::Float64]),
            _ => exec_err!("{} takes one column of numbers, not {types:?}", self.name),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first().and_then(element_type) {
            Some(dtype) => Ok(arrow_type(self.op.answer_type(dtype))),
            None => exec_err!("{} takes one column of numbers, not {types:?}", self.name),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |what, of| Arc::new(Field::new(format_state_name(args.name, what), of, true));
        Ok(vec![field("state", DataType::Binary), field("count", DataType::UInt64)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Whole::new(self.question(&args)?)?))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Grouped::new(self.question(&args)?)?))
    }
}
