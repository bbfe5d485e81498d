//! EVAL and similar commands, SCRIPT.

use bytes::Bytes;

use super::Command;
use crate::{
    Protocol, Reply,
    command::{
        Flags, Keys, Outcome, Spec, Stop,
        args::{int, is_word, refuse},
    },
    script::{Invocation, Script, Scripts, Server, Sha},
    world::{Call, Origin},
};

const EVAL: Flags = Flags::NOSCRIPT.or(Flags::STALE).or(Flags::MOVABLE);
const EVAL_RO: Flags = EVAL.or(Flags::READONLY);
const SCRIPT: Flags = Flags::NOSCRIPT;
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Command] = &[
    Command::new("eval", -3, EVAL, NONE, eval),
    Command::new("eval_ro", -3, EVAL_RO, NONE, eval_ro),
    Command::new("evalsha", -3, EVAL, NONE, evalsha),
    Command::new("evalsha_ro", -3, EVAL_RO, NONE, evalsha_ro),
    Command::new("script", -2, Flags::CONTAINER, NONE, kill),
    Command::new("script|exists", -3, SCRIPT, NONE, exists),
    Command::new("script|flush", -2, SCRIPT, NONE, flush),
    Command::new("script|kill", 2, SCRIPT, NONE, kill),
    Command::new("script|load", 3, SCRIPT, NONE, load),
];

fn eval(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, ("eval", Body::Text(&args[1])), false)
}

fn eval_ro(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, ("eval_ro", Body::Text(&args[1])), true)
}

fn evalsha(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, ("evalsha", by_sha(&args[1])?), false)
}

fn evalsha_ro(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, ("evalsha_ro", by_sha(&args[1])?), true)
}

fn by_sha(arg: &[u8]) -> Result<Body<'_>, Stop> {
    Sha::parse(arg).map(Body::Sha).ok_or_else(no_script)
}

fn no_script() -> Stop {
    Stop::Error("NOSCRIPT No matching script. Please use EVAL.".to_owned())
}

fn run(
    call: &mut Call<'_>,
    args: &[Bytes],
    (name, body): (&'static str, Body<'_>),
    read_only: bool,
) -> Outcome {
    let keys = int(&args[2])?;
    let rest = &args[3..];
    let keys = match usize::try_from(keys) {
        Ok(keys) if keys <= rest.len() => keys,
        Ok(_) => {
            return Err(refuse(
                "Number of keys can't be greater than number of args",
            ));
        }
        Err(_) => return Err(refuse("Number of keys can't be negative")),
    };
    let (keys, argv) = rest.split_at(keys);
    with_scripts(call, |scripts, call| {
        let script = match body {
            Body::Text(text) => scripts.load(text)?,
            Body::Sha(sha) => scripts.find(&sha).ok_or_else(no_script)?,
        };
        let begun = call.world.clock.now_us();
        let outcome = run_script(scripts, &script, call, (keys, argv), read_only);
        let took = call.world.clock.now_us().saturating_sub(begun);
        let (calls, micros) = call.world.scripts_done.entry(name).or_default();
        (*calls, *micros) = (*calls + 1, micros.saturating_add(took));
        outcome
    })
}

/// Runs a script. `call` is the call of EVAL itself; `read_only` means that it must not write.
fn run_script(
    scripts: &Scripts,
    script: &Script,
    call: &mut Call<'_>,
    (keys, argv): (&[Bytes], &[Bytes]),
    read_only: bool,
) -> Outcome {
    let may_write = script.may_write();
    if may_write == Some(true) {
        if let Some(trouble) = &call.world.trouble {
            return Err(Stop::Error(trouble.text.clone()));
        }
        if read_only {
            return Err(refuse(
                "Can not execute a script with write flag using *_ro command.",
            ));
        }
    }
    let before = (call.db, call.protocol, call.origin);
    (call.protocol, call.origin) = (Protocol::Resp2, Origin::Script);
    let mut running = Running {
        call,
        read_only: read_only || may_write == Some(false),
    };
    let outcome = scripts.run(script, &mut running, &Invocation { keys, argv });
    (call.db, call.protocol, call.origin) = before;
    outcome
}

/// A running script.
struct Running<'a, 'c> {
    call: &'a mut Call<'c>,
    read_only: bool,
}

impl Server for Running<'_, '_> {
    fn request(&mut self, args: &[Bytes], protocol: Protocol) -> Result<Reply, String> {
        let spec = (self.call.world.commands.find)(args)
            .map_err(|_| "ERR Unknown Redis command called from script".to_owned())?;
        self.admit(spec, args.len())?;
        self.call.protocol = protocol;
        Ok(match self.call.run(spec, args) {
            Ok(reply)
            | Err(Stop::Wait {
                otherwise: reply, ..
            }) => reply,
            Err(Stop::Error(text)) => Reply::Error(text),
        })
    }
}

impl Running<'_, '_> {
    fn admit(&self, spec: &Spec, args: usize) -> Result<(), String> {
        if !spec.takes(args) {
            return Err("ERR Wrong number of args calling Redis command from script".to_owned());
        }
        if spec.flags.has(Flags::NOSCRIPT) {
            return Err("ERR This Redis command is not allowed from script".to_owned());
        }
        let writes = spec.flags.has(Flags::WRITE);
        if self.read_only && (writes || matches!(spec.name, "publish" | "spublish")) {
            return Err("ERR Write commands are not allowed from read-only scripts.".to_owned());
        }
        match &self.call.world.trouble {
            Some(trouble) if writes => Err(trouble.text.clone()),
            _ => Ok(()),
        }
    }
}

/// A script in a request.
enum Body<'a> {
    Text(&'a Bytes),
    Sha(Sha),
}

/// Removes the scripts from the call while one of them runs, because it makes calls of its own.
fn with_scripts(
    call: &mut Call<'_>,
    work: impl FnOnce(&mut Scripts, &mut Call<'_>) -> Outcome,
) -> Outcome {
    let Some(slot) = call.scripts.take() else {
        return Err(refuse("This Redis command is not allowed from script"));
    };
    let outcome = match slot {
        Some(scripts) => work(scripts, call),
        None => Scripts::new().and_then(|scripts| work(slot.insert(scripts), call)),
    };
    call.scripts = Some(slot);
    outcome
}

fn load(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    with_scripts(call, |scripts, _| {
        let script = scripts.load(&args[2])?;
        Ok(Reply::Bulk(script.sha().into()))
    })
}

fn exists(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    with_scripts(call, |scripts, _| {
        let known = |arg: &Bytes| Sha::parse(arg).is_some_and(|sha| scripts.find(&sha).is_some());
        Ok(Reply::Array(
            args[2..]
                .iter()
                .map(|arg| Reply::Int(known(arg).into()))
                .collect(),
        ))
    })
}

fn flush(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    match &args[2..] {
        [] => {}
        [word] if is_word(word, "sync") || is_word(word, "async") => {}
        _ => return Err(refuse("SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    if let Some(slot) = &mut call.scripts {
        **slot = None;
    }
    Ok(Reply::ok())
}

/// Scripts run one at a time, without other commands, so that there is never one to kill.
fn kill(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Err(Stop::Error(
        "NOTBUSY No scripts in execution right now.".to_owned(),
    ))
}
