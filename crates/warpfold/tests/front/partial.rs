//! Byte forms of partials: edges that no file of a real run shows.

use warpfold::{DType, Op, Partial, Reduction, Rules, View};

#[test]
fn no_outputs_survive_the_byte_form() {
    let nothing = View::from_bytes(DType::F64, &[], &[0, 3]).unwrap();
    let partial = Reduction::new([Op::Sum, Op::Max]).axis(1).partial(nothing, 0).unwrap();
    let read = Partial::from_bytes(&partial.to_bytes()).unwrap();
    assert_eq!(read.shape(), [0]);
    assert_eq!(read.ops().collect::<Vec<_>>(), [Op::Sum, Op::Max]);
    let answer = read.finish(&Rules::default()).unwrap();
    assert_eq!(answer.slice::<f64>(Op::Max), Some(&[][..]));
}
