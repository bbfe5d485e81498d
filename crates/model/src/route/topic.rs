//! Topics: words with dots between them, and patterns like those of AMQP's topic exchanges and Celery's queue
//! bindings. `*` matches one word, `#` any number of words, including none.

use std::fmt;
use std::str::FromStr;

/// Greatest length of a topic or pattern, in bytes.
pub const MAX_TOPIC: usize = 255;

/// The reason why a topic was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTopic {
    /// The topic is empty, or has an empty word.
    #[error(
        "a word of the topic `{0}` is empty: write words with dots between them, as `orders.eu.new`"
    )]
    Empty(String),
    /// The topic is too long.
    #[error("the topic `{shown}…` is {len} bytes long: at most {MAX_TOPIC} are allowed")]
    TooLong {
        /// First characters of the topic.
        shown: String,
        /// Length in bytes.
        len: usize,
    },
    /// `*` or `#` is in a topic, or is a part of a word.
    #[error(
        "`{0}` has a `*` or `#` in a wrong place: each must be a separate word of a binding's pattern"
    )]
    Wild(String),
}

/// Topic of a job, as `orders.eu.new`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic(String);

/// Pattern of a binding, as `orders.*.new` or `orders.#`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPattern(String);

impl TopicPattern {
    /// Returns whether `topic` matches. It takes at most as many steps as the product of both numbers of words.
    #[must_use]
    pub fn matches(&self, topic: &Topic) -> bool {
        let words: Vec<_> = topic.0.split('.').collect();
        // Prefixes of the topic, by their number of words, that the pattern so far matches.
        let mut so_far = vec![false; words.len() + 1];
        so_far[0] = true;
        for part in self.0.split('.') {
            let mut next = vec![false; words.len() + 1];
            for at in 0..=words.len() {
                let before = at.checked_sub(1);
                next[at] = match (part, before) {
                    ("#", before) => so_far[at] || before.is_some_and(|before| next[before]),
                    ("*", Some(before)) => so_far[before],
                    (word, Some(before)) => so_far[before] && words[before] == word,
                    (_, None) => false,
                };
            }
            so_far = next;
        }
        so_far[words.len()]
    }
}

/// Splits a text into words, none of which may be empty.
fn words(text: &str) -> Result<std::str::Split<'_, char>, InvalidTopic> {
    if text.len() > MAX_TOPIC {
        let shown = text.chars().take(64).collect();
        let len = text.len();
        return Err(InvalidTopic::TooLong { shown, len });
    }
    if text.split('.').any(str::is_empty) {
        return Err(InvalidTopic::Empty(text.to_owned()));
    }
    Ok(text.split('.'))
}

fn is_wild(word: &str) -> bool {
    word.contains(['*', '#'])
}

impl FromStr for Topic {
    type Err = InvalidTopic;

    fn from_str(text: &str) -> Result<Self, InvalidTopic> {
        if words(text)?.any(is_wild) {
            return Err(InvalidTopic::Wild(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for TopicPattern {
    type Err = InvalidTopic;

    fn from_str(text: &str) -> Result<Self, InvalidTopic> {
        if words(text)?.any(|word| word.len() > 1 && is_wild(word)) {
            return Err(InvalidTopic::Wild(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        let pattern: TopicPattern = pattern.parse().unwrap();
        pattern.matches(&topic.parse().unwrap())
    }

    #[test]
    fn a_star_is_a_word_and_a_hash_any_number() {
        for (pattern, topic, expected) in [
            ("orders.new", "orders.new", true),
            ("orders.new", "orders.old", false),
            ("orders", "orders.new", false),
            ("orders.*", "orders.new", true),
            ("orders.*", "orders", false),
            ("orders.*", "orders.eu.new", false),
            ("orders.#", "orders", true),
            ("orders.#", "orders.eu.new", true),
            ("#", "anything.at.all", true),
            ("#.new", "new", true),
            ("#.new", "orders.eu.new", true),
            ("#.new", "orders.new.eu", false),
            ("*.*.new", "orders.eu.new", true),
            ("a.#.b.#.c", "a.x.b.y.z.c", true),
            ("a.#.b.#.c", "a.x.y.c", false),
            ("#.#", "a", true),
        ] {
            assert_eq!(matches(pattern, topic), expected, "{pattern} {topic}");
        }
    }

    #[test]
    fn what_is_no_topic_is_refused() {
        for bad in ["", "a..b", ".a", "a.", "a*", "a.#b", "*", "a.#"] {
            assert!(bad.parse::<Topic>().is_err(), "{bad}");
        }
        for bad in ["", "a..b", "a*", "a.##"] {
            assert!(bad.parse::<TopicPattern>().is_err(), "{bad}");
        }
        let long = "x".repeat(MAX_TOPIC + 1);
        let said = long.parse::<Topic>().unwrap_err().to_string();
        assert!(said.contains("256 bytes"), "{said}");
    }

    /// Matches by trying all assignments of words.
    fn slow(pattern: &[&str], topic: &[&str]) -> bool {
        match (pattern.split_first(), topic.split_first()) {
            (None, none) => none.is_none(),
            (Some((&"#", rest)), _) => (0..=topic.len()).any(|n| slow(rest, &topic[n..])),
            (Some((&"*", rest)), Some((_, words))) => slow(rest, words),
            (Some((part, rest)), Some((word, words))) => part == word && slow(rest, words),
            (Some(_), None) => false,
        }
    }

    proptest! {
        #[test]
        fn it_is_what_the_words_say(
            pattern in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "#"]), 1..7),
            topic in prop::collection::vec(prop::sample::select(vec!["a", "b"]), 1..7),
        ) {
            let fast = matches(&pattern.join("."), &topic.join("."));
            prop_assert_eq!(fast, slow(&pattern, &topic));
        }
    }
}
