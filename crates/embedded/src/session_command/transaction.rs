//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use bytes::Bytes;

use super::Command;
use crate::{
    Reply,
    command::{Flags, Keys, Outcome, Stop, args::refuse},
    world::{Call, Queue},
};

const FLAGS: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);
const FAST: Flags = FLAGS.or(Flags::FAST);

pub(super) const SPECS: &[Command] = &[
    Command::new("discard", 1, FAST, Keys::NONE, discard),
    Command::new("exec", 1, FLAGS, Keys::NONE, exec),
    Command::new("multi", 1, FAST, Keys::NONE, multi),
    Command::new("unwatch", 1, FAST, Keys::NONE, unwatch),
    Command::new("watch", -2, FAST, Keys::ALL, watch),
];

fn multi(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let me = call.me();
    if me.multi.is_some() {
        return Err(refuse("MULTI calls can not be nested"));
    }
    me.multi = Some(Queue::default());
    Ok(Reply::ok())
}

fn discard(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    if call.me().multi.is_none() {
        return Err(refuse("DISCARD without MULTI"));
    }
    call.end_transaction();
    Ok(Reply::ok())
}

fn exec(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    let Some(queue) = call.me().multi.take() else {
        return Err(refuse("EXEC without MULTI"));
    };
    let changed = call.world.watched_changed(call.client, call.now_ms());
    call.world.unwatch(call.client);
    if queue.broken {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Err(Stop::Error(text.to_owned()));
    }
    if changed {
        return Ok(Reply::NilArray);
    }
    let commands = queue.commands.into_iter();
    Ok(Reply::Array(
        commands
            .map(|(spec, args)| call.run_queued(spec, &args))
            .collect(),
    ))
}

fn watch(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    if call.me().multi.is_some() {
        return Err(refuse("WATCH inside MULTI is not allowed"));
    }
    for key in &args[1..] {
        call.watch(key);
    }
    Ok(Reply::ok())
}

fn unwatch(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    call.world.unwatch(call.client);
    Ok(Reply::ok())
}
