//! Keeps the end of a stream for the report.

/// The last bytes of a stream, in at most twice as much memory.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    most: usize,
    /// Bytes of the whole stream.
    seen: usize,
}

impl Tail {
    /// Creates a buffer for the last `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            most,
            seen: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len());
        let bytes = &bytes[bytes.len().saturating_sub(self.most)..];
        if self.bytes.len() + bytes.len() > 2 * self.most {
            let over = self.bytes.len() - (self.most - bytes.len());
            self.bytes.drain(..over);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns true if the stream was longer.
    pub(super) fn is_cut(&self) -> bool {
        self.seen > self.most
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        let over = self.bytes.len().saturating_sub(self.most);
        self.bytes.drain(..over);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_however_it_is_cut_into_pieces() {
        let whole: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
        for piece in [1, 3, 7, 9, 10, 11, 400, 1000] {
            let mut tail = Tail::new(10);
            for bytes in whole.chunks(piece) {
                tail.push(bytes);
                assert!(tail.bytes.len() <= 20);
            }
            assert!(tail.is_cut());
            assert_eq!(tail.into_bytes(), whole[990..], "pieces of {piece}");
        }
    }

    #[test]
    fn what_is_shorter_stays_whole() {
        let mut tail = Tail::new(10);
        tail.push(b"abc");
        tail.push(b"");
        assert!(!tail.is_cut());
        assert_eq!(tail.into_bytes(), b"abc");
    }
}
