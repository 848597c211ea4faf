//! The report: what was measured, as a page, or as Markdown with pictures.
//!
//! ```text
//!   record      what was saved of rungs, experiments, devices
//!   read        files of that
//!   groups      rungs that can be compared, and what is drawn of them
//!   judged      what came of the expectations
//!   published   what the texts have measured
//!   figures     what pages quote of a record
//!   steps       what changes from rung to rung, and what came of it
//!   svg, style  charts; drawing: who adds what
//!   page, markdown
//! ```

mod drawing;
mod figures;
mod groups;
mod judged;
mod markdown;
mod page;
mod published;
mod read;
mod record;
mod steps;
mod style;
mod svg;

pub use drawing::{DRAWINGS, Drawing};
pub use figures::{bare, refreshed, unmarked};
pub use markdown::{Markdown, markdown, trial_markdown};
pub use page::html;
pub use read::{Foreign, Gathered, MOST_BYTES};
pub use record::{Document, Machine, Measured, Trial, stamp};
pub(crate) use svg::{escaped, standalone};
