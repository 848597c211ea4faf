//! The report: what was measured, as a page.

mod markdown;
mod record;

pub use markdown::trial_markdown;
pub use record::{Document, Machine, Measured, Trial};
