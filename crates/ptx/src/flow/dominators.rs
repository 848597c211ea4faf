//! Immediate dominators, by Lengauer and Tarjan, "A fast algorithm for finding dominators in a flowgraph" (1979): the version with
//! simple path compression, which takes `E log N` steps whatever the graph. Nothing recurses.

/// The immediate dominator of every node from a root; `None` for the root and for what it does not reach.
pub(super) fn immediate(successors: &[Vec<usize>], root: usize) -> Vec<Option<usize>> {
    let order = Order::new(successors, root);
    let mut predecessors = vec![Vec::new(); order.nodes.len()];
    for (number, &node) in order.nodes.iter().enumerate() {
        for &next in &successors[node] {
            predecessors[order.number[next]].push(number);
        }
    }
    let found = by_number(&order.parent, &predecessors);
    let mut dominators = vec![None; successors.len()];
    for (number, &node) in order.nodes.iter().enumerate().skip(1) {
        dominators[node] = Some(order.nodes[found[number]]);
    }
    dominators
}

/// Nodes in the order in which a depth-first search meets them.
struct Order {
    nodes: Vec<usize>,
    /// The place of each node in `nodes`.
    number: Vec<usize>,
    /// For each place, that of the node it was reached from.
    parent: Vec<usize>,
}

impl Order {
    fn new(successors: &[Vec<usize>], root: usize) -> Self {
        let mut order = Order {
            nodes: Vec::new(),
            number: vec![usize::MAX; successors.len()],
            parent: Vec::new(),
        };
        order.visit(root, 0);
        let mut path = vec![(root, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&successor) = successors[*node].get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            if order.number[successor] == usize::MAX {
                let parent = order.number[*node];
                order.visit(successor, parent);
                path.push((successor, 0));
            }
        }
        order
    }

    fn visit(&mut self, node: usize, parent: usize) {
        self.number[node] = self.nodes.len();
        self.nodes.push(node);
        self.parent.push(parent);
    }
}

/// The algorithm itself, on nodes numbered in depth-first order from 0.
fn by_number(parent: &[usize], predecessors: &[Vec<usize>]) -> Vec<usize> {
    let count = parent.len();
    let mut forest = Forest::new(count);
    let mut dominator = vec![0; count];
    // Nodes by their semidominator, until that one's subtree is done.
    let mut waiting = vec![Vec::new(); count];
    for node in (1..count).rev() {
        for &before in &predecessors[node] {
            let least = forest.least(before);
            forest.semi[node] = forest.semi[node].min(forest.semi[least]);
        }
        waiting[forest.semi[node]].push(node);
        forest.ancestor[node] = Some(parent[node]);
        for dominated in core::mem::take(&mut waiting[parent[node]]) {
            let least = forest.least(dominated);
            // Where the two differ, the answer is that of `least`, which is not known yet.
            let known = forest.semi[least] == forest.semi[dominated];
            dominator[dominated] = if known { parent[node] } else { least };
        }
    }
    for node in 1..count {
        if dominator[node] != forest.semi[node] {
            dominator[node] = dominator[dominator[node]];
        }
    }
    dominator
}

/// The part of the search tree that is done, with shortened paths.
struct Forest {
    ancestor: Vec<Option<usize>>,
    /// The node with the least semidominator on the path to the ancestor.
    label: Vec<usize>,
    semi: Vec<usize>,
}

impl Forest {
    fn new(count: usize) -> Self {
        Forest {
            ancestor: vec![None; count],
            label: (0..count).collect(),
            semi: (0..count).collect(),
        }
    }

    /// The node with the least semidominator between this one and its root, without the root.
    fn least(&mut self, node: usize) -> usize {
        let Some(mut above) = self.ancestor[node] else {
            return node;
        };
        let mut path = vec![node];
        while let Some(next) = self.ancestor[above] {
            path.push(above);
            above = next;
        }
        // From the root down, each takes over what its ancestor has learnt. The uppermost has the root as its ancestor already.
        for at in (0..path.len() - 1).rev() {
            let (this, upper) = (path[at], path[at + 1]);
            if self.semi[self.label[upper]] < self.semi[self.label[this]] {
                self.label[this] = self.label[upper];
            }
            self.ancestor[this] = self.ancestor[upper];
        }
        self.label[node]
    }
}

#[cfg(test)]
mod tests {
    use super::immediate;
    use proptest::prelude::*;

    /// By definition: a dominates b if every path to b goes through a. The immediate one is dominated by all others.
    fn naive(successors: &[Vec<usize>], root: usize) -> Vec<Option<usize>> {
        let reach = |without: Option<usize>| {
            let mut seen = vec![false; successors.len()];
            let mut open = vec![root];
            while let Some(node) = open.pop() {
                if Some(node) == without || seen[node] {
                    continue;
                }
                seen[node] = true;
                open.extend(&successors[node]);
            }
            seen
        };
        let all = reach(None);
        let without: Vec<_> = (0..successors.len()).map(|node| reach(Some(node))).collect();
        let dominators = |node: usize| -> Vec<usize> {
            (0..successors.len()).filter(|&a| a != node && all[a] && !without[a][node]).collect()
        };
        (0..successors.len())
            .map(|node| {
                let above = if all[node] { dominators(node) } else { Vec::new() };
                above.iter().copied().max_by_key(|&a| dominators(a).len())
            })
            .collect()
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let count = 300_000;
        let successors: Vec<Vec<usize>> =
            (0..count).map(|n| if n + 1 < count { vec![n + 1] } else { vec![0] }).collect();
        let found = immediate(&successors, 0);
        assert_eq!(found[0], None);
        assert_eq!(found[count - 1], Some(count - 2));
    }

    proptest! {
        #[test]
        fn as_the_definition_says(
            edges in proptest::collection::vec((0_usize..12, 0_usize..12), 0..30),
            root in 0_usize..12,
        ) {
            let mut successors = vec![Vec::new(); 12];
            for (from, to) in edges {
                successors[from].push(to);
            }
            prop_assert_eq!(immediate(&successors, root), naive(&successors, root));
        }
    }
}
