//! DSSE 1.0.2: a body, its type, and signatures over both, as JSON.

use data_encoding::BASE64;
use serde::Serialize;
use serde_json::Value;

use super::json::strict;
use super::{MAX_BODY, MAX_ENVELOPE, MAX_SIGNATURES, PayloadType, Refusal};
use crate::actor_key::{SIGNATURE_BYTES, SecretKey};

/// Returns the bytes to sign: the type and the body with their lengths, so that neither can be read as a part of the
/// other.
#[must_use]
pub fn pae(payload_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A signature, and the id of its key as a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) key_id: String,
    pub(super) signature: [u8; SIGNATURE_BYTES],
}

/// A parsed envelope, not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) payload_type: PayloadType,
    pub(super) body: Vec<u8>,
    pub(super) signatures: Vec<Signed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    payload: String,
    payload_type: &'a str,
    signatures: Vec<WrittenSignature>,
}

#[derive(Serialize)]
struct WrittenSignature {
    keyid: String,
    sig: String,
}

/// Signs a body with each key and writes the envelope.
pub(super) fn seal(
    payload_type: PayloadType,
    body: &[u8],
    keys: &[&SecretKey],
) -> Result<String, Refusal> {
    if body.len() > MAX_BODY {
        return Err(Refusal::Oversized {
            what: "body",
            len: body.len(),
            most: MAX_BODY,
        });
    }
    if keys.is_empty() || keys.len() > MAX_SIGNATURES {
        return Err(malformed(format!("it has {} signatures", keys.len())));
    }
    let signed = pae(payload_type.as_str(), body);
    let signature = |key: &&SecretKey| WrittenSignature {
        keyid: key.public().key_id(),
        sig: BASE64.encode(&key.sign(&signed)),
    };
    let written = Written {
        payload: BASE64.encode(body),
        payload_type: payload_type.as_str(),
        signatures: keys.iter().map(signature).collect(),
    };
    serde_json::to_string(&written).map_err(|_| malformed("it cannot be written".to_owned()))
}

/// Parses an envelope. The type is checked first, and no size exceeds its limit. Unknown fields are ignored; base64
/// is the standard one in canonical form.
pub(super) fn parse(text: &[u8]) -> Result<Parts, Refusal> {
    if text.len() > MAX_ENVELOPE {
        return Err(Refusal::Oversized {
            what: "envelope",
            len: text.len(),
            most: MAX_ENVELOPE,
        });
    }
    let json = strict(text).map_err(|at| malformed(format!("it is no JSON: {at}")))?;
    let payload_type = json.get("payloadType").and_then(Value::as_str);
    let payload_type = payload_type.ok_or_else(|| lacks("payloadType"))?;
    let payload_type = PayloadType::find(payload_type)?;
    let payload = json.get("payload").and_then(Value::as_str);
    let payload = payload.ok_or_else(|| lacks("payload"))?;
    let body = base64(payload, "payload")?;
    if body.len() > MAX_BODY {
        return Err(Refusal::Oversized {
            what: "body",
            len: body.len(),
            most: MAX_BODY,
        });
    }
    let signatures = json.get("signatures").and_then(Value::as_array);
    let signatures = signatures.ok_or_else(|| lacks("signatures"))?;
    if signatures.is_empty() || signatures.len() > MAX_SIGNATURES {
        let count = signatures.len();
        return Err(malformed(format!(
            "it has {count} signatures: 1 to {MAX_SIGNATURES} are allowed"
        )));
    }
    let signatures = signatures.iter().map(signature).collect::<Result<_, _>>()?;
    Ok(Parts {
        payload_type,
        body,
        signatures,
    })
}

fn signature(json: &Value) -> Result<Signed, Refusal> {
    let text = |name| json.get(name).and_then(Value::as_str);
    let bytes = base64(text("sig").ok_or_else(|| lacks("sig"))?, "sig")?;
    let signature = bytes.try_into().map_err(|_| {
        malformed(format!(
            "a signature has other than {SIGNATURE_BYTES} bytes"
        ))
    })?;
    Ok(Signed {
        key_id: text("keyid").unwrap_or_default().to_owned(),
        signature,
    })
}

fn base64(text: &str, what: &'static str) -> Result<Vec<u8>, Refusal> {
    let decoded = BASE64.decode(text.as_bytes());
    decoded.map_err(|_| malformed(format!("its `{what}` is no base64")))
}

fn malformed(fault: String) -> Refusal {
    Refusal::Malformed { fault }
}

fn lacks(field: &'static str) -> Refusal {
    malformed(format!("it lacks `{field}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_specification() {
        let signed = pae("http://example.com/HelloWorld", b"hello world");
        assert_eq!(
            signed,
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
        // Lengths are of bytes.
        assert_eq!(pae("ä", b"x"), "DSSEv1 2 ä 1 x".as_bytes());
    }

    #[test]
    fn no_part_can_pass_for_another() {
        assert_ne!(pae("a 1 b", b"c"), pae("a", b"1 b 1 c"));
        assert_ne!(pae("a", b"b 1 c"), pae("a 5 b", b"c"));
    }
}
