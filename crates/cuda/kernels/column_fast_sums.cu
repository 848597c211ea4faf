// Plain sums and means of columns of floats.
// elements: f16 bf16 f32 f64

#include "column_fast.cuh"

TREE_COLUMNS(column_fast_sums)(const ColumnTable &table, u32 first, u32 count, u32 counters, u32 ask, void *out)
{
    fold_columns<ColumnFast<ELEMENT, ITSELF>>(table, first, count, counters, ask, out);
}
