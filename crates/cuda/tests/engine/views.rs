//! Which views of a device's memory there may be, and where they lie.

use warpfold_core::DType;
use warpfold_cuda::Error;
use warpfold_cuda::engine::DeviceView;

fn why(view: &DeviceView) -> &'static str {
    match view.extent() {
        Err(Error::View { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn c_order_has_the_last_axis_next_to_each_other() {
    let view = DeviceView::contiguous(256, DType::F32, &[2, 3, 4]);
    assert_eq!(view.strides, [48, 16, 4]);
    assert_eq!(view.extent(), Ok((256, 96)));
}

#[test]
fn steps_back_reach_bytes_before_the_first_element() {
    let view = DeviceView::contiguous(256, DType::F32, &[2, 3]);
    let back = DeviceView { strides: vec![-12, 4], ..view };
    assert_eq!(back.extent(), Ok((244, 24)));
}

#[test]
fn views_that_cannot_be_are_refused() {
    let view = DeviceView::contiguous(256, DType::F32, &[2, 3]);
    let short = DeviceView { strides: vec![4], ..view.clone() };
    assert!(why(&short).contains("one stride"));
    let many = DeviceView { shape: vec![1 << 40, 1 << 40], ..view.clone() };
    assert!(why(&many).contains("counted"));
    // An axis of length 0 does not make the others countable.
    let none = DeviceView { shape: vec![1 << 40, 1 << 40, 0], strides: vec![0; 3], ..view };
    assert!(why(&none).contains("counted"));
    let below = DeviceView { strides: vec![-300, 4], ..short.clone() };
    let below = DeviceView { shape: vec![2, 1], ..below };
    assert!(why(&below).contains("address space"));
    let above = DeviceView { shape: vec![1 << 62], strides: vec![8], ..short };
    assert!(why(&above).contains("address space"));
}

#[test]
fn an_empty_view_may_have_any_strides() {
    let view = DeviceView {
        address: 0,
        dtype: DType::F64,
        shape: vec![0, 1 << 40],
        strides: vec![isize::MIN, isize::MAX],
    };
    assert_eq!(view.extent(), Ok((0, 0)));
}
