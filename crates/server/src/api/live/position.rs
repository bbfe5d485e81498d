//! Positions in a stream of the store. An entry may hold several items, so a position has a part beside the id of its entry:
//! a subscriber that breaks off within an entry resumes there.

use std::fmt;
use std::str::FromStr;

/// Part of the last item of an entry: all of the entry was read.
const WHOLE: u32 = u32::MAX;

/// Position of an item: `MS-SEQUENCE`, or `MS-SEQUENCE.PART` for all but the last item of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    ms: u64,
    sequence: u64,
    part: u32,
}

/// A text is no position.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no id of an event: give the id of the last one, or 0 for all that are stored")]
pub(crate) struct InvalidPosition(String);

impl Position {
    /// The position before the first item of every stream.
    pub(crate) const START: Self = Self {
        ms: 0,
        sequence: 0,
        part: WHOLE,
    };

    /// Returns true if the entry of this position is before that of the other one.
    pub(crate) fn is_of_earlier_entry(self, other: Self) -> bool {
        (self.ms, self.sequence) < (other.ms, other.sequence)
    }

    /// Id of an entry after which the store has all items after this position. Items of the same entry come again.
    pub(crate) fn entry_before(self) -> String {
        let (ms, sequence) = match (self.part, self.sequence) {
            (WHOLE, sequence) => (self.ms, sequence),
            (_, 0) => (self.ms.saturating_sub(1), u64::MAX),
            (_, sequence) => (self.ms, sequence - 1),
        };
        format!("{ms}-{sequence}")
    }
}

impl FromStr for Position {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let parse = || {
            let (id, part) = text.split_once('.').unwrap_or((text, ""));
            let (ms, sequence) = id.split_once('-').unwrap_or((id, "0"));
            Some(Self {
                ms: ms.parse().ok()?,
                sequence: sequence.parse().ok()?,
                part: match text.contains('.') {
                    true => part.parse().ok().filter(|part| *part < WHOLE)?,
                    false => WHOLE,
                },
            })
        };
        // No entry follows the last id, after which the store refuses to look.
        let parsed = parse().filter(|it| (it.ms, it.sequence) < (u64::MAX, u64::MAX));
        parsed.ok_or_else(|| InvalidPosition(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.sequence)?;
        match self.part {
            WHOLE => Ok(()),
            part => write!(f, ".{part}"),
        }
    }
}

/// Gives each item its position, by the id of its entry. All items of an entry have to be there.
pub(crate) fn placed<T>(items: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<(Position, T)> {
    let mut placed: Vec<(Position, T)> = Vec::with_capacity(items.len());
    for item in items {
        // The store writes no other ids.
        let at: Position = id(&item).parse().unwrap_or(Position::START);
        if let Some((before, _)) = placed.last_mut()
            && (before.ms, before.sequence) == (at.ms, at.sequence)
        {
            let same = placed
                .iter()
                .rev()
                .take_while(|(it, _)| (it.ms, it.sequence) == (at.ms, at.sequence));
            let part = u32::try_from(same.count()).unwrap_or(WHOLE) - 1;
            if let Some((before, _)) = placed.last_mut() {
                before.part = part;
            }
        }
        placed.push((at, item));
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_a_position_of_its_own_and_they_ascend() {
        let ids = ["1-0", "1-1", "1-1", "1-1", "2-0", "2-0"];
        let placed = placed(ids.to_vec(), |id| id);
        let texts: Vec<_> = placed.iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(texts, ["1-0", "1-1.0", "1-1.1", "1-1", "2-0.0", "2-0"]);
        assert!(placed.is_sorted_by_key(|(at, _)| *at));
        for (at, _) in &placed {
            assert_eq!(at.to_string().parse::<Position>().unwrap(), *at);
        }
    }

    #[test]
    fn a_read_begins_before_the_entry_that_was_not_read_to_its_end() {
        for (text, before) in [
            ("0", "0-0"),
            ("5-3", "5-3"),
            ("5-3.1", "5-2"),
            ("5-0.0", "4-18446744073709551615"),
        ] {
            let at: Position = text.parse().unwrap();
            assert_eq!(at.entry_before(), before, "{text}");
        }
        for text in [
            "",
            "x",
            "-",
            "1-x",
            "1-1.",
            "1-1.x",
            "1-1.4294967295",
            "1-1-1",
        ] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }
}
