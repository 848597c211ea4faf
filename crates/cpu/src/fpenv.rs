//! The floating-point environment: rounding mode and flush-to-zero.

/// Whether floating-point instructions round to nearest even and keep
/// subnormals. Other libraries in the process may have changed that; the
/// kernels then leave the work to integer arithmetic.
#[inline]
pub(crate) fn is_default() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let mut mxcsr = 0u32;
        // SAFETY: SSE is part of x86-64; the instruction writes four bytes to
        // a place that holds four.
        unsafe {
            core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags));
        }
        const ROUNDING: u32 = 0x6000;
        const FLUSH_TO_ZERO: u32 = 0x8000;
        const DENORMALS_ARE_ZERO: u32 = 0x0040;
        mxcsr & (ROUNDING | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO) == 0
    }
    #[cfg(target_arch = "aarch64")]
    {
        let fpcr: u64;
        // SAFETY: reading FPCR is always allowed.
        unsafe {
            core::arch::asm!("mrs {}, fpcr", out(reg) fpcr, options(nomem, nostack, preserves_flags));
        }
        const FLUSH: u64 = 1 << 24 | 1 << 19;
        const ROUNDING: u64 = 3 << 22;
        fpcr & (FLUSH | ROUNDING) == 0
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        true
    }
}
