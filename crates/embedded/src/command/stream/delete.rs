//! XDEL removes entries from a stream; XSETID sets its counters.

use bytes::Bytes;

use super::ids;
use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{at_least, int, is_word, no_such_key, refuse, syntax_error},
    },
    store::{Stream, StreamId},
};

pub(in crate::command) fn xdel(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let key = &args[1];
    if ctx.get::<Stream>(key)?.is_none() {
        return Ok(Reply::Int(0));
    }
    let ids = ids::all(&args[2..])?;
    let deleted = ctx
        .get_mut::<Stream>(key)?
        .map_or(0, |stream| stream.delete(&ids));
    if deleted > 0 {
        ctx.wrote([key], args.to_vec());
    }
    Ok(Reply::count(deleted))
}

/// Arguments of XSETID.
struct Setting {
    last: StreamId,
    added: Option<u64>,
    max_deleted: Option<StreamId>,
}

impl Setting {
    fn parse(args: &[Bytes]) -> Result<Self, Stop> {
        let mut setting = Self {
            last: ids::id(&args[2])?,
            added: None,
            max_deleted: None,
        };
        let mut rest = &args[3..];
        while let [option, tail @ ..] = rest {
            match tail {
                [value, tail @ ..] if is_word(option, "ENTRIESADDED") => {
                    int(value)?;
                    let added = at_least(value, 0, "entries_added must be positive")?;
                    setting.added = Some(added.unsigned_abs());
                    rest = tail;
                }
                [value, tail @ ..] if is_word(option, "MAXDELETEDID") => {
                    let id = ids::id(value)?;
                    if setting.last < id {
                        return Err(refuse(
                            "The ID specified in XSETID is smaller than the provided \
                             max_deleted_entry_id",
                        ));
                    }
                    setting.max_deleted = Some(id).filter(|id| *id != StreamId::MIN);
                    rest = tail;
                }
                _ => return Err(syntax_error()),
            }
        }
        Ok(setting)
    }

    fn check(&self, stream: &Stream) -> Result<(), Stop> {
        let Some(top) = stream.entries().last_id() else {
            return Ok(());
        };
        if self.last < top {
            return Err(refuse(
                "The ID specified in XSETID is smaller than the target stream top item",
            ));
        }
        if self.added.is_some_and(|added| added < stream.len() as u64) {
            return Err(refuse(
                "The entries_added specified in XSETID is smaller than the target stream length",
            ));
        }
        Ok(())
    }
}

pub(in crate::command) fn xsetid(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let setting = Setting::parse(args)?;
    let stream = ctx.get_mut::<Stream>(&args[1])?.ok_or_else(no_such_key)?;
    setting.check(stream)?;
    let marks = stream.marks_mut();
    marks.last = setting.last;
    marks.added = setting.added.unwrap_or(marks.added);
    marks.max_deleted = setting.max_deleted.unwrap_or(marks.max_deleted);
    ctx.wrote([], args.to_vec());
    Ok(Reply::ok())
}
