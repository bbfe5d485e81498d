//! Finds the end of what is plain in a text, many bytes at a time: most of a message is looked at for nothing else.

/// So many bytes at a time are asked whether any is special, which the compiler does at once.
const WIDE: usize = 32;
/// So many bytes are a word.
const WORD: usize = size_of::<u64>();
/// A word of which each byte is one.
const ONES: u64 = u64::MAX / 0xff;
/// A word of which each byte has its highest bit set, and no other.
const HIGHS: u64 = ONES << 7;

/// Where the first character stands that a text of JSON does not have as it is; each is one byte.
pub(super) fn special(bytes: &[u8]) -> Option<usize> {
    let (wide, _) = bytes.as_chunks::<WIDE>();
    let plain = wide.iter().take_while(|chunk| {
        !chunk
            .iter()
            .fold(false, |any, byte| any | is_special(*byte))
    });
    let begin = plain.count() * WIDE;
    let (words, rest) = bytes[begin..].as_chunks::<WORD>();
    for (at, word) in words.iter().enumerate() {
        let special = specials(u64::from_le_bytes(*word));
        if special != 0 {
            return Some(begin + at * WORD + special.trailing_zeros() as usize / 8);
        }
    }
    let before = bytes.len() - rest.len();
    let at = rest.iter().position(|byte| is_special(*byte))?;
    Some(before + at)
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The lowest bit that is set is in the first special byte of a word; what is above it tells nothing.
fn specials(word: u64) -> u64 {
    // A byte below another borrows from the next, which is why only the lowest counts.
    let below = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | is(b'"') | is(b'\\')) & HIGHS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_hand(bytes: &[u8]) -> Option<usize> {
        bytes
            .iter()
            .position(|byte| matches!(byte, 0..0x20 | 0x22 | 0x5c))
    }

    #[test]
    fn each_byte_is_found_at_each_place() {
        for length in 0..3 * WIDE {
            for byte in 0..=u8::MAX {
                for at in 0..length {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = byte;
                    assert_eq!(
                        special(&bytes),
                        by_hand(&bytes),
                        "{byte} at {at} of {length}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_the_first_that_is_found(
            bytes in proptest::collection::vec(
                prop_oneof![0x1e_u8..0x24, 0x5a_u8..0x5e, 0x7e_u8..0x82, 0xdb_u8..0xdd, Just(b'a'), any::<u8>()],
                0..80,
            ),
        ) {
            for from in 0..bytes.len() {
                prop_assert_eq!(special(&bytes[from..]), by_hand(&bytes[from..]));
            }
        }
    }
}
