//! Fixed trees: what of a run the device folds, the memory that its warps meet
//! in, and the state that it leaves.
//!
//! A kernel leaves the elements before and behind the run's whole leaves, padded
//! to words, and the nodes that have no parent in the run: from the lowest level to the highest, the one at the left
//! edge first. A node is left in its byte form; a byte that its words do not fill
//! comes first, in a word of its own. `kernels/tree.cuh` says how.

use super::Input;
use super::catalogue::{self, MEETING};
use warpfold_core::element::Element;
use warpfold_core::op::prod::Factors;
use warpfold_core::op::tree::BLOCK;
use warpfold_core::op::{AnyState, FixedTree, Kind, Run, State, TreeOp};
use warpfold_core::{DType, with_float_element};

/// Bytes that a warp folds side by side: one leaf of f64, two of f32, four of
/// shorter floats.
const UNIT_BYTES: u64 = 32 << 10;

/// The most tasks that meet one by one, in memory and in the shared memory of an
/// only block; more are gathered.
const MOST_TASKS: u64 = catalogue::MOST_TASKS as u64;
const MOST_NEAR_TASKS: u64 = catalogue::MOST_NEAR_TASKS as u64;

/// The most tasks that the counters of `block_workspace.rs` are enough for.
const MOST_COUNTED_TASKS: u64 = 1 << 20;

/// Calls a generic function with the tree that a kind and a type name:
/// `with_tree!(kind, dtype, P => f::<P>(), else => x)`.
macro_rules! with_tree {
    ($kind:expr, $dtype:expr, $P:ident => $body:expr, else => $otherwise:expr) => {
        with_float_element!($dtype, T => match $kind {
            Kind::Prod => { type $P = Factors<T>; $body }
            _ => $otherwise,
        }, else => $otherwise)
    };
}

/// A run's place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaves {
    /// The first whole leaf, and how many there are.
    first: u64,
    whole: u64,
    /// Elements before them and behind them.
    head: u64,
    tail: u64,
}

impl Leaves {
    fn of(input: &Input) -> Leaves {
        let (start, len, block) = (input.start, input.array.len, BLOCK as u64);
        let head = ((block - start % block) % block).min(len);
        Leaves {
            first: start.div_ceil(block),
            whole: (len - head) / block,
            head,
            tail: (len - head) % block,
        }
    }

    /// The nodes without a parent, as level and index, in the kernel's order.
    fn roots(self) -> impl Iterator<Item = (u32, u64)> {
        let levels = 0..u64::BITS - self.whole.leading_zeros();
        levels.flat_map(move |level| {
            let begin = self.first.div_ceil(1 << level);
            let end = (self.first + self.whole) >> level;
            let left = (begin < end && begin % 2 == 1).then_some((level, begin));
            let right = (begin < end && end % 2 == 1).then_some((level, end.wrapping_sub(1)));
            left.into_iter().chain(right)
        })
    }

    /// How many tasks there are if at most so many are to meet.
    fn tasks(self, size: usize, most: u64) -> u64 {
        let unit = (UNIT_BYTES / (BLOCK * size) as u64).trailing_zeros();
        let Some(last) = (self.first + self.whole).checked_sub(1).filter(|_| self.whole > 0) else {
            return 0;
        };
        let count = |gather| (last >> unit >> gather) - (self.first >> unit >> gather) + 1;
        (0..MEETING).map(count).find(|&n| n <= most).unwrap_or_else(|| count(MEETING))
    }
}

/// Whether states of this kind and type are such trees.
pub(super) fn is_tree(kind: Kind, dtype: DType) -> bool {
    with_tree!(kind, dtype, _P => true, else => false)
}

/// Words of a node, as it is left.
pub(super) fn node_words(kind: Kind, dtype: DType) -> u64 {
    let bytes = with_tree!(kind, dtype, P => <P as TreeOp>::NODE_BYTES, else => 0);
    bytes.div_ceil(8) as u64
}

/// The tasks that a grid of many blocks shares out.
pub(super) fn tasks(input: &Input) -> u64 {
    Leaves::of(input).tasks(input.array.dtype.size(), MOST_TASKS)
}

/// Bytes of elements that are left as they are.
fn edge_bytes(input: &Input) -> u64 {
    let Leaves { head, tail, .. } = Leaves::of(input);
    ((head + tail) * input.array.dtype.size() as u64).next_multiple_of(8)
}

/// Words of the elements that are left as they are.
pub(super) fn edge_words(input: &Input) -> u64 {
    edge_bytes(input) / 8
}

/// Words that the nodes need which meet in memory; none if the only block has
/// enough shared memory, and `None` if there are too many.
pub(super) fn workspace_words(kind: Kind, input: &Input, blocks: u32) -> Option<u64> {
    let dtype = input.array.dtype;
    let most = if blocks == 1 { MOST_NEAR_TASKS } else { MOST_TASKS };
    let tasks = Leaves::of(input).tasks(dtype.size(), most);
    if blocks == 1 && tasks <= most {
        return Some(0);
    }
    // A level has at most 1/32 of the nodes of the one before it that meets.
    let nodes = tasks + tasks / 16 + 16;
    (tasks <= MOST_COUNTED_TASKS).then_some(nodes * node_words(kind, dtype))
}

/// How many bytes a kernel leaves.
pub(super) fn output_len(kind: Kind, input: &Input) -> usize {
    let nodes = Leaves::of(input).roots().count() as u64 * node_words(kind, input.array.dtype);
    (edge_bytes(input) + 8 * nodes) as usize
}

/// The state that these bytes are; says what is wrong with them.
pub(super) fn state(kind: Kind, input: &Input, output: &[u8]) -> Result<AnyState, &'static str> {
    with_tree!(kind, input.array.dtype,
        P => read::<P>(input, output).map(AnyState::from),
        else => Err("it is no fixed tree"))
}

fn read<P: TreeOp>(input: &Input, output: &[u8]) -> Result<FixedTree<P>, &'static str> {
    const SHORT: &str = "it ends too early";
    let leaves = Leaves::of(input);
    let (edges, mut rest) = output.split_at_checked(edge_bytes(input) as usize).ok_or(SHORT)?;
    let items: Vec<P::Item> = edges
        .chunks_exact(size_of::<P::Item>())
        .map(|item| P::Item::from_bits(item.iter().rfold(0, |bits, &b| bits << 8 | u64::from(b))))
        .take((leaves.head + leaves.tail) as usize)
        .collect();

    let mut tree = FixedTree::<P>::new();
    let words = P::NODE_BYTES.div_ceil(8);
    for (level, index) in leaves.roots() {
        let (bytes, after) = rest.split_at_checked(8 * words).ok_or(SHORT)?;
        rest = after;
        // Of a first word that is not full, its low byte.
        let odd = P::NODE_BYTES % 8;
        let form = if odd == 0 { bytes.to_vec() } else { [&bytes[..odd], &bytes[8..]].concat() };
        let node = P::get(&form, (BLOCK as u64) << level).ok_or("a node is impossible")?;
        tree.absorb_node(level, index, node);
    }
    let head = leaves.head as usize;
    tree.absorb(Run { start: input.start, items: &items[..head], others: &[] });
    let start = input.start + (input.array.len - leaves.tail);
    tree.absorb(Run { start, items: &items[head..], others: &[] });
    Ok(tree)
}
