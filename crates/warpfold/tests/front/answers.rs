//! Any array, any axes, any operations, any rules.

use crate::arrays::{Array, PATTERNS, Pattern, Random, array, indices};
use crate::naive::{self, Expected, Num};
use crate::thorough::{thorough, up_to};
use warpfold::{DType, NanPolicy, Op, Reduction, Rules, Threads};

/// For each output, in C order, the elements of the reduced axes in C order.
fn groups(array: &Array, reduced: &[bool]) -> Vec<Vec<Num>> {
    let part = |which: bool| -> Vec<usize> {
        array.shape.iter().zip(reduced).filter(|(_, r)| **r == which).map(|(&n, _)| n).collect()
    };
    indices(&part(false))
        .iter()
        .map(|outer| {
            indices(&part(true))
                .iter()
                .map(|inner| {
                    let (mut outer, mut inner) = (outer.iter(), inner.iter());
                    let index: Vec<usize> = reduced
                        .iter()
                        .map(|&r| *if r { inner.next() } else { outer.next() }.unwrap())
                        .collect();
                    array.at(&index)
                })
                .collect()
        })
        .collect()
}

struct Question<'a> {
    ops: &'a [Op],
    rules: Rules,
    reduced: &'a [bool],
    keepdims: bool,
    threads: usize,
}

fn check(question: &Question<'_>, left: &Array, right: Option<&Array>, note: &str) {
    let Question { ops, rules, reduced, keepdims, threads } = *question;
    let ndim = left.shape.len();
    let axes = (0..ndim).filter(|&i| reduced[i]).map(|i| {
        // Every other axis by its negative name.
        if i % 2 == 0 { i as isize } else { i as isize - ndim as isize }
    });
    let mut asked = Reduction::new(ops.iter().copied())
        .nan(rules.nan)
        .ddof(rules.ddof)
        .wrap(rules.wrap)
        .keepdims(keepdims)
        .threads(Threads::Exactly(threads))
        .axes(axes);
    if let Some(out) = rules.out {
        asked = asked.out(out);
    }
    let answer = match right {
        Some(right) => asked.run_pair(left.view(), right.view()),
        None => asked.run(left.view()),
    };
    let x = groups(left, reduced);
    let y = right.map_or_else(|| vec![Vec::new(); x.len()], |a| groups(a, reduced));
    let expected: Vec<Vec<Vec<Expected>>> = ops
        .iter()
        .map(|&op| {
            x.iter().zip(&y).map(|(x, y)| naive::answer(op, left.dtype, x, y, &rules)).collect()
        })
        .collect();
    let failures: Vec<&Expected> =
        expected.iter().flatten().flatten().filter(|e| e.is_failure()).collect();
    let note = format!(
        "{ops:?} {} shape {:?} strides {:?} offset {} reduced {reduced:?} {rules:?} {note}",
        left.dtype, left.shape, left.strides, left.offset
    );
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            assert!(
                failures.iter().any(|f| f.is(&error)),
                "{error}; expected {failures:?}: {note}"
            );
            return;
        }
    };
    assert!(failures.is_empty(), "expected {failures:?}: {note}");
    let shape: Vec<usize> = left
        .shape
        .iter()
        .zip(reduced)
        .filter(|(_, r)| !**r || keepdims)
        .map(|(&n, r)| if *r { 1 } else { n })
        .collect();
    assert_eq!(answer.shape(), shape, "{note}");
    assert_eq!(answer.columns().len(), ops.len());
    for ((column, &op), expected) in answer.columns().iter().zip(ops).zip(&expected) {
        assert_eq!((column.op, column.len()), (op, expected.len()), "{note}");
        let dtype = rules.out.unwrap_or(op.answer_type(left.dtype));
        assert_eq!(column.numbers.dtype(), dtype, "{op} {note}");
        for (i, expected) in expected.iter().enumerate() {
            let got = column.get(i).unwrap();
            assert!(
                expected[0].allows(got),
                "{op} output {i}: {got:?}, expected {expected:?} of {:?}: {note}",
                x[i]
            );
        }
    }
}

fn shape(random: &mut Random) -> Vec<usize> {
    let ndim = random.pick(&[0, 1, 1, 2, 2, 3, 3, 4]);
    (0..ndim).map(|_| random.pick(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 7])).collect()
}

fn supported(dtype: DType) -> Vec<Op> {
    Op::ALL.into_iter().filter(|op| op.supports(dtype) && op.arity() == 1).collect()
}

fn rules(random: &mut Random) -> Rules {
    Rules::new()
        .nan(random.pick(&[
            NanPolicy::Propagate,
            NanPolicy::Propagate,
            NanPolicy::Omit,
            NanPolicy::Error,
        ]))
        .ddof(random.pick(&[0, 0, 1, 3]))
        .wrap(random.chance(4))
}

/// One made-up question about an array of this shape, for a type.
fn ask(dtype: DType, shape: &[usize], pattern: Pattern, random: &mut Random) {
    let left = array(dtype, shape, pattern, random);
    let all = random.chance(3);
    let reduced: Vec<bool> = shape.iter().map(|_| all || random.chance(2)).collect();
    let mut rules = rules(random);
    let ops = supported(dtype);
    let mut question = Question {
        ops: &[],
        rules,
        reduced: &reduced,
        keepdims: random.chance(2),
        threads: random.pick(&[1, 2, 3]),
    };
    let note = format!("{pattern:?}");
    // Several at once, as they are.
    let several: Vec<Op> = (0..1 + random.below(6)).map(|_| random.pick(&ops)).collect();
    check(&Question { ops: &several, ..question }, &left, None, &note);
    // One, in any type.
    rules.out = random.chance(2).then(|| random.pick(&DType::ALL));
    question.rules = rules;
    let one = [random.pick(&ops)];
    check(&Question { ops: &one, ..question }, &left, None, &note);
    // Two arrays, whose memory need not agree.
    let right = array(dtype, shape, random.pick(&PATTERNS), random);
    check(&Question { ops: &[Op::Dot], ..question }, &left, Some(&right), &note);
}

#[test]
fn small_arrays_of_any_layout() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for _ in 0..up_to(200, 80) {
        for dtype in DType::ALL {
            for pattern in PATTERNS {
                let shape = shape(&mut random);
                ask(dtype, &shape, pattern, &mut random);
            }
        }
    }
}

/// Long enough rows to be handed over as they lie, and rows that are copied
/// together to blocks.
#[test]
fn arrays_of_several_blocks() {
    let mut random = Random::new(0x1234_5678_9abc_def1);
    let shapes: [&[usize]; 7] =
        [&[2, 700], &[700, 2], &[9001], &[3, 513, 2], &[40, 5, 41], &[1, 8193], &[511, 17]];
    for (turn, shape) in shapes.into_iter().enumerate() {
        for dtype in DType::ALL {
            // Every type, or every other in its turn.
            if !thorough() && !(turn + dtype as usize).is_multiple_of(2) {
                continue;
            }
            let pattern = random.pick(&PATTERNS);
            ask(dtype, shape, pattern, &mut random);
        }
    }
}

/// Every operation, every type, every policy at least once, and nothing else
/// that could be the reason.
#[test]
fn every_operation_of_a_plain_slice() {
    let mut random = Random::new(7);
    for dtype in DType::ALL {
        for pattern in PATTERNS {
            for n in [0, 1, 2, 65] {
                let shape = [n];
                let mut array = array(dtype, &shape, pattern, &mut random);
                array.strides = vec![dtype.size() as isize];
                array.offset = 0;
                if array.bytes().len() < n * dtype.size() {
                    continue;
                }
                for op in supported(dtype) {
                    for nan in [NanPolicy::Propagate, NanPolicy::Omit, NanPolicy::Error] {
                        let rules = Rules::new().nan(nan);
                        let question = Question {
                            ops: &[op],
                            rules,
                            reduced: &[true],
                            keepdims: false,
                            threads: 2,
                        };
                        check(&question, &array, None, &format!("{pattern:?}"));
                    }
                }
            }
        }
    }
}
