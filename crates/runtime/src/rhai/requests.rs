//! `add_child()` and actions of a Rhai script: the script's thread waits while a task calls the store.

use meshwork_model::job::NewChild;
use meshwork_model::name::JobId;
use meshwork_model::number;
use rhai::{Dynamic, EvalAltResult, FuncRegistration, ImmutableString, Map, Module};
use rhai::{NativeCallContext, Position};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::super::Run;
use super::super::action::{
    ActionCall, ActionCallError, ActionReply, Callback, Delivery, RunCalls,
};
use super::super::children::{self, AddChildError};
use super::super::objects::{ObjectError, ObjectRequest};
use super::value;

/// The function that adds a child; `submit` is its second name.
const ADD_CHILD: &str = "add_child";

/// A request, with the way back for its answer.
enum Request {
    Child(NewChild, oneshot::Sender<Result<JobId, AddChildError>>),
    Action(
        ActionCall,
        oneshot::Sender<Result<ActionReply, ActionCallError>>,
    ),
    Objects(
        (Vec<String>, ObjectRequest),
        oneshot::Sender<Result<Value, ObjectError>>,
    ),
}

/// Channel for requests. A call fails when the task has ended.
#[derive(Debug, Clone)]
pub(super) struct Asker(mpsc::Sender<Request>);

/// An error of an action, as a script catches it.
#[derive(Debug, Clone)]
pub(super) struct CallFailure(ActionCallError);

impl CallFailure {
    pub(super) fn message(&self) -> String {
        self.0.to_string()
    }
}

/// Starts the task that answers requests, and returns its channel. The task ends when the handle is dropped.
pub(super) fn serve(run: &Run) -> (Asker, AbortOnDropHandle<()>) {
    let (asker, mut requests) = mpsc::channel::<Request>(1);
    let (child_adder, calls) = (run.child_adder.clone(), RunCalls::of(run));
    let objects = run.objects.clone();
    let task = tokio::spawn(async move {
        // A script that was cut does not wait for its answer any more.
        while let Some(request) = requests.recv().await {
            match request {
                Request::Child(child, answer) => {
                    let _ = answer.send(children::add_child(child_adder.as_deref(), &child).await);
                }
                Request::Action(call, answer) => {
                    let _ = answer.send(calls.call(call).await);
                }
                Request::Objects((keys, request), answer) => {
                    let answered = match &objects {
                        Some(objects) => objects.call(&keys, request).await,
                        None => Err(ObjectError::NotHere),
                    };
                    let _ = answer.send(answered);
                }
            }
        }
    });
    (Asker(asker), AbortOnDropHandle::new(task))
}

impl Asker {
    fn ask<T>(
        &self,
        name: &str,
        request: impl FnOnce(oneshot::Sender<T>) -> Request,
    ) -> Result<T, String> {
        let (send, answer) = oneshot::channel();
        let over = || format!("{name}() is not there any more: the run has ended");
        self.0.blocking_send(request(send)).map_err(|_| over())?;
        answer.blocking_recv().map_err(|_| over())
    }

    /// Carries out a request in the space of these keys.
    pub(super) fn ask_objects(
        &self,
        name: &str,
        keys: Vec<String>,
        request: ObjectRequest,
    ) -> Result<Value, String> {
        let answer = self.ask(name, |send| Request::Objects((keys, request), send))?;
        answer.map_err(|error| error.to_string())
    }

    fn add_child(&self, script: &str, options: Map) -> Result<String, String> {
        let child = child(script, options)?;
        let answer = self.ask(ADD_CHILD, |send| Request::Child(child, send))?;
        answer
            .map(|id| id.to_string())
            .map_err(|error| error.to_string())
    }

    fn act(
        &self,
        name: &str,
        (action_type, data): (&str, &Dynamic),
        delivery: Delivery,
    ) -> Result<Dynamic, Dynamic> {
        let text = |why: String| Dynamic::from(ImmutableString::from(why));
        let bytes = value::json_text(data)
            .map_err(|error| text(format!("the data of {name}() is not possible: {error}")))?;
        let call = ActionCall {
            action_type: action_type.to_owned(),
            data: String::from_utf8_lossy(&bytes).into_owned(),
            delivery,
        };
        let answer = self.ask(name, |send| Request::Action(call, send));
        let reply = answer
            .map_err(text)?
            .map_err(|error| Dynamic::from(CallFailure(error)))?;
        in_script(&reply.json).ok_or_else(|| {
            text(format!(
                "the answer to {action_type} nests deeper than {} levels",
                value::MAX_NESTED
            ))
        })
    }
}

fn in_script(json: &str) -> Option<Dynamic> {
    value::dynamic(&number::read(json).ok()?, 0)
}

fn child(script: &str, mut options: Map) -> Result<NewChild, String> {
    let input = options.remove("input").filter(|input| !input.is_unit());
    let input = input.map(value::output).transpose();
    let input = input
        .map_err(|error| format!("the option `input` of add_child() is not possible: {error}"))?;
    let bytes = value::output(Dynamic::from_map(options));
    let bytes =
        bytes.map_err(|error| format!("the options of add_child() are not possible: {error}"))?;
    let Ok(Value::Object(options)) = serde_json::from_slice(&bytes) else {
        return Err("the options of add_child() are no map".to_owned());
    };
    children::child(script.to_owned(), input, options).map_err(|error| error.to_string())
}

pub(super) type Called<T> = Result<T, Box<EvalAltResult>>;

pub(super) fn thrown(value: Dynamic, at: Position) -> Box<EvalAltResult> {
    Box::new(EvalAltResult::ErrorRuntime(value, at))
}

/// Returns the module with all functions.
pub(super) fn functions(asker: &Asker) -> Module {
    let mut module = Module::new();
    child_functions(asker, &mut module);
    call_functions(asker, &mut module);
    send_functions(asker, &mut module);
    failure_functions(&mut module);
    module
}

fn child_functions(asker: &Asker, module: &mut Module) {
    let ask = |asker: &Asker,
               context: &NativeCallContext<'_>,
               script: &str,
               options: Map|
     -> Called<String> {
        let failed = |why: String| thrown(why.into(), context.call_position());
        asker.add_child(script, options).map_err(failed)
    };
    for name in [ADD_CHILD, "submit"] {
        let function = || FuncRegistration::new(name).in_global_namespace();
        let (alone, with_options) = (asker.clone(), asker.clone());
        function().set_into_module(
            module,
            move |context: NativeCallContext<'_>, script: &str| {
                ask(&alone, &context, script, Map::new())
            },
        );
        function().set_into_module(
            module,
            move |context: NativeCallContext<'_>, script: &str, options: Map| {
                ask(&with_options, &context, script, options)
            },
        );
    }
}

/// Registers a function with the data of an action, and one with a further argument that `delivery` reads.
fn action_functions(
    (asker, module): (&Asker, &mut Module),
    name: &'static str,
    usual: Delivery,
    delivery: Option<fn(Dynamic) -> Result<Delivery, String>>,
) {
    let function = || FuncRegistration::new(name).in_global_namespace();
    let own = asker.clone();
    function().set_into_module(
        module,
        move |context: NativeCallContext<'_>,
              action_type: &str,
              data: Dynamic|
              -> Called<Dynamic> {
            let failed = |why| thrown(why, context.call_position());
            own.act(name, (action_type, &data), usual.clone())
                .map_err(failed)
        },
    );
    let Some(delivery) = delivery else {
        return;
    };
    let asker = asker.clone();
    function().set_into_module(
        module,
        move |context: NativeCallContext<'_>,
              action_type: &str,
              data: Dynamic,
              more: Dynamic|
              -> Called<Dynamic> {
            let failed = |why| thrown(why, context.call_position());
            let delivery = delivery(more).map_err(|why| failed(why.into()))?;
            asker
                .act(name, (action_type, &data), delivery)
                .map_err(failed)
        },
    );
}

fn call_functions(asker: &Asker, module: &mut Module) {
    let usual = Delivery::Call { timeout: None };
    let with_timeout = |timeout: Dynamic| {
        let whole = timeout.as_int().map(|seconds| seconds as f64);
        let seconds = whole.or_else(|_| timeout.as_float()).map_err(|given| {
            format!("the timeout of call_action() is seconds, not of the type {given}")
        })?;
        Ok(Delivery::Call {
            timeout: Some(seconds),
        })
    };
    action_functions((asker, module), "call_action", usual, Some(with_timeout));
}

fn send_functions(asker: &Asker, module: &mut Module) {
    let usual = Delivery::Send { callback: None };
    action_functions((asker, module), "send_action", usual, Some(with_callback));
    action_functions((asker, module), "notify_action", Delivery::Notify, None);
}

/// Reads the options of `send_action()`.
fn with_callback(options: Dynamic) -> Result<Delivery, String> {
    let Some(mut options) = options.try_cast::<Map>() else {
        return Err("the options of send_action() are no map".to_owned());
    };
    let remember = options.remove("remember");
    let Some(event) = options.remove("callback") else {
        return Err("send_action() takes the option `callback`, and with it `remember`".to_owned());
    };
    if let Some(name) = options.keys().next() {
        return Err(format!("send_action() takes no option `{name}`"));
    }
    let event = event.into_string().map_err(|given| {
        format!("the callback of send_action() is the name of an event, not of the type {given}")
    })?;
    let remember = remember.map(|value| value::json_text(&value)).transpose();
    let remember = remember
        .map_err(|error| format!("`remember` of send_action() is not possible: {error}"))?;
    let remember = remember.and_then(|text| serde_json::from_slice(&text).ok());
    Ok(Delivery::Send {
        callback: Some(Callback {
            event,
            remember: remember.unwrap_or(Value::Null),
        }),
    })
}

/// The parts of a caught error.
fn failure_functions(module: &mut Module) {
    module.set_custom_type::<CallFailure>("ActionError");
    let text = |value: Option<&str>| value.map_or(Dynamic::UNIT, |it| it.to_owned().into());
    FuncRegistration::new_getter("kind").set_into_module(module, |failure: &mut CallFailure| {
        failure.0.kind().to_owned()
    });
    FuncRegistration::new_getter("code")
        .set_into_module(module, move |failure: &mut CallFailure| {
            text(failure.0.code())
        });
    FuncRegistration::new_getter("message")
        .set_into_module(module, |failure: &mut CallFailure| failure.message());
    FuncRegistration::new_getter("details").set_into_module(module, |failure: &mut CallFailure| {
        let details = failure.0.details().and_then(|data| in_script(data.text()));
        details.unwrap_or(Dynamic::UNIT)
    });
    for name in ["to_string", "to_debug"] {
        FuncRegistration::new(name)
            .in_global_namespace()
            .set_into_module(module, |failure: &mut CallFailure| failure.message());
    }
}
