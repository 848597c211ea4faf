//! The fixed tree from its definition.

/// The root of the tree over `n` elements, straight from the definition.
pub(crate) fn naive<A: Copy>(
    n: usize,
    identity: A,
    item: &dyn Fn(usize) -> A,
    op: &dyn Fn(A, A) -> A,
) -> A {
    fn node<A: Copy>(
        level: u32,
        index: usize,
        n: usize,
        identity: A,
        item: &dyn Fn(usize) -> A,
        op: &dyn Fn(A, A) -> A,
    ) -> Option<A> {
        let first = (index << level) * 4096;
        if first >= n {
            return None;
        }
        if level > 0 {
            let left = node(level - 1, 2 * index, n, identity, item, op)?;
            return Some(match node(level - 1, 2 * index + 1, n, identity, item, op) {
                Some(right) => op(left, right),
                None => left,
            });
        }
        let mut lanes = [identity; 64];
        for i in first..n.min(first + 4096) {
            lanes[i % 64] = op(lanes[i % 64], item(i));
        }
        for width in [32, 16, 8, 4, 2, 1] {
            for l in 0..width {
                lanes[l] = op(lanes[l], lanes[l + width]);
            }
        }
        Some(lanes[0])
    }
    node(8, 0, n, identity, item, op).unwrap_or(identity)
}
