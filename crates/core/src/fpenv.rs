//! The floating-point environment: rounding mode, flush-to-zero, traps.
//!
//! Other code in the process may have changed the rounding mode of this thread, whether
//! subnormals count as zeros, or which exceptions trap. Exact states then use integers.
//! Code that rounds on the way, or finishes a state, runs in [`usual`]. So the bits are
//! the same in every environment, and nothing traps.

/// Whether floating-point instructions of this thread round to nearest even, keep
/// subnormals and never trap. Every thread begins so.
#[inline]
#[must_use]
pub fn is_usual() -> bool {
    control::get() & control::MASK == control::USUAL
}

/// Runs `work` in the usual environment. The thread's own comes back afterwards,
/// also where `work` panics.
///
/// ```
/// assert_eq!(warpfold_core::fpenv::usual(|| 1.0 / 3.0), 1.0 / 3.0);
/// ```
#[inline]
pub fn usual<R>(work: impl FnOnce() -> R) -> R {
    let _restore = Restore::after_usual();
    call(work)
}

/// Runs `work` where results that would be subnormal may be zeros: an Intel processor takes some 150
/// cycles for each product that is. On a machine where that costs little they are what they are.
///
/// ```
/// let tiny = |x: f64| x * f64::MIN_POSITIVE;
/// let least = warpfold_core::fpenv::flushing(|| tiny(std::hint::black_box(0.5)));
/// assert!(least == 0.0 || least == tiny(0.5));
/// ```
#[inline]
pub fn flushing<R>(work: impl FnOnce() -> R) -> R {
    let old = control::get();
    let _restore = Restore(Some(old));
    control::set(old | control::FLUSHES);
    call(work)
}

/// What the thread's own environment is restored from, unless it is the usual one.
struct Restore(Option<control::Word>);

impl Restore {
    #[inline]
    fn after_usual() -> Restore {
        if is_usual() {
            return Restore(None);
        }
        let old = control::get();
        // Flags that say what has happened so far stay.
        control::set(old & !control::MASK | control::USUAL);
        Restore(Some(old))
    }
}

impl Drop for Restore {
    #[inline]
    fn drop(&mut self) {
        if let Some(old) = self.0 {
            control::set(old);
        }
    }
}

/// Never inlined: instructions of `work` stay behind the one that sets the environment and
/// before the one that restores it. What calls this has one copy of `work`.
#[inline(never)]
fn call<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// MXCSR.
#[cfg(all(
    any(target_arch = "x86_64", all(target_arch = "x86", target_feature = "sse2")),
    not(miri)
))]
mod control {
    pub(super) type Word = u32;
    /// Flush-to-zero, rounding, what is masked, denormals-are-zero.
    pub(super) const MASK: Word = 0xffc0;
    /// All exceptions are masked.
    pub(super) const USUAL: Word = 0x1f80;
    /// Flush-to-zero: of results, and not of operands.
    pub(super) const FLUSHES: Word = 0x8000;

    #[inline]
    pub(super) fn get() -> Word {
        let mut word = 0u32;
        // SAFETY: the target has SSE; the instruction writes four bytes to a
        // place that holds four.
        unsafe {
            core::arch::asm!(
                "stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)
            );
        }
        word
    }

    pub(super) fn set(word: Word) {
        // SAFETY: only values that `get` gave, with control bits that exist:
        // none of the reserved bits is set, which would be a fault.
        unsafe {
            core::arch::asm!(
                "ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)
            );
        }
    }
}

/// FPCR.
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod control {
    pub(super) type Word = u64;
    /// Rounding, flush-to-zero for f16 and the others, default NaNs, traps.
    pub(super) const MASK: Word = 3 << 22 | 1 << 24 | 1 << 19 | 1 << 25 | 0x9f00;
    pub(super) const USUAL: Word = 0;
    /// It would flush operands, too.
    pub(super) const FLUSHES: Word = 0;

    #[inline]
    pub(super) fn get() -> Word {
        let word: u64;
        // SAFETY: reading FPCR is always allowed.
        unsafe {
            core::arch::asm!("mrs {}, fpcr", out(reg) word, options(nostack, preserves_flags));
        }
        word
    }

    pub(super) fn set(word: Word) {
        // SAFETY: writing FPCR is always allowed.
        unsafe {
            core::arch::asm!("msr fpcr, {}", in(reg) word, options(nostack, preserves_flags));
        }
    }
}

/// Where it cannot be changed: WebAssembly has no such environment, and Miri runs no
/// assembly.
#[cfg(not(all(
    any(
        target_arch = "x86_64",
        all(target_arch = "x86", target_feature = "sse2"),
        target_arch = "aarch64"
    ),
    not(miri)
)))]
mod control {
    pub(super) type Word = u32;
    pub(super) const MASK: Word = 0;
    pub(super) const USUAL: Word = 0;
    pub(super) const FLUSHES: Word = 0;

    #[inline]
    pub(super) fn get() -> Word {
        0
    }

    pub(super) fn set(_: Word) {}
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;
    use core::hint::black_box;

    /// Runs `f` with control bits changed.
    fn with<R>(xor: u32, f: impl FnOnce() -> R) -> R {
        let old = control::get();
        control::set(old ^ xor);
        let result = f();
        control::set(old);
        result
    }

    #[inline(never)]
    fn third() -> u64 {
        (black_box(1.0f64) / black_box(3.0)).to_bits()
    }

    #[test]
    fn the_usual_environment_is_set_and_restored() {
        let expected = third();
        // Downwards, upwards, towards zero, flushing, every trap.
        for xor in [0x2000, 0x4000, 0x6000, 0x8000, 0x0040, 0x1f80, 0xffc0] {
            with(xor, || {
                assert!(!is_usual());
                assert_eq!(usual(third), expected, "{xor:#x}");
                let panicked = std::panic::catch_unwind(|| usual(|| panic!("on purpose")));
                assert!(panicked.is_err());
                let changed = control::get();
                assert_eq!(changed & control::MASK, (control::USUAL ^ xor) & control::MASK);
            });
        }
        assert!(is_usual());
    }
}
