//! The plain states against slow, independent references.

mod damage;
mod integers;
mod merge;
mod oracle;
mod order;
mod rounding;
mod superacc;
