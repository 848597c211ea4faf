// Sums of squares and norms of floats over any axes of any view.
// elements: f16 bf16 f32 f64

#include "strided.cuh"

#include "float_squares.cuh"

STRIDED(squares, 2)(const Layout &layout)
{
    reduce_view<FloatSquares<ELEMENT, false>>(layout, {layout.ask, layout.n});
}
