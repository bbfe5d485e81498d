//! The engine of one run: what a script may use, and how much of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use meshwork_model::job::Job;
use meshwork_model::trace::TraceContext;
use rhai::packages::{Package, StandardPackage};
use rhai::{Dynamic, Engine, FuncRegistration, Map, Module, OptimizationLevel, Shared};

use super::super::log::LogSink;
use super::bounded;

/// Limits of a script. Rhai's defaults differ between debug and release builds, so all are set.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// Steps. The deadline is the real bound; this one ends an empty endless loop in minutes.
    pub(super) operations: u64,
    /// Calls within calls.
    pub(super) calls: usize,
    /// Expressions within expressions.
    pub(super) depth: usize,
    /// Variables in one function.
    pub(super) variables: usize,
    /// Functions defined by the script.
    pub(super) functions: usize,
    /// Bytes of all text within one value.
    pub(super) text: usize,
    /// Elements, and bytes of blobs, within one value. With `entries` it bounds how deep values nest, and so
    /// what the stack must hold; Rhai counts the elements again at each change, which is slow beyond it.
    pub(super) elements: usize,
    /// Entries of all maps within one value.
    pub(super) entries: usize,
}

/// Text in one value, over what the input takes.
const TEXT: usize = 4 * 1024 * 1024;

impl Limits {
    /// The limits for a script with so many bytes of input.
    pub(super) const fn for_input(input: usize) -> Self {
        Self {
            operations: 100_000_000_000,
            calls: 128,
            depth: 128,
            variables: 256,
            functions: 1000,
            text: TEXT + input,
            elements: 100_000,
            entries: 30_000,
        }
    }
}

/// Rhai's standard functions, registered once: that takes longer than most scripts.
static STANDARD: LazyLock<Shared<Module>> =
    LazyLock::new(|| StandardPackage::new().as_shared_module());

/// Ours, which hide standard ones of the same name.
static BOUNDED: LazyLock<Shared<Module>> = LazyLock::new(|| bounded::functions().into());

/// An engine within `limits` that ends its script soon after `cut` is set.
pub(super) fn new(limits: &Limits, cut: &Arc<AtomicBool>) -> Engine {
    // Raw: without the module resolver that reads files.
    let mut engine = Engine::new_raw();
    engine.register_global_module(Shared::clone(&STANDARD));
    engine.register_global_module(Shared::clone(&BOUNDED));
    for keyword in ["eval", "import", "export", "curry"] {
        engine.disable_symbol(keyword);
    }
    engine
        .set_max_operations(limits.operations)
        .set_max_call_levels(limits.calls)
        .set_max_expr_depths(limits.depth, limits.depth)
        .set_max_variables(limits.variables)
        .set_max_functions(limits.functions)
        .set_max_modules(0)
        .set_max_string_size(limits.text)
        .set_max_array_size(limits.elements)
        .set_max_map_size(limits.entries);
    // Optimising a long script takes quadratic time, in which nothing can cut it.
    engine.set_optimization_level(OptimizationLevel::None);
    let cut = Arc::clone(cut);
    engine.on_progress(move |_| cut.load(Ordering::Relaxed).then_some(Dynamic::UNIT));
    engine
}

/// The function with which a script says how far it is.
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

/// Constants of a script that describe its job.
pub(super) fn constants(job: &Job, trace: Option<&TraceContext>) -> Module {
    let mut constants = Module::new();
    constants.set_var("CALLER_ID", job.caller_id.clone());
    constants.set_var("CONTEXT_ID", job.context_id.clone());
    constants.set_var("JOB_ID", job.id.clone());
    let input =
        job.input
            .as_deref()
            .map_or(Dynamic::UNIT, |bytes| match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned().into(),
                Err(_) => Dynamic::from_blob(bytes.to_vec()),
            });
    constants.set_var("INPUT", input);
    let text = |text: Option<String>| text.map_or(Dynamic::UNIT, Dynamic::from);
    constants.set_var("TRACEPARENT", text(trace.map(TraceContext::parent)));
    let state = trace.and_then(TraceContext::state).map(str::to_owned);
    constants.set_var("TRACESTATE", text(state));
    let env = job.env_vars.iter();
    let env = env.map(|(name, value)| (name.as_str().into(), value.as_str().into()));
    constants.set_var("ENV", env.collect::<Map>());
    constants
}
