//! Setting and removing deadlines.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{bad_expire_time, int, is_word, refuse},
        number::until_nul,
    },
};

pub(in crate::command) fn expire(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(ctx, args, 1000, ctx.now())
}

pub(in crate::command) fn pexpire(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(ctx, args, 1, ctx.now())
}

pub(in crate::command) fn expireat(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(ctx, args, 1000, 0)
}

pub(in crate::command) fn pexpireat(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(ctx, args, 1, 0)
}

/// Condition on the present deadline for setting a new one.
#[derive(Default)]
struct Condition {
    none: bool,
    some: bool,
    later: bool,
    earlier: bool,
}

impl Condition {
    fn parse(options: &[Bytes]) -> Result<Self, Stop> {
        let mut condition = Self::default();
        for option in options {
            let flag = match option {
                option if is_word(option, "NX") => &mut condition.none,
                option if is_word(option, "XX") => &mut condition.some,
                option if is_word(option, "GT") => &mut condition.later,
                option if is_word(option, "LT") => &mut condition.earlier,
                other => {
                    let other = String::from_utf8_lossy(until_nul(other)).into_owned();
                    return Err(refuse(format_args!("Unsupported option {other}")));
                }
            };
            *flag = true;
        }
        if condition.none && (condition.some || condition.later || condition.earlier) {
            return Err(refuse(
                "NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if condition.later && condition.earlier {
            return Err(refuse(
                "GT and LT options at the same time are not compatible",
            ));
        }
        Ok(condition)
    }

    fn holds(&self, before: Option<i64>, deadline: i64) -> bool {
        match before {
            // A key without a deadline counts as never expiring.
            None => !self.some && !self.later,
            Some(before) => {
                !(self.none
                    || (self.later && deadline <= before)
                    || (self.earlier && deadline >= before))
            }
        }
    }
}

fn set_deadline(ctx: &mut Ctx<'_>, args: &[Bytes], unit: i64, base: i64) -> Outcome {
    let key = &args[1];
    let condition = Condition::parse(&args[3..])?;
    let time = int(&args[2])?
        .checked_mul(unit)
        .and_then(|time| time.checked_add(base));
    let deadline = time.ok_or_else(|| bad_expire_time(args))?;
    if !ctx.exists(key) || !condition.holds(ctx.store.deadline(ctx.db, key), deadline) {
        return Ok(Reply::Int(0));
    }
    ctx.set_deadline(key, deadline);
    Ok(Reply::Int(1))
}

pub(in crate::command) fn persist(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    ctx.expire(key);
    Ok(Reply::Int(i64::from(ctx.persist(key))))
}
