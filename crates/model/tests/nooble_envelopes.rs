//! Names and envelopes are Nooble4's, byte for byte: what its models were seen to accept, refuse and write, and
//! what its clients and workers were seen to send.

use std::collections::HashMap;

use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::nooble::{Action, Fresh, InvalidEnvelope, Response};
use serde::Deserialize;

#[derive(Deserialize)]
struct Name {
    prefix: String,
    environment: Option<String>,
    method: String,
    args: Vec<Option<String>>,
    result: String,
}

/// A text, or what is other in it than in the first of its model: a field's value, or null where it is missing.
#[derive(Deserialize)]
struct Envelope {
    model: String,
    case: String,
    input: Option<String>,
    with: Option<indexed::Changes>,
    written: Option<String>,
    writes: Option<indexed::Changes>,
    faults: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Captured {
    dialect: String,
    scenario: String,
    by: String,
    key: String,
    message: String,
}

/// Changes in their order.
mod indexed {
    use std::fmt;

    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

    pub(crate) struct Changes(pub(crate) Vec<(String, Option<String>)>);

    impl<'de> Deserialize<'de> for Changes {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> Visitor<'de> for Reader {
                type Value = Changes;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Changes, A::Error> {
                    let mut changes = Vec::new();
                    while let Some(change) = map.next_entry()? {
                        changes.push(change);
                    }
                    Ok(Changes(changes))
                }
            }
            deserializer.deserialize_map(Reader)
        }
    }
}

fn each<T: for<'a> Deserialize<'a>>(lines: &str) -> Vec<T> {
    let read = |line| serde_json::from_str(line).expect("what was captured is sound");
    lines.lines().map(read).collect()
}

fn fresh() -> Fresh {
    Fresh {
        action_id: "11111111-1111-4111-8111-111111111111".to_owned(),
        trace_id: "22222222-2222-4222-8222-222222222222".to_owned(),
        now: "2026-01-01T00:00:00.000001Z".to_owned(),
    }
}

fn named(name: &Name, dialect: Dialect) -> String {
    let prefix = name.prefix.parse().expect("a prefix is a word");
    let names = NoobleKeys::new(prefix, name.environment.as_deref(), dialect);
    let arg = |at: usize| name.args.get(at).cloned().flatten();
    let word = |at| arg(at).unwrap_or_default();
    match name.method.as_str() {
        "get_service_action_stream" => names.actions(&word(0), None),
        "get_action_queue" => names.actions(&word(0), arg(1).as_deref()),
        "get_response_queue" => names.response(&word(0), &word(1), &word(2), arg(3).as_deref()),
        "get_callback_queue" if dialect == Dialect::Streams => {
            names.callback(&word(0), &word(1), Some(&word(2)), None)
        }
        "get_callback_queue" => names.callback(&word(0), &word(1), None, arg(2).as_deref()),
        "get_notification_channel" => names.notifications(&word(0), &word(1), arg(2).as_deref()),
        other => panic!("no name for {other}"),
    }
}

#[test]
fn names_are_theirs() {
    for (dialect, lines, many) in [
        (
            Dialect::Streams,
            include_str!("nooble/names_streams.jsonl"),
            19,
        ),
        (Dialect::Lists, include_str!("nooble/names_lists.jsonl"), 62),
    ] {
        let names: Vec<Name> = each(lines);
        assert_eq!(names.len(), many);
        for name in names {
            assert_eq!(named(&name, dialect), name.result, "{}", name.method);
        }
    }
}

/// An object's fields with their texts, in their order, changed, and put together again.
fn changed(base: &str, changes: &indexed::Changes, comma: &str, colon: &str) -> String {
    let indexed::Changes(mut fields) = raw_fields(base);
    for (name, value) in &changes.0 {
        match fields.iter_mut().find(|(is, _)| is == name) {
            Some(field) => field.1.clone_from(value),
            None => fields.push((name.clone(), value.clone())),
        }
    }
    let field = |(name, value): &(String, Option<String>)| {
        let name = serde_json::to_string(name).expect("a text is JSON");
        Some(format!("{name}{colon}{}", value.as_ref()?))
    };
    let fields: Vec<_> = fields.iter().filter_map(field).collect();
    format!("{{{}}}", fields.join(comma))
}

fn raw_fields(text: &str) -> indexed::Changes {
    let values: HashMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(text).expect("what was captured is sound");
    let place = |value: &serde_json::value::RawValue| value.get().as_ptr() as usize;
    let mut fields: Vec<_> = values.into_iter().collect();
    fields.sort_by_key(|(_, value)| place(value));
    let field = |(name, value): (String, &serde_json::value::RawValue)| {
        (name, Some(value.get().to_owned()))
    };
    indexed::Changes(fields.into_iter().map(field).collect())
}

fn again(model: &str, text: &str, dialect: Dialect) -> Result<String, InvalidEnvelope> {
    Ok(match model {
        "DomainAction" => Action::read(text.as_bytes(), dialect, fresh)?.write(dialect),
        _ => Response::read(text.as_bytes(), dialect, fresh)?.write(dialect),
    })
}

/// Replaces generated values, which differ each time, by those in the output.
fn made_up(case: &str, expected: String, is: &str) -> String {
    let Some(field @ ("action_id" | "trace_id" | "timestamp")) = case.strip_prefix("missing ")
    else {
        return expected;
    };
    let value = |text: &str| {
        let indexed::Changes(fields) = raw_fields(text);
        let found = fields.into_iter().find(|(name, _)| name == field);
        found.and_then(|(_, value)| value).expect("it is written")
    };
    let (ours, fresh) = (value(is), fresh());
    let known = [fresh.action_id, fresh.trace_id, fresh.now];
    assert!(
        known.iter().any(|it| ours == format!("\"{it}\"")),
        "{case}: {ours}"
    );
    expected.replace(&value(&expected), &ours)
}

#[test]
fn envelopes_are_read_refused_and_written_as_theirs() {
    for (dialect, lines, many) in [
        (
            Dialect::Streams,
            include_str!("nooble/envelopes_streams.jsonl"),
            119,
        ),
        (
            Dialect::Lists,
            include_str!("nooble/envelopes_lists.jsonl"),
            103,
        ),
    ] {
        let envelopes: Vec<Envelope> = each(lines);
        assert_eq!(envelopes.len(), many);
        let mut bases = HashMap::new();
        for one in envelopes {
            let what = format!("{dialect} {} {}", one.model, one.case);
            let (input, written) = bases.entry(one.model.clone()).or_insert_with(|| {
                let first = "the first is whole";
                (
                    one.input.clone().expect(first),
                    one.written.clone().expect(first),
                )
            });
            let input = match (&one.input, &one.with) {
                (Some(text), _) => text.clone(),
                (None, with) => changed(input, with.as_ref().expect("either"), ", ", ": "),
            };
            let is = again(&one.model, &input, dialect);
            if let Some(faults) = one.faults {
                let is = is.expect_err(&what).faults;
                let is: Vec<_> = is
                    .iter()
                    .map(|it| format!("{}:{}", it.field, it.kind))
                    .collect();
                assert_eq!(is, faults, "{what}");
                continue;
            }
            let expected = match (one.written, one.writes) {
                (Some(text), _) => text,
                (None, Some(changes)) => changed(written, &changes, ",", ":"),
                (None, None) => written.clone(),
            };
            let is = is.expect(&what);
            assert_eq!(is, made_up(&one.case, expected, &is), "{what}");
        }
    }
}

#[test]
fn what_they_sent_is_written_as_they_wrote_it() {
    let (mut actions, mut responses) = (0, 0);
    for one in each::<Captured>(include_str!("nooble/captured.jsonl")) {
        let dialect = one.dialect.parse().expect("a dialect");
        let model = match one.key.contains(":responses:") {
            true => "DomainActionResponse",
            false => "DomainAction",
        };
        let is = again(model, &one.message, dialect).expect(&one.scenario);
        assert_eq!(is, one.message, "{dialect} {} by {}", one.scenario, one.by);
        match model {
            "DomainAction" => actions += 1,
            _ => responses += 1,
        }
    }
    assert!(actions > 30 && responses > 9, "{actions} {responses}");
}

#[test]
fn what_is_no_text_is_refused() {
    for dialect in [Dialect::Streams, Dialect::Lists] {
        let refused = Action::read(b"{\"action_id\":\"\xff\"}", dialect, fresh).unwrap_err();
        assert_eq!(refused.to_string(), "the action is not valid: not_utf8");
        for whole in ["[]", "null", "1"] {
            let refused = Response::read(whole.as_bytes(), dialect, fresh).unwrap_err();
            assert!(refused.to_string().ends_with("model_type"), "{refused}");
        }
    }
}
