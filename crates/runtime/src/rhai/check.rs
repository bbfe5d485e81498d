//! The syntax of a Rhai script, read by the engine that would run it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use futures_util::future::BoxFuture;
use meshwork_model::name::ScriptType;
use tokio::sync::oneshot;

use super::super::check::{ScriptError, SourcePosition};
use super::engine::{self, Limits};
use super::error;
use super::source::readable;

/// Checks a script.
pub(in super::super) fn check(script: Vec<u8>) -> BoxFuture<'static, Result<(), ScriptError>> {
    check_as(ScriptType::OSIS, script)
}

/// Checks a script of a type, on a thread with the stack that it would run on.
pub(in super::super) fn check_as(
    script_type: &'static str,
    script: Vec<u8>,
) -> BoxFuture<'static, Result<(), ScriptError>> {
    Box::pin(async move {
        let (send, checked) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("rhai".to_owned())
            .stack_size(Limits::for_input(0).stack());
        let spawned = thread.spawn(move || {
            // Nobody waits any more if this fails.
            let _ = send.send(compile(script_type, &script));
        });
        let unchecked = |why: &str| Err(ScriptError::Unchecked(why.to_owned()));
        match spawned {
            Ok(_) => checked
                .await
                .unwrap_or_else(|_| unchecked("the parser of Rhai panicked")),
            Err(error) => unchecked(&format!("the system has no thread for it: {error}")),
        }
    })
}

fn compile(script_type: &'static str, script: &[u8]) -> Result<(), ScriptError> {
    let syntax = |message: String, at| ScriptError::Syntax {
        script_type,
        message,
        at,
    };
    let Ok(source) = std::str::from_utf8(script) else {
        return Err(syntax(
            "it is not UTF-8 text".to_owned(),
            SourcePosition::default(),
        ));
    };
    let engine = engine::new(&Limits::for_input(0), &Arc::new(AtomicBool::new(false)));
    match engine.compile(readable(source)) {
        Ok(_) => Ok(()),
        Err(error) => {
            let position = error.position();
            let at = SourcePosition {
                line: position.line().unwrap_or_default(),
                column: position.position().unwrap_or_default(),
            };
            let message = error.err_type().to_string();
            let note = error::refused(error.err_type(), &engine);
            let note = note.map(|note| format!(": {note}")).unwrap_or_default();
            Err(syntax(message + note.as_str(), at))
        }
    }
}
