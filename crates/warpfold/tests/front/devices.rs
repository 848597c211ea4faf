//! Which devices are compiled in, and what a program is told that asks for others.

use warpfold::internal::ForReaders;
use warpfold::{DType, Device, Error, Op, Reduction};

/// The CPU, and the interpreter where it is compiled in.
pub(crate) const DEVICES: &[Device] =
    if cfg!(feature = "sim") { &[Device::Cpu, Device::Sim] } else { &[Device::Cpu] };

#[test]
fn a_device_without_its_feature_is_an_error_that_names_it() {
    let x = [1.0f64; 4];
    for (device, feature, is_in) in [
        (Device::Cuda(None), "cuda", cfg!(feature = "cuda")),
        (Device::Cuda(Some(1)), "cuda", cfg!(feature = "cuda")),
        (Device::CudaAll, "cuda", cfg!(feature = "cuda")),
        (Device::Sim, "sim", cfg!(feature = "sim")),
        (Device::Sims(2), "sim", cfg!(feature = "sim")),
    ] {
        let question = Reduction::of(Op::Sum).device(device);
        let told = [
            question.run(&x).err(),
            question.run_pair(&x, &x).err(),
            question.partial(&x, 0).err(),
            question.workers(DType::F64, 1).err(),
            question.accumulator::<f64>().err(),
            question.check_type(DType::F64, 1).err(),
        ];
        for error in told {
            // `sum` of two arrays is refused before any device is asked for.
            let Some(Error::Device { what, hint }) = error else {
                assert!(is_in || matches!(error, Some(Error::Arity { .. })), "{device}: {error:?}");
                continue;
            };
            assert_eq!(!is_in, hint.contains(&format!("feature `{feature}`")), "{what}: {hint}");
            assert!(hint.contains("--device cpu"), "{hint}");
        }
    }
}

/// By itself a reduction never asks for a device that is not there.
#[test]
fn auto_works_without_devices() {
    let large = vec![1.0f64; 1 << 18];
    let question = Reduction::new([Op::LogSumExp, Op::Prod, Op::Sum]);
    assert_eq!(question.run(&large).unwrap().number::<f64>(Op::Sum), Some(262_144.0));
    let pays = question.device_pays_from(DType::F64).is_some();
    assert!(!pays || cfg!(feature = "cuda"));
    if !cfg!(feature = "cuda") {
        let settled = question.settled(DType::F64, Some(u64::MAX));
        assert_eq!(settled.named_device(), Device::Cpu);
    }
}

/// Several devices take pieces in turn, and all of them work.
#[cfg(feature = "sim")]
#[test]
fn several_devices_share_an_array() {
    use warpfold::internal::{remember_explanations, take_explanations};
    use warpfold::{NanPolicy, Rules, Segments, View};

    let data: Vec<f64> = (0..200_000).map(|i| f64::from(i * 7919 % 10_007) * 1e-3 - 4.0).collect();
    let question = Reduction::new([Op::Sum, Op::Var, Op::ArgMax, Op::Min, Op::Prod]).threads(1);
    let expected = question.run(&data).unwrap();
    let several = question.clone().device(Device::Sims(3));
    remember_explanations();
    assert_eq!(several.run(&data).unwrap(), expected);
    // NaNs of segments and of groups are omitted there.
    let few: Vec<f32> =
        (0..1003u16).map(|i| if i % 3 == 0 { f32::NAN } else { i.into() }).collect();
    let keys: Vec<u32> = (0..1003).map(|i| i * i % 7).collect();
    let on = |op, device| Reduction::of(op).nan(NanPolicy::Omit).device(device);
    let of_segments = |device| on(Op::Var, device).segments(Segments::Fixed(59)).run(&few);
    assert_eq!(of_segments(Device::Sims(3)).unwrap(), of_segments(Device::Cpu).unwrap());
    let of_groups = |device| on(Op::Mean, device).by(&keys).run(&few);
    assert_eq!(of_groups(Device::Sims(3)).unwrap(), of_groups(Device::Cpu).unwrap());
    let told = take_explanations();
    for kernel in ["segments_variances_f32", "groups_sums_f32"] {
        // Of as many bytes as other tests do not ask about.
        let is_told = |line: &String| line.contains(kernel) && line.contains("4012 bytes");
        assert!(told.iter().any(is_told), "{kernel} in {told:?}");
    }
    // One interpreter is known to other tests as the only one.
    for name in ["sim 2: ", "sim 3: "] {
        assert!(told.iter().any(|line| line.starts_with(name)), "{name} in {told:?}");
    }
    let part = several.partial(&data[..150_000], 0).unwrap();
    let mut rest = several.partial(&data[150_000..], 150_000).unwrap();
    rest.merge(&part).unwrap();
    assert_eq!(rest.finish(&Rules::default()).unwrap(), expected);
    let table = View::of_strided(&data, 0, &[400, 500], &[500, 1]).unwrap();
    let along = several.clone().axis(0);
    assert_eq!(along.run(&table).unwrap(), question.clone().axis(0).run(&table).unwrap());
}

#[test]
fn names_of_devices_come_back() {
    for device in [Device::Cuda(Some(3)), Device::CudaAll, Device::Sim, Device::Sims(2)] {
        assert_eq!(device.to_string().parse(), Ok(device));
    }
    for wrong in ["sim:0", "sim:", "cuda:", "cuda:-1", "cuda:every"] {
        assert!(wrong.parse::<Device>().is_err(), "{wrong}");
    }
}
