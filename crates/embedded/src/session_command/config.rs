//! CONFIG: settings of the server, as clients query them.

use bytes::Bytes;

use super::Command;
use crate::{
    Reply,
    command::{Flags, Keys, Outcome, args::refuse, glob_match},
    world::{Call, Refused},
};

const FLAGS: Flags = Flags::ADMIN
    .or(Flags::NOSCRIPT)
    .or(Flags::LOADING)
    .or(Flags::STALE);
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Command] = &[
    Command::new("config", -2, Flags::CONTAINER, NONE, resetstat),
    Command::new("config|get", -3, FLAGS, NONE, get),
    Command::new("config|resetstat", 2, FLAGS, NONE, resetstat),
    Command::new("config|rewrite", 2, FLAGS, NONE, rewrite),
    Command::new("config|set", -4, FLAGS, NONE, set),
];

fn get(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let wanted = |name: &str| {
        let patterns = args[2..].iter().map(|pattern| pattern.to_ascii_lowercase());
        patterns
            .into_iter()
            .any(|pattern| glob_match(&pattern, name.as_bytes()))
    };
    let found = call.world.settings.iter().filter(|(name, _)| wanted(name));
    let text = |text: &str| Reply::Bulk(Bytes::copy_from_slice(text.as_bytes()));
    Ok(Reply::Map(
        found
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
    ))
}

fn set(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    let pairs: Vec<(String, String)> = args[2..]
        .chunks(2)
        .map(|pair| {
            let text = |at: usize| pair.get(at).map(|text| String::from_utf8_lossy(text));
            (
                text(0).unwrap_or_default().into_owned(),
                text(1).unwrap_or_default().into_owned(),
            )
        })
        .collect();
    if args.len() % 2 == 1 {
        return Err(refuse("wrong number of arguments for 'config|set' command"));
    }
    for (at, (name, _)) in pairs.iter().enumerate() {
        let failed = |why: &str| {
            let text = format!("CONFIG SET failed (possibly related to argument '{name}')");
            refuse(format_args!("{text} - {why}"))
        };
        match call.world.settings.check(name) {
            Err(Refused::Unknown) => {
                let text = "Unknown option or number of arguments for CONFIG SET";
                return Err(refuse(format_args!("{text} - '{name}'")));
            }
            Err(Refused::Fixed) => return Err(failed("can't set immutable config")),
            Ok(())
                if pairs[..at]
                    .iter()
                    .any(|(other, _)| other.eq_ignore_ascii_case(name)) =>
            {
                return Err(failed("duplicate parameter"));
            }
            Ok(()) => {}
        }
    }
    for (name, value) in pairs {
        call.world.settings.set(&name, value);
    }
    Ok(Reply::ok())
}

fn resetstat(call: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    call.world.commands_done = 0;
    call.world.scripts_done.clear();
    Ok(Reply::ok())
}

fn rewrite(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Err(refuse("The server is running without a config file"))
}
