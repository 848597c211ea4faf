//! Plain states and fixed trees against slow, independent references.

mod damage;
mod integers;
mod logsumexp;
mod merge;
mod oracle;
mod order;
mod rounding;
mod superacc;
mod tree;
mod tree_prod;
mod tree_support;
