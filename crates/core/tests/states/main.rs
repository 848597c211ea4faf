//! States against slow, independent references.

mod damage;
mod float_prod;
mod integer_prod;
mod integers;
mod logsumexp;
mod merge;
mod oracle;
mod order;
mod rounding;
mod superacc;
// A link to that of warpfold-ptx, so that the package has it.
#[expect(dead_code, reason = "other tests use the rest")]
mod thorough;
mod tree_support;
