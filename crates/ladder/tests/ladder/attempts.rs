//! Kernels of a user's, right and wrong: the wrong ones get the smallest case that fails. They are compiled beforehand, so that no
//! compiler is needed.

use warpfold_core::DType;
use warpfold_cuda::Archive;
use warpfold_ladder::attempt::nvrtc::Nvrtc;
use warpfold_ladder::attempt::{Attempt, Failed, Tried};

static KERNELS: Archive = Archive::new(include_bytes!("../attempts/kernels.archive"));

fn attempt(name: &str) -> Attempt {
    let ptx = KERNELS.module(&format!("{name}_i32"), (9, 0)).unwrap();
    Attempt::new(ptx.to_string(), None, DType::I32).unwrap()
}

fn tried(name: &str, change: impl Fn(Attempt) -> Attempt) -> Tried {
    change(attempt(name)).run().unwrap()
}

#[test]
fn a_right_kernel_is_placed_beside_rungs_that_count_alike() {
    let tried = tried("right", |a| a.of_columns(8));
    assert!(tried.failure.is_none(), "{:?}", tried.failure);
    assert!(tried.cases > 100, "{}", tried.cases);
    let placed = tried.placed.unwrap();
    assert_eq!((placed.case.n, placed.case.block), (10_007, 256));
    assert!(placed.counts[0] > 1000 && placed.counts[3] == 0, "{placed:?}");
    let alike: Vec<_> = placed.neighbours.iter().map(|n| n.rung.id).collect();
    assert!(alike.contains(&placed.nearest) && alike.len() >= 2, "{alike:?}");
    // It has the grid of the unrolled rungs, with their eight loads.
    assert!(placed.nearest.contains("unroll"), "{alike:?}, {placed:?}");
}

#[test]
fn a_wrong_kernel_gets_the_smallest_case_that_fails() {
    let failure = tried("guard", |a| a.of_columns(8)).failure.unwrap();
    // No elements are a sum, one is not.
    assert_eq!((failure.case.n, failure.case.block, failure.case.grid), (1, 32, 1));
    assert_eq!((failure.got.as_deref(), failure.wanted.as_str()), (Some("0"), "1"));
    assert_eq!(failure.astray, ["element 1 is left out"]);
    assert!(!failure.second_run && failure.halt.is_none());
    // The host starts too few blocks for it.
    let failure = tried("right", |a| a.of_columns(16)).failure.unwrap();
    assert_eq!((failure.case.n, failure.case.block, failure.case.grid), (511, 32, 1));
    assert_eq!(failure.astray, ["elements 257 to 511 are left out"]);
}

#[test]
fn what_only_an_order_shows_is_found() {
    let failure = tried("barrier", |a| a).failure.unwrap();
    assert!(failure.findings.iter().any(|f| f.contains("race")), "{failure:?}");
    assert!(failure.findings[0].contains("barrier.cu:"), "{failure:?}");
    let failure = tried("in_place", |mut a| {
        a.blocks = vec![64];
        a
    })
    .failure
    .unwrap();
    assert!(failure.second_run, "{failure:?}");
    assert_eq!(failure.case.n, 2, "the first size with two elements that are folded");
}

#[test]
fn what_cannot_be_tried_says_why() {
    let refused = |ptx: &str, kernel| match Attempt::new(ptx.into(), kernel, DType::I32) {
        Err(error @ Failed::Kernel { .. }) => {
            assert!(error.hint().unwrap().contains("__global__"));
            error.to_string()
        }
        other => panic!("{other:?}"),
    };
    let head = ".version 8.0\n.target sm_75\n.address_size 64\n";
    let kernel =
        |name: &str, params: &str| format!(".visible .entry {name}({params}) {{ ret; }}\n");
    assert!(refused("no PTX", None).contains("version"), "{}", refused("no PTX", None));
    assert!(refused(head, None).contains("no kernel"));
    let two = format!("{head}{}{}", kernel("a", ""), kernel("b", ""));
    assert!(refused(&two, None).contains("a, b"));
    assert!(refused(&two, Some("c")).contains("\"c\""));
    assert!(refused(&two, Some("a")).contains("two pointers"));
}

/// Where there is a compiler: the same from the source, and its complaints.
#[test]
fn sources_are_compiled_where_there_is_a_compiler() {
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(error) => return println!("SKIPPED: {error}"),
    };
    let source = include_str!("../attempts/guard.cu");
    let ptx = nvrtc.compile("guard.cu", source, 75).unwrap();
    let tried = Attempt::new(ptx, Some("sum"), DType::I32).unwrap();
    assert!(tried.of_columns(8).run().unwrap().failure.is_some());
    let error = nvrtc.compile("bad.cu", "__global__ void f() { return 1 }", 75).unwrap_err();
    assert!(matches!(&error, Failed::Source { why } if why.contains("bad.cu(1)")), "{error}");
    let error = nvrtc.compile("nul.cu", "a\0b", 75).unwrap_err();
    assert!(matches!(error, Failed::Source { .. }), "{error}");
}

/// What the page of faults says not to compile does not.
#[test]
fn what_is_said_not_to_compile_does_not() {
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(error) => return println!("SKIPPED: {error}"),
    };
    let one_type = "template <class T> __device__ T first(T x) { extern __shared__ T s[]; s[threadIdx.x] = x; return s[0]; }\n\
        __global__ void a(int *x) { *x = first(*x); }\n";
    let two_types = format!("{one_type}__global__ void b(float *x) {{ *x = first(*x); }}\n");
    assert!(nvrtc.compile("one.cu", one_type, 75).is_ok());
    for (what, said) in [
        (two_types.as_str(), "incompatible with previous"),
        ("__global__ void a() { int lane - threadIdx.x; }", "expected a"),
        ("__global__ void a(int *x) { x[idx] = 1; }", "\"idx\" is undefined"),
        ("__global__ void a(void) { c[threadIdx.x] = 1; }", "\"c\" is undefined"),
    ] {
        let error = nvrtc.compile("text.cu", what, 75).unwrap_err();
        assert!(matches!(&error, Failed::Source { why } if why.contains(said)), "{error}");
    }
}
