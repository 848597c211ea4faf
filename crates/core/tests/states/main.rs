//! The plain states against slow, independent references.

mod damage;
mod integers;
mod oracle;
mod order;
mod rounding;
mod superacc;
