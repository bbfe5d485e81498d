//! Popping elements from the ends of one or several lists.

use bytes::Bytes;

use super::End;
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{at_least, count, is_word, syntax_error, wrong_arity},
        decimal, word,
    },
    store::List,
};

pub(in crate::command) fn lpop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    pop(ctx, args, End::Left)
}

pub(in crate::command) fn rpop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    pop(ctx, args, End::Right)
}

fn pop(ctx: &mut Ctx<'_>, args: &[Bytes], end: End) -> Outcome {
    let count = match args {
        [_, _] => None,
        [_, _, count] => Some(self::count(count)?),
        _ => return Err(wrong_arity(args)),
    };
    let key = &args[1];
    match count {
        None => Ok(pop_one(ctx, key, end)?.map_or(Reply::Nil, Reply::Bulk)),
        Some(count) => Ok(pop_many(ctx, key, end, count)?.map_or(Reply::NilArray, Reply::Array)),
    }
}

/// Pops one element; `None` if there is no list.
pub(super) fn pop_one(ctx: &mut Ctx<'_>, key: &Bytes, end: End) -> Result<Option<Bytes>, Stop> {
    let Some(list) = ctx.get_mut::<List>(key)? else {
        return Ok(None);
    };
    let element = end.pop(list);
    if element.is_some() {
        ctx.drop_if_empty(key);
        ctx.wrote([key], vec![word(end.pop_name()), key.clone()]);
    }
    Ok(element)
}

/// Pops up to `count` elements; `None` if there is no list.
pub(super) fn pop_many(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    end: End,
    count: usize,
) -> Result<Option<Vec<Reply>>, Stop> {
    let Some(list) = ctx.get_mut::<List>(key)? else {
        return Ok(None);
    };
    let elements = end.pop_many(list, count);
    if !elements.is_empty() {
        ctx.drop_if_empty(key);
        ctx.wrote(
            [key],
            vec![word(end.pop_name()), key.clone(), decimal(elements.len())],
        );
    }
    Ok(Some(elements.into_iter().map(Reply::Bulk).collect()))
}

/// Arguments of LMPOP and BLMPOP.
pub(super) struct Wanted<'a> {
    pub(super) keys: &'a [Bytes],
    pub(super) end: End,
    pub(super) count: usize,
}

impl<'a> Wanted<'a> {
    /// Parses `numkeys key … LEFT|RIGHT [COUNT n]`.
    pub(super) fn parse(args: &'a [Bytes]) -> Result<Self, Stop> {
        let number = at_least(&args[0], 1, "numkeys should be greater than 0")?;
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let (keys, rest) = args[1..]
            .split_at_checked(number)
            .ok_or_else(syntax_error)?;
        let [end, options @ ..] = rest else {
            return Err(syntax_error());
        };
        let end = End::parse(end)?;
        let count = match options {
            [] => 1,
            [option, count, rest @ ..] if is_word(option, "COUNT") => {
                let count = at_least(count, 1, "count should be greater than 0")?;
                if !rest.is_empty() {
                    return Err(syntax_error());
                }
                usize::try_from(count).unwrap_or(usize::MAX)
            }
            _ => return Err(syntax_error()),
        };
        Ok(Self { keys, end, count })
    }

    /// Pops from the first of `keys` that is a list.
    pub(super) fn pop(&self, ctx: &mut Ctx<'_>, keys: &[Bytes]) -> Result<Option<Reply>, Stop> {
        for key in keys {
            if let Some(elements) = pop_many(ctx, key, self.end, self.count)? {
                let key = Reply::Bulk(key.clone());
                return Ok(Some(Reply::Array(vec![key, Reply::Array(elements)])));
            }
        }
        Ok(None)
    }
}

pub(in crate::command) fn lmpop(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let wanted = Wanted::parse(&args[1..])?;
    Ok(wanted.pop(ctx, wanted.keys)?.unwrap_or(Reply::NilArray))
}
