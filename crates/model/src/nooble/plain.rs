//! Search for the end of plain text, many bytes at a time. Most of a message is read only for this.

/// Number of bytes that are checked at once; the compiler vectorizes the check.
const WIDE: usize = 32;
/// Number of bytes in a word.
const WORD: usize = size_of::<u64>();
/// A word whose bytes are all 1.
const ONES: u64 = u64::MAX / 0xff;
/// A word whose bytes have only the highest bit set.
const HIGHS: u64 = ONES << 7;

/// Returns the position of the first byte that JSON does not allow unescaped in a text. Each such character is one
/// byte.
pub(super) fn special(bytes: &[u8]) -> Option<usize> {
    let (wide, _) = bytes.as_chunks::<WIDE>();
    let plain = wide.iter().take_while(|chunk| !has_special(chunk));
    let begin = plain.count() * WIDE;
    Some(begin + special_soon(&bytes[begin..])?)
}

/// Does the same for short texts, as names, which have too few bytes for the wide check.
pub(super) fn special_soon(bytes: &[u8]) -> Option<usize> {
    let in_word = |word: &[u8; WORD]| match specials(u64::from_le_bytes(*word)) {
        0 => None,
        special => Some(special.trailing_zeros() as usize / 8),
    };
    let (words, rest) = bytes.as_chunks::<WORD>();
    for (at, word) in words.iter().enumerate() {
        if let Some(within) = in_word(word) {
            return Some(at * WORD + within);
        }
    }
    match bytes.last_chunk() {
        // The last word overlaps the previous one, which has no special byte.
        Some(last) if !rest.is_empty() => Some(bytes.len() - WORD + in_word(last)?),
        Some(_) => None,
        None => bytes.iter().position(|byte| has_special(&[*byte])),
    }
}

/// Returns whether any byte is special. It does not stop at the first one, so that the compiler can vectorize it.
fn has_special<const N: usize>(bytes: &[u8; N]) -> bool {
    let any = bytes.iter().fold(0, |any, byte| {
        any | u8::from(*byte < b' ') | u8::from(*byte == b'"') | u8::from(*byte == b'\\')
    });
    any != 0
}

/// Marks special bytes of a word. Only the lowest mark is exact.
fn specials(word: u64) -> u64 {
    // A byte below another one borrows from the next byte, so only the lowest mark counts.
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
                let bytes = &bytes[from..];
                prop_assert_eq!([special(bytes), special_soon(bytes)], [by_hand(bytes); 2]);
            }
        }
    }
}
