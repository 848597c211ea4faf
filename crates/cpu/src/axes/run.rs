//! Walking: blocks of outputs, on all threads.

use super::fold::{Cells, Fold, Part};
use super::lengths::Lengths;
use super::prepare::{Preparation, Prepare, leave_nans};
use super::strips::{StripTables, Strips};
use super::turned::Turned;
use super::walk::{Form, Segment, Walk, move_by};
use crate::isa::Isa;
use crate::pack::{Pack, room};
use crate::reduce::SMALL;
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ops::Range;
use warpfold_core::op::{Numbers, Several, Unwritten};
use warpfold_core::{DType, Error, Result};
use warpfold_threads::{Pieces, Threads};

/// It is asked whether more elements can matter after so many times as many as before, up to the most.
const GROWTH: usize = 8;
const MOST_SEEN: usize = 8192;
/// Where of so many outputs one is left at most, those that are left are looked at without the others.
const FEW: usize = 4;
/// The most outputs that a thread takes at a time in strips.
const MANY: usize = 1 << 14;
/// Bytes of elements that several operations take in one after the other.
const SEVERAL: usize = 128 << 10;
/// Rows of a single column that are worth a copy.
const LANES: usize = 16;
/// So many elements, the first ones, tell whether there are NaNs.
const SAMPLE: usize = 256;
/// Elements of a table of columns that are worth a call.
const TABLE: usize = 2048;
/// The writing of an answer is a part of the cost of outputs of so few elements.
const CHEAP: usize = 64;

/// A walk over elements in memory.
pub(super) struct Run<'a> {
    pub(super) walk: Walk,
    /// The first element of each view: every element that the walk leads to from here may
    /// be read for `'a`, and is aligned. There are one or two.
    pub(super) origins: [Option<*const u8>; 2],
    /// Size and alignment of an element, which any bits make; and of one of the second array.
    pub(super) item: Layout,
    second: Layout,
    threads: Threads,
    /// Whether answers depend on the order of elements.
    pub(super) ordered: bool,
    /// A word of copies of an element that takes part in each output, as accumulators take it in,
    /// and how many bytes it has.
    pub(super) initial: Option<(u64, usize)>,
    elements: PhantomData<&'a [u8]>,
}

// SAFETY: a run only reads, as a shared slice of its elements does.
unsafe impl Sync for Run<'_> {}

/// Where answers go: the threads write different ones, and nobody reads any before all of its block
/// are written.
struct Answers<'a> {
    bytes: *mut u8,
    len: usize,
    dtype: DType,
    numbers: PhantomData<&'a mut Unwritten>,
}

// SAFETY: every output is in one segment of one block, and each block is one thread's.
unsafe impl Sync for Answers<'_> {}

impl<'a> Answers<'a> {
    fn of(numbers: &'a mut Unwritten) -> Self {
        let (len, dtype) = (numbers.len, numbers.dtype);
        Answers { bytes: numbers.as_mut_ptr(), len, dtype, numbers: PhantomData }
    }

    /// Makes answers zeros, which whoever answers a part of them leaves: of a block, in the first
    /// cache.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn begin(&self, first: usize, len: usize) {
        assert!(first + len <= self.len);
        let size = self.dtype.size();
        // SAFETY: within the numbers, of which these are the caller's.
        unsafe { self.bytes.add(first * size).write_bytes(0, len * size) };
    }

    /// The bytes of answers that follow each other; aligned.
    ///
    /// # Safety
    /// No other thread touches them meanwhile, and they have [begun](Self::begin).
    #[expect(clippy::mut_from_ref, reason = "each answer is one thread's")]
    unsafe fn run(&self, first: usize, len: usize) -> &mut [u8] {
        assert!(first + len <= self.len);
        let size = self.dtype.size();
        // SAFETY: within the numbers; the caller vouches for that nobody else is there.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.add(first * size), len * size) }
    }
}

/// Where the answers of a block go.
#[derive(Clone, Copy)]
struct Output<'a> {
    answers: &'a Answers<'a>,
    /// The output, in the order of memory, whose answer comes first.
    start: usize,
    /// The place of the operation.
    place: usize,
}

/// What is taken of each output at a time: `count` elements along the innermost reduced axis,
/// at each of `rows` indices of the axis outside of it.
#[derive(Clone, Copy)]
struct Taken {
    rows: usize,
    count: usize,
}

impl Taken {
    /// Elements of an output.
    fn len(self) -> usize {
        self.rows * self.count
    }
}

/// An output that has no answer, and why.
struct Failed {
    output: usize,
    /// The place of the operation.
    place: usize,
    error: Error,
}

/// The one that comes first in C order, of the first operation: what is reported depends neither on
/// the walk nor on which stages there were.
fn earlier(a: Option<Failed>, b: Option<Failed>) -> Option<Failed> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if (b.output, b.place) < (a.output, a.place) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// What a thread keeps from block to block.
#[derive(Default)]
pub(super) struct Space {
    pub(super) segments: Vec<Segment>,
    /// Copies of elements. Whole words, so that those of every type are aligned.
    pub(super) buffers: [Vec<u64>; 2],
    /// The same, of a strip, and of outputs that are gathered.
    pub(super) strip: [Vec<u64>; 2],
    pub(super) gathered: [Vec<u64>; 2],
    /// Outputs without an answer: their places in the block.
    pub(super) missing: Vec<usize>,
    /// The same, with the outputs in C order.
    left: Vec<(usize, usize)>,
    /// What prepares elements, if they are, and how many of each output then count.
    pub(super) prepare: Option<Prepare>,
    pub(super) counts: Vec<u64>,
    /// Copies of the initial value, if there is one, for the outputs of a strip.
    pub(super) initial: Vec<u64>,
}

/// Those who answer, and what is done to elements before they take them in.
pub(super) struct Stage {
    pub(super) fold: Box<dyn Fold>,
    pub(super) preparation: Option<Preparation>,
    /// The instructions that find NaNs among the answers, where these are none.
    pub(super) leaves_nans: Option<Isa>,
}

/// An operation that is asked for.
pub(super) struct Asked<'a> {
    /// At least one; each answers what those before it cannot.
    pub(super) stages: &'a [Stage],
    /// Answers one output, by its index, in the general way.
    pub(super) general: &'a (dyn Fn(usize) -> Result<u64> + Sync),
    /// Whether there is no answer for no elements.
    pub(super) of_some: bool,
    /// An operation, by its place, whose first stage may know the answers, and which part they are.
    pub(super) known: Option<(usize, Part)>,
}

impl Asked<'_> {
    /// How NaNs are left out for the second accumulators, where the first answer nothing if there
    /// are some.
    fn omission(&self) -> Option<Preparation> {
        let [first, second, ..] = self.stages else { return None };
        second.preparation.filter(|how| how.omits && first.preparation.is_none())
    }
}

/// Where the first answers of a block come from.
enum From<'a, 't> {
    /// The accumulators that the block began with, which have taken in its elements.
    Own,
    /// Those of another operation, of which they are a part.
    Other(&'a mut dyn Cells, Part),
    /// The tables of a strip, of which nothing is taken in yet.
    Tables(&'a StripTables<'t>),
}

/// Blocks that begin with the stage that had to answer one, before the first is tried again.
const CALM: usize = 15;

/// An operation, and what a thread keeps of it from block to block.
///
/// Data of one kind lies together: where most outputs of a block were left to another stage, the
/// next blocks begin with that one.
struct Team<'a> {
    asked: &'a Asked<'a>,
    /// Accumulators of each stage that was needed.
    cells: Several<Option<Box<dyn Cells>>>,
    /// The stage that blocks begin with, and how many will.
    start: usize,
    calm: usize,
    /// How the next block is answered, until it is.
    turn: Option<Turn>,
}

/// How a team answers a block.
struct Turn {
    /// Who knows the answers, if another team does, and which part they are.
    known: Option<(usize, Part)>,
    /// What is done to elements before they are taken in.
    how: Option<Preparation>,
}

impl<'a> Team<'a> {
    /// A team for data that has NaNs, or that may.
    fn new(asked: &'a Asked<'a>, nans: bool) -> Team<'a> {
        let cells = asked.stages.iter().map(|_| None).collect();
        let team = Team { asked, cells, start: 0, calm: 0, turn: None };
        let omitted = nans && asked.omission().is_some();
        if omitted { Team { start: 1, calm: CALM, ..team } } else { team }
    }

    /// The accumulators of a stage.
    fn cells(&mut self, stage: usize) -> &mut dyn Cells {
        &mut **self.cells[stage].get_or_insert_with(|| self.asked.stages[stage].fold.cells())
    }

    /// Those of the stage that a block begins with.
    fn first(&mut self) -> &mut dyn Cells {
        self.cells(self.start)
    }

    /// What is done to elements before those take them in.
    fn preparation(&self) -> Option<Preparation> {
        self.asked.stages[self.start].preparation
    }

    /// Who knows the answers of the next block, if that is another team, and which part they are.
    fn known(teams: &[Team<'_>], team: usize) -> Option<(usize, Part)> {
        teams[team].asked.known.filter(|&(other, _)| teams[other].start == 0)
    }

    /// Learns from a block, most of whose outputs were answered by this stage.
    fn learn(&mut self, most: usize) {
        if self.start != most {
            (self.start, self.calm) = (most, CALM);
        } else if self.calm > 0 {
            self.calm -= 1;
            if self.calm == 0 {
                self.start = 0;
            }
        }
    }
}

impl Run<'_> {
    /// # Safety
    /// See the fields.
    pub(super) unsafe fn new(
        walk: Walk,
        origins: [Option<*const u8>; 2],
        [item, second]: [Layout; 2],
        threads: Threads,
    ) -> Self {
        let elements = PhantomData;
        let (ordered, initial) = (false, None);
        Run { walk, origins, item, second, threads, ordered, initial, elements }
    }

    /// The same walk with an element, by its bits, that takes part in each output.
    pub(super) fn with_initial(self, bits: u64, dtype: DType) -> Self {
        let (mut initial, size) = ([0; 8], dtype.size());
        for i in 0..8 / size {
            Numbers::set_bits(&mut initial, dtype, i, bits);
        }
        Run { initial: Some((u64::from_ne_bytes(initial), size)), ..self }
    }

    /// The answers of all outputs, to each operation in its memory.
    ///
    /// # Errors
    /// Those of [`Asked::general`], of the first operation that has some.
    pub(super) fn answers(
        &self,
        asked: &[Asked<'_>],
        mut numbers: Several<Unwritten>,
    ) -> Result<Several<Numbers>> {
        assert!(asked.len() == numbers.len());
        let mut stages = asked.iter().flat_map(|asked| asked.stages);
        assert!(stages.all(|stage| stage.fold.item() == self.item));
        let outputs = self.walk.outputs();
        let len = self.len();
        let mut firsts = asked.iter().map(|asked| &asked.stages[0]);
        let quick = firsts.all(|first| first.preparation.is_none() && first.fold.is_quick(len));
        let strips = self.strips_for(quick);
        let strips = strips.as_ref();
        // Strips are handed out several at a time.
        let (block, strip) = match strips {
            None => (self.walk.block, self.walk.block),
            Some(strips) => {
                let share = outputs / (4 * self.threads.count());
                (share.next_multiple_of(strips.len).clamp(strips.len, MANY), strips.len)
            }
        };
        let nans =
            asked.iter().find_map(Asked::omission).is_some_and(|how| self.begins_with_nans(how));
        let blocks = outputs.div_ceil(block);
        let bytes = outputs.saturating_mul(len).saturating_mul(self.item.size());
        let threads = if bytes < SMALL { 1 } else { self.threads.count() };
        let answers: Several<Answers<'_>> = numbers.iter_mut().map(Answers::of).collect();
        let block_of = |index: usize| index * block..outputs.min((index + 1) * block);
        let shares_elements = threads > 1 && blocks < 2 * threads && strips.is_none();
        let share = if threads == 1 { outputs } else { outputs / (4 * threads) };
        let size = answers.iter().map(|answers| answers.dtype.size()).sum();
        let turned = Turned::new(&self.walk.places, outputs, size, share);
        // All are turned in the end where threads have no chunks to share, or many elements cost more.
        let few = |turned: &Turned<'_>| outputs.div_ceil(turned.chunk) < 2 * threads;
        let last =
            shares_elements || len > CHEAP || threads > 1 && turned.as_ref().is_some_and(few);
        // Answers in the order of memory.
        let beside = |needed: bool, len: usize| -> Vec<Unwritten> {
            let of = if needed { &answers[..] } else { &[] };
            of.iter().map(|answers| Unwritten::new(answers.dtype, len)).collect()
        };
        let turn = |outputs: Range<usize>, from: &mut [Unwritten]| {
            let Some(turned) = &turned else { return };
            for (from, to) in from.iter_mut().zip(&answers) {
                let (outputs, size) = (outputs.clone(), to.dtype.size());
                // SAFETY: each output is one thread's; there is room for all answers, and those of
                // these outputs, of which there is room for as many, are written.
                unsafe {
                    let from = core::slice::from_raw_parts(from.as_mut_ptr(), outputs.len() * size);
                    turned.write(outputs, size, from, to.bytes, to.len);
                }
            }
        };
        let mut all = beside(last && turned.is_some(), outputs);
        let in_order: Vec<Answers<'_>> = all.iter_mut().map(Answers::of).collect();
        let to: &[Answers<'_>] = if in_order.is_empty() { &answers } else { &in_order };
        let failed = if shares_elements {
            // All begin alike.
            let nans = nans && asked.iter().all(|asked| asked.omission().is_some());
            self.shared(asked, to, (0..blocks).map(block_of), nans)
        } else {
            let chunk = turned.as_ref().filter(|_| !last).map(|turned| turned.chunk);
            let block = chunk.unwrap_or(block);
            let blocks = outputs.div_ceil(block);
            let pieces = Pieces::new(blocks);
            let most = if threads == 1 { 1 } else { blocks };
            let done = self.threads.run(most, || {
                let (mut space, mut failed) = (Space::default(), None);
                let mut teams: Several<Team<'_>> =
                    asked.iter().map(|a| Team::new(a, nans)).collect();
                let mut own = beside(chunk.is_some(), block.min(outputs));
                while let Some(piece) = pieces.take() {
                    let piece = piece * block..outputs.min((piece + 1) * block);
                    let in_order: Vec<Answers<'_>> = own.iter_mut().map(Answers::of).collect();
                    let (to, start) =
                        if in_order.is_empty() { (to, 0) } else { (&in_order[..], piece.start) };
                    let mut from = piece.start;
                    while from < piece.end {
                        let end = strips.map_or(from + strip, |strips| strips.end(from));
                        let outputs = from..piece.end.min(end);
                        from = outputs.end;
                        let out = |place: usize| Output { answers: &to[place], start, place };
                        // SAFETY: each block is taken once.
                        let written =
                            unsafe { self.block(&mut teams, strips, outputs, &mut space, out) };
                        failed = earlier(failed, written);
                    }
                    turn(piece, &mut own);
                }
                failed
            });
            done.into_iter().fold(None, earlier)
        };
        turn(0..outputs, &mut all);
        drop(answers);
        match failed {
            Some(failed) => Err(failed.error),
            // SAFETY: all blocks were written, or turned.
            None => Ok(numbers.into_iter().map(|numbers| unsafe { numbers.written() }).collect()),
        }
    }

    /// Whether a NaN is among the first elements.
    fn begins_with_nans(&self, how: Preparation) -> bool {
        let (walk, mut segments) = (&self.walk, Vec::new());
        walk.segments(0, 1.max(walk.outputs().min(SAMPLE / walk.panel)), &mut segments);
        let Some(first) = segments.first() else { return false };
        let mut buffer = Vec::new();
        let inner = walk.reduced.last().map_or(1, |axis| axis.0);
        let one = Taken { rows: 1, count: inner.min(SAMPLE / first.len) };
        let table = self.table(0, first.offsets[0], walk.form, (first.len, one), &mut buffer);
        // SAFETY: elements of the walk or copies of them.
        unsafe { how.finds_nan(table) }
    }

    /// Short outputs: the threads share their elements.
    fn shared(
        &self,
        asked: &[Asked<'_>],
        answers: &[Answers<'_>],
        blocks: impl Iterator<Item = Range<usize>>,
        nans: bool,
    ) -> Option<Failed> {
        let mut failed = None;
        let (axis, parts) = self.cut(self.threads.count());
        for outputs in blocks {
            let (pieces, count) = (Pieces::new(parts.len()), outputs.len());
            let done = self.threads.run(parts.len(), || {
                let (mut space, mut done) = (Space::default(), Vec::new());
                while let Some(piece) = pieces.take() {
                    // Positions ascend within a piece, but not from one to the next: each has
                    // accumulators of its own.
                    let mut teams: Vec<Team<'_>> =
                        asked.iter().map(|a| Team::new(a, nans)).collect();
                    let how = teams.first().and_then(Team::preparation);
                    let mut cells: Vec<&mut dyn Cells> =
                        teams.iter_mut().map(Team::first).collect();
                    space.counts.clear();
                    space.counts.resize(count, 0);
                    cells.iter_mut().for_each(|cells| cells.clear(count));
                    self.begin(&mut cells, &outputs, &mut space);
                    let part = (axis, parts[piece].clone());
                    self.take_in(&mut cells, outputs.clone(), Some(part), how, &mut space);
                    let settled =
                        cells.iter().all(|cells| cells.glance().is_some() && cells.is_settled());
                    done.push((teams, space.counts.clone()));
                    if settled && !self.ordered {
                        // Nobody needs the others.
                        while pieces.take().is_some() {}
                    }
                }
                done
            });
            let mut done = done.into_iter().flatten();
            let Some((mut teams, counts)) = done.next() else { continue };
            let mut space = Space { counts, ..Space::default() };
            for (others, counts) in done {
                for (team, others) in teams.iter_mut().zip(&others) {
                    if let Some(others) = &others.cells[others.start] {
                        team.first().merge(&**others);
                    }
                }
                space.counts.iter_mut().zip(counts).for_each(|(count, more)| *count += more);
            }
            space.counts.iter_mut().for_each(|count| *count += u64::from(self.initial.is_some()));
            let mut cells: Vec<&mut dyn Cells> = teams.iter_mut().map(Team::first).collect();
            self.add_initial(&mut cells, outputs.len(), &mut space);
            for (place, (team, answers)) in teams.iter_mut().zip(answers).enumerate() {
                let out = Output { answers, start: 0, place };
                let from = From::Own;
                // SAFETY: one thread at a time writes.
                let written = unsafe { self.write(team, from, outputs.clone(), &mut space, out) };
                failed = earlier(failed, written.err());
            }
        }
        failed
    }

    /// Writes the answers of a block or of a strip.
    ///
    /// # Safety
    /// No other thread writes answers of this block.
    unsafe fn block<'g>(
        &self,
        teams: &mut [Team<'_>],
        strips: Option<&Strips>,
        outputs: Range<usize>,
        space: &mut Space,
        out: impl Fn(usize) -> Output<'g>,
    ) -> Option<Failed> {
        let tables = strips.map(|strips| self.strip_tables(strips, outputs.clone(), space));
        let in_tables = tables.is_some();
        for team in 0..teams.len() {
            // Followers begin as their leaders do.
            let known = if in_tables { None } else { Team::known(teams, team) };
            let how = teams[known.map_or(team, |(leader, _)| leader)].preparation();
            teams[team].turn = Some(Turn { known, how });
        }
        let mut failed = None;
        // Those that take in elements alike do so together.
        while let Some(how) = teams.iter().find_map(|team| team.turn.as_ref().map(|turn| turn.how))
        {
            let now = |team: &Team<'_>, follows: bool| {
                let turn = team.turn.as_ref();
                turn.is_some_and(|turn| turn.how == how && turn.known.is_some() == follows)
            };
            if !in_tables {
                let own = teams.iter_mut().filter(|team| now(team, false));
                let mut cells: Vec<&mut dyn Cells> = own.map(Team::first).collect();
                self.take_all(&mut cells, outputs.clone(), how, space);
            }
            // Those who know more than their own answers come last: they are asked for others before.
            for follows in [true, false] {
                for place in 0..teams.len() {
                    if !now(&teams[place], follows) {
                        continue;
                    }
                    let known = teams[place].turn.take().and_then(|turn| turn.known);
                    let (team, from) = match (known, &tables) {
                        (Some((other, part)), _) => {
                            let Ok([team, other]) = teams.get_disjoint_mut([place, other]) else {
                                continue;
                            };
                            (team, From::Other(other.first(), part))
                        }
                        (None, Some(tables)) => (&mut teams[place], From::Tables(tables)),
                        (None, None) => (&mut teams[place], From::Own),
                    };
                    let (outputs, out) = (outputs.clone(), out(place));
                    // SAFETY: passed on from the caller.
                    let written = unsafe { self.write(team, from, outputs, space, out) };
                    failed = earlier(failed, written.err());
                }
            }
        }
        failed
    }

    /// How many elements outputs have: all and the initial value, or those that count.
    fn lengths<'c>(&self, how: Option<Preparation>, counts: &'c [u64]) -> Lengths<'c> {
        let all = self.len() + usize::from(self.initial.is_some());
        how.map_or(Lengths::Same(all as u64), |_| Lengths::Counts(counts))
    }

    /// Elements of an output.
    pub(super) fn len(&self) -> usize {
        self.walk.elements()
    }

    /// Bytes of an element of each array.
    pub(super) fn sizes(&self) -> [usize; 2] {
        [self.item.size(), self.second.size()]
    }

    /// One of the reduced axes, and ranges of it, some for each thread: the outermost that is long
    /// enough, whose ranges have the other axes whole and lie apart in memory, or else the longest.
    fn cut(&self, threads: usize) -> (usize, Vec<Range<usize>>) {
        let axes = || self.walk.reduced.iter().enumerate();
        let enough = axes().find(|(_, axis)| axis.0 >= threads);
        let longest = || axes().max_by_key(|(_, axis)| axis.0);
        let (axis, &(len, _)) = enough.or_else(longest).unwrap_or((0, &(1, [0; 2])));
        let step = len.div_ceil(4 * threads.max(1));
        // Whole panels, where the axis has some.
        let innermost = axis + 1 == self.walk.reduced.len();
        let step = if innermost { step.next_multiple_of(64) } else { step }.min(len).max(1);
        (axis, (0..len).step_by(step).map(|at| at..len.min(at + step)).collect())
    }

    /// Lets accumulators take in all elements of some outputs, and nothing else.
    fn take_all(
        &self,
        cells: &mut [&mut dyn Cells],
        outputs: Range<usize>,
        how: Option<Preparation>,
        space: &mut Space,
    ) {
        cells.iter_mut().for_each(|cells| cells.clear(outputs.len()));
        let count = |space: &mut Space| {
            space.counts.clear();
            if how.is_some() {
                space.counts.resize(outputs.len(), u64::from(self.initial.is_some()));
            }
        };
        count(space);
        let surveyed = cells.iter_mut().filter_map(|cells| {
            let wanted = cells.begin_survey(outputs.len());
            wanted.then_some(&mut **cells)
        });
        let mut surveyed: Vec<&mut dyn Cells> = surveyed.collect();
        if !surveyed.is_empty() {
            self.add_initial(&mut surveyed, outputs.len(), space);
            self.take_in(&mut surveyed, outputs.clone(), None, how, space);
            let surveys = surveyed.len();
            let ends = surveyed.iter_mut().map(|cells| cells.end_survey(outputs.len()));
            if !ends.fold(false, |needed, one| needed | one) && surveys == cells.len() {
                return;
            }
            // They come again.
            count(space);
        }
        self.begin(cells, &outputs, space);
        self.add_initial(cells, outputs.len(), space);
        self.take_in(cells, outputs, None, how, space);
    }

    /// Tells accumulators the first elements of some outputs, if they ask for them.
    fn begin(&self, cells: &mut [&mut dyn Cells], outputs: &Range<usize>, space: &mut Space) {
        if !cells.iter().any(|cells| cells.wants_origins()) {
            return;
        }
        let Space { segments, buffers: [buffer, _], .. } = space;
        self.walk.segments(outputs.start, outputs.end, segments);
        for segment in segments.iter() {
            let one = Taken { rows: 1, count: 1 };
            let table =
                self.table(0, segment.offsets[0], Form::Columns, (segment.len, one), buffer);
            for cells in cells.iter_mut().filter(|cells| cells.wants_origins()) {
                // SAFETY: elements of the walk or copies of them.
                unsafe { cells.origins(segment.place, table) };
            }
        }
    }

    /// Lets accumulators take in the initial value, if there is one.
    fn add_initial(&self, cells: &mut [&mut dyn Cells], outputs: usize, space: &mut Space) {
        let Some(table) = self.initial_row(outputs, &mut space.initial) else { return };
        for cells in cells {
            // SAFETY: a row of the buffer, which is there until after the call; whole words are
            // aligned for every type.
            unsafe { cells.columns(0, table, self.len()) };
        }
    }

    /// A row that has the initial value, if there is one, for each of some outputs: in the buffer,
    /// until that grows.
    pub(super) fn initial_row<'t>(
        &self,
        outputs: usize,
        buffer: &mut Vec<u64>,
    ) -> Option<Table<'t, ()>> {
        let &(word, size) = self.initial.as_ref()?;
        // Nothing else is written there.
        let words = (outputs * size).div_ceil(8);
        if buffer.len() < words {
            buffer.resize(words, word);
        }
        Some(Table::of_any(buffer.as_ptr().cast(), 0, 1, outputs))
    }

    /// Lets accumulators take in the elements of some outputs, or of a part of a
    /// reduced axis.
    fn take_in(
        &self,
        cells: &mut [&mut dyn Cells],
        outputs: Range<usize>,
        part: Option<(usize, Range<usize>)>,
        how: Option<Preparation>,
        space: &mut Space,
    ) {
        let walk = &self.walk;
        walk.segments(outputs.start, outputs.end, &mut space.segments);
        let segments = core::mem::take(&mut space.segments);
        let range = |axis: usize| match &part {
            Some((cut, range)) if *cut == axis => range.clone(),
            _ => 0..walk.reduced[axis].0,
        };
        let inner = walk.reduced.len() - 1;
        // All of them have to be settled.
        let glances = cells.iter().map(|cells| cells.glance());
        let glance = glances.reduce(|one, other| Some(one?.max(other?))).flatten();
        let mut panel = walk.panel;
        if cells.len() > 1 {
            // What several take in stays in the cache for all of them.
            panel = panel.min((SEVERAL / self.item.size() / outputs.len()).max(LANES));
        }
        if walk.form == Form::Columns && walk.copied == [false; 2] {
            let least = cells.iter().map(|cells| cells.least_panel()).max().unwrap_or(1);
            panel = panel.max(TABLE / outputs.len().max(1)).max(least);
        }
        let most = panel.min(MOST_SEEN);
        if let Some(glance) = glance {
            // Rows that are joined are taken in whole.
            panel = if walk.joined > 1 { most } else { panel.min(glance) };
        }
        // The indices of the outer axes, as an odometer.
        let mut index: Vec<usize> = (0..inner).map(|axis| range(axis).start).collect();
        let inner_range = range(inner);
        // Whole rows follow each other, also by their positions.
        let joined = if inner_range.len() == walk.reduced[inner].0 { walk.joined } else { 1 };
        let empty = inner_range.is_empty() || (0..inner).any(|axis| range(axis).is_empty());
        if empty {
            space.segments = segments;
            return;
        }
        'walk: loop {
            let (mut offset, mut place) = ([0isize; 2], 0usize);
            for (&i, &(len, strides)) in index.iter().zip(&walk.reduced) {
                move_by(&mut offset, i, strides);
                place = place * len + i;
            }
            let (len, strides) = walk.reduced[inner];
            let rows =
                if joined > 1 { joined.min(range(inner - 1).end - index[inner - 1]) } else { 1 };
            let mut at = inner_range.start;
            while at < inner_range.end {
                let count = panel.min(inner_range.end - at);
                let part = Taken { rows, count };
                for segment in segments.iter() {
                    let mut offsets = segment.offsets;
                    move_by(&mut offsets, 1, offset);
                    move_by(&mut offsets, at, strides);
                    self.tables(cells, segment, offsets, (part, place * len + at), how, space);
                }
                at += count;
                if glance.is_some() {
                    if cells.iter().all(|cells| cells.is_settled()) {
                        break 'walk;
                    }
                    panel = (panel * GROWTH).min(most);
                }
            }
            // The next index, the innermost of these axes first.
            let mut axis = inner;
            loop {
                if axis == 0 {
                    break 'walk;
                }
                axis -= 1;
                index[axis] += if axis + 1 == inner { joined } else { 1 };
                if index[axis] < range(axis).end {
                    break;
                }
                index[axis] = range(axis).start;
            }
        }
        space.segments = segments;
    }

    /// Space tables to the accumulators: a part of each output of a segment, from the elements
    /// on that lie at these offsets.
    fn tables(
        &self,
        cells: &mut [&mut dyn Cells],
        segment: &Segment,
        offsets: [isize; 2],
        (part, at): (Taken, usize),
        how: Option<Preparation>,
        space: &mut Space,
    ) {
        let Space { buffers, prepare, counts, .. } = space;
        let walk = &self.walk;
        let beside = walk.kept.last().map_or([0; 2], |axis| axis.strides);
        let copied = walk.copied != [false; 2] || part.rows > 1;
        let together = if copied { walk.together(part.len()) } else { segment.len };
        // One column is copied to a row: that has lanes for its elements.
        let alone = segment.len == 1 && !copied && part.count >= LANES;
        let form = if alone { Form::Rows } else { walk.form };
        for first in (0..segment.len).step_by(together) {
            let outputs = together.min(segment.len - first);
            let mut offsets = offsets;
            move_by(&mut offsets, first, beside);
            let [one, two] = buffers;
            let table = self.table(0, offsets[0], form, (outputs, part), one);
            let other =
                self.origins[1].map(|_| self.table(1, offsets[1], form, (outputs, part), two));
            let place = segment.place + first;
            if let Some(how) = how {
                let prepare = Prepare::again(prepare, how);
                let counts = &mut counts[place..];
                // SAFETY: as below; marks are bytes.
                unsafe { prepare.take(cells, (form, place, at), table, other, counts) };
                continue;
            }
            for cells in cells.iter_mut() {
                // SAFETY: elements of the walk or copies of them, which are aligned and may be
                // read, and those of a row follow each other; they have the operation's size.
                unsafe {
                    match (form, other) {
                        (Form::Rows, None) => cells.rows(place, table, at),
                        (Form::Columns, None) => {
                            let [first, others] = table.at_lines(self.item.size());
                            if first.columns() > 0 {
                                cells.columns(place, first, at);
                            }
                            cells.columns(place + first.columns(), others, at);
                        }
                        (Form::Rows, Some(other)) => cells.row_pairs(place, [table, other]),
                        (Form::Columns, Some(other)) => cells.column_pairs(place, [table, other]),
                    }
                }
            }
        }
    }

    /// The table of a part of each of some outputs of one array, copied if the walk says so.
    fn table<'b>(
        &'b self,
        array: usize,
        offset: isize,
        form: Form,
        (outputs, part): (usize, Taken),
        buffer: &'b mut Vec<u64>,
    ) -> Table<'b, ()> {
        let walk = &self.walk;
        let along = walk.reduced.last().map_or(0, |(_, strides)| strides[array]);
        let beside = walk.kept.last().map_or(0, |axis| axis.strides[array]);
        let (rows, columns, row_stride, column_stride) = match form {
            Form::Rows => (outputs, part.count, beside, along),
            Form::Columns => (part.count, outputs, along, beside),
        };
        let origin = self.origins[array].unwrap_or(core::ptr::null());
        let from = origin.wrapping_byte_offset(offset);
        let size = if array == 0 { self.item.size() } else { self.second.size() };
        if part.rows > 1 {
            // A row of each output, made of several.
            let (columns, outside) = (part.len(), walk.reduced[walk.reduced.len() - 2].1[array]);
            let to = room(buffer, outputs * columns * size);
            for (i, to) in to.chunks_exact_mut(columns * size).enumerate() {
                let from = from.wrapping_byte_offset(i.cast_signed() * beside);
                let (rows, columns) = (part.rows, part.count);
                let (row_stride, column_stride) = (outside, along);
                let pack = Pack { from, size, rows, columns, row_stride, column_stride };
                // SAFETY: as below.
                unsafe { pack.fill(to) };
            }
            let stride = (columns * size).cast_signed();
            return Table::of_any(to.as_ptr().cast(), stride, outputs, columns);
        }
        let lies = !walk.copied[array] && column_stride == size.cast_signed();
        if lies || !walk.copied[array] && form == walk.form {
            return Table::of_any(from.cast(), row_stride, rows, columns);
        }
        let to = room(buffer, rows * columns * size);
        let pack = Pack { from, size, rows, columns, row_stride, column_stride };
        // SAFETY: the table is among the walk's elements, which may be read.
        unsafe { pack.fill(to) };
        Table::of_any(to.as_ptr().cast(), (columns * size).cast_signed(), rows, columns)
    }

    /// Writes the answers of one operation for a block.
    ///
    /// # Errors
    /// Those of [`Asked::general`].
    ///
    /// # Safety
    /// No other thread writes answers of this block.
    unsafe fn write(
        &self,
        team: &mut Team<'_>,
        from: From<'_, '_>,
        outputs: Range<usize>,
        space: &mut Space,
        out: Output<'_>,
    ) -> core::result::Result<(), Failed> {
        let Output { answers, start: first, place: operation } = out;
        let (begin, of_some) = (outputs.start, team.asked.of_some);
        // SAFETY: outputs of the block, which the caller vouches for; here and below.
        unsafe { answers.begin(begin - first, outputs.len()) };
        let mut left = core::mem::take(&mut space.left);
        left.clear();
        space.missing.clear();
        let (stages, start) = (team.start..team.cells.len(), team.start);
        // Whether accumulators of the first of these stages have taken in all elements.
        let mut tried = !matches!(from, From::Other(..));
        let mut how = team.preparation();
        let begun = if tried { start } else { 0 };
        let leaves_nans = team.asked.stages[begun].leaves_nans;
        // Later stages answer a strip from its tables, too.
        let tables = if let From::Tables(tables) = from { Some(tables) } else { None };
        match from {
            From::Other(cells, part) => {
                // Which the leader's first accumulators have taken in.
                how = team.asked.stages[0].preparation;
                if cells.ask(part) {
                    // SAFETY: as above.
                    unsafe { self.write_block(cells, outputs.clone(), how, space, out) };
                } else {
                    space.missing.extend(0..outputs.len());
                }
                cells.ask(Part::Own);
            }
            From::Own => {
                let cells = team.first();
                // SAFETY: as above.
                unsafe { self.write_block(cells, outputs.clone(), how, space, out) };
            }
            From::Tables(tables) => {
                let cells = team.first();
                // SAFETY: as above.
                let to = unsafe { answers.run(begin - first, outputs.len()) };
                tried = !tables.answer(cells, how, to, space);
            }
        }
        if let Some(isa) = leaves_nans {
            // SAFETY: as above.
            let found = unsafe { answers.run(begin - first, outputs.len()) };
            leave_nans(isa, answers.dtype, found, &mut space.missing);
        }
        let others = if tried { start + 1..stages.end } else { stages };
        if of_some && how.is_some() {
            let none = (0..outputs.len()).filter(|&place| space.counts[place] == 0);
            space.missing.extend(none);
            space.missing.sort_unstable();
            space.missing.dedup();
        }
        left.extend(space.missing.iter().map(|&place| (place, self.walk.places.at(begin + place))));
        let mut most = (outputs.len() - left.len(), team.start);
        let stages = team.asked.stages;
        let specials = stages.iter().position(|stage| stage.fold.is_for_specials());
        // How many outputs are infinite or NaN so far.
        let odd = |left: &[(usize, usize)]| {
            // SAFETY: as above; those who answer outputs of such elements alone are for f64.
            let found = unsafe { answers.run(begin - first, outputs.len()) };
            let found: &[f64] = bytemuck::cast_slice(found);
            left.iter().filter(|&&(place, _)| !found[place].is_finite()).count()
        };
        let size = answers.dtype.size();
        // What is counted below is not what other operations were told.
        let counts = (!left.is_empty()).then(|| space.counts.clone());
        // The others follow, and then those before.
        for stage in others.chain(0..start) {
            if left.is_empty() {
                break;
            }
            if let Some(specials) = specials
                && (specials..stages.len() - 1).contains(&stage)
            {
                // What is so and has no such elements has overflowed, which only the last ones know.
                let odd = odd(&left);
                if (stage == specials && odd == 0) || (stage > specials && 2 * odd > left.len()) {
                    continue;
                }
            }
            let (before, how) = (left.len(), team.asked.stages[stage].preparation);
            let leaves_nans = team.asked.stages[stage].leaves_nans;
            // All of the block, unless a few are left.
            let together = before * FEW >= outputs.len();
            let (tables, batch) = match self.gathered_together() {
                _ if together => (tables, before),
                Some(batch) => (None, batch.min(before)),
                None => (None, 1),
            };
            let count = if together { outputs.len() } else { batch };
            let mut words = vec![0u64; (count * size).div_ceil(8)];
            let words: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..count * size];
            let cells = team.cells(stage);
            let mut kept = 0;
            for from in (0..before).step_by(batch) {
                let some = from..before.min(from + batch);
                space.missing.clear();
                if let Some(tables) = tables {
                    tables.answer(cells, how, words, space);
                } else if together || batch == 1 {
                    let one = begin + left[from].0;
                    let block = if together { outputs.clone() } else { one..one + 1 };
                    self.take_all(&mut [&mut *cells], block, how, space);
                    let lengths = self.lengths(how, &space.counts);
                    cells.answer(lengths, words, &mut space.missing);
                } else {
                    let places = left[some.clone()].iter().map(|&(place, _)| begin + place);
                    let gathered = self.gathered(places, space);
                    gathered.answer(cells, how, &mut words[..some.len() * size], space);
                }
                if let Some(isa) = leaves_nans {
                    let found = if together { outputs.len() } else { some.len() };
                    leave_nans(isa, answers.dtype, &words[..found * size], &mut space.missing);
                }
                for i in some {
                    let place = left[i].0;
                    let at = if together { place } else { i - from };
                    let none = of_some && how.is_some() && space.counts[at] == 0;
                    // In order, as they were asked for.
                    if none || space.missing.binary_search(&at).is_ok() {
                        left[kept] = left[i];
                        kept += 1;
                    } else {
                        // SAFETY: as above.
                        let to = unsafe { answers.run(begin + place - first, 1) };
                        to.copy_from_slice(&words[at * size..][..size]);
                    }
                }
            }
            left.truncate(kept);
            most = most.max((before - left.len(), stage));
        }
        team.learn(most.1);
        if let Some(counts) = counts {
            space.counts = counts;
        }
        left.sort_unstable_by_key(|&(_, output)| output);
        for &(place, output) in &left {
            let bits = (team.asked.general)(output).map_err(|error| Failed {
                output,
                place: operation,
                error,
            })?;
            // SAFETY: as above.
            let to = unsafe { answers.run(begin + place - first, 1) };
            Numbers::set_bits(to, answers.dtype, 0, bits);
        }
        space.left = left;
        Ok(())
    }

    /// Writes the answers of a block that accumulators have; the places of those that there are
    /// not go to [`Space::missing`].
    ///
    /// # Safety
    /// No other thread writes these answers.
    unsafe fn write_block(
        &self,
        cells: &mut dyn Cells,
        outputs: Range<usize>,
        how: Option<Preparation>,
        space: &mut Space,
        out: Output<'_>,
    ) {
        // SAFETY: passed on from the caller.
        let to = unsafe { out.answers.run(outputs.start - out.start, outputs.len()) };
        cells.answer(self.lengths(how, &space.counts), to, &mut space.missing);
    }
}
