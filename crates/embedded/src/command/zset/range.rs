//! ZRANGE and the older commands with a part of its options.

use bytes::Bytes;

use super::bounds::Bounds;
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{int, is_word, places, refuse, syntax_error},
        zset::scored,
    },
    store::Zset,
};

/// Kind of the two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The options, fixed by the command or chosen by arguments.
#[derive(Clone, Copy)]
struct Options {
    by: Option<By>,
    backwards: Option<bool>,
    with_scores: bool,
    skip: i64,
    /// Greatest number of members; negative: all.
    take: i64,
}

pub(in crate::command) fn zrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, None, None)
}

pub(in crate::command) fn zrevrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, Some(By::Rank), Some(true))
}

pub(in crate::command) fn zrangebyscore(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, Some(By::Score), Some(false))
}

pub(in crate::command) fn zrevrangebyscore(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, Some(By::Score), Some(true))
}

pub(in crate::command) fn zrangebylex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, Some(By::Lex), Some(false))
}

pub(in crate::command) fn zrevrangebylex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    range(ctx, args, Some(By::Lex), Some(true))
}

impl Options {
    fn parse(args: &[Bytes], by: Option<By>, backwards: Option<bool>) -> Result<Self, Stop> {
        let mut options = Self {
            by,
            backwards,
            with_scores: false,
            skip: 0,
            take: -1,
        };
        let mut rest = args;
        while let [option, tail @ ..] = rest {
            rest = tail;
            match tail {
                _ if is_word(option, "WITHSCORES") => options.with_scores = true,
                [skip, take, tail @ ..] if is_word(option, "LIMIT") => {
                    (options.skip, options.take) = (int(skip)?, int(take)?);
                    rest = tail;
                }
                _ if is_word(option, "REV") && options.backwards.is_none() => {
                    options.backwards = Some(true);
                }
                _ if is_word(option, "BYLEX") && options.by.is_none() => {
                    options.by = Some(By::Lex);
                }
                _ if is_word(option, "BYSCORE") && options.by.is_none() => {
                    options.by = Some(By::Score);
                }
                _ => return Err(syntax_error()),
            }
        }
        let by = options.by.unwrap_or(By::Rank);
        if options.take != -1 && by == By::Rank {
            return Err(refuse(
                "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if options.with_scores && by == By::Lex {
            return Err(refuse(
                "syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        Ok(options)
    }
}

fn range(ctx: &mut Ctx<'_>, args: &[Bytes], by: Option<By>, backwards: Option<bool>) -> Outcome {
    let options = Options::parse(&args[4..], by, backwards)?;
    let backwards = options.backwards.unwrap_or(false);
    let (min, max) = if backwards {
        (&args[3], &args[2])
    } else {
        (&args[2], &args[3])
    };
    let bounds = match options.by.unwrap_or(By::Rank) {
        By::Rank => return by_rank(ctx, args, backwards, options.with_scores),
        By::Score => Bounds::scores(min, max)?,
        By::Lex => Bounds::members(min, max)?,
    };
    let (resp3, Some(zset)) = (ctx.resp3, ctx.get::<Zset>(&args[1])?) else {
        return Ok(Reply::Array(Vec::new()));
    };
    let Ok(skip) = usize::try_from(options.skip) else {
        // A negative number of members to skip skips all.
        return Ok(Reply::Array(Vec::new()));
    };
    let take = usize::try_from(options.take).unwrap_or(usize::MAX);
    let found = bounds.select(zset, backwards, skip, take);
    Ok(scored(found, options.with_scores, resp3))
}

fn by_rank(ctx: &mut Ctx<'_>, args: &[Bytes], backwards: bool, with_scores: bool) -> Outcome {
    let (start, stop) = (int(&args[2])?, int(&args[3])?);
    let (resp3, Some(zset)) = (ctx.resp3, ctx.get::<Zset>(&args[1])?) else {
        return Ok(Reply::Array(Vec::new()));
    };
    let len = zset.len();
    let ranks = places(start, stop, len).unwrap_or(0..0);
    Ok(if backwards {
        let ranks = len - ranks.end..len - ranks.start;
        scored(zset.ranking().range(ranks).rev(), with_scores, resp3)
    } else {
        scored(zset.ranking().range(ranks), with_scores, resp3)
    })
}
