//! Search for secrets in a stream of bytes, across its pieces: an Aho-Corasick automaton, so that no choice of
//! secrets and text makes it slow.

use std::collections::VecDeque;
use std::fmt;

use super::{MASK, MIN_VALUE};

/// Index of the root node; as a child or sibling: none.
const ROOT: u32 = 0;

/// A node, for a prefix of a secret.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    byte: u8,
    child: u32,
    sibling: u32,
    /// Index of the longest suffix of these bytes that is also a prefix of a secret.
    fail: u32,
    /// Length of the prefix, in bytes.
    depth: u32,
    /// Length of the longest secret that ends here; 0 for none.
    found: u32,
}

/// Secrets to mask. Its `Debug` shows none.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Nodes of the automaton; empty if there is nothing to mask.
    nodes: Vec<Node>,
}

impl Secrets {
    /// Returns an automaton for these values. Values shorter than [`MIN_VALUE`] bytes are ignored.
    #[must_use]
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets = Self::default();
        for value in values {
            // A value too long for `u32` fits into no environment.
            if value.len() >= MIN_VALUE && u32::try_from(value.len()).is_ok() {
                secrets.add(value.as_bytes());
            }
        }
        secrets.link();
        secrets
    }

    /// Returns whether there is nothing to mask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn add(&mut self, value: &[u8]) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = ROOT;
        for byte in value {
            at = self.child(at, *byte).unwrap_or_else(|| {
                let new = self.nodes.len() as u32;
                let parent = &mut self.nodes[at as usize];
                let node = Node {
                    byte: *byte,
                    sibling: parent.child,
                    depth: parent.depth + 1,
                    ..Node::default()
                };
                parent.child = new;
                self.nodes.push(node);
                new
            });
        }
        let node = &mut self.nodes[at as usize];
        node.found = node.depth;
    }

    /// Computes the failure links, breadth first, so that those of shorter prefixes are complete.
    fn link(&mut self) {
        let mut queue: VecDeque<u32> = self.children(ROOT).collect();
        while let Some(at) = queue.pop_front() {
            let fail = self.nodes[at as usize].fail;
            for child in self.children(at).collect::<Vec<_>>() {
                let byte = self.nodes[child as usize].byte;
                let fail = self.step(fail, byte);
                let found = self.nodes[fail as usize].found;
                let node = &mut self.nodes[child as usize];
                node.fail = fail;
                node.found = node.found.max(found);
                queue.push_back(child);
            }
        }
    }

    fn children(&self, at: u32) -> impl Iterator<Item = u32> {
        let real = |at: u32| Some(at).filter(|at| *at != ROOT);
        let first = self
            .nodes
            .get(at as usize)
            .and_then(|node| real(node.child));
        std::iter::successors(first, move |at| real(self.nodes[*at as usize].sibling))
    }

    fn child(&self, at: u32, byte: u8) -> Option<u32> {
        self.children(at)
            .find(|child| self.nodes[*child as usize].byte == byte)
    }

    /// Returns the node after `byte`.
    fn step(&self, mut at: u32, byte: u8) -> u32 {
        loop {
            match self.child(at, byte) {
                Some(child) => return child,
                None if at == ROOT => return ROOT,
                None => at = self.nodes[at as usize].fail,
            }
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// State between two pieces of a stream. Each longest run of bytes of secrets becomes one [`MASK`]. Only bytes that
/// may begin a secret are retained.
#[derive(Debug, Clone, Default)]
pub struct Masker {
    at: u32,
    /// Bytes that may belong to a secret.
    held: VecDeque<u8>,
    /// Number of bytes before `held`.
    before: u64,
    /// Ranges of bytes of secrets, counted from the beginning of the stream, in order and disjoint.
    covered: VecDeque<(u64, u64)>,
    /// True if the last output was a mask that continues.
    masking: bool,
}

impl Masker {
    /// Processes a piece, and appends the decided bytes to `out`. The secrets must be the same for all pieces.
    pub fn push(&mut self, secrets: &Secrets, bytes: &[u8], out: &mut Vec<u8>) {
        if secrets.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        for byte in bytes {
            self.at = secrets.step(self.at, *byte);
            self.held.push_back(*byte);
            let node = secrets.nodes[self.at as usize];
            let end = self.before + self.held.len() as u64;
            if node.found > 0 {
                self.cover(end - u64::from(node.found), end);
            }
            self.give(node.depth as usize, out);
        }
    }

    /// Appends the remaining bytes at the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.give(0, out);
        *self = Self::default();
    }

    fn cover(&mut self, mut from: u64, to: u64) {
        while let Some((last_from, last_to)) = self.covered.back().copied() {
            if last_to < from {
                break;
            }
            from = from.min(last_from);
            self.covered.pop_back();
        }
        self.covered.push_back((from, to));
    }

    /// Appends all but the last `keep` bytes.
    fn give(&mut self, keep: usize, out: &mut Vec<u8>) {
        while self.held.len() > keep {
            let Some(byte) = self.held.pop_front() else {
                return;
            };
            while self
                .covered
                .front()
                .is_some_and(|(_, to)| *to <= self.before)
            {
                self.covered.pop_front();
            }
            let secret = self
                .covered
                .front()
                .is_some_and(|(from, _)| *from <= self.before);
            if !secret {
                out.push(byte);
            } else if !self.masking {
                out.extend_from_slice(MASK.as_bytes());
            }
            self.masking = secret;
            self.before += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked(secrets: &[&str], text: &str) -> String {
        Secrets::new(secrets.iter().copied())
            .mask(text)
            .into_owned()
    }

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        for (secrets, text, expected) in [
            (&["hunter22"][..], "hunter22", "***"),
            (&["hunter22"], "a hunter22, hunter2", "a ***, hunter2"),
            (&["abcd", "abcdef"], "abcdefg abcde", "***g ***e"),
            (&["abcd", "cdef"], "xabcdefx", "x***x"),
            (&["abcd"], "abcdabcd", "***"),
            (&["aaaa"], "aaaaaa b", "*** b"),
            (&["line\nline"], "a line\nline b", "a *** b"),
            (&["größe"], "die größe!", "die ***!"),
            (&["abc", ""], "abc", "abc"),
            (&["xabcdy", "abcd"], "xabcdz", "x***z"),
            (&[], "abc", "abc"),
        ] {
            assert_eq!(masked(secrets, text), expected, "{secrets:?} in {text:?}");
        }
    }

    #[test]
    fn what_begins_no_secret_is_given_out_at_once() {
        let secrets = Secrets::new(["hunter22"]);
        let (mut masker, mut out) = (Masker::default(), Vec::new());
        masker.push(&secrets, b"hello hun", &mut out);
        assert_eq!(out, b"hello ");
        masker.push(&secrets, b"t\n", &mut out);
        assert_eq!(out, b"hello hunt\n");
    }

    #[test]
    fn no_secret_makes_it_slow() {
        // Without failure links, and with a look at each covered byte, this takes minutes.
        let secret = "a".repeat(32 * 1024);
        let text = format!("{}b", "a".repeat(2 * 1024 * 1024));
        assert_eq!(masked(&[&secret, &secret[1..]], &text), "***b");
    }

    /// Masks by a search at every position.
    fn by_hand(secrets: &[String], text: &str) -> String {
        let bytes = text.as_bytes();
        let mut covered = vec![false; bytes.len()];
        for secret in secrets.iter().filter(|secret| secret.len() >= MIN_VALUE) {
            for at in 0..bytes.len() {
                if bytes[at..].starts_with(secret.as_bytes()) {
                    covered[at..at + secret.len()].fill(true);
                }
            }
        }
        let (mut out, mut masking) = (Vec::new(), false);
        for (byte, covered) in bytes.iter().zip(covered) {
            if !covered {
                out.push(*byte);
            } else if !masking {
                out.extend_from_slice(MASK.as_bytes());
            }
            masking = covered;
        }
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_no_secret_comes_out(
            secrets in proptest::collection::vec("[abä]{1,7}", 0..4),
            text in "[abä\n]{0,60}",
            cuts in proptest::collection::vec(1..9_usize, 1..20),
        ) {
            let expected = by_hand(&secrets, &text);
            let known = Secrets::new(secrets.iter().map(String::as_str));
            prop_assert_eq!(known.mask(&text), expected.as_str());
            let (mut masker, mut out) = (Masker::default(), Vec::new());
            let mut rest = text.as_bytes();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, more) = rest.split_at((*cut).min(rest.len()));
                masker.push(&known, piece, &mut out);
                rest = more;
            }
            masker.finish(&mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
