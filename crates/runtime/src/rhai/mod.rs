//! Scripts of the type `osis`: Rhai, on a thread of its own, without access to the system. Limits are in [`engine`] and
//! [`memory`], results in [`value`], errors in [`error`].
//!
//! A script has these constants, also in functions: `CALLER_ID`, `CONTEXT_ID`, `JOB_ID`, `INPUT` (text, a blob for
//! other bytes, `()` without input), `ENV` (a map of the job's `env_vars`), and `TRACEPARENT` and `TRACESTATE` (W3C;
//! `()` without a trace). `print` writes to stdout, `debug` to stderr, and the last expression is the result.
//! `progress(0.4)` and `progress(0.4, "text")` report progress. `add_child(script)` and `add_child(script, #{...})` submit a
//! child and return its id. `call_action(type, #{...})` returns the data of a service's reply, `send_action()` and
//! `notify_action()` do not wait ([`requests`]).
//! `get_context([keys])` returns a space of stored objects ([`mod@objects`]).
//! `INPUTS[name]` is the result of a prerequisite ([`mod@inputs`]). `Permanent`, `Retry`, `Snooze` and `Discard` are
//! verdicts ([`verdict`]).
//!
//! Missing on purpose: `sleep` (it would block the thread), `import` (reads files), `eval` and `curry` (both nest
//! without a limit), and closures that capture variables (they can form chains and cycles without a limit; pass
//! parameters instead).

pub mod bounded;
mod check;
mod engine;
mod error;
mod inputs;
mod memory;
mod nested;
mod objects;
mod requests;
mod source;
pub mod value;
mod verdict;

#[cfg(test)]
mod tests;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use futures_util::future::BoxFuture;
use meshwork_model::job::Job;
use meshwork_model::job::limits::MAX_SCRIPT;
#[cfg(feature = "sal")]
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::trace::TraceContext;
use tokio::sync::oneshot;

use super::log::{LogSink, LogWriter, Stream};
use super::process::NotStarted;
use super::{Inputs, Run, Runtime, RuntimeInfo};
pub(super) use check::check;
#[cfg(feature = "sal")]
pub(super) use check::check_as;
use engine::Limits;
#[cfg(feature = "sal")]
pub(super) use engine::constants_of;
use memory::Memory;
use requests::Asker;

/// Returns the runtime for Rhai.
pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(Rhai {
        memory: memory::Limits::of_host(),
    })
}

struct Rhai {
    /// Limits on the memory of scripts.
    memory: memory::Limits,
}

/// Version of the crate `rhai`, which does not export it. A test compares it with `Cargo.lock`.
pub(super) const VERSION: &str = "1.27.0";

impl Runtime for Rhai {
    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(std::future::ready(
            RuntimeInfo::new("Rhai").version(VERSION),
        ))
    }

    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let (asker, serving) = requests::serve(&run);
            let Run {
                job,
                deadline,
                stop,
                log,
                trace,
                inputs,
                ..
            } = run;
            let cut = CutOnDrop::default();
            let (send, mut ended) = oneshot::channel();
            let limits = limits_of(&job, &inputs);
            let stack = limits.stack();
            let memory = Memory::watch();
            let (inner, watched) = (Arc::clone(&cut.0), memory.thread());
            let thread = thread::Builder::new()
                .name("rhai".to_owned())
                .stack_size(stack);
            let spawned = thread.spawn(move || {
                watched.this_thread();
                // The receiver may be gone.
                let _ = send.send(execute(
                    (&job, trace.as_ref(), &inputs),
                    (&log, &asker),
                    (&limits, &inner),
                ));
            });
            if let Err(error) = spawned {
                return Report::failed(without_thread(stack, &error));
            }
            let result = tokio::select! {
                report = &mut ended => return report.unwrap_or_else(|_| super::stopped()),
                () = tokio::time::sleep_until(deadline) => Err(Failure::timeout()),
                _ = stop.stopped() => super::stopped().result,
                too_much = memory.exceeds(self.memory) => {
                    Err(Failure::new(FailureKind::Script, too_much.to_string()))
                }
            };
            cut.cut();
            // Ends waits of the script for answers.
            drop(serving);
            // The script ends at its next step, so no thread remains.
            let report = ended.await.unwrap_or_else(|_| super::stopped());
            Report { result, ..report }
        })
    }
}

/// Returns the limits of a job's script.
fn limits_of(job: &Job, inputs: &Inputs) -> Limits {
    let input = job.input.as_ref().map_or(0, Vec::len);
    Limits::for_input(input + inputs.size())
}

/// Returns the failure of a run whose thread cannot be started: of its job, if the host has room for the stack of a small
/// input, and else of the worker.
fn without_thread(stack: usize, error: &io::Error) -> Failure {
    let least = Limits::for_input(0).stack();
    let mib = stack >> 20;
    let cannot = format!("cannot start a thread with a stack of {mib} MiB for the script: {error}");
    let small = || thread::Builder::new().stack_size(least).spawn(|| {});
    match stack > least && small().is_ok() {
        true => {
            let message = format!(
                "{cannot}. The stack grows with the input: pass a smaller one, or allow the worker more address space \
                 (ulimit -v, vm.overcommit_memory)"
            );
            Failure::new(FailureKind::Script, message)
        }
        false => NotStarted::Worker(format!(
            "{cannot}. Allow the worker more threads or address space (ulimit -u, ulimit -v, vm.overcommit_memory)"
        ))
        .into(),
    }
}

/// Ends the script when the run is dropped.
#[derive(Debug, Default)]
struct CutOnDrop(Arc<AtomicBool>);

impl CutOnDrop {
    fn cut(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for CutOnDrop {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Output of a script.
#[derive(Debug, Clone)]
struct Log(Arc<Mutex<LogWriter>>);

impl Log {
    fn new(sink: &LogSink, stream: Stream) -> Self {
        Self(Arc::new(Mutex::new(sink.writer(stream))))
    }

    fn line(&self, text: &str) {
        // A panic between two writes leaves an incomplete line at most.
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writer.push(text.as_bytes());
        writer.push(b"\n");
    }

    fn finish(&self) -> Vec<u8> {
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writer.finish()
    }
}

/// A job, the trace of its run, and its inputs.
type RunInput<'a> = (&'a Job, Option<&'a TraceContext>, &'a Inputs);

/// The log of a run, and its channel for requests.
type Talk<'a> = (&'a LogSink, &'a Asker);

/// The limits of a run, and what ends it.
type Bounds<'a> = (&'a Limits, &'a Arc<AtomicBool>);

/// Executes a run on the script's thread, which nested values never leave.
fn execute(job: RunInput<'_>, talk: Talk<'_>, bounds: Bounds<'_>) -> Report {
    let (sink, _) = talk;
    let logs = [Stream::Stdout, Stream::Stderr].map(|stream| Log::new(sink, stream));
    let run = AssertUnwindSafe(|| script(job, talk, &logs, bounds));
    let result = catch_unwind(run).unwrap_or_else(|panic| {
        let message = format!("Rhai panicked: {}", super::panic_text(&*panic));
        Err(Failure::new(FailureKind::Script, message))
    });
    let [stdout, stderr] = logs.map(|log| log.finish());
    Report {
        result,
        stdout,
        stderr,
    }
    .bounded()
}

fn script(
    (job, trace, inputs): RunInput<'_>,
    (sink, asker): Talk<'_>,
    [stdout, stderr]: &[Log; 2],
    (limits, cut): Bounds<'_>,
) -> Result<Vec<u8>, Failure> {
    let permanent = |message: String| Failure::new(FailureKind::Permanent, message);
    let Ok(source) = std::str::from_utf8(&job.script) else {
        return Err(permanent("the script is not UTF-8 text".to_owned()));
    };
    if source.len() > MAX_SCRIPT {
        let (size, most) = (source.len(), MAX_SCRIPT);
        return Err(permanent(format!(
            "the script takes {size} bytes, the limit is {most}"
        )));
    }
    let mut engine = engine::new(limits, cut);
    engine.on_print({
        let stdout = stdout.clone();
        move |text| stdout.line(text)
    });
    engine.on_debug({
        let stderr = stderr.clone();
        move |text, _, _| stderr.line(text)
    });
    engine.register_global_module(engine::progress(sink).into());
    engine.register_global_module(requests::functions(asker).into());
    if source.contains(objects::GET_CONTEXT) {
        engine.register_global_module(objects::functions(asker).into());
    }
    engine.register_global_module(verdict::functions().into());
    engine.register_global_module(inputs::module(inputs.clone()).into());
    engine.register_global_module(engine::constants(job, trace).into());
    evaluate(&engine, source)
}

/// Returns an engine for a SAL script with `input` bytes of input, with the functions that need no worker.
#[cfg(feature = "sal")]
pub(super) fn engine_for(input: usize) -> rhai::Engine {
    let never = Arc::new(AtomicBool::new(false));
    let mut engine = engine::new(&Limits::for_process(input), &never);
    engine.set_default_tag(ScriptType::SAL);
    engine.register_global_module(verdict::functions().into());
    engine
}

/// Returns true if an engine has the functions of SAL.
#[cfg(feature = "sal")]
fn has_sal(engine: &rhai::Engine) -> bool {
    engine.default_tag().is_string()
}

/// Runs a script, and returns its result.
pub(super) fn evaluate(engine: &rhai::Engine, source: &str) -> Result<Vec<u8>, Failure> {
    let source = source::readable(source);
    let ast = engine
        .compile(source)
        .map_err(|error| error::syntax(&error, source, engine))?;
    let value = engine
        .eval_ast(&ast)
        .map_err(|error| error::runtime(&error, source, engine))?;
    value::output(value).map_err(|error| Failure::new(FailureKind::Script, error.to_string()))
}
