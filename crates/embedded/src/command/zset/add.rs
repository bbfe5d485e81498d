//! Adding members and changing scores.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{is_word, refuse, score, syntax_error},
        word,
    },
    resp::double_text,
    store::Zset,
};

pub(in crate::command) fn zadd(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    add(ctx, args, Options::default())
}

/// ZINCRBY is ZADD with INCR, with all its options, which Redis accepts here too.
pub(in crate::command) fn zincrby(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    add(
        ctx,
        args,
        Options {
            incr: true,
            ..Options::default()
        },
    )
}

#[derive(Default)]
struct Options {
    only_new: bool,
    only_existing: bool,
    greater: bool,
    less: bool,
    count_changed: bool,
    incr: bool,
}

impl Options {
    /// Parses the options, and returns the arguments after them.
    fn parse<'a>(&mut self, args: &'a [Bytes]) -> &'a [Bytes] {
        let mut rest = args;
        while let [option, tail @ ..] = rest {
            let flag = match option {
                option if is_word(option, "NX") => &mut self.only_new,
                option if is_word(option, "XX") => &mut self.only_existing,
                option if is_word(option, "GT") => &mut self.greater,
                option if is_word(option, "LT") => &mut self.less,
                option if is_word(option, "CH") => &mut self.count_changed,
                option if is_word(option, "INCR") => &mut self.incr,
                _ => break,
            };
            *flag = true;
            rest = tail;
        }
        rest
    }

    fn check(&self, pairs: usize) -> Result<(), Stop> {
        let text = if self.only_new && self.only_existing {
            "XX and NX options at the same time are not compatible"
        } else if (self.greater || self.less) && self.only_new || (self.greater && self.less) {
            "GT, LT, and/or NX options at the same time are not compatible"
        } else if self.incr && pairs > 1 {
            "INCR option supports a single increment-element pair"
        } else {
            return Ok(());
        };
        Err(refuse(text))
    }

    /// Returns the new score of a member; `None` if it stays.
    fn score(&self, before: Option<f64>, given: f64) -> Result<Option<f64>, Stop> {
        let Some(before) = before else {
            return Ok((!self.only_existing).then_some(given));
        };
        if self.only_new {
            return Ok(None);
        }
        let score = if self.incr { before + given } else { given };
        if score.is_nan() {
            return Err(refuse("resulting score is not a number (NaN)"));
        }
        let refused = (self.less && score >= before) || (self.greater && score <= before);
        Ok((!refused).then_some(score))
    }
}

fn add(ctx: &mut Ctx<'_>, args: &[Bytes], mut options: Options) -> Outcome {
    let key = &args[1];
    let (pairs, []) = options.parse(&args[2..]).as_chunks() else {
        return Err(syntax_error());
    };
    if pairs.is_empty() {
        return Err(syntax_error());
    }
    options.check(pairs.len())?;
    let scores = pairs
        .iter()
        .map(|[given, _]| score(given))
        .collect::<Result<Vec<_>, _>>()?;
    if ctx.get::<Zset>(key)?.is_none() && options.only_existing {
        return Ok(if options.incr {
            Reply::Nil
        } else {
            Reply::Int(0)
        });
    }
    let zset = ctx.get_or_make::<Zset>(key)?;
    let (mut added, mut last, mut changes) = (0, None, Vec::new());
    for ([_, member], given) in pairs.iter().zip(scores) {
        let before = zset.score(member);
        last = options.score(before, given)?;
        let Some(score) = last else { continue };
        added += usize::from(before.is_none());
        if before.is_none_or(|before| before != score) {
            zset.set(member, score);
            changes.extend([double_text(score).into(), member.clone()]);
        }
    }
    let changed = changes.len() / 2;
    if changed > 0 {
        let command = [word("ZADD"), key.clone()].into_iter().chain(changes);
        ctx.wrote([key], command.collect());
    }
    Ok(match last {
        Some(score) if options.incr => Reply::Double(score),
        None if options.incr => Reply::Nil,
        _ => Reply::count(if options.count_changed {
            changed
        } else {
            added
        }),
    })
}
