//! Process of one SAL script: it reads the script and the input, runs the script, and leaves the outcome in a file.

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use data_encoding::BASE64;
use meshwork_model::number;
use meshwork_model::outcome::{Failure, FailureKind};
use rhai::{Dynamic, Engine, Map, Module};
use serde_json::Value;

use super::super::process::INPUTS_VARIABLE;
use super::super::rhai::{constants_of, engine_for, evaluate, value};
use super::super::scripted::encode;

/// Name of the stage of the hidden command.
pub(in super::super) const STAGE: &str = "sal";

/// Stack of the script. A script that overflows it ends its own process only.
const STACK: usize = if cfg!(debug_assertions) {
    256 << 20
} else {
    96 << 20
};

/// Longest sleep of a script, in seconds: the limit of a job's timeout.
const MAX_SLEEP: f64 = 604_800.0;

/// Variables that are no part of `ENV`, since they are constants of their own.
const OWN: [&str; 5] = [
    "CALLER_ID",
    "CONTEXT_ID",
    "JOB_ID",
    "TRACEPARENT",
    "TRACESTATE",
];

/// Runs the script that the arguments name, and returns the exit code.
pub(in super::super) fn run(args: &mut dyn Iterator<Item = OsString>) -> i32 {
    let paths = [args.next(), args.next(), args.next()].map(Option::unwrap_or_default);
    let [script, outcome, progress] = paths.map(PathBuf::from);
    let work = move || {
        let result = read(&script).and_then(|(source, input)| execute(&source, input, &progress));
        let written = fs::write(&outcome, encode(result));
        if let Err(error) = written {
            let _ = writeln!(io::stderr(), "cannot write the outcome: {error}");
            return 1;
        }
        0
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work);
    match thread.map(thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => 1,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot start a thread: {error}");
            1
        }
    }
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(
        FailureKind::Script,
        format!("cannot read the {what}: {error}"),
    )
}

/// Reads the script, and the input from stdin.
fn read(script: &Path) -> Result<(String, Vec<u8>), Failure> {
    let source = fs::read(script).map_err(|error| failed("script", &error))?;
    let source = String::from_utf8(source)
        .map_err(|_| Failure::new(FailureKind::Permanent, "the script is not UTF-8 text"))?;
    let mut input = Vec::new();
    let read = io::stdin().read_to_end(&mut input);
    read.map_err(|error| failed("input", &error))?;
    Ok((source, input))
}

fn execute(source: &str, input: Vec<u8>, progress: &Path) -> Result<Vec<u8>, Failure> {
    let mut engine = engine_for(input.len());
    engine.on_print(|text| {
        let _ = writeln!(io::stdout(), "{text}");
    });
    engine.on_debug(|text, _, _| {
        let _ = writeln!(io::stderr(), "{text}");
    });
    let registered = meshwork_sal::register(&mut engine);
    registered.map_err(|error| Failure::new(FailureKind::Script, error.to_string()))?;
    register_sleep(&mut engine);
    register_progress(&mut engine, progress);
    engine.register_global_module(constants(input).into());
    evaluate(&engine, source)
}

/// Registers `sleep()`: the process waits, and is killed at the end of the run.
fn register_sleep(engine: &mut Engine) {
    #[expect(clippy::disallowed_methods, reason = "scripts wait by the clock")]
    fn sleep(seconds: f64) {
        if seconds > 0.0 {
            thread::sleep(Duration::from_secs_f64(seconds.min(MAX_SLEEP)));
        }
    }
    engine.register_fn("sleep", sleep);
    engine.register_fn("sleep", |seconds: i64| sleep(seconds as f64));
}

/// Registers `progress()`, which writes a line to the pipe of the run.
fn register_progress(engine: &mut Engine, pipe: &Path) {
    let pipe = pipe.to_owned();
    let say = Arc::new(move |fraction: f64, message: &str| {
        let message = message.replace('\n', " ");
        let open = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&pipe);
        // A report that does not fit into the pipe is dropped.
        let _ =
            open.and_then(|mut pipe| pipe.write_all(format!("{fraction} {message}\n").as_bytes()));
    });
    let own = Arc::clone(&say);
    engine.register_fn("progress", move |fraction: f64| own(fraction, ""));
    let own = Arc::clone(&say);
    engine.register_fn("progress", move |fraction: i64| own(fraction as f64, ""));
    let own = Arc::clone(&say);
    engine.register_fn("progress", move |fraction: f64, message: &str| {
        own(fraction, message);
    });
    engine.register_fn("progress", move |fraction: i64, message: &str| {
        say(fraction as f64, message);
    });
}

/// Returns the constants of the script, from the environment of the process.
fn constants(input: Vec<u8>) -> Module {
    let variables: Vec<_> = env::vars().collect();
    let of = |name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let ids = ["CALLER_ID", "CONTEXT_ID", "JOB_ID"].map(|name| of(name).unwrap_or_default());
    let trace = ["TRACEPARENT", "TRACESTATE"].map(of);
    let others = variables
        .iter()
        .filter(|(name, _)| !OWN.contains(&name.as_str()) && !name.starts_with("MESHWORK_"));
    let env = others.map(|(name, value)| (name.as_str(), value.as_str()));
    // A job without input has an empty stdin.
    let input = Some(input).filter(|input| !input.is_empty());
    let mut module = constants_of(&ids, input.as_deref(), trace, env);
    module.set_var(
        "INPUTS",
        of(INPUTS_VARIABLE).map_or_else(Map::new, |file| inputs(&file)),
    );
    module
}

/// Returns the results of other jobs by name, without missing ones.
fn inputs(file: &str) -> Map {
    let text = fs::read_to_string(file).unwrap_or_default();
    let Ok(Value::Object(entries)) = number::read(&text) else {
        return Map::new();
    };
    let result = |entry: &Value| match (entry.get("result"), entry.get("base64")) {
        (Some(result), _) => value::dynamic(result, 0),
        (None, Some(Value::String(text))) => {
            BASE64.decode(text.as_bytes()).ok().map(Dynamic::from_blob)
        }
        _ => None,
    };
    let found = entries
        .iter()
        .filter_map(|(name, entry)| Some((name.as_str().into(), result(entry)?)));
    found.collect()
}
