//! The course: numbers are what the interpreter counts, every exercise can be solved, and none is solved as it is handed out.

use std::path::PathBuf;
use warpfold_cuda::Archive;
use warpfold_ladder::learn::{LESSONS, lesson};

static KERNELS: Archive = Archive::new(include_bytes!("../solutions/kernels.archive"));
static WRONG: Archive = Archive::new(include_bytes!("../wrong/kernels.archive"));

fn ptx(name: &str) -> String {
    KERNELS.module(&format!("{name}_i32"), (9, 0)).unwrap().to_string()
}

#[test]
fn numbers_are_those_that_the_lessons_explain() {
    let counted: Vec<u64> = LESSONS.iter().map(|lesson| lesson.run.count().unwrap()).collect();
    assert_eq!(counted[..2], [26, 64]);
    assert!((5..=8).contains(&counted[2]), "{counted:?}");
    assert_eq!(counted[3], 32);
    assert!((90..=120).contains(&counted[4]), "{counted:?}");
    assert_eq!(counted[5..], [13, 72, 16, 10, 16], "{counted:?}");
}

#[test]
fn every_exercise_can_be_solved_and_is_not_solved_yet() {
    for lesson in &LESSONS {
        let number = lesson.number;
        let solved = lesson.exercise.check(ptx(&format!("right_{number}"))).unwrap();
        assert!(solved.is_solved(), "{number}: {solved:?}");
        let open = lesson.exercise.check(ptx(&format!("open_{number}"))).unwrap();
        assert!(!open.is_solved(), "{number}");
        assert!(lesson.exercise.source.contains("HOLE"), "{number}");
        // What is handed out is what was compiled.
        let name = format!("tests/solutions/open_{number}.cu");
        let compiled =
            std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name));
        let handed_out = compiled.unwrap().replace("// elements: i32\n", "");
        assert_eq!(handed_out, lesson.exercise.source, "{number}");
    }
    assert!(lesson(0).is_none() && lesson(11).is_none());
}

/// Five for each lesson, what is often written instead; some are right and do not do what the lesson is about.
#[test]
fn wrong_solutions_are_refused() {
    let mut missed = Vec::new();
    for lesson in &LESSONS {
        let number = lesson.number;
        let ptx = WRONG.module(&format!("wrong_{number}_i32"), (9, 0)).unwrap();
        for mistake in 1..=5 {
            let name = format!("wrong_{mistake}");
            let checked = lesson.exercise.check_kernel(ptx.to_string(), &name).unwrap();
            assert!(!checked.is_solved(), "{number}, {name}: {checked:?}");
            // A wrong answer is told before a fault without one, and never of no elements.
            let empty = checked.failure.as_ref().is_some_and(|f| f.case.n == 0);
            assert!(!empty, "{number}, {name}: {checked:?}");
            if checked.failure.is_none() {
                missed.push((number, mistake));
            }
        }
    }
    assert_eq!(missed, [(3, 1), (4, 1), (5, 1), (8, 1), (10, 1)]);
}
