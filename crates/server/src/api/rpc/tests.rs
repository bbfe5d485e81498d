//! The decoder on texts that no client should send.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

/// Answers the parameters of each method but one.
struct Echo;

impl Handler for Echo {
    fn run<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Failure>> {
        let answer = match method {
            "echo" => named(params).and_then(|params| {
                let failed = |error: serde_json::Error| ApiError::invalid(error.to_string());
                serde_json::value::to_raw_value(&params).map_err(failed)
            }),
            _ => Err(no_method(method)),
        };
        std::future::ready(answer.map_err(Failure::from)).boxed()
    }
}

/// A response, as it is written: its numbers may be greater than those of Rust.
type Written = BTreeMap<String, Box<RawValue>>;

fn answered(text: &[u8]) -> Option<String> {
    answer(&Echo, text).now_or_never().unwrap()
}

/// Checks one response, by the rules of JSON-RPC.
fn check(response: &Written) {
    assert_eq!(response["jsonrpc"].get(), "\"2.0\"", "{response:?}");
    assert_eq!(response.len(), 3, "{response:?}");
    assert!(response.contains_key("id"), "{response:?}");
    match response.get("error") {
        Some(error) => {
            let error: Value = serde_json::from_str(error.get()).unwrap();
            assert!(error["code"].as_i64().unwrap() < -31_999, "{response:?}");
        }
        None => assert!(response["result"].get().starts_with('{'), "{response:?}"),
    }
}

fn check_all(text: &[u8]) {
    let Some(answer) = answered(text) else {
        return;
    };
    if answer.starts_with('[') {
        let responses: Vec<Written> = serde_json::from_str(&answer).unwrap();
        assert!((1..=MAX_BATCH).contains(&responses.len()));
        responses.iter().for_each(check);
    } else {
        check(&serde_json::from_str(&answer).unwrap());
    }
}

/// A request, or what is nearly one.
fn request() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("null".to_owned()),
        Just("\"x\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("[{\"a\":1}]".to_owned()),
        Just("1e400".to_owned()),
        Just("-0".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        "[0-9a-z\\[\\]{}\",:]{0,12}",
    ];
    let name = prop_oneof![
        Just("jsonrpc"),
        Just("method"),
        Just("params"),
        Just("id"),
        Just("x")
    ];
    let member = (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    let members = prop::collection::vec(member, 0..6).prop_map(|all| all.join(","));
    (any::<bool>(), members).prop_map(|(sound, members)| match (sound, members.as_str()) {
        (true, "") => "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"id\":1}".to_owned(),
        (true, _) => format!("{{\"jsonrpc\":\"2.0\",\"method\":\"echo\",{members}}}"),
        (false, _) => format!("{{{members}}}"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_all(&bytes);
    }

    #[test]
    fn what_is_nearly_a_request_is_answered(
        requests in prop::collection::vec(request(), 0..5),
        batch in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = match batch {
            true => format!("[{}]", requests.join(",")),
            false => requests.join(""),
        };
        check_all(whole.as_bytes());
        check_all(&whole.as_bytes()[..cut.index(whole.len() + 1)]);
    }
}

#[test]
fn an_answer_has_the_id_of_its_request() {
    for id in ["1", "\"x\"", "null", "1.5", "-7", "18446744073709551616"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"echo","params":{{"a":1}},"id":{id}}}"#);
        let answer = answered(text.as_bytes()).unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","result":{{"a":1}},"id":{id}}}"#);
        assert_eq!(answer, expected);
    }
}

#[test]
fn depth_and_number_are_bounded() {
    for depth in [1, 100, 1000, 1_000_000] {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"jsonrpc":"2.0","method":"echo","params":{nested},"id":1}}"#);
        for text in [nested, text, "{\"a\":".repeat(depth)] {
            check_all(text.as_bytes());
        }
    }
    let one = r#"{"jsonrpc":"2.0","method":"echo","id":1}"#;
    let many = |count: usize| format!("[{}]", vec![one; count].join(","));
    let parsed = |text: String| -> Value {
        serde_json::from_str(&answered(text.as_bytes()).unwrap()).unwrap()
    };
    assert_eq!(parsed(many(MAX_BATCH)).as_array().unwrap().len(), MAX_BATCH);
    assert_eq!(parsed(many(MAX_BATCH + 1))["error"]["code"], -32600);
}
