//! Functions of SAL, the system abstraction layer of Hero, for Rhai scripts: names, signatures and answers of the published
//! crates `sal-*`. The functions for text are those of `sal-text`; the others are own code, because the published crates
//! print to the terminal or keep global state.
//!
//! Scripts change the current folder, so each script needs a process of its own. This crate confines nothing.

mod answer;
mod git;
mod http;
mod mycelium;
mod net;
mod os;
mod postgresclient;
mod process;
mod redisclient;
mod table;
mod zinit;

use std::any::TypeId;
use std::collections::HashSet;

use rhai::{Dynamic, Engine, EvalAltResult};

pub use table::{Function, Kind, functions};

/// Registers all functions. Those that are refused throw their reason.
///
/// # Errors
/// The functions for text cannot be registered.
pub fn register(engine: &mut Engine) -> Result<(), Box<EvalAltResult>> {
    sal_text::rhai::register_text_module(engine)?;
    os::register(engine);
    process::register(engine);
    net::register(engine);
    git::register(engine);
    redisclient::register(engine);
    postgresclient::register(engine);
    zinit::register(engine);
    mycelium::register(engine);
    refuse(engine);
    Ok(())
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
