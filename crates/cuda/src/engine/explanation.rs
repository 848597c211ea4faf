//! What a reader wants to know of a reduction: how it is done, and what limits it.

use super::kernels;
use super::number::Number;
use super::plan::{self, MOST_ROWS};
use super::question::Question;
use super::route::{Launches, Route, Walk};
use super::tiles::{Wanted, in_place};
use super::view::DeviceView;
use super::{Engine, Input, Kernel, lock};
use crate::Result;
use crate::device::Launch;
use core::fmt;
use core::sync::atomic::Ordering;
use warpfold_core::DType;
use warpfold_core::op::Kind;

/// Bytes that a device reads in less time than a launch takes.
const SMALL: u64 = 1 << 20;
/// Bytes that a multiprocessor must have under way so that memory is busy: bandwidth
/// times latency (Little's law) of devices with 2 to 5 TB/s is 10 to 20 KiB.
const BUSY: u64 = 16 << 10;

/// What is expected to limit a launch on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// So little is read that the launch itself takes most of the time.
    Launch,
    /// Too few bytes are under way to keep the memory busy.
    Latency,
    /// Instructions: exponentials, and exact products of wide elements.
    Arithmetic,
    /// The rate at which memory is read.
    Memory,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Launch => "the launch",
            Limit::Latency => "latency",
            Limit::Arithmetic => "arithmetic",
            Limit::Memory => "memory",
        })
    }
}

/// How a reduction is done on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// How elements are found: `whole`, `rows`, `short rows`, `columns`, `view`,
    /// `segments` and their kin.
    pub walk: &'static str,
    /// The kernel that reads the elements.
    pub kernel: String,
    /// How many launches there are.
    pub launches: usize,
    /// The first one.
    pub launch: Launch,
    /// Bytes of the elements that it reads.
    pub bytes: u64,
    /// Bytes that it has under way at once.
    pub in_flight: u64,
    /// Bytes of the workspace beside the usual scratch memory.
    pub workspace: u64,
    /// What is expected to limit it.
    pub limit: Limit,
}

/// `short rows: row_sums_f32, 1 launch of 4 blocks of 256 threads, 64 KiB in flight,
/// limited by the launch`
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { walk, kernel, launches, launch, .. } = self;
        let plural = if *launches == 1 { "" } else { "es" };
        write!(f, "{walk}: {kernel}, {launches} launch{plural} of ")?;
        // Axes with one block say nothing.
        let used = launch.grid.iter().rposition(|&n| n != 1).map_or(1, |last| last + 1);
        let grid: Vec<String> = launch.grid[..used].iter().map(u32::to_string).collect();
        let one = launch.grid == [1; 3];
        write!(f, "{} block{} of ", grid.join(" x "), if one { "" } else { "s" })?;
        write!(f, "{} threads, {} in flight", launch.block[0], Bytes(self.in_flight))?;
        if self.workspace > 0 {
            write!(f, ", workspace {}", Bytes(self.workspace))?;
        }
        write!(f, ", limited by {}", self.limit)
    }
}

/// A number of bytes, in the largest unit that leaves a whole number or few digits.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut n, mut unit) = (self.0, "bytes");
        for larger in ["KiB", "MiB", "GiB"] {
            if n < 1024 || !n.is_multiple_of(1024) && n < 1000 << 10 {
                break;
            }
            (n, unit) = (n >> 10, larger);
        }
        write!(f, "{n} {unit}")
    }
}

/// Whether a kernel of this kind has more to compute than memory gives it time for.
fn is_costly(kind: Kind, dtype: DType) -> bool {
    match kind {
        Kind::LogSumExp | Kind::Prod => dtype.is_float(),
        Kind::Dot | Kind::SquareSum | Kind::Moments => dtype == DType::F64,
        _ => false,
    }
}

impl Explanation {
    /// Of launches that read `bytes` bytes together.
    pub(super) fn new(
        walk: &'static str,
        launches: Launches,
        (kind, dtype): (Kind, DType),
        bytes: u64,
        multiprocessors: u32,
    ) -> Explanation {
        let Launches { kernel, count, launch, blocks_at_once, bytes_of_a_thread, workspace } =
            launches;
        let all = |sides: [u32; 3]| sides.iter().map(|&n| u64::from(n)).product::<u64>();
        let blocks = all(launch.grid).min(u64::from(blocks_at_once.max(1)));
        let under_way = blocks * all(launch.block) * bytes_of_a_thread as u64;
        let first = bytes / count.max(1) as u64;
        let in_flight = under_way.min(first);
        let limit = if first <= SMALL {
            Limit::Launch
        } else if in_flight < BUSY * u64::from(multiprocessors) {
            Limit::Latency
        } else if is_costly(kind, dtype) {
            Limit::Arithmetic
        } else {
            Limit::Memory
        };
        Explanation { walk, kernel, launches: count, launch, bytes, in_flight, workspace, limit }
    }
}

impl Walk<'_> {
    /// What readers call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Walk::Unread => "no element",
            Walk::Abreast(_) => "outputs abreast",
            Walk::View(..) => "view",
            Walk::ShortRows(_) => "short rows",
            Walk::Columns(_) => "columns",
            Walk::GatheredRows(_) => "copied rows as a view",
            Walk::Payloads(plan) if plan.gathers => "copied rows",
            Walk::Payloads(_) => "rows",
        }
    }
}

impl Engine {
    /// How [`numbers_into`](Self::numbers_into) answers a number over the axes that
    /// `reduced` marks; `None` where it does not, and a state for each output is made.
    /// Nothing is launched; at most a kernel is loaded.
    ///
    /// # Errors
    /// Views that cannot be; what the device says about the kernel.
    pub fn explain(
        &self,
        number: impl Into<Number>,
        view: &DeviceView,
        reduced: &[bool],
    ) -> Result<Option<Explanation>> {
        // There need be no memory yet.
        view.extent()?;
        let Some(question) = Question::of(number, view, reduced, self.shape.walk)? else {
            return Ok(None);
        };
        let Question { ends, .. } = &question;
        let question = ends.as_ref().map_or(&question, |ends| &ends[1]);
        let Some(route) = question.route(self.machine()) else { return Ok(None) };
        let mut explained = self.explain_route(question, &route)?;
        match route.walk {
            _ if ends.is_none() => {}
            // One launch has blocks for both ends, or a payload tells both.
            Walk::View(_, plan) => explained.launch = plan.launch_of_ends(),
            Walk::Payloads(_) if !route.reorders => {}
            _ => explained.launches *= 2,
        }
        Ok(Some(explained))
    }

    /// The same of a route.
    fn explain_route(&self, question: &Question, route: &Route<'_>) -> Result<Explanation> {
        let Question { answer, table, .. } = question;
        let answer = *answer;
        let launches = match &route.walk {
            Walk::Unread => {
                let filled = Launches {
                    kernel: "fill".into(),
                    count: 0,
                    launch: Launch::linear(1, 1),
                    blocks_at_once: 1,
                    bytes_of_a_thread: 0,
                    workspace: 0,
                };
                return Ok(self.explained(
                    route.walk.name(),
                    filled,
                    (answer.kind, answer.dtype),
                    0,
                ));
            }
            Walk::Abreast(plan) => plan.launches(answer),
            Walk::View(_, plan) => plan.launches(),
            Walk::ShortRows(plan) => plan.launches(answer),
            Walk::Columns(plan) => plan.launches(answer),
            Walk::GatheredRows(plan) => plan.launches(table),
            Walk::Payloads(plan) => {
                let wanted = Wanted { table, kinds: &[answer.kind], start: 0 };
                let rows = wanted.rows_at_once(plan.workspace)?;
                let most = MOST_ROWS as usize;
                let (tiles, rows) = match in_place(table) {
                    Some(in_place) => {
                        let rows = rows.clamp(1, in_place.count.min(most));
                        let each = in_place.count.div_ceil(rows);
                        (in_place.launches(table).count() * each, rows)
                    }
                    None => (table.tiles(rows).count(), table.largest_tile(rows).min(most)),
                };
                let kernel = self.kernel(answer.kind, answer.dtype)?;
                let len = table.elements.len as u64;
                let mut launches =
                    self.rows_launches(answer.kind, &kernel, rows, len, answer.dtype);
                launches.count *= tiles;
                Launches { workspace: plan.workspace, ..launches }
            }
        };
        let bytes = table.outputs.len.saturating_mul(table.elements.len);
        let bytes = bytes.saturating_mul(table.dtype.size()) as u64;
        Ok(self.explained(route.walk.name(), launches, (answer.kind, answer.dtype), bytes))
    }

    /// What the launch for `rows` rows, or those for each of them, are like.
    fn rows_launches(
        &self,
        kind: Kind,
        kernel: &Kernel,
        rows: usize,
        len: u64,
        dtype: DType,
    ) -> Launches {
        let size = dtype.size() * (1 + usize::from(kind.takes_pairs()));
        let count = u32::try_from(rows).unwrap_or(MOST_ROWS);
        let together = plan::plan_rows(&kernel.capacity, self.shape, count, len, size);
        let launch =
            together.unwrap_or_else(|| plan::plan(&kernel.capacity, self.shape, len, size));
        let count = if together.is_some() { 1 } else { rows };
        kernel.launches(kind, dtype, launch, count, 0)
    }

    pub(super) fn explained(
        &self,
        walk: &'static str,
        launches: Launches,
        of: (Kind, DType),
        bytes: u64,
    ) -> Explanation {
        Explanation::new(walk, launches, of, bytes, self.device.limits().multiprocessors)
    }

    /// From now on, remembers how reductions are done, for
    /// [`take_explanations`](Self::take_explanations).
    pub fn remember_explanations(&self) {
        self.explains.store(true, Ordering::Relaxed);
    }

    /// How reductions were done since
    /// [`remember_explanations`](Self::remember_explanations): one entry for each walk and
    /// kernel, with the largest launch and the number of all.
    #[must_use]
    pub fn take_explanations(&self) -> Vec<Explanation> {
        core::mem::take(&mut *lock(&self.explanations))
    }

    /// Remembers what `explain` says, if anybody wants to know.
    pub(super) fn remember(&self, explain: impl FnOnce() -> Result<Explanation>) -> Result<()> {
        if !self.explains.load(Ordering::Relaxed) {
            return Ok(());
        }
        let new = explain()?;
        let mut all = lock(&self.explanations);
        let same = |e: &&mut Explanation| e.walk == new.walk && e.kernel == new.kernel;
        match all.iter_mut().find(same) {
            Some(known) => {
                let launches = known.launches + new.launches;
                if new.bytes > known.bytes {
                    *known = new;
                }
                known.launches = launches;
            }
            None => all.push(new),
        }
        Ok(())
    }

    /// Remembers a question's route.
    pub(super) fn remember_route(&self, question: &Question, route: &Route<'_>) -> Result<()> {
        // Rows that leave payloads are remembered as they are launched.
        if matches!(route.walk, Walk::Payloads(_)) {
            return Ok(());
        }
        self.remember(|| self.explain_route(question, route))
    }

    /// Remembers a launch that reduces an array, or rows of one.
    pub(super) fn remember_states(
        &self,
        walk: &'static str,
        kind: Kind,
        input: &Input,
        rows: u64,
        (launch, workspace): (Launch, u64),
    ) -> Result<()> {
        let dtype = input.array.dtype;
        self.remember(|| {
            let kernel = self.kernel(kind, dtype)?;
            let launches = kernel.launches(kind, dtype, launch, 1, workspace);
            let arrays = 1 + u64::from(input.others.is_some());
            let bytes = input.array.len.saturating_mul(dtype.size() as u64 * arrays);
            Ok(self.explained(walk, launches, (kind, dtype), bytes.saturating_mul(rows)))
        })
    }
}

impl Kernel {
    /// What `count` launches of such a shape are like.
    fn launches(
        &self,
        kind: Kind,
        dtype: DType,
        launch: Launch,
        count: usize,
        workspace: u64,
    ) -> Launches {
        let build = self.capacity.build;
        // Smaller blocks than the kernel is compiled for: as many more of them.
        let smaller = (build.threads / launch.block[0].max(1)).max(1);
        Launches {
            kernel: kernels::name(kind, dtype).unwrap_or_default(),
            count,
            launch,
            blocks_at_once: self.capacity.resident.saturating_mul(smaller),
            bytes_of_a_thread: 16 * build.vectors as usize,
            workspace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64, blocks: u32, kind: Kind) -> Explanation {
        let launches = Launches {
            kernel: "sum_f64".into(),
            count: 1,
            launch: Launch::linear(blocks, 256),
            blocks_at_once: 264,
            bytes_of_a_thread: 64,
            workspace: 0,
        };
        Explanation::new("whole", launches, (kind, DType::F64), bytes, 132)
    }

    #[test]
    fn limits_follow_from_what_is_read_and_what_is_under_way() {
        assert_eq!(of(1 << 20, 264, Kind::Sum).limit, Limit::Launch);
        assert_eq!(of(1 << 30, 100, Kind::Sum).limit, Limit::Latency);
        assert_eq!(of(1 << 30, 264, Kind::Sum).limit, Limit::Memory);
        assert_eq!(of(1 << 30, 264, Kind::Moments).limit, Limit::Arithmetic);
    }

    #[test]
    fn no_more_is_under_way_than_runs_or_is_read() {
        assert_eq!(of(1 << 30, 2, Kind::Sum).in_flight, 2 * 256 * 64);
        assert_eq!(of(1 << 30, 4096, Kind::Sum).in_flight, 264 * 256 * 64);
        assert_eq!(of(1000, 264, Kind::Sum).in_flight, 1000);
    }

    #[test]
    fn explanations_read_as_a_line() {
        let one = of(1000, 1, Kind::Sum);
        let text = "whole: sum_f64, 1 launch of 1 block of 256 threads, 1000 bytes in flight, \
                    limited by the launch";
        assert_eq!(one.to_string(), text);
        let launch = Launch { grid: [3, 1, 2], ..one.launch };
        let many = Explanation { launch, launches: 2, workspace: 3 << 20, ..one };
        let text = "whole: sum_f64, 2 launches of 3 x 1 x 2 blocks of 256 threads, 1000 bytes in \
                    flight, workspace 3 MiB, limited by the launch";
        assert_eq!(many.to_string(), text);
        let text = |bytes| Bytes(bytes).to_string();
        assert_eq!(text(2048), "2 KiB");
        assert_eq!(text(1 << 20), "1 MiB");
        assert_eq!(text(1 << 20 | 1 << 19), "1536 KiB");
        assert_eq!(text(1999), "1999 bytes");
        assert_eq!(text(5 << 30), "5 GiB");
    }
}
