//! Reductions that depend on the order of evaluation, made deterministic.
//!
//! The order is a *fixed tree* over the positions of the elements. Positions
//! are cut into blocks of [`BLOCK`]. The *leaf* of a block is folded by
//! [`LANES`] lanes: lane `l` takes the block's elements `l`, `l + 64`,
//! `l + 128`, ... in order, then lanes fold by halving, lane `l` with lane
//! `l + 32`, `+ 16`, ... `+ 1`. Above the leaves, node `i` of level `k`
//! combines nodes `2 i` and `2 i + 1` of level `k - 1`; a right child wholly
//! beyond the end of the array is absent and the left one passes through.
//!
//! The result does not depend on which thread folds which block, or when. So any split
//! of the data, merged in any order, on any machine, gives the same bits.

use super::{Kind, Op, Rules, Run, State, Value};
use crate::element::Element;
use crate::error::{Error, Result};
use core::fmt::Debug;

/// Elements of a block: the unit of the fixed tree.
pub const BLOCK: usize = 4096;

/// Lanes that fold a block.
pub const LANES: usize = 64;

/// Level 52 would be one node over all 2^64 positions.
const MAX_LEVEL: u32 = 51;
const BLOCKS: u64 = 1 << 52;

/// What a fixed tree folds, and how.
///
/// Laws, bit for bit: with `E = leaf(&[])`,
/// `combine(E, x) = combine(x, E) = x` for every node `x`, and a leaf does not
/// change when [`IDENTITY_ITEM`](Self::IDENTITY_ITEM)s are appended.
/// `combine` need not be associative.
///
/// Sealed, as [`State`] is.
pub trait TreeOp: super::state::sealed::Sealed + Copy + Debug + Send + Sync + 'static {
    /// What is folded.
    type Item: Element;
    /// What a block is folded to.
    type Node: Copy + Debug + Send + Sync + 'static;
    /// The state this is.
    const KIND: Kind;
    /// The item that stands at missing positions.
    const IDENTITY_ITEM: Self::Item;
    /// The length of a node's byte form.
    const NODE_BYTES: usize;

    /// Folds at most [`BLOCK`] items.
    ///
    /// Always inlined, so that a caller with wider vector instructions gets
    /// the same arithmetic compiled for them.
    fn leaf(items: &[Self::Item]) -> Self::Node;

    /// Folds two neighbours, `left` having the lower positions.
    fn combine(left: &Self::Node, right: &Self::Node) -> Self::Node;

    /// Appends a node's byte form.
    fn put(node: &Self::Node, out: &mut Vec<u8>);

    /// Reads a node over `span` positions (2^64 - 1 if more) from
    /// [`NODE_BYTES`](Self::NODE_BYTES) bytes; `None` if no such node exists.
    fn get(bytes: &[u8], span: u64) -> Option<Self::Node>;

    /// The value of `op` for the root over `count` elements.
    ///
    /// # Errors
    /// Those of [`State::finish`].
    fn value(root: &Self::Node, count: u64, op: Op, rules: &Rules) -> Result<Value>;
}

/// Folds lanes by halving.
#[inline(always)]
pub(super) fn fold_lanes<A: Copy>(mut lanes: [A; LANES], f: impl Fn(A, A) -> A) -> A {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = f(lanes[l], lanes[l + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// A node at its place in the tree.
#[derive(Clone, Copy, Debug)]
struct Placed<N> {
    level: u32,
    index: u64,
    node: N,
}

impl<N> Placed<N> {
    fn first_block(&self) -> u64 {
        self.index << self.level
    }
    fn last_block(&self) -> u64 {
        ((self.index + 1) << self.level) - 1
    }
    fn first(&self) -> u64 {
        self.first_block() * BLOCK as u64
    }
    fn last(&self) -> u64 {
        self.last_block() * BLOCK as u64 + (BLOCK as u64 - 1)
    }
    fn is_left_sibling_of(&self, right: &Self) -> bool {
        self.level == right.level && self.index & 1 == 0 && self.index + 1 == right.index
    }
}

/// Consecutive elements of a block that is not complete.
#[derive(Clone, Debug)]
struct Piece<T> {
    start: u64,
    /// Never empty.
    items: Vec<T>,
}

impl<T> Piece<T> {
    fn last(&self) -> u64 {
        self.start + (self.items.len() as u64 - 1)
    }
    fn block(&self) -> u64 {
        self.start / BLOCK as u64
    }
    /// Whether `self` ends where `next` begins, in one block.
    fn meets(&self, next: &Self) -> bool {
        self.last().checked_add(1) == Some(next.start) && self.block() == next.block()
    }
    fn is_block(&self) -> bool {
        self.items.len() == BLOCK
    }
}

/// Appends elements of a block: capacity doubles, but not beyond a block, so
/// that [`State::most_bytes`] holds.
fn grow<T: Copy>(items: &mut Vec<T>, more: &[T]) {
    let len = items.len() + more.len();
    if len > items.capacity() {
        let capacity = (2 * items.capacity()).clamp(len, BLOCK.max(len));
        items.reserve_exact(capacity - items.len());
    }
    items.extend_from_slice(more);
}

/// The state of a fixed tree: the nodes that are complete and the raw
/// elements of blocks that are not.
///
/// Its form is canonical: two states that hold the same positions hold the
/// same nodes and pieces, however they came about. A run absorbed twice, which
/// [`State::absorb`] has no way to refuse, is remembered: every later merge and
/// finish fails with [`Error::Overlap`].
///
/// ```
/// use warpfold_core::op::{FloatProd, Op, Rules, Run, State};
/// let x: Vec<f32> = (0..10_000).map(|i| 1.0 + 0.01 / (i + 1) as f32).collect();
/// let mut whole = FloatProd::<f32>::new();
/// whole.absorb(Run { start: 0, items: &x, others: &[] });
///
/// let (mut left, mut right) = (FloatProd::<f32>::new(), FloatProd::<f32>::new());
/// right.absorb(Run { start: 777, items: &x[777..], others: &[] });
/// left.absorb(Run { start: 0, items: &x[..777], others: &[] });
/// right.merge(&left)?;
/// let rules = Rules::default();
/// assert_eq!(right.finish(Op::Prod, &rules)?, whole.finish(Op::Prod, &rules)?);
/// # Ok::<(), warpfold_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FixedTree<P: TreeOp> {
    /// By position; disjoint; no two are siblings.
    nodes: Vec<Placed<P::Node>>,
    /// By position; disjoint; none is a whole block or meets the next.
    pieces: Vec<Piece<P::Item>>,
    /// How many of the positions held are missing elements.
    skipped: u64,
    /// The first position found to be absorbed twice.
    clash: Option<u64>,
}

impl<P: TreeOp> Default for FixedTree<P> {
    fn default() -> Self {
        FixedTree { nodes: Vec::new(), pieces: Vec::new(), skipped: 0, clash: None }
    }
}

impl<P: TreeOp> FixedTree<P> {
    /// The state of no elements.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The root of the tree over a whole array, without a state: nothing is
    /// allocated. `leaf` computes what [`TreeOp::leaf`] does.
    ///
    /// [`TreeOp::value`] turns the root into an answer.
    pub fn root_of(items: &[P::Item], leaf: impl Fn(&[P::Item]) -> P::Node) -> P::Node {
        // A binary counter: slot k holds a complete node of level k.
        let mut complete: [Option<P::Node>; 64] = [None; 64];
        let mut last = None;
        for block in items.chunks(BLOCK) {
            let mut node = leaf(block);
            if block.len() < BLOCK {
                last = Some(node);
                break;
            }
            for slot in &mut complete {
                match slot.take() {
                    Some(left) => node = P::combine(&left, &node),
                    None => {
                        *slot = Some(node);
                        break;
                    }
                }
            }
        }
        let rising = last.into_iter().chain(complete.into_iter().flatten());
        let root = rising.reduce(|right, left| P::combine(&left, &right));
        root.unwrap_or_else(|| self::leaf::<P>(&[]))
    }

    /// [`State::absorb`] with a leaf function that computes what
    /// [`TreeOp::leaf`] does, compiled for better instructions.
    ///
    /// Whole blocks inside the run are folded where they lie.
    pub fn absorb_with(&mut self, run: Run<'_, P::Item>, leaf: impl Fn(&[P::Item]) -> P::Node) {
        let mut at = run.start;
        if at.checked_add(run.items.len() as u64).is_none() {
            return self.record_clash(at);
        }
        let mut rest = run.items;
        while !rest.is_empty() {
            let room = BLOCK - (at % BLOCK as u64) as usize;
            let (items, after) = rest.split_at(room.min(rest.len()));
            rest = after;
            if items.len() == BLOCK {
                let node = leaf(items);
                self.insert_node(Placed { level: 0, index: at / BLOCK as u64, node });
            } else {
                self.insert_piece(at, items, &leaf);
            }
            at += items.len() as u64;
        }
    }

    /// Takes in a node that was folded elsewhere: node `index` of `level`,
    /// over the positions from `index * BLOCK * 2^level` on. A node outside
    /// the tree is remembered like a position absorbed twice.
    pub fn absorb_node(&mut self, level: u32, index: u64, node: P::Node) {
        if exists(level, index) {
            self.insert_node(Placed { level, index, node });
        } else {
            self.record_clash(u64::MAX);
        }
    }

    fn record_clash(&mut self, at: u64) {
        self.clash = Some(self.clash.map_or(at, |c| c.min(at)));
    }

    fn insert_node(&mut self, placed: Placed<P::Node>) {
        let (first, last) = (placed.first(), placed.last());
        // Sequential absorbing appends: looked at first.
        let mut i = match self.nodes.last() {
            Some(n) if n.last() >= first => self.nodes.partition_point(|n| n.first() < first),
            _ => self.nodes.len(),
        };
        let before = i.checked_sub(1).and_then(|i| self.nodes.get(i));
        if before.is_some_and(|n| n.last() >= first) {
            return self.record_clash(first);
        }
        if let Some(next) = self.nodes.get(i)
            && next.first() <= last
        {
            let at = next.first();
            return self.record_clash(at);
        }
        if self.pieces.last().is_some_and(|p| p.last() >= first) {
            let p = self.pieces.partition_point(|p| p.last() < first);
            if let Some(at) = self.pieces.get(p).map(|p| p.start).filter(|&at| at <= last) {
                return self.record_clash(at.max(first));
            }
        }
        self.nodes.insert(i, placed);
        // Only the new node can have a sibling, and then the one it grows into.
        loop {
            if i > 0 && self.nodes[i - 1].is_left_sibling_of(&self.nodes[i]) {
                i -= 1;
            } else if i + 1 >= self.nodes.len()
                || !self.nodes[i].is_left_sibling_of(&self.nodes[i + 1])
            {
                return;
            }
            let right = self.nodes.remove(i + 1);
            self.nodes[i] = parent::<P>(&self.nodes[i], &right);
        }
    }

    fn insert_piece(
        &mut self,
        start: u64,
        items: &[P::Item],
        leaf: &impl Fn(&[P::Item]) -> P::Node,
    ) {
        let last = start + (items.len() as u64 - 1);
        if self.nodes.last().is_some_and(|n| n.last() >= start) {
            // A piece lies in one block, so a node holds all of it or nothing.
            let n = self.nodes.partition_point(|n| n.last() < start);
            if self.nodes.get(n).is_some_and(|n| n.first() <= start) {
                return self.record_clash(start);
            }
        }
        let mut i = match self.pieces.last() {
            Some(p) if p.start >= start => self.pieces.partition_point(|p| p.start < start),
            _ => self.pieces.len(),
        };
        if i > 0 && self.pieces[i - 1].last() >= start {
            return self.record_clash(start);
        }
        if let Some(at) = self.pieces.get(i).map(|p| p.start).filter(|&at| at <= last) {
            return self.record_clash(at);
        }
        let block = start / BLOCK as u64;
        if i > 0 && self.pieces[i - 1].last() + 1 == start && self.pieces[i - 1].block() == block {
            i -= 1;
            grow(&mut self.pieces[i].items, items);
        } else {
            let piece = Piece { start, items: items.to_vec() };
            self.pieces.insert(i, piece);
        }
        if i + 1 < self.pieces.len() && self.pieces[i].meets(&self.pieces[i + 1]) {
            let next = self.pieces.remove(i + 1);
            grow(&mut self.pieces[i].items, &next.items);
        }
        if self.pieces[i].is_block() {
            let piece = self.pieces.remove(i);
            let node = leaf(&piece.items);
            self.insert_node(Placed { level: 0, index: block, node });
        }
    }

    /// The positions held, as inclusive spans in order.
    fn spans(&self) -> Vec<(u64, u64)> {
        let nodes = self.nodes.iter().map(|n| (n.first(), n.last()));
        let mut spans: Vec<_> =
            nodes.chain(self.pieces.iter().map(|p| (p.start, p.last()))).collect();
        // Two sorted halves: the stable sort merges them in linear time.
        spans.sort();
        spans
    }

    /// The lowest and the highest position held.
    fn extent(&self) -> Option<(u64, u64)> {
        let first = |n: Option<u64>, p: Option<u64>| n.into_iter().chain(p).min();
        Some((
            first(self.nodes.first().map(Placed::first), self.pieces.first().map(|p| p.start))?,
            self.nodes
                .last()
                .map(Placed::last)
                .into_iter()
                .chain(self.pieces.last().map(Piece::last))
                .max()?,
        ))
    }

    /// The first position that both states hold.
    fn overlap(&self, other: &Self) -> Option<u64> {
        let ((a0, a1), (b0, b1)) = (self.extent()?, other.extent()?);
        if a1 < b0 || b1 < a0 {
            return None;
        }
        let mut spans = self.spans();
        spans.extend(other.spans());
        spans.sort();
        spans.windows(2).find(|w| w[1].0 <= w[0].1).map(|w| w[1].0)
    }

    /// The root and the number of positions.
    ///
    /// # Errors
    /// [`Error::Overlap`], [`Error::Gap`].
    fn root(&self) -> Result<(P::Node, u64)> {
        if let Some(at) = self.clash {
            return Err(Error::Overlap { at });
        }
        let mut end = 0;
        for (first, last) in self.spans() {
            if first != end {
                return Err(Error::Gap { from: end, to: first });
            }
            // Positions run up to 2^64 - 2 (see `absorb_with`).
            end = last.saturating_add(1);
        }
        // Without gaps, at most the last block is incomplete, and the nodes
        // to its left are the binary digits of the number of blocks, largest
        // first: each is a left child whose right sibling's only descendants
        // are what follows, passed through the levels in between.
        assert!(self.pieces.len() <= 1);
        let tail = self.pieces.last().map(|p| leaf::<P>(&p.items));
        let leftward = tail.into_iter().chain(self.nodes.iter().rev().map(|n| n.node));
        let root = leftward.reduce(|right, left| P::combine(&left, &right));
        Ok((root.unwrap_or_else(|| leaf::<P>(&[])), end))
    }
}

/// Whether the tree has this node. The last position is 2^64 - 2, so that the
/// last block is never whole.
fn exists(level: u32, index: u64) -> bool {
    level <= MAX_LEVEL && index < (BLOCKS >> level) - 1
}

/// [`TreeOp::leaf`] where speed is of no matter, compiled once for each type.
#[inline(never)]
fn leaf<P: TreeOp>(items: &[P::Item]) -> P::Node {
    P::leaf(items)
}

/// Two lists in the order of their keys as one. A sort would be compiled for each type
/// of node, at five times the size.
fn merged<T>(left: Vec<T>, right: Vec<T>, key: impl Fn(&T) -> u64) -> Vec<T> {
    if right.is_empty() {
        return left;
    }
    let mut all = Vec::with_capacity(left.len() + right.len());
    let mut right = right.into_iter().peekable();
    for item in left {
        while let Some(before) = right.next_if(|other| key(other) < key(&item)) {
            all.push(before);
        }
        all.push(item);
    }
    all.extend(right);
    all
}

fn parent<P: TreeOp>(left: &Placed<P::Node>, right: &Placed<P::Node>) -> Placed<P::Node> {
    let node = P::combine(&left.node, &right.node);
    Placed { level: left.level + 1, index: left.index / 2, node }
}

impl<P: TreeOp> State for FixedTree<P> {
    type Item = P::Item;

    fn kind(&self) -> Kind {
        P::KIND
    }

    fn identity(_kind: Kind) -> Self {
        Self::new()
    }

    fn absorb(&mut self, run: Run<'_, P::Item>) {
        self.absorb_with(run, leaf::<P>);
    }

    fn end(&self) -> u64 {
        let nodes = self.nodes.last().map(Placed::last);
        let pieces = self.pieces.last().map(Piece::last);
        nodes.max(pieces).map_or(0, |last| last.saturating_add(1))
    }

    fn skip(&mut self, start: u64, len: u64) {
        let Some(end) = start.checked_add(len) else { return self.record_clash(start) };
        self.skipped = self.skipped.saturating_add(len);
        let block = BLOCK as u64;
        let mut at = start;
        while at < end {
            let (first, after) = (at / block, end / block);
            if !at.is_multiple_of(block) || first == after {
                let n = (block - at % block).min(end - at);
                let items = vec![P::IDENTITY_ITEM; n as usize];
                self.insert_piece(at, &items, &leaf::<P>);
                at += n;
            } else {
                // The largest node that begins here and ends in time. All
                // levels of identities are one node: `combine(E, E) = E`.
                let level = first.trailing_zeros().min((after - first).ilog2()).min(MAX_LEVEL);
                let node = leaf::<P>(&[]);
                self.insert_node(Placed { level, index: first >> level, node });
                at += block << level;
            }
        }
    }

    fn check_merge(&self, other: &Self) -> Result<()> {
        match self.clash.or(other.clash).or_else(|| self.overlap(other)) {
            Some(at) => Err(Error::Overlap { at }),
            None => Ok(()),
        }
    }

    fn most_bytes(positions: u64) -> usize {
        // From 0 on: a node for each binary digit of the number of blocks and
        // one piece, of less than a block, with room for twice as much, at most
        // a block; vectors begin with room for four and double.
        let digits = (positions / BLOCK as u64).checked_ilog2().map_or(0, |top| top as usize + 1);
        let room = positions.saturating_mul(2).min(BLOCK as u64) as usize;
        let raw = room * size_of::<P::Item>();
        size_of::<Self>()
            + 4 * size_of::<Piece<P::Item>>()
            + (2 * digits).max(4) * size_of::<Placed<P::Node>>()
            + raw
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.check_merge(other)?;
        self.skipped = self.skipped.saturating_add(other.skipped);
        let pieces = core::mem::take(&mut self.pieces);
        let pieces = merged(pieces, other.pieces.clone(), |p| p.start);
        let mut made = Vec::new();
        for piece in pieces {
            match self.pieces.last_mut() {
                Some(before) if before.meets(&piece) => grow(&mut before.items, &piece.items),
                _ => self.pieces.push(piece),
            }
            if let Some(whole) = self.pieces.pop_if(|p| p.is_block()) {
                let node = leaf::<P>(&whole.items);
                made.push(Placed { level: 0, index: whole.block(), node });
            }
        }
        let nodes = core::mem::take(&mut self.nodes);
        let nodes = merged(nodes, other.nodes.clone(), Placed::first_block);
        let nodes = merged(nodes, made, Placed::first_block);
        for mut node in nodes {
            while let Some(left) = self.nodes.pop_if(|left| left.is_left_sibling_of(&node)) {
                node = parent::<P>(&left, &node);
            }
            self.nodes.push(node);
        }
        Ok(())
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        let (root, end) = self.root()?;
        P::value(&root, end.saturating_sub(self.skipped), op, rules)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.skipped.to_le_bytes());
        out.push(u8::from(self.clash.is_some()));
        out.extend(self.clash.unwrap_or(0).to_le_bytes());
        out.extend((self.nodes.len() as u64).to_le_bytes());
        for n in &self.nodes {
            out.push(n.level as u8);
            out.extend(n.index.to_le_bytes());
            P::put(&n.node, out);
        }
        out.extend((self.pieces.len() as u64).to_le_bytes());
        for p in &self.pieces {
            out.extend(p.start.to_le_bytes());
            out.extend((p.items.len() as u16).to_le_bytes());
            for x in &p.items {
                out.extend_from_slice(&x.bits().to_le_bytes()[..size_of::<P::Item>()]);
            }
        }
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        parse(bytes).map_err(|why| Error::DamagedState { why: why.into() })
    }
}

/// Takes numbers off the front of a byte form.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// What a byte form that ends too early is called.
const SHORT: &str = "it ends too early";

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    /// A little-endian integer of `n <= 8` bytes.
    pub(super) fn uint(&mut self, n: usize) -> Result<u64, &'static str> {
        Ok(self.bytes(n)?.iter().rfold(0, |u, &b| u << 8 | u64::from(b)))
    }

    pub(super) fn u64(&mut self) -> Result<u64, &'static str> {
        self.uint(8)
    }
}

/// Reads a state and checks every invariant of [`FixedTree`].
fn parse<P: TreeOp>(bytes: &[u8]) -> Result<FixedTree<P>, &'static str> {
    let mut from = Reader(bytes);
    let mut tree = FixedTree::<P>::new();
    tree.skipped = from.u64()?;
    tree.clash = match (from.uint(1)?, from.u64()?) {
        (0, 0) => None,
        (1, at) => Some(at),
        _ => return Err("its overlap flag is neither 0 nor 1"),
    };
    let mut held = 0u64;
    // Lengths are not trusted with memory: every turn takes bytes off.
    for _ in 0..from.u64()? {
        let level = from.uint(1)? as u32;
        let index = from.u64()?;
        if !exists(level, index) {
            return Err("a node lies outside the tree");
        }
        let span = (BLOCK as u64) << level;
        let node = P::get(from.bytes(P::NODE_BYTES)?, span).ok_or("a node is impossible")?;
        let placed = Placed { level, index, node };
        if let Some(before) = tree.nodes.last() {
            if before.last_block() >= placed.first_block() {
                return Err("its nodes overlap or are out of order");
            }
            if before.is_left_sibling_of(&placed) {
                return Err("two of its nodes should be one");
            }
        }
        held = held.checked_add(span).ok_or("it holds more positions than there are")?;
        tree.nodes.push(placed);
    }
    for _ in 0..from.u64()? {
        let start = from.u64()?;
        let len = from.uint(2)?;
        if len == 0 || len >= BLOCK as u64 || start % BLOCK as u64 + len > BLOCK as u64 {
            return Err("a piece is not a part of a block");
        }
        let size = size_of::<P::Item>();
        let items = from
            .bytes(size * len as usize)?
            .chunks_exact(size)
            .map(|b| P::Item::from_bits(b.iter().rfold(0, |u, &b| u << 8 | u64::from(b))))
            .collect();
        let piece = Piece { start, items };
        if let Some(before) = tree.pieces.last() {
            if before.last() >= start {
                return Err("its pieces overlap or are out of order");
            }
            if before.meets(&piece) {
                return Err("two of its pieces should be one");
            }
        }
        held = held.checked_add(len).ok_or("it holds more positions than there are")?;
        tree.pieces.push(piece);
    }
    if !from.0.is_empty() {
        return Err("it has bytes left over");
    }
    if tree.spans().windows(2).any(|w| w[1].0 <= w[0].1) {
        return Err("a piece lies in a complete block");
    }
    if tree.skipped > held && tree.clash.is_none() {
        return Err("it skips more positions than it holds");
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::FloatProd;

    /// The memory that a state takes.
    fn held<P: TreeOp>(tree: &FixedTree<P>) -> usize {
        let raw = |p: &Piece<P::Item>| p.items.capacity() * size_of::<P::Item>();
        size_of::<FixedTree<P>>()
            + tree.nodes.capacity() * size_of::<Placed<P::Node>>()
            + tree.pieces.capacity() * size_of::<Piece<P::Item>>()
            + tree.pieces.iter().map(raw).sum::<usize>()
    }

    fn grows_as_it_says<P: TreeOp<Item = f64>>(_: FixedTree<P>) {
        let items = vec![1.0; 40_000];
        for step in [1usize, 63, 1000, 4095, 4096, 4097, 9000] {
            let (mut absorbed, mut merged) = (FixedTree::<P>::new(), FixedTree::<P>::new());
            for start in (0..items.len()).step_by(step) {
                let to = (start + step).min(items.len());
                let run = Run { start: start as u64, items: &items[start..to], others: &[] };
                absorbed.absorb(run);
                let mut piece = FixedTree::<P>::new();
                piece.absorb(run);
                merged.merge(&piece).unwrap();
                let most = FixedTree::<P>::most_bytes(to as u64);
                assert!(held(&absorbed) <= most, "{step}, {to}: {} > {most}", held(&absorbed));
                assert!(held(&merged) <= most, "{step}, {to}: {} > {most}", held(&merged));
            }
        }
    }

    #[test]
    fn a_state_takes_no_more_memory_than_it_says() {
        grows_as_it_says(FloatProd::<f64>::new());
        let most = FloatProd::<f64>::most_bytes(1 << 40);
        assert!((32 << 10..40 << 10).contains(&most), "{most}");
    }
}
