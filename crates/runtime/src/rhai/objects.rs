//! Objects of a script: `get_context([keys])` returns a space, whose methods save, read and delete objects.

use rhai::{Array, Dynamic, EvalAltResult, FuncRegistration, Map, Module, NativeCallContext};
use serde_json::Value;

use super::super::objects::ObjectRequest;
use super::requests::{Asker, Called, thrown};
use super::value;

/// The function that returns a space. A script that does not name it needs none of these functions.
pub(super) const GET_CONTEXT: &str = "get_context";

/// A space of objects.
#[derive(Debug, Clone)]
struct ObjectContext {
    keys: Vec<String>,
    asker: Asker,
}

impl ObjectContext {
    fn ask(&self, context: &NativeCallContext<'_>, request: ObjectRequest) -> Called<Dynamic> {
        let failed = |why: String| thrown(why.into(), context.call_position());
        let name = context.fn_name();
        let answer = self
            .asker
            .ask_objects(name, self.keys.clone(), request)
            .map_err(failed)?;
        let deep = || {
            failed(format!(
                "the answer to {name}() nests deeper than {} levels",
                value::MAX_NESTED
            ))
        };
        value::dynamic(&answer, 0).ok_or_else(deep)
    }
}

/// Returns a value of a script as JSON.
fn json(context: &NativeCallContext<'_>, value: &Dynamic) -> Called<Value> {
    let name = context.fn_name();
    let failed = |why: String| thrown(why.into(), context.call_position());
    let bytes = value::json_text(value).map_err(|error| failed(format!("{name}(): {error}")))?;
    serde_json::from_slice(&bytes).map_err(|error| failed(format!("{name}(): {error}")))
}

fn function(name: &str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

/// Returns a number of objects to skip.
fn skipped(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

type Context<'a> = NativeCallContext<'a>;
type Space<'a> = &'a mut ObjectContext;

/// Returns the module with all functions.
pub(super) fn functions(asker: &Asker) -> Module {
    let mut module = Module::new();
    module.set_custom_type::<ObjectContext>("ObjectContext");
    let asker = asker.clone();
    function(GET_CONTEXT).set_into_module(
        &mut module,
        move |context: Context<'_>, keys: Array| -> Called<ObjectContext> {
            let text = |key: Dynamic| {
                key.into_string().map_err(|given| {
                    let why = format!("get_context() takes texts, not {given}");
                    Box::new(EvalAltResult::ErrorRuntime(
                        why.into(),
                        context.call_position(),
                    ))
                })
            };
            let keys: Result<Vec<_>, _> = keys.into_iter().map(text).collect();
            let asker = asker.clone();
            keys.map(|keys| ObjectContext { keys, asker })
        },
    );
    changes(&mut module);
    reads(&mut module);
    searches(&mut module);
    module
}

fn changes(module: &mut Module) {
    function("save").set_into_module(
        module,
        |context: Context<'_>, space: Space<'_>, kind: &str, object: Map| {
            let Value::Object(object) = json(&context, &object.into())? else {
                return Err(thrown("save() takes a map".into(), context.call_position()));
            };
            let kind = kind.to_owned();
            space.ask(&context, ObjectRequest::Save { kind, object })
        },
    );
    function("delete").set_into_module(
        module,
        |context: Context<'_>, space: Space<'_>, id: &str| {
            space.ask(&context, ObjectRequest::Delete { id: id.to_owned() })
        },
    );
}

fn reads(module: &mut Module) {
    function("get").set_into_module(
        module,
        |context: Context<'_>, space: Space<'_>, id: &str| {
            space.ask(&context, ObjectRequest::Get { id: id.to_owned() })
        },
    );
    function("history").set_into_module(
        module,
        |context: Context<'_>, space: Space<'_>, id: &str| {
            space.ask(&context, ObjectRequest::History { id: id.to_owned() })
        },
    );
    let list = |context: &Context<'_>, space: Space<'_>, kind: &str, skip: i64| {
        let (kind, skip) = (kind.to_owned(), skipped(skip));
        space.ask(context, ObjectRequest::List { kind, skip })
    };
    function("list").set_into_module(
        module,
        move |context: Context<'_>, space: Space<'_>, kind: &str| list(&context, space, kind, 0),
    );
    function("list").set_into_module(
        module,
        move |context: Context<'_>, space: Space<'_>, kind: &str, skip: i64| {
            list(&context, space, kind, skip)
        },
    );
}

fn searches(module: &mut Module) {
    let find = |context: &Context<'_>,
                space: Space<'_>,
                (kind, field): (&str, &str),
                value: &Dynamic,
                skip: i64| {
        let request = ObjectRequest::Find {
            kind: kind.to_owned(),
            field: field.to_owned(),
            value: json(context, value)?,
            skip: skipped(skip),
        };
        space.ask(context, request)
    };
    function("find").set_into_module(
        module,
        move |context: Context<'_>, space: Space<'_>, kind: &str, field: &str, value: Dynamic| {
            find(&context, space, (kind, field), &value, 0)
        },
    );
    function("find").set_into_module(
        module,
        move |context: Context<'_>,
              space: Space<'_>,
              kind: &str,
              field: &str,
              value: Dynamic,
              skip: i64| { find(&context, space, (kind, field), &value, skip) },
    );
    let search =
        |context: &Context<'_>, space: Space<'_>, (kind, text): (&str, &str), skip: i64| {
            let request = ObjectRequest::Search {
                kind: kind.to_owned(),
                text: text.to_owned(),
                skip: skipped(skip),
            };
            space.ask(context, request)
        };
    function("search").set_into_module(
        module,
        move |context: Context<'_>, space: Space<'_>, kind: &str, text: &str| {
            search(&context, space, (kind, text), 0)
        },
    );
    function("search").set_into_module(
        module,
        move |context: Context<'_>, space: Space<'_>, kind: &str, text: &str, skip: i64| {
            search(&context, space, (kind, text), skip)
        },
    );
}
