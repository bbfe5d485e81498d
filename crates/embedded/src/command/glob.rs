//! Patterns of KEYS, SCAN and PSUBSCRIBE: `*`, `?`, `[a-z]`, `[^a]`, and `\` before a literal character.

/// Returns whether all of `text` matches `pattern`. An empty text matches only an empty pattern.
pub(crate) fn glob_match(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut pattern_at, mut text_at) = (0, 0);
    // Position to continue at if the part after the last star does not match: the star takes one byte more. Earlier
    // stars need not be tried again, which bounds the work by the product of the lengths.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let rest = &pattern[pattern_at..];
        if rest.first() == Some(&b'*') {
            pattern_at += 1;
            star = Some((pattern_at, text_at));
            continue;
        }
        let step = match text.get(text_at) {
            None if rest.is_empty() => return true,
            None => None,
            Some(byte) => one(rest, *byte),
        };
        match (step, star) {
            (Some(len), _) => {
                pattern_at += len;
                text_at += 1;
            }
            (None, Some((after, from))) if from < text.len() => {
                pattern_at = after;
                text_at = from + 1;
                star = Some((after, from + 1));
            }
            (None, _) => return false,
        }
    }
}

/// Returns the length of the part of the pattern, which does not begin with a star, that matches the byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => in_class(class, byte).map(|len| len + 1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [plain, ..] => (*plain == byte).then_some(1),
    }
}

/// Returns the length of a class with its closing bracket, if the byte is in it. The bracket may be missing at the
/// end of the pattern.
fn in_class(class: &[u8], byte: u8) -> Option<usize> {
    let inverted = class.first() == Some(&b'^');
    let mut at = usize::from(inverted);
    let mut found = false;
    loop {
        match &class[at.min(class.len())..] {
            [] => break,
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [from, b'-', to, ..] => {
                // Redis compares bytes as signed numbers.
                let (from, to) = (from.cast_signed(), to.cast_signed());
                found |= (from.min(to)..=from.max(to)).contains(&byte.cast_signed());
                at += 3;
            }
            [plain, ..] => {
                found |= *plain == byte;
                at += 1;
            }
        }
    }
    (found != inverted).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, matches) in [
            ("*", "", false),
            ("", "", true),
            ("", "a", false),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("**a**", "bab", true),
            ("a?c", "abc", true),
            ("a?", "a", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a]", "b", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"[\]]", "]", true),
            ("[ab", "b", true),
            ("[", "[", false),
            ("[^", "[", true),
            (r"a\", r"a\", true),
            ("a**", "a", true),
            ("h[a-]llo", "h-llo", false),
        ] {
            assert_eq!(
                glob_match(pattern.as_bytes(), text.as_bytes()),
                matches,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_do_not_take_long() {
        let pattern = b"a*".repeat(5_000);
        let text = b"a".repeat(10_000);
        assert!(!glob_match(&[&pattern[..], b"b"].concat(), &text));
    }
}
