//! Errors of a start, in the form in which they are sent to the worker.

use std::io;

/// Greatest length of an error's text.
const MAX_TEXT: usize = 512;
/// Greatest length of an encoded error.
pub(super) const MAX_ERROR: usize = size_of::<i32>() + MAX_TEXT;

/// Encodes an error: its number of the system, 0 for none, then its text.
pub(super) fn encode(error: &io::Error) -> Vec<u8> {
    let text = error.to_string();
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let number = error.raw_os_error().unwrap_or_default();
    [&number.to_le_bytes()[..], text.as_bytes()].concat()
}

/// Decodes an error; `None` for other bytes.
pub(super) fn decode(bytes: &[u8]) -> Option<io::Error> {
    let (number, text) = bytes.split_first_chunk()?;
    Some(match i32::from_le_bytes(*number) {
        0 => io::Error::other(String::from_utf8_lossy(text).into_owned()),
        number => io::Error::from_raw_os_error(number),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_arrive_as_they_were() {
        let error = io::Error::from_raw_os_error(11);
        assert_eq!(decode(&encode(&error)).unwrap().raw_os_error(), Some(11));
        let error = io::Error::other("ä".repeat(MAX_TEXT));
        let encoded = encode(&error);
        assert!(encoded.len() <= MAX_ERROR);
        assert!(decode(&encoded).unwrap().to_string().starts_with('ä'));
        assert!(decode(b"abc").is_none());
    }
}
