//! The approximate operations keep PTX's tables of special values, and its error bounds elsewhere.

use warpfold_ptx::ir::{FloatBinary, FloatMode, FloatUnary, Type};
use warpfold_ptx::value::float;

fn unary(op: FloatUnary, mode: FloatMode, x: f32) -> f32 {
    f32::from_bits(float::unary(op, Type::F32, mode, x.to_bits().into()) as u32)
}

fn divide(op: FloatBinary, a: f32, b: f32) -> f32 {
    let bits =
        float::binary(op, Type::F32, FloatMode::default(), a.to_bits().into(), b.to_bits().into());
    f32::from_bits(bits as u32)
}

const PLAIN: FloatMode = FloatMode {
    rounding: warpfold_ptx::ir::Rounding::Nearest,
    ftz: false,
    sat: false,
    relu: false,
    nan: false,
    xorsign_abs: false,
    explicit: false,
};

#[test]
fn special_values_are_those_of_the_tables() {
    use FloatUnary::{
        Ex2Approx, Lg2Approx, RcpApprox, RsqrtApprox, SinApprox, SqrtApprox, TanhApprox,
    };
    let inf = f32::INFINITY;
    let table: [(FloatUnary, f32, f32); 19] = [
        (RcpApprox, 0.0, inf),
        (RcpApprox, -0.0, -inf),
        (RcpApprox, -inf, -0.0),
        (SqrtApprox, -0.0, -0.0),
        (SqrtApprox, -1.0, f32::NAN),
        (SqrtApprox, inf, inf),
        (RsqrtApprox, 0.0, inf),
        (RsqrtApprox, -0.0, -inf),
        (RsqrtApprox, inf, 0.0),
        (RsqrtApprox, -1.0, f32::NAN),
        (Ex2Approx, -inf, 0.0),
        (Ex2Approx, inf, inf),
        (Ex2Approx, -0.0, 1.0),
        (Lg2Approx, 0.0, -inf),
        (Lg2Approx, -0.0, -inf),
        (Lg2Approx, inf, inf),
        (SinApprox, -0.0, -0.0),
        (SinApprox, inf, f32::NAN),
        (TanhApprox, inf, 1.0),
    ];
    for (op, x, want) in table {
        let got = unary(op, PLAIN, x);
        if want.is_nan() {
            assert_eq!(got.to_bits(), 0x7fff_ffff, "{op:?}({x})");
        } else {
            assert_eq!(got.to_bits(), want.to_bits(), "{op:?}({x}) = {got}");
        }
    }
}

#[test]
fn subnormal_numbers_are_flushed_where_asked() {
    let ftz = FloatMode { ftz: true, ..PLAIN };
    let small = f32::from_bits(1000);
    assert_eq!(unary(FloatUnary::RcpApprox, ftz, small), f32::INFINITY);
    assert_eq!(unary(FloatUnary::Lg2Approx, ftz, small), f32::NEG_INFINITY);
    assert_eq!(unary(FloatUnary::Ex2Approx, ftz, -130.0), 0.0);
    assert_eq!(unary(FloatUnary::Ex2Approx, PLAIN, -130.0), 2f32.powi(-130));
}

#[test]
fn division_gives_up_where_the_reciprocal_is_lost() {
    let big = 2f32.powi(127);
    assert_eq!(divide(FloatBinary::DivApprox, big, big), 0.0);
    assert_eq!(divide(FloatBinary::DivApprox, -1.0, big).to_bits(), (-0f32).to_bits());
    assert!(divide(FloatBinary::DivApprox, f32::INFINITY, big).is_nan());
    assert_eq!(divide(FloatBinary::DivFull, big, big), 1.0);
    assert_eq!(divide(FloatBinary::DivApprox, 6.0, 1.5), 4.0);
}

#[test]
fn errors_are_within_what_ptx_states() {
    // Relative to the double-precision value: an ulp of a single is at most 2^-23.
    let bound = 2f64.powi(-22);
    for i in 1..4000 {
        let x = i as f32 * 0.013 + 0.5;
        let wide = f64::from(x);
        let cases = [
            (FloatUnary::RcpApprox, 1.0 / wide),
            (FloatUnary::SqrtApprox, wide.sqrt()),
            (FloatUnary::RsqrtApprox, 1.0 / wide.sqrt()),
            (FloatUnary::Ex2Approx, wide.exp2()),
            (FloatUnary::TanhApprox, wide.tanh()),
        ];
        for (op, want) in cases {
            let got = f64::from(unary(op, PLAIN, x));
            assert!((got / want - 1.0).abs() <= bound, "{op:?}({x}) = {got}, not {want}");
        }
        let logarithm = f64::from(unary(FloatUnary::Lg2Approx, PLAIN, x));
        assert!((logarithm - wide.log2()).abs() <= bound * wide.log2().abs().max(1.0));
    }
}

#[test]
fn the_forms_for_f64_look_at_upper_halves() {
    let ftz = FloatMode { ftz: true, ..PLAIN };
    let rcp =
        |x: f64| f64::from_bits(float::unary(FloatUnary::RcpApprox, Type::F64, ftz, x.to_bits()));
    assert_eq!(rcp(3.0).to_bits() & 0xffff_ffff, 0);
    assert!((rcp(3.0) * 3.0 - 1.0).abs() < 1e-5);
    assert_eq!(rcp(f64::from_bits(1)), f64::INFINITY);
    let low = f64::from_bits(2f64.to_bits() | 0xffff_ffff);
    assert_eq!(rcp(low), 0.5);
}

/// Without `.ftz` a double's reciprocal root is a double: compilers print it for `rsqrt(double)`.
#[test]
fn the_reciprocal_root_of_a_double_has_all_its_digits() {
    use warpfold_ptx::value::float;
    let rsqrt = |x: f64| {
        let bits =
            float::unary(FloatUnary::RsqrtApprox, Type::F64, FloatMode::default(), x.to_bits());
        f64::from_bits(bits)
    };
    for x in [1.0, 2.0, 0.3, 7e300, 5e-324, 3e-310, f64::MAX, 1.0 / 3.0] {
        let y = rsqrt(x);
        // y * y * x is 1 within the rounding of y, which its square doubles.
        let error = (y * x.sqrt() - 1.0).abs();
        assert!(error < 4e-16, "{x}: {y} is off by {error}");
    }
    assert_eq!(rsqrt(4.0), 0.5);
    assert_eq!((rsqrt(0.0), rsqrt(-0.0)), (f64::INFINITY, -f64::INFINITY));
    assert_eq!(rsqrt(f64::INFINITY), 0.0);
    assert!(rsqrt(-1.0).is_nan());
}
