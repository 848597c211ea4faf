//! How long sweeps may take. Without `WARPFOLD_THOROUGH=1`, which `.ci/run` sets, long ones take a part of their cases.

/// Whether everything is asked for.
pub(crate) fn thorough() -> bool {
    std::env::var_os("WARPFOLD_THOROUGH").is_some_and(|value| value == "1")
}

/// This many, or few.
pub(crate) fn up_to<T>(all: T, few: T) -> T {
    if thorough() { all } else { few }
}
