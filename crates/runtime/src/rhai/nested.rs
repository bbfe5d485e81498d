//! Functions of Rhai that take a large part of the stack for each level of an array or map: text and comparison. These
//! versions end at [`MAX_LEVELS`], so the size of values may be large ([`super::engine::Limits`]).

use std::fmt::Write as _;

use rhai::{Array, Dynamic, EvalAltResult, FuncRegistration, Map, Module, NativeCallContext};

type Context<'a> = NativeCallContext<'a>;
type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

/// Greatest nesting of a value that is printed or compared. A level takes up to 4 KiB of the stack.
const MAX_LEVELS: usize = 1_000;

/// Text for the levels below.
const DEEPER: &str = "…";

/// Returns the module whose functions replace the standard ones.
pub(super) fn functions() -> Module {
    let mut module = Module::new();
    for name in ["print", "debug", "to_string", "to_debug"] {
        pure(name).set_into_module(&mut module, |context: Context<'_>, array: &mut Array| {
            let mut text = String::new();
            array_text(&context, array, 0, &mut text);
            text
        });
        pure(name).set_into_module(&mut module, |context: Context<'_>, map: &mut Map| {
            let mut text = String::new();
            map_text(&context, map, 0, &mut text);
            text
        });
    }
    for (name, equal) in [("==", true), ("!=", false)] {
        pure(name).set_into_module(
            &mut module,
            move |context: Context<'_>, one: &mut Array, mut other: Array| {
                arrays_are_equal(&context, one, &mut other, 0).map(|are| are == equal)
            },
        );
        pure(name).set_into_module(
            &mut module,
            move |context: Context<'_>, one: &mut Map, mut other: Map| {
                maps_are_equal(&context, one, &mut other, 0).map(|are| are == equal)
            },
        );
    }
    module
}

fn pure(name: &str) -> FuncRegistration {
    FuncRegistration::new(name)
        .in_global_namespace()
        .with_purity(true)
}

/// Returns true if a value cannot be printed whole.
pub(super) fn is_deep(value: &Dynamic) -> bool {
    fn nests(value: &Dynamic, above: usize) -> bool {
        let mut below = |value: &Dynamic| above >= MAX_LEVELS || nests(value, above + 1);
        if let Ok(array) = value.as_array_ref() {
            array.iter().any(&mut below)
        } else if let Ok(map) = value.as_map_ref() {
            map.values().any(below)
        } else {
            false
        }
    }
    nests(value, 0)
}

fn value_text(context: &Context<'_>, value: &mut Dynamic, above: usize, text: &mut String) {
    if above > MAX_LEVELS {
        text.push_str(DEEPER);
    } else if let Ok(mut array) = value.as_array_mut() {
        array_text(context, &mut array, above, text);
    } else if let Ok(mut map) = value.as_map_mut() {
        map_text(context, &mut map, above, text);
    } else {
        let printed = context.call_native_fn_raw("to_debug", true, &mut [value]);
        match printed.and_then(|text| text.into_immutable_string().map_err(Into::into)) {
            Ok(printed) => text.push_str(&printed),
            Err(_) => text.push_str(value.type_name()),
        }
    }
}

fn array_text(context: &Context<'_>, array: &mut Array, above: usize, text: &mut String) {
    text.push('[');
    for (nth, item) in array.iter_mut().enumerate() {
        if nth > 0 {
            text.push_str(", ");
        }
        value_text(context, item, above + 1, text);
    }
    text.push(']');
}

fn map_text(context: &Context<'_>, map: &mut Map, above: usize, text: &mut String) {
    text.push_str("#{");
    for (nth, (name, item)) in map.iter_mut().enumerate() {
        let comma = if nth > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{name:?}: ");
        value_text(context, item, above + 1, text);
    }
    text.push('}');
}

fn are_equal(
    context: &Context<'_>,
    one: &mut Dynamic,
    other: &mut Dynamic,
    above: usize,
) -> Result<bool> {
    if above > MAX_LEVELS {
        return Err(format!("the compared values nest deeper than {MAX_LEVELS} levels").into());
    }
    if one.is_array() && other.is_array() {
        let (mut one, mut other) = (one.as_array_mut()?, other.as_array_mut()?);
        return arrays_are_equal(context, &mut one, &mut other, above);
    }
    if one.is_map() && other.is_map() {
        let (mut one, mut other) = (one.as_map_mut()?, other.as_map_mut()?);
        return maps_are_equal(context, &mut one, &mut other, above);
    }
    let differ = one.type_id() != other.type_id();
    match context.call_native_fn_raw("==", true, &mut [one, other]) {
        Ok(answer) => Ok(answer.as_bool().unwrap_or(false)),
        // Values of two types that cannot be compared differ.
        Err(error) if differ && matches!(*error, EvalAltResult::ErrorFunctionNotFound(..)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn arrays_are_equal(
    context: &Context<'_>,
    one: &mut Array,
    other: &mut Array,
    above: usize,
) -> Result<bool> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (one, other) in one.iter_mut().zip(other) {
        if !are_equal(context, one, other, above + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps_are_equal(
    context: &Context<'_>,
    one: &mut Map,
    other: &mut Map,
    above: usize,
) -> Result<bool> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (name, one) in one {
        let Some(other) = other.get_mut(name) else {
            return Ok(false);
        };
        if !are_equal(context, one, other, above + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}
