//! EVAL and its like, SCRIPT.

use bytes::Bytes;

use super::{
    Flags, Keys, Outcome, Spec, Stop,
    args::{int, is_word, refuse},
};
use crate::{
    Reply,
    engine::Call,
    script::{Body, Invocation, Scripts, Sha},
};

const EVAL: Flags = Flags::NOSCRIPT.or(Flags::STALE).or(Flags::MOVABLE);
const EVAL_RO: Flags = EVAL.or(Flags::READONLY);
const SCRIPT: Flags = Flags::NOSCRIPT;
const NONE: Keys = Keys::NONE;

pub(super) const SPECS: &[Spec] = &[
    Spec::session("eval", -3, EVAL, NONE, eval),
    Spec::session("eval_ro", -3, EVAL_RO, NONE, eval_ro),
    Spec::session("evalsha", -3, EVAL, NONE, evalsha),
    Spec::session("evalsha_ro", -3, EVAL_RO, NONE, evalsha_ro),
    Spec::session("script", -2, Flags::CONTAINER, NONE, kill),
    Spec::session("script|exists", -3, SCRIPT, NONE, exists),
    Spec::session("script|flush", -2, SCRIPT, NONE, flush),
    Spec::session("script|kill", 2, SCRIPT, NONE, kill),
    Spec::session("script|load", 3, SCRIPT, NONE, load),
];

fn eval(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, Body::Text(&args[1]), false)
}

fn eval_ro(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, Body::Text(&args[1]), true)
}

fn evalsha(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, by_sha(&args[1])?, false)
}

fn evalsha_ro(call: &mut Call<'_>, args: &[Bytes]) -> Outcome {
    run(call, args, by_sha(&args[1])?, true)
}

fn by_sha(arg: &[u8]) -> Result<Body<'_>, Stop> {
    Sha::parse(arg).map(Body::Sha).ok_or_else(no_script)
}

fn no_script() -> Stop {
    Stop::Error("NOSCRIPT No matching script. Please use EVAL.".to_owned())
}

fn run(call: &mut Call<'_>, args: &[Bytes], body: Body<'_>, read_only: bool) -> Outcome {
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
        scripts.run(
            &script,
            call,
            &Invocation {
                keys,
                argv,
                read_only,
            },
        )
    })
}

/// Takes the scripts out of the call for as long as one of them runs: it makes calls of its own.
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

/// Scripts run one at a time, and nothing else runs beside them: there is never one to kill.
fn kill(_: &mut Call<'_>, _: &[Bytes]) -> Outcome {
    Err(Stop::Error(
        "NOTBUSY No scripts in execution right now.".to_owned(),
    ))
}
