//! Accepted envelopes, and every refusal by name.

use proptest::prelude::*;

use super::*;
use crate::actor_key::SecretKey;
use crate::context::{Actor, ContextJob, Message, MessageStatus, MessageType};
use crate::keys::context::{JobKey, MessageKey};

const NOW: u64 = 1_700_000_000;
const HERE: NodeId = NodeId([1; 32]);
const ALL: &Receiver<'static> = &Receiver {
    node: HERE,
    context: SEVEN,
    types: &PayloadType::ALL,
};
const SEVEN: ContextId = match ContextId::new(7) {
    Some(id) => id,
    None => panic!(),
};

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed(&[number; 32])
}

fn now() -> u32 {
    u32::try_from(NOW).unwrap()
}

/// Actor 12 of this node.
fn ann() -> Actor {
    Actor::new(ActorId(12), key(1).public(), 0)
}

fn keyring() -> Keyring {
    let ben = Actor::new(ActorId(13), key(2).public(), 0);
    Keyring::of(&[ann(), ben])
}

fn message() -> Message {
    let key = MessageKey::new(12, 101);
    let message = Message::new(SEVEN, key, MessageType::Job, "please", now());
    let v = "v".parse().unwrap();
    let job = ContextJob::new(SEVEN, JobKey::new(12, 2001), v, "println(1)", now());
    Message {
        job: vec![job],
        ..message
    }
}

fn body() -> Body {
    let src = Source {
        node: NodeId([2; 32]),
        context: ContextId::new(3).unwrap(),
        actor: key(1).public().into(),
    };
    let dst = Destination {
        node: HERE,
        context: SEVEN,
        actor: None,
        topic: None,
    };
    Body::of(&message(), Nonce([9; 16]), src, dst)
}

fn sealed(body: &Body) -> String {
    body.seal(&[&key(1)]).unwrap()
}

fn opened(envelope: &str) -> Result<Opened, Refusal> {
    open(envelope.as_bytes(), ALL, &keyring(), NOW)
}

fn code(envelope: &str) -> &'static str {
    opened(envelope).unwrap_err().code()
}

/// A body of any text, signed as it is.
fn signed(payload_type: PayloadType, body: &str) -> String {
    dsse::seal(payload_type, body.as_bytes(), &[&key(1)]).unwrap()
}

#[test]
fn what_was_said_comes_back() {
    let opened = opened(&sealed(&body())).unwrap();
    assert_eq!(opened.actor, ActorId(12));
    assert_eq!(opened.body, body());
    let jobs = opened.body.jobs.into_iter();
    let jobs: Result<Vec<_>, _> = jobs.map(|job| ContextJob::from_json(SEVEN, job)).collect();
    assert_eq!(jobs, Ok(message().job));
}

#[test]
fn the_form_is_that_of_the_standard() {
    let json: serde_json::Value = serde_json::from_str(&sealed(&body())).unwrap();
    assert_eq!(json["payloadType"], "application/vnd.meshwork.job.v1+json");
    let signature = &json["signatures"][0];
    assert_eq!(signature["keyid"], key(1).public().key_id());
    let payload = json["payload"].as_str().unwrap();
    let payload = data_encoding::BASE64.decode(payload.as_bytes()).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(body["v"], 1);
    assert_eq!(body["kind"], "job");
    assert_eq!(body["id"], "12:101");
    assert_eq!(body["nonce"], "09".repeat(16));
    assert_eq!(body["src"]["actor"], key(1).public().to_string());
    assert_eq!(body["dst"]["context"], 7);
    assert_eq!(body["jobs"][0]["caller_id"], 12);
}

#[test]
fn no_flipped_bit_is_accepted() {
    const ENVELOPES: u8 = 100;
    const FLIPS: usize = 100;
    let keys = keyring();
    let mut flips = 0;
    for number in 0..ENVELOPES {
        let body = Body {
            nonce: Nonce([number; 16]),
            ..body()
        };
        let good = sealed(&body).into_bytes();
        assert!(open(&good, ALL, &keys, NOW).is_ok());
        let bits = good.len() * 8;
        // Each envelope has other bits flipped, and together they go through all of them.
        for flip in 0..FLIPS {
            let bit = (usize::from(number) + flip * usize::from(ENVELOPES)) % bits;
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let read = open(&bad, ALL, &keys, NOW);
            assert!(
                read.is_err(),
                "bit {bit}: {}",
                String::from_utf8_lossy(&bad)
            );
            flips += 1;
        }
    }
    assert_eq!(flips, 10_000);
}

#[test]
fn every_bit_counts() {
    let good = sealed(&body()).into_bytes();
    let keys = keyring();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let read = open(&bad, ALL, &keys, NOW);
        assert!(
            read.is_err(),
            "bit {bit}: {}",
            String::from_utf8_lossy(&bad)
        );
    }
}

#[test]
fn another_body_or_type_is_tampered_with() {
    let good = sealed(&body());
    let as_ack = good.replace("meshwork.job", "meshwork.ack");
    assert_eq!(code(&as_ack), "tampered");
    let other = Body { seq: 1, ..body() };
    let payload = |text: &str| text.split('"').nth(3).unwrap().to_owned();
    let swapped = good.replace(&payload(&good), &payload(&sealed(&other)));
    assert_ne!(swapped, good);
    assert_eq!(code(&swapped), "tampered");
}

#[test]
fn another_key_is_tampered_with_or_unknown() {
    let (ann, ben, eve) = (key(1), key(2), key(3));
    // The claim of one key on the signature of another.
    let by_ben = body().seal(&[&ben]).unwrap();
    let claimed = by_ben.replace(&ben.public().key_id(), &ann.public().key_id());
    assert_eq!(code(&claimed), "tampered");
    // A trusted key whose owner says that he is another.
    assert_eq!(code(&by_ben), "wrong_actor");
    // A stranger, whatever he says about himself.
    let by_eve = body().seal(&[&eve]).unwrap();
    assert_eq!(code(&by_eve), "unknown_key");
    let own = Body {
        src: Source {
            actor: eve.public().into(),
            ..body().src
        },
        ..body()
    };
    assert_eq!(code(&own.seal(&[&eve]).unwrap()), "unknown_key");
    let without = sealed(&body()).replace(&ann.public().key_id(), "");
    assert_eq!(code(&without), "unknown_key");
}

#[test]
fn every_signature_has_to_be_good() {
    let two = |one: u8, other: u8| code(&body().seal(&[&key(one), &key(other)]).unwrap());
    assert_eq!(two(1, 3), "unknown_key");
    assert_eq!(two(1, 2), "wrong_actor");
    let good = body().seal(&[&key(1), &key(1)]).unwrap();
    assert!(opened(&good).is_ok());
    let last = good.rfind("\"sig\":\"").unwrap() + 7;
    let mut bad = good.into_bytes();
    bad[last] = if bad[last] == b'A' { b'B' } else { b'A' };
    assert_eq!(code(std::str::from_utf8(&bad).unwrap()), "tampered");
}

#[test]
fn revoked_and_replaced_keys_count_no_more() {
    let open_with = |actor: &Actor, now: u64| {
        let read = open(sealed(&body()).as_bytes(), ALL, &Keyring::of([actor]), now);
        read.map(|opened| opened.actor)
            .map_err(|refusal| refusal.code())
    };
    let mut revoked = ann();
    revoked.revoke(now());
    assert_eq!(open_with(&revoked, NOW), Err("revoked_key"));
    let mut rotated = ann();
    rotated.rotate(key(4).public(), now() - 100);
    assert_eq!(open_with(&rotated, NOW), Ok(ActorId(12)), "both keys count");
    let by_both = body().seal(&[&key(1), &key(4)]).unwrap();
    let read = open(by_both.as_bytes(), ALL, &Keyring::of([&rotated]), NOW);
    assert!(read.is_ok());
    let mut long_ago = ann();
    long_ago.rotate(key(4).public(), now() - 8 * 24 * 3600);
    assert_eq!(open_with(&long_ago, NOW), Err("revoked_key"));
    rotated.revoke(now() - 1);
    assert_eq!(open_with(&rotated, NOW), Err("revoked_key"));
}

#[test]
fn each_type_is_taken_where_it_is_wanted() {
    let chats = Receiver {
        types: &[PayloadType::Message],
        ..*ALL
    };
    let read = open(sealed(&body()).as_bytes(), &chats, &keyring(), NOW);
    assert_eq!(read, Err(Refusal::WrongType));
    let unknown = sealed(&body()).replace("meshwork.job.v1", "meshwork.job.v2");
    assert_eq!(code(&unknown), "bad_type");
    // Rightly signed, but as something else.
    let json = serde_json::to_string(&body()).unwrap();
    assert_eq!(code(&signed(PayloadType::Ack, &json)), "bad_type");
    assert!(opened(&signed(PayloadType::Job, &json)).is_ok());
}

#[test]
fn another_destination_is_refused() {
    let to = |node, context| {
        let dst = Destination {
            node,
            context,
            ..body().dst
        };
        code(&sealed(&Body { dst, ..body() }))
    };
    assert_eq!(to(NodeId([3; 32]), SEVEN), "wrong_node");
    assert_eq!(to(HERE, ContextId::new(8).unwrap()), "wrong_context");
}

#[test]
fn time_is_looked_at_with_some_room() {
    let lives = |created_at, expires_at| {
        let read = opened(&sealed(&Body {
            created_at,
            expires_at,
            ..body()
        }));
        read.map(|_| ()).map_err(|refusal| refusal.code())
    };
    assert_eq!(lives(NOW - 1000, NOW - SKEW), Ok(()));
    assert_eq!(lives(NOW - 1000, NOW - SKEW - 1), Err("expired"));
    assert_eq!(lives(NOW + SKEW, NOW + 1000), Ok(()));
    assert_eq!(lives(NOW + SKEW + 1, NOW + 1000), Err("future"));
    assert_eq!(lives(NOW, NOW + MAX_LIFE), Ok(()));
    assert_eq!(lives(NOW, NOW + MAX_LIFE + 1), Err("malformed"));
    assert_eq!(lives(NOW, NOW - 1), Err("malformed"));
    assert_eq!(lives(0, 1 << 53), Err("malformed"));
}

#[test]
fn sizes_are_looked_at_first() {
    let large = " ".repeat(MAX_ENVELOPE + 1);
    assert_eq!(code(&large), "too_large");
    let body = Body {
        message: "x".repeat(MAX_BODY),
        ..body()
    };
    assert_eq!(body.seal(&[&key(1)]).unwrap_err().code(), "too_large");
    let payload = data_encoding::BASE64.encode(&vec![b' '; MAX_BODY + 1]);
    let large = format!(
        r#"{{"payloadType":"{}","payload":"{payload}","signatures":[]}}"#,
        PayloadType::Job.as_str()
    );
    assert_eq!(code(&large), "too_large");
    let largest = Body {
        message: "x".repeat(MAX_BODY - 2000),
        ..self::body()
    };
    assert!(opened(&sealed(&largest)).is_ok());
}

#[test]
fn other_forms_are_refused() {
    let good = sealed(&body());
    let head = "{\"payload\"";
    let more = good.replacen(head, "{\"more\":[1],\"payload\"", 1);
    assert!(opened(&more).is_ok(), "unknown fields are ignored");
    let twice = good.replacen(head, "{\"payload\":\"\",\"payload\"", 1);
    let signature = good.split_once("\"signatures\":[").unwrap().1;
    let signature = signature.trim_end_matches("]}");
    let five = good.replace(signature, &[signature; 5].join(","));
    let no_sig = good.replace(signature, "");
    for bad in ["", "[]", "{}", "null", &twice, &five, &no_sig, &good[1..]] {
        assert_eq!(code(bad), "malformed", "{bad}");
    }
    let url_safe = good.replace("==", "");
    assert_eq!(code(&url_safe), "malformed");
    assert_eq!(code(&body().seal(&[]).unwrap_or_default()), "malformed");
}

#[test]
fn bodies_of_other_forms_are_refused_though_they_are_signed() {
    let json = serde_json::to_string(&body()).unwrap();
    let text = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        signed(PayloadType::Job, &json.replacen(from, to, 1))
    };
    for (from, to) in [
        ("\"v\":1", "\"v\":2"),
        ("\"v\":1", "\"v\":1,\"v\":1"),
        ("\"seq\":0", "\"seq\":0.5"),
        ("\"seq\":0", "\"seq\":9007199254740993"),
        ("\"seq\":0", "\"seq\":-1"),
        ("\"context\":7", "\"context\":0"),
        ("\"id\":\"12:101\"", "\"id\":\"12\""),
        ("\"kind\":\"job\"", "\"kind\":\"order\""),
        ("\"nonce\":\"09", "\"nonce\":\""),
        ("\"created_at\"", "\"made_at\""),
        ("\"jobs\":[", "\"jobs\":[1,"),
        ("{", "["),
    ] {
        assert_eq!(code(&text(from, to)), "malformed", "{to}");
    }
    let more = opened(&text("\"v\":1", "\"v\":1,\"later\":true"));
    assert!(more.is_ok(), "{more:?}");
}

#[test]
fn a_stored_message_must_say_what_its_envelope_says() {
    let (body, stored) = (body(), message());
    assert_eq!(body.difference(&stored, None), None);
    let later = Message {
        status: MessageStatus::Acknowledged,
        target_context: Some(SEVEN),
        target_node: Some(HERE),
        updated_at: 5,
        ..stored.clone()
    };
    assert_eq!(body.difference(&later, None), None);
    // A plain client leaves out what has its default.
    let mut short = Body {
        timeout: None,
        timeout_ack: None,
        timeout_result: None,
        format: None,
        ..body.clone()
    };
    short.jobs[0].retain(|name, value| {
        let is_default = value.as_array().is_some_and(Vec::is_empty);
        name != "context_id" && !is_default
    });
    assert_eq!(short.difference(&stored, None), None);
    let mut other_job = stored.clone();
    other_job.job[0].script.push('2');
    assert_eq!(body.difference(&other_job, None), Some("job"));
    let other = Message {
        target_context: ContextId::new(8),
        ..stored.clone()
    };
    assert_eq!(body.difference(&other, None), Some("target_context"));
    let other = Message {
        message: "now".to_owned(),
        ..stored
    };
    assert_eq!(body.difference(&other, None), Some("message"));
}

#[test]
fn the_answered_message_and_the_status_of_a_result_are_signed() {
    let result = Message {
        status: MessageStatus::Processed,
        ..message()
    };
    let (src, dst, re) = (body().src, body().dst, MessageKey::new(1, 1));
    let body = Body {
        re: Some(re),
        ..Body::of(&result, Nonce([9; 16]), src, dst)
    };
    let json = serde_json::to_string(&body).unwrap();
    assert!(json.contains("\"re\":\"1:1\""), "{json}");
    assert_eq!(body.difference(&result, Some(re)), None);
    assert_eq!(body.difference(&result, None), Some("mw_re"));
    let other = Some(MessageKey::new(1, 2));
    assert_eq!(body.difference(&result, other), Some("mw_re"));
    let failed = Message {
        status: MessageStatus::Error,
        ..result
    };
    assert_eq!(body.difference(&failed, Some(re)), Some("status"));
    let unanswered = Body::of(&message(), Nonce([9; 16]), body.src, body.dst);
    assert_eq!(unanswered.difference(&message(), Some(re)), Some("mw_re"));
}

#[test]
fn no_refusal_repeats_what_the_envelope_says() {
    let json = serde_json::to_string(&body()).unwrap();
    let bad = signed(
        PayloadType::Job,
        &json.replace("\"v\":1", "\"v\":1,\"seq\":\"hunter22\""),
    );
    let said = opened(&bad).unwrap_err().to_string();
    assert!(!said.contains("hunter22"), "{said}");
}

/// Changes the bytes at a place: a byte, or up to 16, are replaced, removed, repeated, moved or cut off.
fn change(bytes: &mut Vec<u8>, (kind, at, to, byte): (u8, usize, usize, u8)) {
    if bytes.is_empty() {
        return;
    }
    let at = at % bytes.len();
    let end = (at + usize::from(byte % 16) + 1).min(bytes.len());
    let part = bytes[at..end].to_vec();
    match kind {
        0 => bytes[at] = byte,
        1 => bytes.insert(at, byte),
        2 => drop(bytes.drain(at..end)),
        3 => drop(bytes.splice(at..at, part)),
        4 => {
            bytes.drain(at..end);
            let to = to % (bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        5 => bytes.truncate(at),
        _ => {
            let word = WORDS[to % WORDS.len()];
            bytes.splice(at..at, word.bytes());
        }
    }
}

/// Parts of envelopes, and what confuses decoders.
const WORDS: [&str; 12] = [
    "\"payload\":\"\",",
    "\"signatures\":[],",
    "\"keyid\":",
    "[[[[[[[[",
    "{\"a\":",
    "\\u0000",
    "\\ud800",
    "1e999",
    "=",
    " ",
    "\n",
    "null",
];

proptest! {
    #[test]
    fn a_changed_envelope_is_refused_or_says_the_same(
        changes in proptest::collection::vec((0..7u8, any::<usize>(), any::<usize>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sealed(&body()).into_bytes();
        for each in changes {
            change(&mut bytes, each);
        }
        // Spaces between fields, for example, change nothing.
        if let Ok(opened) = open(&bytes, ALL, &keyring(), NOW) {
            prop_assert_eq!(opened.body, body());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(open(&bytes, ALL, &keyring(), NOW).is_err());
    }

    #[test]
    fn no_signed_json_panics(
        field in "v|kind|id|nonce|src|dst|created_at|expires_at|seq|jobs|re|format|status|blobs",
        value in "[0-9]{1,20}|\"[a-z0-9:]{0,40}\"|\\[\\]|\\{\\}|null|true|\\[\\{\\}\\]",
    ) {
        let mut json = serde_json::to_value(body()).unwrap();
        json[field] = serde_json::from_str(&value).unwrap_or_default();
        // Only what is read as the same comes through.
        if let Ok(opened) = opened(&signed(PayloadType::Job, &json.to_string())) {
            prop_assert_eq!(opened.actor, ActorId(12));
        }
    }
}
