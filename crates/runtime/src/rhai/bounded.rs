//! Standard functions of Rhai whose results can be far larger than their arguments. These versions check the limits
//! first, while Rhai checks only the result, when the memory is used. `sleep` is refused, and `parse_json` keeps all digits
//! of a number.

use meshwork_model::number;
use rhai::{
    Array, Blob, Dynamic, EvalAltResult, FuncRegistration, ImmutableString, Module,
    NativeCallContext, Position,
};

use super::value::{MAX_NESTED, dynamic};

type Context<'a> = NativeCallContext<'a>;
type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

/// Returns the module whose functions replace the standard ones.
pub fn functions() -> Module {
    let mut module = Module::new();
    function("sleep").set_into_module(&mut module, |_: i64| no_sleep());
    function("sleep").set_into_module(&mut module, |_: f64| no_sleep());
    function("parse_json").set_into_module(&mut module, parse_json);
    replacing(&mut module);
    splitting(&mut module);
    splitting_backwards(&mut module);
    module
}

fn function(name: &str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

fn no_sleep() -> Result<()> {
    Err("`sleep` is not available: a script does not wait".into())
}

/// Reads any JSON. A number that 64 bits cannot hold becomes a text with all its digits; Rhai's own version rounds it.
fn parse_json(json: &str) -> Result<Dynamic> {
    let read = number::read(json).map_err(|error| format!("this is no JSON: {error}"))?;
    let nested = || format!("the JSON nests deeper than {MAX_NESTED} levels").into();
    dynamic(&read, 0).ok_or_else(nested)
}

fn too_large(what: &str) -> Box<EvalAltResult> {
    EvalAltResult::ErrorDataTooLarge(what.to_owned(), Position::NONE).into()
}

fn replacing(module: &mut Module) {
    let replace = || function("replace").with_purity(false);
    replace().set_into_module(
        module,
        |context: Context<'_>, text: &mut ImmutableString, find: &str, with: &str| {
            replaced(&context, text, find, with)
        },
    );
    replace().set_into_module(
        module,
        |context: Context<'_>, text: &mut ImmutableString, find: char, with: &str| {
            replaced(&context, text, find.encode_utf8(&mut [0; 4]), with)
        },
    );
}

fn replaced(
    context: &Context<'_>,
    text: &mut ImmutableString,
    find: &str,
    with: &str,
) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let added = with.len().saturating_sub(find.len());
    let size = text
        .len()
        .saturating_add(added.saturating_mul(text.matches(find).count()));
    if size > context.engine().max_string_size() {
        return Err(too_large("Length of string"));
    }
    *text = text.replace(find, with).into();
    Ok(())
}

/// Creates an array within the limit of elements.
fn array<T: Into<Dynamic>>(context: &Context<'_>, items: impl Iterator<Item = T>) -> Result<Array> {
    let most = context.engine().max_array_size();
    let array: Array = items.take(most + 1).map(Into::into).collect();
    if array.len() > most {
        Err(too_large("Size of array"))
    } else {
        Ok(array)
    }
}

/// Returns the number of pieces as Rhai counts them: at least one.
fn pieces(count: i64) -> usize {
    usize::try_from(count.max(1)).unwrap_or(usize::MAX)
}

fn splitting(module: &mut Module) {
    function("to_chars").set_into_module(module, |context: Context<'_>, text: &str| {
        array(&context, text.chars())
    });
    function("to_array").set_into_module(module, |context: Context<'_>, blob: &mut Blob| {
        array(&context, blob.iter().map(|byte| i64::from(*byte)))
    });
    function("split").set_into_module(module, |context: Context<'_>, text: &str| {
        if text.is_empty() {
            return Ok(vec![text.into()]);
        }
        array(&context, text.split_whitespace())
    });
    function("split").set_into_module(module, |context: Context<'_>, text: &str, at: &str| {
        if text.is_empty() {
            return Ok(vec![text.into()]);
        }
        array(&context, text.split(at))
    });
    function("split").set_into_module(module, |context: Context<'_>, text: &str, at: char| {
        array(&context, text.split(at))
    });
    function("split").set_into_module(
        module,
        |context: Context<'_>, text: &str, at: &str, count: i64| {
            array(&context, text.splitn(pieces(count), at))
        },
    );
    function("split").set_into_module(
        module,
        |context: Context<'_>, text: &str, at: char, count: i64| {
            array(&context, text.splitn(pieces(count), at))
        },
    );
}

fn splitting_backwards(module: &mut Module) {
    function("split_rev").set_into_module(module, |context: Context<'_>, text: &str, at: &str| {
        if text.is_empty() {
            return Ok(vec![text.into()]);
        }
        array(&context, text.rsplit(at))
    });
    function("split_rev").set_into_module(module, |context: Context<'_>, text: &str, at: char| {
        array(&context, text.rsplit(at))
    });
    function("split_rev").set_into_module(
        module,
        |context: Context<'_>, text: &str, at: &str, count: i64| {
            array(&context, text.rsplitn(pieces(count), at))
        },
    );
    function("split_rev").set_into_module(
        module,
        |context: Context<'_>, text: &str, at: char, count: i64| {
            array(&context, text.rsplitn(pieces(count), at))
        },
    );
}
