//! What is known of the blocks of a grid, shared between all who know it.
//!
//! A tree of sixteen branches a level, by the digits of a block's number.
//! Trees are never changed, only replaced along one path, so that a ticket
//! taken by each of 65,536 blocks copies a few nodes each time; two trees
//! that share a branch join it without a look inside.

use super::known::BlockKnown;
use std::sync::Arc;

const DIGIT: u32 = 4;
const BRANCHES: usize = 1 << DIGIT;

#[derive(Debug)]
enum Node {
    Leaf(BlockKnown),
    Inner([Option<Arc<Node>>; BRANCHES]),
}

/// What is known of other blocks. Trees of one launch have the same number of levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct GridKnown {
    root: Option<Arc<Node>>,
}

/// The number of digits that name any of `blocks` blocks.
pub(crate) fn levels(blocks: u32) -> u32 {
    (u32::BITS - blocks.saturating_sub(1).leading_zeros()).div_ceil(DIGIT)
}

fn digit(block: u32, level: u32) -> usize {
    (block >> ((level - 1) * DIGIT)) as usize % BRANCHES
}

impl GridKnown {
    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// What is known of a block.
    pub(crate) fn get(&self, levels: u32, block: u32) -> Option<&BlockKnown> {
        let mut node = self.root.as_deref()?;
        let mut level = levels;
        loop {
            match node {
                Node::Leaf(known) => return Some(known),
                Node::Inner(branches) => {
                    node = branches[digit(block, level)].as_deref()?;
                    level -= 1;
                }
            }
        }
    }

    /// Learns what is known of one block.
    pub(crate) fn learn(&mut self, levels: u32, block: u32, known: &BlockKnown) {
        if self.get(levels, block).is_none_or(|own| !own.covers(known)) {
            self.root = Some(learned(self.root.as_ref(), levels, block, known));
        }
    }

    /// Learns all that `other` knows.
    pub(crate) fn join(&mut self, other: &GridKnown) {
        self.root = match (&self.root, &other.root) {
            (Some(a), Some(b)) => Some(joined(a, b)),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
    }
}

fn learned(node: Option<&Arc<Node>>, level: u32, block: u32, known: &BlockKnown) -> Arc<Node> {
    Arc::new(match node.map(|n| &**n) {
        Some(Node::Leaf(own)) => {
            let mut own = own.clone();
            own.join(known);
            Node::Leaf(own)
        }
        None if level == 0 => Node::Leaf(known.clone()),
        inner => {
            let mut branches = match inner {
                Some(Node::Inner(branches)) => branches.clone(),
                _ => Default::default(),
            };
            let branch = &mut branches[digit(block, level)];
            *branch = Some(learned(branch.as_ref(), level - 1, block, known));
            Node::Inner(branches)
        }
    })
}

/// The union; one of the two itself where it has everything.
fn joined(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return a.clone();
    }
    match (&**a, &**b) {
        (Node::Leaf(x), Node::Leaf(y)) if x.covers(y) => a.clone(),
        (Node::Leaf(x), Node::Leaf(y)) if y.covers(x) => b.clone(),
        (Node::Leaf(x), Node::Leaf(y)) => {
            let mut both = x.clone();
            both.join(y);
            Arc::new(Node::Leaf(both))
        }
        (Node::Inner(x), Node::Inner(y)) => {
            let both: [_; BRANCHES] = core::array::from_fn(|i| match (&x[i], &y[i]) {
                (Some(x), Some(y)) => Some(joined(x, y)),
                (x, y) => x.clone().or_else(|| y.clone()),
            });
            if same(&both, x) {
                a.clone()
            } else if same(&both, y) {
                b.clone()
            } else {
                Arc::new(Node::Inner(both))
            }
        }
        _ => unreachable!("trees of one launch have leaves at one level"),
    }
}

fn same(a: &[Option<Arc<Node>>], b: &[Option<Arc<Node>>]) -> bool {
    a.iter().zip(b).all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn known(moment: u32) -> BlockKnown {
        BlockKnown::default().with_all(moment)
    }

    #[test]
    fn levels_name_every_block() {
        let cases = [(1, 0), (2, 1), (16, 1), (17, 2), (65536, 4), (65537, 5), (u32::MAX, 8)];
        for (blocks, expected) in cases {
            assert_eq!(levels(blocks), expected, "{blocks}");
        }
    }

    proptest! {
        #[test]
        fn a_tree_is_a_map_that_keeps_the_latest(
            left in prop::collection::vec((0_u32..300, 1_u32..9), 0..40),
            right in prop::collection::vec((0_u32..300, 1_u32..9), 0..40),
        ) {
            let mut oracle = BTreeMap::new();
            let mut trees = [GridKnown::default(), GridKnown::default()];
            for (tree, news) in trees.iter_mut().zip([&left, &right]) {
                for &(block, moment) in news {
                    tree.learn(3, block, &known(moment));
                    let best: &mut u32 = oracle.entry(block).or_default();
                    *best = moment.max(*best);
                }
            }
            let [mut both, right] = trees;
            both.join(&right);
            for block in 0..300 {
                let moment = both.get(3, block).map(|k| k.of(0, 0));
                prop_assert_eq!(moment, oracle.get(&block).copied());
            }
            // Joining again finds nothing new and copies nothing.
            let before = both.clone();
            both.join(&right);
            let shared = match (&both.root, &before.root) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            prop_assert!(shared);
        }
    }
}
