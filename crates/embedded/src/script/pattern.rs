//! Pattern matching of Lua 5.1, as in Redis, with two bounds that Lua's own matcher lacks. A pattern of 80 characters
//! can need more steps than there is time, so the steps of a call are counted. A pattern of 100 KB can need more
//! stack than there is, so the remaining alternatives are kept in a list.
//!
//! A pattern ends at its first zero, as in C; a source may contain zeros.

use std::ffi::CStr;

/// Greatest number of captures in a pattern, as in Lua.
pub(super) const CAPTURES_MAX: usize = 32;

/// Greatest number of alternatives that are kept, 32 MB. Each is one item of the pattern. Redis keeps them on its
/// stack of 8 MB, and ends earlier.
const TRIES_MAX: usize = 1_000_000;

/// Greatest number of steps of a call, beside [`STEPS_PER_BYTE`]: about half a second. Common patterns take a few
/// steps for each byte of the source; those that need more than this would mostly never end.
const STEPS_MAX: usize = 100_000_000;

/// Additional steps for each byte of the source, so that a simple pattern is never refused on a long source.
const STEPS_PER_BYTE: usize = 100;

/// Escape character in patterns and replacements.
pub(super) const ESCAPE: u8 = b'%';

/// The reason why matching ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// An error that Lua raises, with the line of the script before it.
    Bad(&'static CStr),
    /// The time limit of the script is over.
    Stopped,
}

/// Counts the cost of matching.
pub(super) trait Effort {
    /// Counts steps, each of some nanoseconds.
    ///
    /// # Errors
    /// No steps are left; [`Fault::Stopped`] if the time limit is over.
    fn spend(&mut self, steps: usize) -> Result<(), Fault>;
}

/// Remaining steps of a call of a pattern function.
pub(super) struct Budget(usize);

impl Budget {
    /// Returns the budget of a call with this source.
    pub(super) fn of(source: &[u8]) -> Self {
        let more = source.len().saturating_mul(STEPS_PER_BYTE);
        Self(STEPS_MAX.saturating_add(more))
    }

    /// Returns an effort that counts here and in `effort`.
    pub(super) fn beside<'a, E: Effort>(&'a mut self, effort: &'a mut E) -> Bounded<'a, E> {
        Bounded {
            budget: self,
            effort,
        }
    }
}

/// An effort with a budget.
pub(super) struct Bounded<'a, E> {
    budget: &'a mut Budget,
    effort: &'a mut E,
}

impl<E: Effort> Effort for Bounded<'_, E> {
    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        // The text has the value of STEPS_MAX.
        let text = c"pattern too complex (more than 100000000 steps): use fewer of * + - ? in it";
        let left = self.budget.0.checked_sub(steps);
        self.budget.0 = left.ok_or(Fault::Bad(text))?;
        self.effort.spend(steps)
    }
}

/// A part of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capture {
    /// Begins here; the end is not known yet.
    Open(usize),
    /// Between these two positions.
    Closed(usize, usize),
    /// `()`: the position.
    Position(usize),
}

/// An alternative to try if the current one does not match.
#[derive(Debug, Clone, Copy)]
pub(super) enum Try {
    /// Continues at these positions in the source and in the pattern.
    Here(usize, usize),
    /// The same with fewer characters from `from` on, at most `more`.
    Fewer {
        from: usize,
        more: usize,
        next: usize,
    },
    /// One more character, if it matches the item from `item` to `end`.
    More { at: usize, item: usize, end: usize },
    /// No alternative; removes the last capture.
    NoCapture,
    /// No alternative; reopens this capture.
    Reopen(usize),
}

/// A source, a pattern, and the captures of the last match.
pub(super) struct Matcher<'a> {
    source: &'a [u8],
    pattern: &'a [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
}

type Found<T> = Result<T, Fault>;

/// Returns the pattern up to its first zero without a leading `^`, and whether that was present.
pub(super) fn anchored(pattern: &[u8]) -> (&[u8], bool) {
    let pattern = until_zero(pattern);
    match pattern.strip_prefix(b"^") {
        Some(rest) => (rest, true),
        None => (pattern, false),
    }
}

/// Returns whether the pattern has a special character.
pub(super) fn is_special(pattern: &[u8]) -> bool {
    let special = |byte| b"^$*+?.([%-".contains(byte);
    until_zero(pattern).iter().any(special)
}

/// Returns the text as C sees it.
pub(super) fn until_zero(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len())]
}

impl<'a> Matcher<'a> {
    /// Returns a matcher. `pattern` must be cut at its first zero.
    pub(super) fn new(source: &'a [u8], pattern: &'a [u8]) -> Self {
        Self {
            source,
            pattern,
            captures: [Capture::Open(0); CAPTURES_MAX],
            level: 0,
        }
    }

    /// Returns the captures of the last match.
    pub(super) fn captures(&self) -> &[Capture] {
        &self.captures[..self.level]
    }

    /// Returns a part of the source.
    pub(super) fn part(&self, from: usize, to: usize) -> &[u8] {
        self.source.get(from..to).unwrap_or_default()
    }

    /// Returns the end of the match that begins at `at`. `tries` is a reusable buffer.
    pub(super) fn run(
        &mut self,
        at: usize,
        tries: &mut Vec<Try>,
        effort: &mut impl Effort,
    ) -> Found<Option<usize>> {
        tries.clear();
        self.level = 0;
        let mut next = Some((at, 0));
        while let Some((at, item)) = next {
            if let Some(end) = self.go_on(at, item, tries, effort)? {
                return Ok(Some(end));
            }
            next = self.otherwise(tries, effort)?;
        }
        Ok(None)
    }

    /// Matches up to the end of the pattern, or up to a mismatch.
    fn go_on(
        &mut self,
        mut at: usize,
        mut item: usize,
        tries: &mut Vec<Try>,
        effort: &mut impl Effort,
    ) -> Found<Option<usize>> {
        loop {
            effort.spend(1)?;
            if tries.len() >= TRIES_MAX {
                return Err(Fault::Bad(c"pattern too complex (more than 1000000 items)"));
            }
            let step = match (self.item(item), self.item(item + 1)) {
                (b'(', second) => {
                    self.begin_capture(at, second == b')', tries)?;
                    Some((at, item + 1 + usize::from(second == b')')))
                }
                (b')', _) => {
                    self.end_capture(at, tries)?;
                    Some((at, item + 1))
                }
                (ESCAPE, b'b') => self.balance(at, item + 2, effort)?,
                (ESCAPE, b'f') => self.frontier(at, item + 2, effort)?,
                (ESCAPE, digit @ b'0'..=b'9') => {
                    self.again(at, digit, effort)?.map(|at| (at, item + 2))
                }
                (0, _) => return Ok(Some(at)),
                (b'$', 0) => return Ok((at == self.source.len()).then_some(at)),
                _ => self.one(at, item, tries, effort)?,
            };
            match step {
                Some(next) => (at, item) = next,
                None => return Ok(None),
            }
        }
    }

    /// Returns the next alternative, if there is one.
    fn otherwise(
        &mut self,
        tries: &mut Vec<Try>,
        effort: &mut impl Effort,
    ) -> Found<Option<(usize, usize)>> {
        while let Some(last) = tries.pop() {
            effort.spend(1)?;
            match last {
                Try::Here(at, item) => return Ok(Some((at, item))),
                Try::Fewer { from, more, next } => {
                    let Some(fewer) = more.checked_sub(1) else {
                        continue;
                    };
                    let more = fewer;
                    tries.push(Try::Fewer { from, more, next });
                    return Ok(Some((from + fewer, next)));
                }
                Try::More { at, item, end } => {
                    if self.fits(at, item, end, effort)? {
                        let at = at + 1;
                        tries.push(Try::More { at, item, end });
                        return Ok(Some((at, end + 1)));
                    }
                }
                Try::NoCapture => self.level -= 1,
                Try::Reopen(at) => {
                    if let Capture::Closed(from, _) = self.captures[at] {
                        self.captures[at] = Capture::Open(from);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns a byte of the pattern; zero after its end, as in C.
    fn item(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    fn begin_capture(&mut self, at: usize, position: bool, tries: &mut Vec<Try>) -> Found<()> {
        let Some(place) = self.captures.get_mut(self.level) else {
            return Err(Fault::Bad(c"too many captures"));
        };
        *place = match position {
            true => Capture::Position(at),
            false => Capture::Open(at),
        };
        self.level += 1;
        tries.push(Try::NoCapture);
        Ok(())
    }

    fn end_capture(&mut self, at: usize, tries: &mut Vec<Try>) -> Found<()> {
        let open = |capture: &Capture| matches!(capture, Capture::Open(_));
        let Some(last) = self.captures().iter().rposition(open) else {
            return Err(Fault::Bad(c"invalid pattern capture"));
        };
        if let Capture::Open(from) = self.captures[last] {
            self.captures[last] = Capture::Closed(from, at);
        }
        tries.push(Try::Reopen(last));
        Ok(())
    }

    /// Matches `%b()`: from an opening character to the matching closing one.
    fn balance(
        &self,
        at: usize,
        item: usize,
        effort: &mut impl Effort,
    ) -> Found<Option<(usize, usize)>> {
        let (opens, closes) = (self.item(item), self.item(item + 1));
        if opens == 0 || closes == 0 {
            return Err(Fault::Bad(c"unbalanced pattern"));
        }
        if self.source.get(at) != Some(&opens) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (place, byte) in self.source.iter().enumerate().skip(at + 1) {
            effort.spend(1)?;
            if *byte == closes {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some((place + 1, item + 2)));
                }
            } else if *byte == opens {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// Matches `%f[set]`: the border between a character outside of the set and one in it. Zeros surround the source.
    fn frontier(
        &self,
        at: usize,
        item: usize,
        effort: &mut impl Effort,
    ) -> Found<Option<(usize, usize)>> {
        if self.item(item) != b'[' {
            return Err(Fault::Bad(c"missing '[' after '%f' in pattern"));
        }
        let end = self.item_end(item, effort)?;
        effort.spend(2 * (end - item))?;
        let byte = |at: Option<usize>| at.and_then(|at| self.source.get(at)).copied().unwrap_or(0);
        let (before, here) = (byte(at.checked_sub(1)), byte(Some(at)));
        let is_here = !self.in_set(before, item, end - 1) && self.in_set(here, item, end - 1);
        Ok(is_here.then_some((at, end)))
    }

    /// Matches `%1`: the text of a capture again.
    fn again(&self, at: usize, digit: u8, effort: &mut impl Effort) -> Found<Option<usize>> {
        let number = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = number.and_then(|number| self.captures().get(number));
        let (from, to) = match capture {
            None | Some(Capture::Open(_)) => return Err(Fault::Bad(c"invalid capture index")),
            Some(Capture::Position(_)) => return Ok(None),
            Some(Capture::Closed(from, to)) => (*from, *to),
        };
        effort.spend(to - from)?;
        let found = self
            .part(at, self.source.len())
            .starts_with(self.part(from, to));
        Ok(found.then_some(at + to - from))
    }

    /// Matches one item, with its repetition.
    fn one(
        &self,
        at: usize,
        item: usize,
        tries: &mut Vec<Try>,
        effort: &mut impl Effort,
    ) -> Found<Option<(usize, usize)>> {
        let end = self.item_end(item, effort)?;
        let fits = self.fits(at, item, end, effort)?;
        let next = end + 1;
        Ok(match self.item(end) {
            b'?' if fits => {
                tries.push(Try::Here(at, next));
                Some((at + 1, next))
            }
            b'?' => Some((at, next)),
            b'+' if !fits => None,
            repeated @ (b'*' | b'+') => {
                let from = at + usize::from(repeated == b'+');
                let mut more = 0;
                while self.fits(from + more, item, end, effort)? {
                    more += 1;
                }
                tries.push(Try::Fewer { from, more, next });
                Some((from + more, next))
            }
            b'-' => {
                tries.push(Try::More { at, item, end });
                Some((at, next))
            }
            _ if fits => Some((at + 1, end)),
            _ => None,
        })
    }

    /// Returns the end of an item for one character.
    fn item_end(&self, item: usize, effort: &mut impl Effort) -> Found<usize> {
        let mut at = item + 1;
        match self.item(item) {
            ESCAPE if self.item(at) == 0 => Err(Fault::Bad(c"malformed pattern (ends with '%')")),
            ESCAPE => Ok(at + 1),
            b'[' => {
                at += usize::from(self.item(at) == b'^');
                loop {
                    let byte = self.item(at);
                    if byte == 0 {
                        return Err(Fault::Bad(c"malformed pattern (missing ']')"));
                    }
                    at += 1;
                    at += usize::from(byte == ESCAPE && self.item(at) != 0);
                    if self.item(at) == b']' {
                        break;
                    }
                }
                effort.spend(at - item)?;
                Ok(at + 1)
            }
            _ => Ok(at),
        }
    }

    /// Returns whether the character at `at`, if there is one, matches an item.
    fn fits(&self, at: usize, item: usize, end: usize, effort: &mut impl Effort) -> Found<bool> {
        effort.spend(end - item)?;
        let Some(byte) = self.source.get(at).copied() else {
            return Ok(false);
        };
        Ok(match self.item(item) {
            b'.' => true,
            ESCAPE => is_class(byte, self.item(item + 1)),
            b'[' => self.in_set(byte, item, end - 1),
            plain => plain == byte,
        })
    }

    /// Returns whether a byte is in the set that begins at `item` and whose `]` is at `end`.
    fn in_set(&self, byte: u8, item: usize, end: usize) -> bool {
        let negated = self.item(item + 1) == b'^';
        let mut at = item + usize::from(negated) + 1;
        while at < end {
            if self.item(at) == ESCAPE {
                at += 1;
                if is_class(byte, self.item(at)) {
                    return !negated;
                }
            } else if self.item(at + 1) == b'-' && at + 2 < end {
                at += 2;
                if (self.item(at - 2)..=self.item(at)).contains(&byte) {
                    return !negated;
                }
            } else if self.item(at) == byte {
                return !negated;
            }
            at += 1;
        }
        negated
    }
}

/// Returns whether a byte is in the class of a letter; upper case negates the class. Other characters match
/// themselves.
fn is_class(byte: u8, letter: u8) -> bool {
    let is = match letter.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // With the vertical tab, which Rust omits.
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return byte == letter,
    };
    is == letter.is_ascii_lowercase()
}
