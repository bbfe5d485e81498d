//! SUBSCRIBE and similar commands, PUBLISH, PUBSUB.

use bytes::Bytes;

use super::Command;
use crate::{
    Reply,
    command::{
        Flags, Keys, Outcome, Stop,
        args::{refuse, wrong_subcommand},
        glob_match,
    },
    world::{Call, Message, Origin, Scope},
};

const LISTEN: Flags = Flags::PUBSUB
    .or(Flags::NOSCRIPT)
    .or(Flags::LOADING)
    .or(Flags::STALE);
const SEND: Flags = Flags::PUBSUB
    .or(Flags::FAST)
    .or(Flags::LOADING)
    .or(Flags::STALE);
const ASK: Flags = Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE);
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Command] = &[
    Command::new("psubscribe", -2, LISTEN, NONE, psubscribe),
    Command::new("publish", 3, SEND, NONE, publish),
    Command::new("pubsub", -2, Flags::CONTAINER, NONE, numpat),
    Command::new("pubsub|channels", -2, ASK, NONE, channels),
    Command::new("pubsub|numpat", 2, ASK, NONE, numpat),
    Command::new("pubsub|numsub", -2, ASK, NONE, numsub),
    Command::new("pubsub|shardchannels", -2, ASK, NONE, shardchannels),
    Command::new("pubsub|shardnumsub", -2, ASK, NONE, shardnumsub),
    Command::new("punsubscribe", -1, LISTEN, NONE, punsubscribe),
    Command::new("spublish", 3, SEND, Keys::ONE, spublish),
    Command::new("ssubscribe", -2, LISTEN, Keys::ALL, ssubscribe),
    Command::new("subscribe", -2, LISTEN, NONE, subscribe),
    Command::new("sunsubscribe", -1, LISTEN, Keys::ALL, sunsubscribe),
    Command::new("unsubscribe", -1, LISTEN, NONE, unsubscribe),
];

fn subscribe(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    listen(call, Scope::Channel, args)
}

fn psubscribe(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    listen(call, Scope::Pattern, args)
}

fn ssubscribe(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    if call.origin == Origin::Transaction {
        return Err(refuse(
            "SSUBSCRIBE isn't allowed for a DENY BLOCKING client",
        ));
    }
    listen(call, Scope::ShardChannel, args)
}

fn unsubscribe(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    leave(call, Scope::Channel, args)
}

fn punsubscribe(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    leave(call, Scope::Pattern, args)
}

fn sunsubscribe(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    leave(call, Scope::ShardChannel, args)
}

fn listen(call: &mut Call<'_>, scope: Scope, args: &[Bytes]) -> Outcome {
    one_in_transaction(call, args)?;
    let mut confirmations = Vec::with_capacity(args.len() - 1);
    for name in &args[1..] {
        call.world.subscribe(call.client, scope, name);
        confirmations.push(confirmation(call, scope, 0, Some(name)));
    }
    Ok(confirm(call, confirmations))
}

fn leave(call: &mut Call<'_>, scope: Scope, args: &[Bytes]) -> Outcome {
    one_in_transaction(call, args)?;
    let mut names = args[1..].to_vec();
    if names.is_empty() {
        names.extend(call.me().subscribed.of(scope).iter().cloned());
    }
    let mut confirmations = Vec::with_capacity(names.len().max(1));
    for name in &names {
        call.world.unsubscribe(call.client, scope, name);
        confirmations.push(confirmation(call, scope, 1, Some(name)));
    }
    if names.is_empty() {
        confirmations.push(confirmation(call, scope, 1, None));
    }
    Ok(confirm(call, confirmations))
}

/// Refuses several channels in a transaction. Redis answers each channel of a queued SUBSCRIBE with a separate item
/// in the reply of EXEC, whose announced length is then wrong. No client can read that.
fn one_in_transaction(call: &Call<'_>, args: &[Bytes]) -> Result<(), Stop> {
    if call.origin == Origin::Transaction && args.len() != 2 {
        return Err(refuse(
            "one channel at a time is allowed inside a transaction",
        ));
    }
    Ok(())
}

fn confirmation(call: &mut Call<'_>, scope: Scope, word: usize, name: Option<&Bytes>) -> Reply {
    let word = Reply::Bulk(Bytes::from_static(scope.words()[word].as_bytes()));
    let name = name.map_or(Reply::Nil, |name| Reply::Bulk(name.clone()));
    Reply::Push(vec![
        word,
        name,
        Reply::Int(call.me().subscribed.count(scope)),
    ])
}

/// Pushes confirmations like messages, so that their order is kept.
fn confirm(call: &mut Call<'_>, mut confirmations: Vec<Reply>) -> Reply {
    if call.origin == Origin::Transaction {
        return confirmations.pop().unwrap_or(Reply::Nothing);
    }
    for confirmation in confirmations {
        call.me().push(confirmation);
    }
    Reply::Nothing
}

fn publish(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    Ok(send(call, Scope::Channel, args))
}

fn spublish(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    Ok(send(call, Scope::ShardChannel, args))
}

fn send(call: &mut Call<'_>, scope: Scope, args: &[Bytes]) -> Reply {
    let message = Message {
        scope,
        channel: args[1].clone(),
        text: args[2].clone(),
    };
    let receivers = call.world.receivers(&message);
    // The message may refer to writes of the same script or transaction, which are logged after it.
    call.world.publish_later(message);
    count(receivers)
}

fn count(count: usize) -> Reply {
    Reply::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn channels(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    names(call, Scope::Channel, args)
}

fn shardchannels(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    names(call, Scope::ShardChannel, args)
}

fn names(call: &Call<'_>, scope: Scope, args: &[Bytes]) -> Outcome {
    if args.len() > 3 {
        return Err(wrong_subcommand(args));
    }
    let names = call.world.pubsub.of(scope).keys();
    let wanted = names.filter(|name| args.get(2).is_none_or(|pattern| glob_match(pattern, name)));
    Ok(Reply::Array(wanted.cloned().map(Reply::Bulk).collect()))
}

fn numsub(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    Ok(listeners(call, Scope::Channel, args))
}

fn shardnumsub(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    Ok(listeners(call, Scope::ShardChannel, args))
}

fn listeners(call: &Call<'_>, scope: Scope, args: &[Bytes]) -> Reply {
    let all = call.world.pubsub.of(scope);
    let listeners = |name: &Bytes| all.get(name).map_or(0, std::collections::BTreeSet::len);
    let pairs = args[2..]
        .iter()
        .map(|name| [Reply::Bulk(name.clone()), count(listeners(name))]);
    Reply::Array(pairs.flatten().collect())
}

fn numpat(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Ok(count(call.world.pubsub.of(Scope::Pattern).len()))
}
