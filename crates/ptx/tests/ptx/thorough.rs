//! How much tests draw, and by which seeds: little and the same each time, or what the environment asks for.

/// Whether everything is asked for, by `WARPFOLD_THOROUGH=1`: without it long sweeps take a part of their cases.
pub(crate) fn thorough() -> bool {
    std::env::var_os("WARPFOLD_THOROUGH").is_some_and(|value| value == "1")
}

/// This many, or few.
pub(crate) fn up_to<T>(all: T, few: T) -> T {
    if thorough() { all } else { few }
}

/// How many cases a property draws: as many as `WARPFOLD_CASES` says, or eight of each of the thirteen types of
/// elements.
pub(crate) fn cases() -> u32 {
    let asked = std::env::var("WARPFOLD_CASES").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(if cfg!(miri) { 13 } else { up_to(1300, 104) })
}

/// The seed of a test that has this one of its own: itself, or another one for each number that `WARPFOLD_SEED` has.
pub(crate) fn seed(own: u64) -> u64 {
    let asked: Option<u64> = std::env::var("WARPFOLD_SEED").ok().and_then(|seed| seed.parse().ok());
    own ^ asked.unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
