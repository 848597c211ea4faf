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
mod tree_support;
