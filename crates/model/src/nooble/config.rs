//! Settings that an action may carry for its services. Nooble4 reads them strictly, and writes each of them.

use super::fields::{Fault, Fields};
use super::json::Json;

/// Type of a setting.
enum Kind {
    /// A whole number in this range.
    Whole(i64, i64),
    /// A number in this range.
    Number(f64, f64),
    Truth,
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// At least one text.
    Texts,
    /// Texts, or null.
    MaybeTexts,
    /// A whole number, or null.
    MaybeWhole,
}

/// A setting: its name, type, and default as JSON (`None` if the setting is required).
struct Setting(&'static str, Kind, Option<&'static str>);

const MOST: i64 = i64::MAX;

const EXECUTION: &[Setting] = &[
    Setting("history_ttl", Kind::Whole(1, MOST), Some("3600")),
    Setting("enable_history_cache", Kind::Truth, Some("true")),
    Setting("max_history_length", Kind::Whole(1, 200), Some("50")),
    Setting("tool_timeout", Kind::Whole(1, MOST), Some("30")),
    Setting("max_iterations", Kind::Whole(1, 20), Some("10")),
];

const MODELS: &[&str] = &[
    "llama-3.3-70b-versatile",
    "llama-3.3-8b-instruct",
    "mixtral-8x7b-32768",
    "gemma-7b-it",
];

const QUERY: &[Setting] = &[
    Setting("model", Kind::Word(MODELS), None),
    Setting("temperature", Kind::Number(0.0, 2.0), Some("0.7")),
    Setting("max_tokens", Kind::Whole(1, 8192), Some("2048")),
    Setting("top_p", Kind::Number(0.0, 1.0), Some("1.0")),
    Setting("frequency_penalty", Kind::Number(-2.0, 2.0), Some("0.0")),
    Setting("presence_penalty", Kind::Number(-2.0, 2.0), Some("0.0")),
    Setting("stop", Kind::MaybeTexts, Some("null")),
    Setting("system_prompt_template", Kind::Text, None),
    Setting("max_context_tokens", Kind::Whole(1, MOST), Some("4000")),
    Setting("enable_parallel_search", Kind::Truth, Some("true")),
    Setting("timeout", Kind::MaybeWhole, Some("null")),
    Setting("max_retries", Kind::MaybeWhole, Some("null")),
];

const EMBEDDINGS: &[&str] = &[
    "text-embedding-3-small",
    "text-embedding-3-large",
    "text-embedding-ada-002",
];

const RAG: &[Setting] = &[
    Setting("collection_ids", Kind::Texts, None),
    Setting("document_ids", Kind::MaybeTexts, Some("null")),
    Setting(
        "embedding_model",
        Kind::Word(EMBEDDINGS),
        Some("\"text-embedding-3-small\""),
    ),
    Setting("embedding_dimensions", Kind::Whole(1, MOST), Some("1536")),
    Setting("encoding_format", Kind::Text, Some("\"float\"")),
    Setting("top_k", Kind::Whole(1, 20), Some("5")),
    Setting("similarity_threshold", Kind::Number(0.0, 1.0), Some("0.7")),
    Setting("timeout", Kind::MaybeWhole, Some("null")),
    Setting("max_retries", Kind::MaybeWhole, Some("null")),
    Setting("max_text_length", Kind::MaybeWhole, Some("null")),
];

/// Settings of an action by the name of their field.
pub(super) const ALL: [(&str, Config); 3] = [
    ("execution_config", Config(EXECUTION)),
    ("query_config", Config(QUERY)),
    ("rag_config", Config(RAG)),
];

/// One of the three groups of settings.
#[derive(Clone, Copy)]
pub(super) struct Config(&'static [Setting]);

impl Config {
    /// Returns the settings as they are written again, or all their faults.
    pub(super) fn read(self, value: Json<'_>) -> Result<String, Vec<Fault>> {
        let Json::Object(object) = value else {
            let field = String::new();
            let kind = "model_type";
            return Err(vec![Fault { field, kind }]);
        };
        let mut fields = Fields::within(object);
        let mut out = String::from("{");
        for (at, Setting(name, kind, default)) in self.0.iter().enumerate() {
            // Known names need no escapes.
            out.push_str(if at > 0 { ",\"" } else { "\"" });
            out.push_str(name);
            out.push_str("\":");
            match (fields.take(name), default) {
                (Some(value), _) => match kind.check(value) {
                    Ok(value) => value.write(&mut out),
                    Err(fault) => fields.fault(name, fault),
                },
                (None, Some(default)) => out.push_str(default),
                (None, None) => fields.fault(name, "missing"),
            }
        }
        let (unknown, mut faults) = fields.ends();
        let unknown = unknown.into_iter().map(|field| Fault {
            field,
            kind: "extra_forbidden",
        });
        faults.extend(unknown);
        out.push('}');
        if faults.is_empty() {
            Ok(out)
        } else {
            Err(faults)
        }
    }
}

impl Kind {
    fn check<'a>(&self, value: Json<'a>) -> Result<Json<'a>, &'static str> {
        match (self, value) {
            (Self::MaybeTexts | Self::MaybeWhole, Json::Null) => Ok(Json::Null),
            (Self::Whole(least, most), value) => whole(value, *least, *most),
            (Self::MaybeWhole, value) => whole(value, i64::MIN, i64::MAX),
            (Self::Number(least, most), value) => number(value, *least, *most),
            (Self::Truth, value) => super::fields::truth(value).map(Json::Bool),
            (Self::Text, value @ Json::Text(_)) => Ok(value),
            (Self::Text, _) => Err("string_type"),
            (Self::Word(words), Json::Text(text)) => match words.contains(&&*text) {
                true => Ok(Json::Text(text)),
                false => Err("enum"),
            },
            (Self::Word(_), _) => Err("enum"),
            (Self::Texts | Self::MaybeTexts, Json::List(items)) => {
                if items.is_empty() && matches!(self, Self::Texts) {
                    return Err("too_short");
                }
                let sound = items.iter().all(|item| matches!(item, Json::Text(_)));
                sound.then_some(Json::List(items)).ok_or("string_type")
            }
            (Self::Texts | Self::MaybeTexts, _) => Err("list_type"),
        }
    }
}

fn within<T: PartialOrd>(value: &T, least: &T, most: &T) -> Result<(), &'static str> {
    if value < least {
        return Err("greater_than_equal");
    }
    if value > most {
        return Err("less_than_equal");
    }
    Ok(())
}

/// Reads a whole number, or a value that Nooble4 converts to one: a text, or a boolean.
fn whole(value: Json<'_>, least: i64, most: i64) -> Result<Json<'static>, &'static str> {
    let number: i64 = match value {
        // A whole number may be written with `.0`.
        Json::Number(text) => {
            let text = text.strip_suffix(".0").unwrap_or(&text);
            text.parse().map_err(|_| "int_from_float")?
        }
        Json::Text(text) => {
            let text = without_separators(&text).ok_or("int_parsing")?;
            let (text, fraction) = text.split_once('.').unwrap_or((text.as_str(), "0"));
            let is_whole = !fraction.is_empty() && fraction.bytes().all(|c| c == b'0');
            let number = text.parse().ok().filter(|_| is_whole);
            number.ok_or("int_parsing")?
        }
        Json::Bool(is) => is.into(),
        _ => return Err("int_type"),
    };
    within(&number, &least, &most)?;
    Ok(Json::Number(number.to_string().into()))
}

/// Reads a number, or a value that Nooble4 converts to one: a text, or a boolean.
fn number(value: Json<'_>, least: f64, most: f64) -> Result<Json<'static>, &'static str> {
    let number: f64 = match value {
        Json::Number(text) => text.parse().map_err(|_| "float_type")?,
        Json::Text(text) => {
            let text = without_separators(&text).ok_or("float_parsing")?;
            text.parse().map_err(|_| "float_parsing")?
        }
        Json::Bool(is) => f64::from(u8::from(is)),
        _ => return Err("float_type"),
    };
    within(&number, &least, &most)?;
    let written = super::json::float(number).ok_or("float_type")?;
    Ok(Json::Number(written.into()))
}

/// Returns the text of a number without blanks around it and `_` between its digits.
fn without_separators(text: &str) -> Option<String> {
    let text = text.trim();
    let loose = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!loose).then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(which: usize, text: &str) -> Vec<String> {
        let value = Json::read(text).unwrap();
        let faults = ALL[which].1.read(value).err().unwrap_or_default();
        faults.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn each_kind_is_checked() {
        for (which, text, fault) in [
            (0, "{\"history_ttl\":0}", "history_ttl: greater_than_equal"),
            (0, "{\"tool_timeout\":1.5}", "tool_timeout: int_from_float"),
            (0, "{\"tool_timeout\":\"x\"}", "tool_timeout: int_parsing"),
            (0, "{\"tool_timeout\":\"5.5\"}", "tool_timeout: int_parsing"),
            (
                0,
                "{\"tool_timeout\":\"1__0\"}",
                "tool_timeout: int_parsing",
            ),
            (0, "{\"tool_timeout\":null}", "tool_timeout: int_type"),
            (
                0,
                "{\"enable_history_cache\":\"1.0\"}",
                "enable_history_cache: bool_parsing",
            ),
            (
                0,
                "{\"enable_history_cache\":2}",
                "enable_history_cache: bool_parsing",
            ),
            (2, "{\"collection_ids\":[1]}", "collection_ids: string_type"),
            (2, "{\"collection_ids\":1}", "collection_ids: list_type"),
            (
                2,
                "{\"collection_ids\":[\"c\"],\"similarity_threshold\":1.1}",
                "similarity_threshold: less_than_equal",
            ),
            (
                2,
                "{\"collection_ids\":[\"c\"],\"similarity_threshold\":\"high\"}",
                "similarity_threshold: float_parsing",
            ),
            (
                2,
                "{\"collection_ids\":[\"c\"],\"similarity_threshold\":\"nan\"}",
                "similarity_threshold: float_type",
            ),
            (
                2,
                "{\"collection_ids\":[\"c\"],\"encoding_format\":1}",
                "encoding_format: string_type",
            ),
            (0, "[]", "model_type"),
        ] {
            assert_eq!(faults(which, text), [fault]);
        }
    }

    #[test]
    fn whole_numbers_and_numbers_are_written_as_theirs() {
        let config = Json::read("{\"tool_timeout\":7.0}").unwrap();
        let written = ALL[0].1.read(config).unwrap();
        assert!(written.contains("\"tool_timeout\":7,"), "{written}");
        for (text, expected) in [(" 7 ", "7"), ("+7.00", "7"), ("1_000", "1000")] {
            let config = format!("{{\"tool_timeout\":\"{text}\",\"max_iterations\":true}}");
            let written = ALL[0].1.read(Json::read(&config).unwrap()).unwrap();
            assert!(
                written.contains(&format!("\"tool_timeout\":{expected},")),
                "{written}"
            );
            assert!(written.ends_with("\"max_iterations\":1}"), "{written}");
        }
        let config = "{\"collection_ids\":[\"c\"],\"similarity_threshold\":\"1e-1\"}";
        let written = ALL[2].1.read(Json::read(config).unwrap()).unwrap();
        assert!(
            written.contains("\"similarity_threshold\":0.1,"),
            "{written}"
        );
        let config = "{\"model\":\"gemma-7b-it\",\"system_prompt_template\":\"x\",\"top_p\":0}";
        let written = ALL[1].1.read(Json::read(config).unwrap()).unwrap();
        assert!(written.contains("\"top_p\":0.0,"), "{written}");
    }
}
