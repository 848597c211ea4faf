//! The course: numbers are what the interpreter counts, every exercise can be solved, and none is solved as it is handed out.

use crate::thorough::thorough;
use warpfold_cuda::Archive;
use warpfold_ladder::baselines::Counter;
use warpfold_ladder::find;
use warpfold_ladder::learn::{Figures, LESSONS, Run, What, lesson};

static KERNELS: Archive = Archive::new(include_bytes!("../../learn/kernels.archive"));
static WRONG: Archive = Archive::new(include_bytes!("../wrong/kernels.archive"));

fn ptx(name: &str) -> String {
    KERNELS.module(name, (9, 0)).unwrap().to_string()
}

#[test]
fn numbers_are_those_that_the_lessons_explain() {
    let counted: Vec<u64> = LESSONS.iter().map(|lesson| lesson.run.count().unwrap()).collect();
    assert_eq!(counted[..2], [26, 64]);
    assert!((5..=8).contains(&counted[2]), "{counted:?}");
    assert_eq!(counted[3], 32);
    assert!((90..=120).contains(&counted[4]), "{counted:?}");
    assert_eq!(counted[5..10], [13, 72, 16, 10, 16], "{counted:?}");
    assert_eq!(counted[10..], [72, 15, 9, 12_550], "{counted:?}");
    // What their questions say of others.
    let of = |rung, n, what| Run::Rung { rung, n, block: 256, what }.count().unwrap();
    assert_eq!(of("neighbored", 100_000, What::Counter(Counter::Sectors)), 100_002);
    assert_eq!(of("block-sum", 512, What::Counter(Counter::Barriers)), 216);
}

/// What is refused in some blocks is refused in all. One warp, an odd one, several, and those that are counted.
fn few(block: u32) -> bool {
    thorough() || [32, 33, 64, 256].contains(&block)
}

#[test]
fn every_exercise_can_be_solved_and_is_not_solved_yet() {
    for lesson in &LESSONS {
        let number = lesson.number;
        // Blocks of 1024 threads take as long as all others together: every third solution runs in them.
        let right = |block| thorough() || block < 1024 || number % 3 == 2;
        let check = |kind: &str, wanted: &dyn Fn(u32) -> bool| {
            let ptx = ptx(&format!("{kind}_{number}"));
            lesson.exercise.check_kernel(ptx, "sum", wanted).unwrap()
        };
        let solved = check("right", &right);
        assert!(solved.is_solved(), "{number}: {solved:?}");
        let open = check("open", &few);
        assert!(!open.is_solved(), "{number}");
        assert!(lesson.exercise.source.contains("HOLE"), "{number}");
    }
    assert!(lesson(0).is_none() && lesson(15).is_none());
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
            let checked = lesson.exercise.check_kernel(ptx.to_string(), &name, &few).unwrap();
            assert!(!checked.is_solved(), "{number}, {name}: {checked:?}");
            // A wrong answer is told before a fault without one, and never of no elements.
            let empty = checked.failure.as_ref().is_some_and(|f| f.case.n == 0);
            assert!(!empty, "{number}, {name}: {checked:?}");
            if checked.failure.is_none() {
                missed.push((number, mistake));
            }
        }
    }
    assert_eq!(
        missed,
        [
            (3, 1),
            (4, 1),
            (5, 1),
            (8, 1),
            (10, 1),
            (11, 1),
            (11, 4),
            (12, 1),
            (12, 2),
            (13, 1),
            (13, 2),
            (13, 3),
            (14, 1),
            (14, 2),
            (14, 5)
        ]
    );
}

#[test]
fn every_lesson_is_drawn_and_has_its_place_on_the_ladder() {
    for lesson in &LESSONS {
        let number = lesson.number;
        assert!(lesson.drawing.svg().starts_with("<svg"), "{number}");
        assert!(!lesson.drawing.title().is_empty(), "{number}");
        let Some(rung) = lesson.rung else { continue };
        assert!(find(rung).is_some(), "{number}: {rung}");
        assert_eq!(Figures::of(rung).is_some(), lesson.place().contains("GB/s"), "{number}");
    }
}
