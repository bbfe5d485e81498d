//! Ids of Nooble4: UUIDs, read in each form that its models accept, and written in one.

use std::borrow::Cow;

/// The length of a UUID with its hyphens.
const HYPHENATED: usize = 36;
/// Positions of the hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// The same positions as a mask.
const IS_HYPHEN: [bool; HYPHENATED] = {
    let mut places = [false; HYPHENATED];
    let [a, b, c, d] = HYPHENS;
    (places[a], places[b], places[c], places[d]) = (true, true, true, true);
    places
};

/// Returns a UUID in lower case with hyphens, or `None` if the text is not one. It may be without hyphens, in braces,
/// or after `urn:uuid:`.
#[must_use]
pub fn uuid(text: &str) -> Option<String> {
    written(Cow::Borrowed(text))
}

/// Does the same, without a copy where the text is in canonical form.
pub(super) fn written(text: Cow<'_, str>) -> Option<String> {
    if is_written(&text) {
        return Some(text.into_owned());
    }
    let written = in_any_form(&text)?;
    std::str::from_utf8(&written).ok().map(str::to_owned)
}

/// Returns whether a text is a UUID, in any form.
pub(super) fn is_uuid(text: &str) -> bool {
    is_written(text) || in_any_form(text).is_some()
}

/// Returns whether a text is a UUID in canonical form, as nearly all are. The check treats all bytes alike, so that
/// the compiler can vectorize it.
fn is_written(text: &str) -> bool {
    let Ok(bytes) = <&[u8; HYPHENATED]>::try_from(text.as_bytes()) else {
        return false;
    };
    let is_digit = |byte: u8| byte.is_ascii_digit() | (b'a'..=b'f').contains(&byte);
    let places = bytes.iter().zip(&IS_HYPHEN);
    places.fold(true, |sound, (byte, is_hyphen)| {
        sound & ((*is_hyphen & (*byte == b'-')) | (!*is_hyphen & is_digit(*byte)))
    })
}

/// Converts a UUID in any form to the canonical one.
fn in_any_form(text: &str) -> Option<[u8; HYPHENATED]> {
    let braced = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let hyphenated = text.strip_prefix("urn:uuid:").or(braced);
    let bytes = hyphenated.unwrap_or(text).as_bytes();
    let plain = hyphenated.is_none() && bytes.len() == HYPHENATED - HYPHENS.len();
    if !plain && bytes.len() != HYPHENATED {
        return None;
    }
    let mut bytes = bytes.iter();
    let mut written = [b'-'; HYPHENATED];
    for (at, place) in written.iter_mut().enumerate() {
        let hyphen = HYPHENS.contains(&at);
        if hyphen && plain {
            continue;
        }
        match (hyphen, bytes.next()?) {
            (true, b'-') => {}
            (false, digit) if digit.is_ascii_hexdigit() => *place = digit.to_ascii_lowercase(),
            _ => return None,
        }
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "abcdef00-1234-4000-8000-0000000000aa";

    #[test]
    fn each_form_is_read() {
        for form in [
            ID,
            "ABCDEF00-1234-4000-8000-0000000000AA",
            "abcdef00123440008000-0000000000aa"
                .replace('-', "")
                .as_str(),
            &format!("urn:uuid:{ID}"),
            &format!("{{{ID}}}"),
        ] {
            assert_eq!(uuid(form).as_deref(), Some(ID), "{form}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for bad in [
            "",
            "123",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "abcdef00_1234-4000-8000-0000000000aa",
            "abcdef001-234-4000-8000-0000000000aa",
            "gbcdef00-1234-4000-8000-0000000000aa",
            "{abcdef00-1234-4000-8000-0000000000aa",
            "ñbcdef0-1234-4000-8000-0000000000aa",
            "urn:uuid:",
        ] {
            assert_eq!(uuid(bad), None, "{bad}");
        }
    }

    /// The former conversion, byte by byte.
    fn by_hand(text: &str) -> Option<String> {
        let braced = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        let hyphenated = text.strip_prefix("urn:uuid:").or(braced);
        let bytes = hyphenated.unwrap_or(text).as_bytes();
        let plain = hyphenated.is_none() && bytes.len() == 32;
        if !plain && bytes.len() != 36 {
            return None;
        }
        let mut written = String::new();
        for (at, byte) in bytes.iter().enumerate() {
            let hyphen = !plain && [8, 13, 18, 23].contains(&at);
            if plain && [8, 13, 18, 23].contains(&written.len()) {
                written.push('-');
            }
            match (hyphen, byte) {
                (true, b'-') => written.push('-'),
                (false, digit) if digit.is_ascii_hexdigit() => {
                    written.push(char::from(digit.to_ascii_lowercase()));
                }
                _ => return None,
            }
        }
        Some(written)
    }

    #[test]
    fn each_byte_is_judged_at_each_place() {
        for at in 0..HYPHENATED {
            for byte in 0..=0x7f_u8 {
                let mut bytes = ID.as_bytes().to_vec();
                bytes[at] = byte;
                let text = String::from_utf8(bytes).unwrap();
                assert_eq!(uuid(&text), by_hand(&text), "{text}");
                assert_eq!(is_uuid(&text), by_hand(&text).is_some(), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_nearly_one_is_read_as_by_hand(
            text in "(urn:uuid:|\\{)?[0-9a-fA-F]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\\}?",
            changes in proptest::collection::vec((any::<prop::sample::Index>(), "[-0-9a-gA-Gñ{}/:@`]?"), 0..3),
        ) {
            let mut chars: Vec<_> = text.chars().map(String::from).collect();
            for (at, change) in changes {
                let at = at.index(chars.len());
                chars[at] = change;
            }
            let text = chars.concat();
            prop_assert_eq!(uuid(&text), by_hand(&text));
            prop_assert_eq!(is_uuid(&text), by_hand(&text).is_some());
        }
    }
}
