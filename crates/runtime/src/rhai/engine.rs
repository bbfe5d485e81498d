//! Engine of one run, with the functions and limits of a script.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use meshwork_model::job::Job;
use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::trace::TraceContext;
use rhai::packages::{Package, StandardPackage};
use rhai::{
    Dynamic, Engine, EvalContext, FuncRegistration, Map, Module, OptimizationLevel, Shared,
};

use super::super::log::LogSink;
use super::{bounded, nested};

/// Limits of a script. Rhai's defaults differ between debug and release builds, so all are set. Those for users are in
/// docs/limits.md.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Steps. The deadline is the actual limit; this one ends an empty endless loop in minutes.
    pub(super) operations: u64,
    /// Depth of calls.
    pub(super) calls: usize,
    /// Depth of expressions.
    pub(super) depth: usize,
    /// Variables in one function.
    pub(super) variables: usize,
    /// Functions defined by the script.
    pub(super) functions: usize,
    /// Bytes of all text within one value.
    pub(super) text: usize,
    /// Elements, and bytes of blobs, within one value. Together with `entries` it bounds the nesting of values, and so
    /// the stack. Rhai counts the elements at each change, so larger values are slow.
    pub(super) elements: usize,
    /// Entries of all maps within one value.
    pub(super) entries: usize,
}

/// Bytes of text in one value besides the input: the size of a result, and of a command's output.
const TEXT: usize = MAX_OUTPUT;
/// Elements of arrays, and entries of maps, in one value besides those of the input.
const ITEMS: usize = 1_000_000;

/// Calls beyond the limit, so that a script can catch the error of a call that is too deep.
const SPARE_CALLS: usize = 16;

impl Limits {
    /// Returns the limits for a script with `input` bytes of input, which may be a blob, or JSON with an element or
    /// entry in few bytes.
    pub(super) const fn for_input(input: usize) -> Self {
        Self {
            operations: 100_000_000_000,
            calls: 128,
            depth: 128,
            variables: 256,
            functions: 1000,
            text: TEXT + input,
            elements: ITEMS + input,
            entries: ITEMS + input / SHORTEST_ENTRY,
        }
    }

    /// Returns the limits for a script in a process of its own, which reads files and outputs of commands: their sizes
    /// are those of inputs.
    #[cfg(feature = "sal")]
    pub(super) const fn for_process(input: usize) -> Self {
        Self::for_input(if input < TEXT { TEXT } else { input })
    }

    /// Returns the stack for the deepest value, and for the deepest script. Unused stack takes no memory.
    pub(super) const fn stack(&self) -> usize {
        BASE_STACK + self.elements * ELEMENT_STACK + self.entries * ENTRY_STACK
    }
}

/// Bytes of the shortest entry in JSON: `"":0,`.
const SHORTEST_ENTRY: usize = 5;

/// Stack of a script without nested values.
const BASE_STACK: usize = if cfg!(debug_assertions) {
    256 << 20
} else {
    96 << 20
};
/// Stack for each level of arrays, when a value is copied, counted or dropped. Unit tests fill the stack.
const ELEMENT_STACK: usize = if cfg!(debug_assertions) { 512 } else { 256 };
/// Stack for each level of maps.
const ENTRY_STACK: usize = if cfg!(debug_assertions) { 1024 } else { 448 };

/// Rhai's standard functions, registered once, since that takes longer than most scripts.
static STANDARD: LazyLock<Shared<Module>> =
    LazyLock::new(|| StandardPackage::new().as_shared_module());

/// Functions that replace standard ones of the same name.
static BOUNDED: LazyLock<Shared<Module>> = LazyLock::new(|| bounded::functions().into());

/// Standard functions for values that nest deeply.
static NESTED: LazyLock<Shared<Module>> = LazyLock::new(|| nested::functions().into());

/// Creates an engine with these limits. The script ends soon after `cut` is set.
pub(super) fn new(limits: &Limits, cut: &Arc<AtomicBool>) -> Engine {
    // The raw engine has no module resolver that reads files.
    let mut engine = Engine::new_raw();
    engine.register_global_module(Shared::clone(&STANDARD));
    engine.register_global_module(Shared::clone(&BOUNDED));
    engine.register_global_module(Shared::clone(&NESTED));
    for keyword in ["eval", "import", "export", "curry"] {
        engine.disable_symbol(keyword);
    }
    engine
        .set_max_operations(limits.operations)
        .set_max_call_levels(limits.calls + SPARE_CALLS)
        .set_max_expr_depths(limits.depth, limits.depth)
        .set_max_variables(limits.variables)
        .set_max_functions(limits.functions)
        .set_max_modules(0)
        .set_max_string_size(limits.text)
        .set_max_array_size(limits.elements)
        .set_max_map_size(limits.entries);
    limit_calls(&mut engine, limits.calls);
    // The optimizer takes quadratic time for long scripts, and cannot be interrupted.
    engine.set_optimization_level(OptimizationLevel::None);
    let cut = Arc::clone(cut);
    engine.on_progress(move |_| cut.load(Ordering::Relaxed).then_some(Dynamic::UNIT));
    engine
}

/// Makes calls beyond the limit an error that the script can catch. Rhai's own error, of functions without a variable,
/// cannot be caught.
fn limit_calls(engine: &mut Engine, most: usize) {
    #[expect(deprecated, reason = "Rhai marks interfaces so that may change")]
    engine.on_var(move |_, _, context: EvalContext<'_, '_, '_, '_, '_, '_>| {
        match context.call_level() > most {
            true => Err(format!("Stack overflow: {}", calls_beyond(most)).into()),
            false => Ok(None),
        }
    });
}

/// Returns the text for calls beyond the limit of an engine.
pub(super) fn too_many_calls(engine: &Engine) -> String {
    calls_beyond(engine.max_call_levels().saturating_sub(SPARE_CALLS))
}

fn calls_beyond(most: usize) -> String {
    format!("calls nest deeper than {most}")
}

/// Returns the module with `progress()`.
pub(super) fn progress(sink: &LogSink) -> Module {
    fn function() -> FuncRegistration {
        FuncRegistration::new("progress").in_global_namespace()
    }
    let mut module = Module::new();
    let say = {
        let sink = sink.clone();
        move |fraction: f64, message: Option<&str>| sink.progress(fraction, message)
    };
    function().set_into_module(&mut module, {
        let say = say.clone();
        move |fraction: f64| say(fraction, None)
    });
    function().set_into_module(&mut module, {
        let say = say.clone();
        move |fraction: i64| say(fraction as f64, None)
    });
    function().set_into_module(&mut module, {
        let say = say.clone();
        move |fraction: f64, message: &str| say(fraction, Some(message))
    });
    function().set_into_module(&mut module, move |fraction: i64, message: &str| {
        say(fraction as f64, Some(message));
    });
    module
}

/// Returns the constants that describe a job.
pub(super) fn constants(job: &Job, trace: Option<&TraceContext>) -> Module {
    let ids = [&job.caller_id, &job.context_id, &job.id].map(Clone::clone);
    let state = trace.and_then(TraceContext::state).map(str::to_owned);
    let trace = [trace.map(TraceContext::parent), state];
    let env = job.env_vars.iter();
    let env = env.map(|(name, value)| (name.as_str(), value.as_str()));
    constants_of(&ids, job.input.as_deref(), trace, env)
}

/// Returns the constants of a script. `ids` are those of the caller, the context and the job, `trace` its parent and its
/// state.
pub(in super::super) fn constants_of<'a>(
    ids: &[String; 3],
    input: Option<&[u8]>,
    trace: [Option<String>; 2],
    env: impl Iterator<Item = (&'a str, &'a str)>,
) -> Module {
    let mut constants = Module::new();
    for (name, id) in ["CALLER_ID", "CONTEXT_ID", "JOB_ID"].into_iter().zip(ids) {
        constants.set_var(name, id.clone());
    }
    let input = input.map_or(Dynamic::UNIT, |bytes| match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned().into(),
        Err(_) => Dynamic::from_blob(bytes.to_vec()),
    });
    constants.set_var("INPUT", input);
    for (name, text) in ["TRACEPARENT", "TRACESTATE"].into_iter().zip(trace) {
        constants.set_var(name, text.map_or(Dynamic::UNIT, Dynamic::from));
    }
    let env = env.map(|(name, value)| (name.into(), value.into()));
    constants.set_var("ENV", env.collect::<Map>());
    constants
}
