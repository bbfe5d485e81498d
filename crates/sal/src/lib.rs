//! Functions of SAL, the system abstraction layer of Hero, for Rhai scripts: names, signatures and answers of the published
//! crates `sal-*`. The functions for text are those of `sal-text` but for [`text`]; the others are own code, because the
//! published crates print to the terminal or keep global state.
//!
//! Scripts change the current folder, so each script needs a process of its own. This crate confines nothing.

mod answer;
mod git;
mod herolib;
mod http;
mod mycelium;
mod net;
mod os;
mod postgresclient;
mod process;
mod redisclient;
mod table;
mod text;
mod zinit;

use std::any::TypeId;
use std::collections::HashSet;

use rhai::{Dynamic, Engine, EvalAltResult, EvalContext, Expression, ImmutableString};

pub use table::{Function, Kind, functions};

/// Registers all functions. Those that are refused throw their reason.
///
/// # Errors
/// The functions for text cannot be registered.
pub fn register(engine: &mut Engine) -> Result<(), Box<EvalAltResult>> {
    sal_text::rhai::register_text_module(engine)?;
    text::register(engine);
    os::register(engine);
    process::register(engine);
    net::register(engine);
    git::register(engine);
    redisclient::register(engine);
    postgresclient::register(engine);
    zinit::register(engine);
    mycelium::register(engine);
    herolib::register(engine)?;
    register_is_def_fn(engine);
    refuse(engine);
    Ok(())
}

/// Replaces `is_def_fn(name, arguments)` of Rhai, which knows functions of the script only. A call with one argument, as in the
/// published crate, is refused.
fn register_is_def_fn(engine: &mut Engine) {
    const NAME: &str = "is_def_fn";
    const VALUE: &str = "$expr$";
    let parse = |read: &[ImmutableString], next: &str, _: &mut Dynamic| {
        let wanted = match read.last().map_or(NAME, |last| last.as_str()) {
            NAME => Some("("),
            "(" | "," => Some(VALUE),
            VALUE if next == "," => Some(","),
            VALUE => Some(")"),
            _ => None,
        };
        Ok(wanted.map(Into::into))
    };
    let is_defined = |context: &mut EvalContext<'_, '_, '_, '_, '_, '_>,
                      values: &[Expression<'_>],
                      _: &Dynamic| {
        // Of three values, the first is the type of `this`.
        let [.., name, count] = values else {
            let reason = functions().find(|function| function.name == NAME);
            let reason = reason
                .and_then(|function| function.refused)
                .unwrap_or_default();
            return Err(answer::thrown(format_args!(
                "`{NAME}` is refused: {reason}"
            )));
        };
        let name = context
            .eval_expression_tree(name)?
            .into_immutable_string()?;
        let count = context.eval_expression_tree(count)?.as_int()?;
        let Ok(count) = usize::try_from(count) else {
            return Ok(false.into());
        };
        let mut scripts = context.iter_namespaces();
        let is_of_script = scripts.any(|script| script.get_script_fn(&name, count).is_some());
        let is_of_sal = functions().any(|function| {
            function.kind == Kind::Function
                && function.refused.is_none()
                && (function.name, function.arguments) == (name.as_str(), count)
        });
        Ok((is_of_script || is_of_sal).into())
    };
    engine.register_custom_syntax_with_state_raw(NAME, parse, false, is_defined);
}

/// Registers the refused functions, for arguments of any type.
fn refuse(engine: &mut Engine) {
    let done = functions().filter(|function| function.refused.is_none());
    let mut known: HashSet<_> = done
        .map(|function| (function.name, function.arguments))
        .collect();
    for function in functions().filter(|function| function.kind == Kind::Function) {
        let Some(reason) = function.refused else {
            continue;
        };
        if !known.insert((function.name, function.arguments)) {
            continue;
        }
        let types = vec![TypeId::of::<Dynamic>(); function.arguments];
        let name = function.name;
        engine.register_raw_fn(name, types, move |_, _| -> answer::Answer<()> {
            Err(answer::thrown(format_args!(
                "`{name}` is refused: {reason}"
            )))
        });
    }
}
