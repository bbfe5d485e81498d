//! `INPUTS` of a Rhai script: results of the job's prerequisites.

use rhai::{Array, Dynamic, EvalAltResult, FuncRegistration, Map, Module, NativeCallContext};
use serde_json::Value;

use super::super::Inputs;
use super::super::inputs::value;
use super::value::dynamic;

type FoundMap = Result<Map, Box<EvalAltResult>>;
type Found = Result<Dynamic, Box<EvalAltResult>>;

/// Returns the module with the constant, for `INPUTS["name"]`, `INPUTS.name`, `keys(INPUTS)` and `"name" in INPUTS`.
pub(super) fn module(inputs: Inputs) -> Module {
    let mut module = Module::new();
    module.set_custom_type::<Inputs>("Inputs");
    module.set_var("INPUTS", Dynamic::from(inputs));
    FuncRegistration::new_index_getter().set_into_module(
        &mut module,
        |context: NativeCallContext<'_>, inputs: &mut Inputs, name: &str| -> Found {
            find(inputs, name).map_err(|why| {
                EvalAltResult::ErrorRuntime(why.into(), context.call_position()).into()
            })
        },
    );
    let errors = |context: NativeCallContext<'_>, inputs: &mut Inputs, name: &str| -> FoundMap {
        let errors = inputs.errors(name).map_err(|error| {
            let why = error.to_string().into();
            EvalAltResult::ErrorRuntime(why, context.call_position())
        })?;
        let entry =
            |(index, error): (&usize, &String)| (index.to_string().into(), error.clone().into());
        Ok(errors.iter().map(entry).collect())
    };
    let keys = |inputs: &mut Inputs| -> Array {
        let found = inputs.entries().filter(|entry| entry.bytes().is_ok());
        found.map(|entry| entry.name().to_owned().into()).collect()
    };
    let function = |name| {
        FuncRegistration::new(name)
            .in_global_namespace()
            .with_purity(true)
    };
    function("keys").set_into_module(&mut module, keys);
    function("errors").set_into_module(&mut module, errors);
    let contains = |inputs: &mut Inputs, name: &str| inputs.bytes(name).is_ok();
    function("contains").set_into_module(&mut module, contains);
    module
}

fn find(inputs: &Inputs, name: &str) -> Result<Dynamic, String> {
    let output = inputs.bytes(name).map_err(|error| error.to_string())?;
    match value(output) {
        Some(Value::String(text)) => Ok(text.into()),
        Some(value) => {
            dynamic(&value, 0).ok_or_else(|| format!("the input `{name}` nests too deep"))
        }
        None => Ok(Dynamic::from_blob(output.to_vec())),
    }
}
