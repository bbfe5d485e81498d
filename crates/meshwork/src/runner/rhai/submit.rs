//! `submit()` of a Rhai script: the script's thread waits while a task calls the store.

use meshwork_model::job::NewChild;
use meshwork_model::name::JobId;
use rhai::{Dynamic, EvalAltResult, FuncRegistration, Map, Module, NativeCallContext};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::super::submit::{self, SubmitError, Submitter};
use super::value;

type Request = (NewChild, oneshot::Sender<Result<JobId, SubmitError>>);

/// Channel for requests. A call fails when the task has ended.
#[derive(Debug, Clone)]
pub(super) struct Asker(mpsc::Sender<Request>);

/// Starts the task that answers submissions, and returns its channel. The task ends when the handle is dropped.
pub(super) fn serve(submitter: Option<Submitter>) -> (Asker, AbortOnDropHandle<()>) {
    let (asker, mut requests) = mpsc::channel::<Request>(1);
    let task = tokio::spawn(async move {
        while let Some((child, answer)) = requests.recv().await {
            // A script that was cancelled does not wait any more.
            let _ = answer.send(submit::submit(submitter.as_ref(), &child).await);
        }
    });
    (Asker(asker), AbortOnDropHandle::new(task))
}

impl Asker {
    fn submit(&self, script: &str, options: Map) -> Result<String, String> {
        let child = child(script, options)?;
        let (send, answer) = oneshot::channel();
        let over = || "submit() is not there any more: the run has ended".to_owned();
        self.0.blocking_send((child, send)).map_err(|_| over())?;
        let answer = answer.blocking_recv().map_err(|_| over())?;
        answer
            .map(|id| id.to_string())
            .map_err(|error| error.to_string())
    }
}

fn child(script: &str, mut options: Map) -> Result<NewChild, String> {
    let input = options.remove("input").filter(|input| !input.is_unit());
    let input = input.map(value::output).transpose();
    let input = input
        .map_err(|error| format!("the option `input` of submit() is not possible: {error}"))?;
    let bytes = value::output(Dynamic::from_map(options));
    let bytes =
        bytes.map_err(|error| format!("the options of submit() are not possible: {error}"))?;
    let Ok(Value::Object(options)) = serde_json::from_slice(&bytes) else {
        return Err("the options of submit() are no map".to_owned());
    };
    submit::child(script.to_owned(), input, options).map_err(|error| error.to_string())
}

/// Returns the module with `submit()`.
pub(super) fn functions(asker: &Asker) -> Module {
    type Submitted = Result<String, Box<EvalAltResult>>;
    let ask =
        |asker: &Asker, context: &NativeCallContext<'_>, script: &str, options: Map| -> Submitted {
            let failed = |why: String| {
                Box::new(EvalAltResult::ErrorRuntime(
                    why.into(),
                    context.call_position(),
                ))
            };
            asker.submit(script, options).map_err(failed)
        };
    let function = || FuncRegistration::new("submit").in_global_namespace();
    let mut module = Module::new();
    let alone = asker.clone();
    function().set_into_module(
        &mut module,
        move |context: NativeCallContext<'_>, script: &str| {
            ask(&alone, &context, script, Map::new())
        },
    );
    let asker = asker.clone();
    function().set_into_module(
        &mut module,
        move |context: NativeCallContext<'_>, script: &str, options: Map| {
            ask(&asker, &context, script, options)
        },
    );
    module
}
