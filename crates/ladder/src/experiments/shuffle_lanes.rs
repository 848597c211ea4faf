//! What each lane of a warp gets from a shuffle.

use super::place::{Place, bytes_of, counting};
use super::{Bench, Cell, Experiment, Needs, Outcome, Table};
use crate::chart::Chart;
use crate::error::Result;
use crate::rung::Text;
use warpfold_cuda::{Launch, Sim};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "shuffle-lanes",
    texts: &[Text::W],
    title: "what each lane gets from the four shuffles",
    expectation: "a warp is cut into groups of `width` lanes. index: lane src mod width of one's own group; up and down: the lane so far below or above, or one's own value where that leaves the group; xor: the partner, or one's own value if it lies in a later group, while one in an earlier group is read. Every type travels the same way, 64 bits as two registers",
    needs: Needs::Kernels,
    run,
};

/// The four shuffles, as the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Index,
    Up,
    Down,
    Xor,
}

impl Mode {
    const ALL: [Mode; 4] = [Mode::Index, Mode::Up, Mode::Down, Mode::Xor];

    fn name(self) -> &'static str {
        match self {
            Mode::Index => "index",
            Mode::Up => "up",
            Mode::Down => "down",
            Mode::Xor => "xor",
        }
    }
}

const WIDTHS: [u32; 5] = [2, 4, 8, 16, 32];
/// Every lane, and what is none: the instruction looks at five bits.
const ARGUMENTS: core::ops::Range<u32> = 0..40;
/// The types, each with the bytes of an element.
const TYPES: [(&str, usize); 7] =
    [("i32", 4), ("u32", 4), ("i64", 8), ("u64", 8), ("f32", 4), ("f64", 8), ("f16x2", 4)];

/// The lane whose value `lane` gets, from the definition of `shfl.sync` (PTX ISA,
/// section 9.7.9.6), as the language sets its operands.
fn source(mode: Mode, argument: u32, width: u32, lane: u32) -> u32 {
    let argument = argument % 32;
    let group = lane / width * width;
    match mode {
        Mode::Index => group + argument % width,
        Mode::Up if lane - group >= argument => lane - argument,
        Mode::Down if lane + argument < group + width => lane + argument,
        Mode::Xor if lane ^ argument < group + width => lane ^ argument,
        _ => lane,
    }
}

fn questions() -> Vec<(Mode, u32, u32)> {
    let of = |mode: Mode| {
        WIDTHS.into_iter().flat_map(move |width| ARGUMENTS.map(move |arg| (mode, arg, width)))
    };
    Mode::ALL.into_iter().flat_map(of).collect()
}

/// Elements of which no two are alike, in all of their bytes.
fn elements(size: usize) -> Vec<u8> {
    (0..32u64)
        .flat_map(|lane| {
            let bits = (lane + 1).wrapping_mul(0x0101_4001_0305_0709);
            bits.to_le_bytes().into_iter().take(size)
        })
        .collect()
}

/// How many lanes did not get what the host says, of every question of a type.
fn mistakes(place: &Place<'_>, dtype: &str, size: usize) -> Result<usize> {
    let questions = questions();
    let words: Vec<u32> = questions
        .iter()
        .flat_map(|&(mode, argument, width)| [mode as u32, argument, width])
        .collect();
    let values = elements(size);
    let (input, asked) = (place.upload(&values)?, place.upload(&bytes_of(&words))?);
    let bytes = (questions.len() * 32 * size) as u64;
    let out = place.room(bytes)?;
    let kernel = place.kernel(&format!("shuffle_lanes_{dtype}"), "lanes")?;
    let launch = Launch::linear(questions.len() as u32, 32);
    place.launch(kernel, &launch, &[input.into(), out.into(), asked.into()])?;
    place.wait()?;
    let found = place.download(out, bytes)?;
    let wanted = questions.iter().flat_map(|&(mode, argument, width)| {
        (0..32).map(move |lane| source(mode, argument, width, lane) as usize)
    });
    Ok(found
        .chunks(size)
        .zip(wanted)
        .filter(|(got, from)| *got != &values[from * size..][..size])
        .count())
}

/// What is shown of all that is checked: steps of folds, a broadcast, and sources
/// outside of the group.
const SHOWN: [(Mode, u32, u32, &str); 16] = [
    (Mode::Index, 0, 32, "broadcast from lane 0"),
    (Mode::Index, 2, 8, "broadcast in groups of 8"),
    (Mode::Index, 11, 8, "11 is 3 mod 8"),
    (Mode::Index, 40, 32, "40 is 8 mod 32"),
    (Mode::Up, 1, 32, "the lane before"),
    (Mode::Up, 3, 8, "the first 3 of a group keep theirs"),
    (Mode::Up, 9, 8, "no lane has a source that far below"),
    (Mode::Down, 16, 32, "the first step of a fold"),
    (Mode::Down, 1, 32, "the last step: lane 31 keeps its own"),
    (Mode::Down, 2, 4, "a step in groups of 4"),
    (Mode::Down, 32, 32, "32 is 0 for the instruction"),
    (Mode::Xor, 1, 32, "neighbours"),
    (Mode::Xor, 16, 32, "halves of the warp"),
    (Mode::Xor, 3, 8, "reversed in fours"),
    (Mode::Xor, 8, 8, "an earlier group is read, a later one is not"),
    (Mode::Xor, 1, 2, "pairs"),
];

fn run(bench: &Bench<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let sim: Sim = counting();
    let small = Place::new(EXPERIMENT.id, &sim);
    let device = bench.place(EXPERIMENT.id);
    let mut table =
        Table::new("Lanes that were compared", &["type", "questions", "lanes", "right"]);
    for (i, (dtype, size)) in TYPES.into_iter().enumerate() {
        bench.tell(i, TYPES.len());
        let all = questions().len();
        for place in [Some(&small), device.as_ref()].into_iter().flatten() {
            let wrong = mistakes(place, dtype, size)?;
            if wrong > 0 {
                outcome.wrong.push(format!("{dtype}: {wrong} lanes got something else"));
            }
        }
        let wrong = outcome.wrong.iter().any(|text| text.starts_with(&format!("{dtype}:")));
        table.rows.push(vec![
            dtype.into(),
            (all as u64).into(),
            (all as u64 * 32).into(),
            if wrong { "no".into() } else { "yes".into() },
        ]);
    }
    let mut shown = Table::new(
        "Whose value each lane gets",
        &["shuffle", "argument", "width", "from lane, for lanes 0 to 31", "what it shows"],
    );
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (mode, argument, width, what) in SHOWN {
        let from: Vec<u32> = (0..32).map(|lane| source(mode, argument, width, lane)).collect();
        shown.rows.push(vec![
            mode.name().into(),
            argument.into(),
            width.into(),
            from.iter().map(u32::to_string).collect::<Vec<_>>().join(" ").into(),
            Cell::from(what),
        ]);
        rows.push(format!("{} {argument}, width {width}", mode.name()));
        cells.push(from.into_iter().map(|lane| Some(f64::from(lane))).collect());
    }
    outcome.findings.push(format!(
        "{} types, {} shuffles of 32 lanes each: every lane got the value that the definition gives",
        TYPES.len(),
        questions().len()
    ));
    if !outcome.wrong.is_empty() {
        outcome.findings.clear();
    }
    outcome.tables.extend([shown, table]);
    outcome.charts.push(Chart::Heat {
        title: "Whose value each lane gets".into(),
        unit: "lane".into(),
        across: "lane".into(),
        columns: (0..32).map(|lane| lane.to_string()).collect(),
        down: "shuffle".into(),
        rows,
        cells,
    });
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_out_of_range_are_what_the_texts_say() {
        let from = |mode, argument, width| -> Vec<u32> {
            (0..32).map(|lane| source(mode, argument, width, lane)).collect()
        };
        assert!(from(Mode::Index, 40, 32).iter().all(|&lane| lane == 8));
        assert_eq!(from(Mode::Up, 1, 4)[..6], [0, 0, 1, 2, 4, 4]);
        assert_eq!(from(Mode::Down, 1, 4)[..6], [1, 2, 3, 3, 5, 6]);
        assert_eq!(from(Mode::Xor, 8, 8)[..10], [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert!(from(Mode::Down, 32, 32).into_iter().eq(0..32));
    }

    #[test]
    fn elements_differ_in_every_size() {
        for size in [4, 8] {
            let all = elements(size);
            let different: std::collections::HashSet<_> = all.chunks(size).collect();
            assert_eq!(different.len(), 32);
        }
    }
}
