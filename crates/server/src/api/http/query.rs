//! Parameters in a path or a query: texts, which become numbers and booleans where the method has such.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::api::METHODS;
use crate::api::error::ApiError;
use crate::api::method::{Method, Params};

/// Form of a parameter in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number or a boolean, written without quotes.
    Plain,
    /// A list of texts: the parameter may be repeated.
    List,
    /// A text, or what is read from one.
    Text,
}

/// Forms of the parameters that are no texts, by method and name.
static FORMS: LazyLock<HashMap<&'static str, HashMap<String, Form>>> = LazyLock::new(|| {
    let forms = METHODS.iter().map(|method| (method.name, forms(method)));
    forms.collect()
});

/// Returns true for a method with a parameter of this name that is no text.
pub(super) fn has(method: &Method, name: &str) -> bool {
    let forms = FORMS.get(method.name);
    forms.is_some_and(|forms| forms.contains_key(name))
}

fn forms(method: &Method) -> HashMap<String, Form> {
    let mut generator = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    method.params(&mut generator);
    let definitions = generator.take_definitions(true);
    let mut forms = HashMap::new();
    for schema in definitions.values() {
        let Some(Value::Object(properties)) = schema.get("properties") else {
            continue;
        };
        for (name, schema) in properties {
            let types = match schema.get("type") {
                Some(Value::String(one)) => vec![one.as_str()],
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
                _ => continue,
            };
            let is = |kind: &str| types.contains(&kind);
            let form = match () {
                () if is("integer") || is("number") || is("boolean") => Form::Plain,
                () if is("array") => Form::List,
                () => Form::Text,
            };
            forms.insert(name.clone(), form);
        }
    }
    forms
}

/// Adds parameters of a path or a query.
///
/// # Errors
/// If one is given twice.
pub(crate) fn add(
    params: &mut Params,
    method: &Method,
    given: impl Iterator<Item = (String, String)>,
) -> Result<(), ApiError> {
    let forms = &FORMS[method.name];
    let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in given {
        let value = match forms.get(&name).unwrap_or(&Form::Text) {
            Form::List => {
                lists.entry(name).or_default().push(text);
                continue;
            }
            Form::Plain if is_plain(&text) => RawValue::from_string(text).ok(),
            Form::Plain | Form::Text => to_raw_value(&text).ok(),
        };
        insert(params, name, value)?;
    }
    for (name, list) in lists {
        insert(params, name, to_raw_value(&list).ok())?;
    }
    Ok(())
}

fn insert(params: &mut Params, name: String, value: Option<Box<RawValue>>) -> Result<(), ApiError> {
    let Some(value) = value else {
        return Err(ApiError::invalid(format!("{name} cannot be read")));
    };
    match params.insert(name.clone(), value) {
        None => Ok(()),
        Some(_) => Err(ApiError::invalid(format!("{name} is given twice"))),
    }
}

/// Returns true for a number or a boolean of JSON.
fn is_plain(text: &str) -> bool {
    matches!(
        serde_json::from_str::<Value>(text),
        Ok(Value::Number(_) | Value::Bool(_))
    ) && text.trim() == text
}

/// Reads a query.
///
/// # Errors
/// If it is not UTF-8 after its decoding.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, ApiError> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8();
        let decoded = decoded.map(std::borrow::Cow::into_owned);
        decoded.map_err(|_| ApiError::invalid("the query is not UTF-8"))
    };
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decoded(name)?, decoded(value)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::find;

    fn read(method: &str, query: &str) -> Result<String, ApiError> {
        let mut params = Params::new();
        add(
            &mut params,
            find(method).unwrap(),
            pairs(query)?.into_iter(),
        )?;
        Ok(serde_json::to_string(&params).unwrap())
    }

    #[test]
    fn texts_become_what_the_method_has() {
        let cases = [
            (
                "job.list",
                "limit=5&type=python",
                r#"{"limit":5,"type":"python"}"#,
            ),
            ("job.list", "limit=five", r#"{"limit":"five"}"#),
            (
                "job.list",
                "type=5&key=a+b%2B",
                r#"{"key":"a b+","type":"5"}"#,
            ),
            ("job.cancel", "force=true", r#"{"force":true}"#),
            ("job.create", "tags=a&tags=b", r#"{"tags":["a","b"]}"#),
            ("job.result", "wait=30s", r#"{"wait":"30s"}"#),
            ("job.list", "", "{}"),
        ];
        for (method, query, json) in cases {
            assert_eq!(read(method, query).unwrap(), json, "{query}");
        }
        assert!(read("job.list", "key=a&key=b").is_err());
        assert!(read("job.list", "key=%ff").is_err());
    }
}
