//! The GPU of the machine that the tests run on.

use std::sync::Arc;
use warpfold_cuda::{Device, Driver};

/// The first GPU. Skips aloud without one, unless `WARPFOLD_REQUIRE_CUDA` asks for
/// it.
pub(crate) fn device_of_this_machine() -> Option<Arc<dyn Device>> {
    match Driver::open(0) {
        Ok(device) => Some(Arc::new(device)),
        Err(error) if std::env::var_os("WARPFOLD_REQUIRE_CUDA").is_none() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
