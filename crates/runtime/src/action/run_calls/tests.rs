//! Tests of the checks of actions.

use super::*;

fn call(action_type: &str, data: &str, timeout: Option<f64>) -> ActionCall {
    ActionCall {
        action_type: action_type.to_owned(),
        data: data.to_owned(),
        delivery: Delivery::Call { timeout },
    }
}

#[test]
fn what_no_service_can_take_is_refused_by_name() {
    for (action_type, why) in [
        ("", "without a service"),
        (".x", "without a service"),
        ("a", "without an operation"),
        ("a.", "without an operation"),
        ("a..b", "without an operation"),
        ("a:b.c", "a colon"),
        ("a.\n", "control characters"),
        (&format!("a.{}", "ä".repeat(200)), "longer than 256 bytes"),
    ] {
        let error = check(&call(action_type, "{}", None)).unwrap_err();
        assert_eq!(error.kind(), "Refused");
        let said = error.to_string();
        assert!(said.contains(why) && said.len() < 600, "{said}");
    }
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12] {
        let error = check(&call("a.b", "{}", Some(seconds))).unwrap_err();
        assert!(error.to_string().contains("more than 0"), "{error}");
    }
    let (_, delivery) = check(&call("a.b", "{}", Some(0.5))).unwrap();
    assert!(matches!(delivery, CheckedDelivery::Call(wait) if wait == Duration::from_millis(500)));
}

#[test]
fn an_event_is_a_name() {
    for (name, why) in [
        ("", "empty"),
        ("a\n", "control"),
        (&*"ä".repeat(129), "longer"),
    ] {
        let callback = Callback {
            event: name.to_owned(),
            remember: serde_json::Value::Null,
        };
        let send = ActionCall {
            delivery: Delivery::Send {
                callback: Some(callback),
            },
            ..call("a.b", "{}", None)
        };
        let notify = ActionCall {
            delivery: Delivery::Notify,
            ..call(name, "{}", None)
        };
        for refused in [send, notify] {
            let error = check(&refused).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
    let notify = ActionCall {
        delivery: Delivery::Notify,
        ..call("updated", "{}", None)
    };
    assert!(check(&notify).is_ok());
}

#[test]
fn data_is_an_object_within_its_limit() {
    let error = check(&call("a.b", "[1]", None)).unwrap_err();
    assert!(error.to_string().contains("not a list"), "{error}");
    let fill = |size: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(size - 8));
    assert!(check(&call("a.b", &fill(MAX_DATA), None)).is_ok());
    let error = check(&call("a.b", &fill(MAX_DATA + 1), None)).unwrap_err();
    assert!(error.to_string().contains("16777217 bytes"), "{error}");
}
