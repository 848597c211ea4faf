//! Arrow's arrays as warpfold's elements, and back.

use datafusion_common::arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryArray, BooleanArray, make_array,
};
use datafusion_common::arrow::buffer::{Buffer, NullBuffer};
use datafusion_common::arrow::datatypes::{DataType, UInt64Type};
use datafusion_common::arrow::downcast_primitive_array;
use datafusion_common::{DataFusionError, Result, exec_err};
use warpfold_core::DType;
use warpfold_core::op::Numbers;

const TYPES: [(DataType, DType); 11] = [
    (DataType::Float64, DType::F64),
    (DataType::Float32, DType::F32),
    (DataType::Float16, DType::F16),
    (DataType::Int64, DType::I64),
    (DataType::Int32, DType::I32),
    (DataType::Int16, DType::I16),
    (DataType::Int8, DType::I8),
    (DataType::UInt64, DType::U64),
    (DataType::UInt32, DType::U32),
    (DataType::UInt16, DType::U16),
    (DataType::UInt8, DType::U8),
];

/// The elements of a column of this type, if there are such.
pub(crate) fn element_type(of: &DataType) -> Option<DType> {
    TYPES.iter().find(|(arrow, _)| arrow == of).map(|&(_, dtype)| dtype)
}

/// The type of a column of such answers.
pub(crate) fn arrow_type(of: DType) -> DataType {
    let found = TYPES.iter().find(|&&(_, dtype)| dtype == of);
    found.map_or(DataType::Null, |(arrow, _)| arrow.clone())
}

/// The bytes of all elements, those of missing rows included.
pub(crate) fn elements(values: &dyn Array, dtype: DType) -> Result<&[u8]> {
    let of = values.data_type();
    if element_type(of) == Some(dtype) {
        downcast_primitive_array!(
            values => return Ok(values.values().inner().as_slice()),
            _ => {}
        );
    }
    exec_err!("a column of {of} where {dtype} was expected")
}

/// Which rows take part; all of them if there is no mask.
pub(crate) fn mask(values: &dyn Array, filter: Option<&BooleanArray>) -> Option<BooleanArray> {
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    let filter = filter.map(|filter| match filter.nulls() {
        Some(nulls) => filter.values() & nulls.inner(),
        None => filter.values().clone(),
    });
    let both = match (nulls.map(NullBuffer::inner), filter) {
        (None, None) => return None,
        (Some(one), None) => one.clone(),
        (None, Some(other)) => other,
        (Some(one), Some(other)) => one & &other,
    };
    Some(BooleanArray::new(both, None))
}

/// Answers as a column, some of which are missing.
pub(crate) fn column(numbers: &Numbers, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let data = ArrayData::builder(arrow_type(numbers.dtype()))
        .len(numbers.len())
        .add_buffer(Buffer::from(numbers.bytes()))
        .nulls(nulls.filter(|nulls| nulls.null_count() > 0));
    // The buffer may lie at an odd address: building checks, and copies then.
    Ok(make_array(data.align_buffers(true).build()?))
}

/// The columns of states: bytes, and how many values each has.
pub(crate) fn states(columns: &[ArrayRef]) -> Result<(&BinaryArray, &[u64])> {
    match columns {
        [states, counts] => match (states.as_binary_opt(), counts.as_primitive_opt::<UInt64Type>())
        {
            (Some(states), Some(counts)) => Ok((states, counts.values())),
            _ => exec_err!("states of other types than were written"),
        },
        _ => exec_err!("{} columns of states instead of two", columns.len()),
    }
}

/// An error of ours as one of DataFusion, with its hint.
pub(crate) fn wrong(error: warpfold_core::Error) -> DataFusionError {
    let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
    DataFusionError::Execution(format!("{error}{hint}"))
}
