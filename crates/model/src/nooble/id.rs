//! Ids of Nooble4: UUIDs in each of the forms that its models read, written in one.

/// The length of a UUID with its hyphens.
const HYPHENATED: usize = 36;
/// Where these stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// A UUID in small letters with hyphens; None for what is none. It may come without hyphens, in braces, or
/// after `urn:uuid:`.
#[must_use]
pub fn uuid(text: &str) -> Option<String> {
    let braced = text.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let hyphenated = text.strip_prefix("urn:uuid:").or(braced);
    let bytes = hyphenated.unwrap_or(text).as_bytes();
    let plain = hyphenated.is_none() && bytes.len() == HYPHENATED - HYPHENS.len();
    if !plain && bytes.len() != HYPHENATED {
        return None;
    }
    let mut written = String::with_capacity(HYPHENATED);
    for (at, byte) in bytes.iter().enumerate() {
        let hyphen = !plain && HYPHENS.contains(&at);
        if plain && HYPHENS.contains(&written.len()) {
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

#[cfg(test)]
mod tests {
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
}
