//! XTRIM, and the options that it shares with XADD.

use bytes::Bytes;

use super::ids;
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, refuse, syntax_error},
        decimal, word,
    },
    store::{Cut, Stream},
};

/// Default of LIMIT with `~`: a hundred nodes.
const LIMIT: usize = 100 * 100;

/// The part of a stream to trim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trim {
    cut: Cut,
    /// `~`: trims whole nodes only.
    whole_nodes: bool,
    /// Greatest number of trimmed entries; 0 means no limit.
    limit: usize,
}

impl Trim {
    /// Trims the stream. Returns the number of entries, and the options that trim exactly the same; `None` if nothing
    /// was trimmed.
    pub(super) fn apply(self, stream: &mut Stream) -> Option<(usize, [Bytes; 3])> {
        let trimmed = stream.trim(self.cut, self.whole_nodes, self.limit);
        let (name, value) = match self.cut {
            Cut::MaxLen(_) => ("MAXLEN", decimal(stream.len())),
            Cut::MinId(id) if !self.whole_nodes => ("MINID", id.text()),
            Cut::MinId(_) => ("MINID", stream.entries().edge().text()),
        };
        (trimmed > 0).then(|| (trimmed, [word(name), word("="), value]))
    }
}

/// Options in the order of their arguments.
#[derive(Debug, Default)]
pub(super) struct Options {
    cut: Option<Cut>,
    whole_nodes: bool,
    limit: Option<usize>,
}

impl Options {
    /// Parses an option at the front of `args`, and returns the arguments after it; `None` if there is another one.
    pub(super) fn take<'a>(&mut self, args: &'a [Bytes]) -> Result<Option<&'a [Bytes]>, Stop> {
        let [name, value, rest @ ..] = args else {
            return Ok(None);
        };
        let by_length = is_word(name, "MAXLEN");
        if by_length || is_word(name, "MINID") {
            if self.cut.is_some() {
                return Err(refuse(
                    "syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            let (value, rest) = match rest {
                [next, rest @ ..] if is_word(value, "~") || is_word(value, "=") => {
                    self.whole_nodes = is_word(value, "~");
                    (next, rest)
                }
                _ => (value, rest),
            };
            self.cut = Some(if by_length {
                Cut::MaxLen(at_least_0(value, "The MAXLEN argument must be >= 0.")?)
            } else {
                Cut::MinId(ids::id(value)?)
            });
            return Ok(Some(rest));
        }
        if is_word(name, "LIMIT") {
            let limit = at_least_0(value, "The LIMIT argument must be >= 0.")?;
            self.limit = Some(usize::try_from(limit).unwrap_or(usize::MAX));
            return Ok(Some(rest));
        }
        Ok(None)
    }

    /// Returns the combined meaning of the options.
    pub(super) fn finish(self) -> Result<Option<Trim>, Stop> {
        let limited = self.limit.is_some_and(|limit| limit > 0);
        let Some(cut) = self.cut else {
            return match self.limit {
                Some(_) if limited => Err(refuse(
                    "syntax error, LIMIT cannot be used without specifying a trimming strategy",
                )),
                Some(_) => Err(limit_without_tilde()),
                None => Ok(None),
            };
        };
        let limit = match self.limit {
            Some(_) if !self.whole_nodes => return Err(limit_without_tilde()),
            Some(limit) => limit,
            None if self.whole_nodes => LIMIT,
            None => 0,
        };
        Ok(Some(Trim {
            cut,
            whole_nodes: self.whole_nodes,
            limit,
        }))
    }
}

fn limit_without_tilde() -> Stop {
    refuse("syntax error, LIMIT cannot be used without the special ~ option")
}

fn at_least_0(arg: &[u8], text: &str) -> Result<u64, Stop> {
    u64::try_from(int(arg)?).map_err(|_| refuse(text))
}

pub(in crate::command) fn xtrim(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    let mut options = Options::default();
    let mut rest = &args[2..];
    while !rest.is_empty() {
        rest = options.take(rest)?.ok_or_else(syntax_error)?;
    }
    let by_nothing = options.cut.is_none() && options.limit.is_none_or(|limit| limit == 0);
    if by_nothing {
        return Err(refuse(
            "syntax error, XTRIM must be called with a trimming strategy",
        ));
    }
    let Some(trim) = options.finish()? else {
        return Err(syntax_error());
    };
    let Some(stream) = ctx.get_mut::<Stream>(key)? else {
        return Ok(Reply::Int(0));
    };
    let Some((trimmed, exact)) = trim.apply(stream) else {
        return Ok(Reply::Int(0));
    };
    let mut command = vec![word("XTRIM"), key.clone()];
    command.extend(exact);
    ctx.wrote([key], command);
    Ok(Reply::count(trimmed))
}
