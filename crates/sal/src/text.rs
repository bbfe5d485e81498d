//! Functions for templates that differ from those of `sal-text`: errors name their cause, and `add_vars` takes all values, not
//! texts alone.

use std::error::Error;
use std::fs;

use rhai::{Array, Dynamic, Engine, Map};
use sal_text::TemplateBuilder;

use super::answer::{Answer, thrown};

pub(crate) fn register(engine: &mut Engine) {
    engine.register_fn("add_vars", add_vars);
    engine.register_fn("render", render);
    engine.register_fn("render_to_file", render_to_file);
}

fn add_vars(builder: TemplateBuilder, vars: Map) -> TemplateBuilder {
    let add = |builder: TemplateBuilder, (name, value): (_, Dynamic)| {
        if let Ok(number) = value.as_int() {
            builder.add_var(name, number)
        } else if let Ok(number) = value.as_float() {
            builder.add_var(name, number)
        } else if let Ok(is_so) = value.as_bool() {
            builder.add_var(name, is_so)
        } else if let Some(items) = value.read_lock::<Array>() {
            let items: Vec<_> = items.iter().map(Dynamic::to_string).collect();
            builder.add_var(name, items)
        } else {
            builder.add_var(name, value.to_string())
        }
    };
    vars.into_iter().fold(builder, add)
}

fn render(builder: &mut TemplateBuilder) -> Answer<String> {
    let rendered = builder.render();
    rendered.map_err(|error| thrown(format!("Template error: {}", with_causes(&error))))
}

fn render_to_file(builder: &mut TemplateBuilder, path: &str) -> Answer<()> {
    let text = render(builder)?;
    fs::write(path, text).map_err(|error| thrown(format!("IO error: {error}: {path}")))
}

/// Returns the texts of an error and of those that caused it.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
