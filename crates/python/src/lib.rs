//! The Python package `warpfold`: the front door of the library for arrays of Python.
//!
//! Objects come in by `import`, which finds the protocol that serves them. `question` reads
//! the words of a call, `run` reduces, and `answers` gives the caller's own types back. There
//! is no arithmetic here.

mod answers;
mod array;
mod arrow;
mod buffer;
mod call;
mod cast;
mod column;
mod complex;
mod cuda;
mod dense;
mod dlpack;
mod errors;
mod files;
mod functions;
mod gather;
mod groups;
mod home;
mod import;
mod masked;
mod memory;
mod ndarray;
mod numpy;
mod partial;
mod ptx;
mod question;
mod quick;
mod run;
mod segments;
mod sequence;
mod spans;
mod table;
mod times;
mod walk;

use pyo3::prelude::*;

/// Exact reductions of arrays. The package ``warpfold`` shows what is in here.
#[pymodule(gil_used = false)]
mod _warpfold {
    #[pymodule_export]
    use crate::array::Array;
    #[pymodule_export]
    use crate::files::{File, open, stats};
    #[pymodule_export]
    use crate::functions::{
        _answer_type, all, any, argmax, argmin, argminmax, count, count_nan, count_nonzero, dot,
        logsumexp, max, mean, min, minmax, nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod,
        nanstd, nansum, nanvar, norm_inf, norm1, norm2, prod, range, reduce, std, sum, sumsq, var,
    };
    #[pymodule_export]
    use crate::groups::{GroupPartial, groupby};
    #[pymodule_export]
    use crate::partial::Partial;
    #[pymodule_export]
    use crate::ptx::PtxModule;
    #[pymodule_export]
    use crate::segments::segments;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
