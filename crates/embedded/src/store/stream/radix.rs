//! Number of nodes in the radix tree in which Redis stores keys, for XINFO STREAM.

/// Returns the number of nodes for these keys, which are sorted and distinct.
pub(super) fn nodes(keys: &[[u8; 16]]) -> usize {
    if keys.is_empty() { 1 } else { below(keys, 0) }
}

/// Returns the number of nodes from a depth on: one for a common prefix, one where keys diverge, and one at the end
/// of each.
fn below(keys: &[[u8; 16]], depth: usize) -> usize {
    let [first, .., last] = keys else {
        return 1 + usize::from(depth < 16);
    };
    let parts = (depth..16).find(|at| first[*at] != last[*at]).unwrap_or(16);
    let children = keys.chunk_by(|one, other| one[parts] == other[parts]);
    let shared = usize::from(parts > depth);
    shared + 1 + children.map(|keys| below(keys, parts + 1)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_counted_as_redis_counts_them() {
        let key = |head: &[u8]| {
            let mut key = [0; 16];
            key[..head.len()].copy_from_slice(head);
            key
        };
        assert_eq!(nodes(&[]), 1, "the root");
        assert_eq!(nodes(&[key(&[1])]), 2, "one stretch and its end");
        let last = |byte| {
            let mut key = [0; 16];
            key[15] = byte;
            key
        };
        assert_eq!(nodes(&[last(1), last(2)]), 4);
        assert_eq!(nodes(&[key(&[1]), key(&[2])]), 5);
        assert_eq!(nodes(&[key(&[1, 1]), key(&[1, 2]), key(&[2])]), 8);
    }
}
