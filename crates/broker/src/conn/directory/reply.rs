//! Replies of the embedded engine as values of the `redis` crate.

use meshwork_embedded::Reply;
use redis::{PushKind, Value, VerbatimFormat};

/// Converts a reply.
pub(super) fn value(reply: Reply) -> Value {
    match reply {
        Reply::Nil | Reply::NilArray => Value::Nil,
        Reply::Status(text) if text == "OK" => Value::Okay,
        Reply::Status(text) => Value::SimpleString(text),
        Reply::Error(text) => error(&text),
        Reply::Int(number) => Value::Int(number),
        Reply::Bulk(bytes) => Value::BulkString(bytes.into()),
        Reply::Array(items) => Value::Array(values(items)),
        Reply::Set(items) => Value::Set(values(items)),
        Reply::Map(pairs) => Value::Map(
            pairs
                .into_iter()
                .map(|(key, item)| (value(key), value(item)))
                .collect(),
        ),
        Reply::Double(number) => Value::Double(number),
        Reply::Bool(yes) => Value::Boolean(yes),
        Reply::Push(items) => Value::Push {
            kind: PushKind::Other("message".to_owned()),
            data: values(items),
        },
        Reply::BigNumber(digits) => Value::BulkString(digits.into_bytes()),
        Reply::Nothing => Value::Nil,
        Reply::Verbatim(text) => Value::VerbatimString {
            format: VerbatimFormat::Text,
            text,
        },
    }
}

fn values(items: Vec<Reply>) -> Vec<Value> {
    items.into_iter().map(value).collect()
}

/// Converts an error like the protocol's parser, with its code. It must not contain line breaks.
fn error(text: &str) -> Value {
    let line = text.replace(['\r', '\n'], " ");
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes())
        .unwrap_or_else(|_| Value::SimpleString(line))
}
