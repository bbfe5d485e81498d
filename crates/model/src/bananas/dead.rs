//! Records that replace unreadable ones, in the form of Bananas' own worker.

use super::Corrupt;

/// Number of bytes that are kept of an unreadable record.
const KEPT: usize = 500;

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the record of an id that has none.
#[must_use]
pub fn missing(id: &str) -> String {
    let error = "Job data not found (corrupted reference)";
    format!("{{\"error\":\"{error}\",\"id\":{}}}", quoted(id))
}

/// Returns the record of an id whose record cannot be read.
#[must_use]
pub fn corrupted(id: &str, bytes: &[u8], why: &Corrupt) -> String {
    let kept = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT)]);
    let error = format!("Failed to unmarshal job: {why}");
    format!(
        "{{\"corrupted_data\":{},\"error\":{},\"id\":{}}}",
        quoted(&kept),
        quoted(&error),
        quoted(id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_bananas_writes_them() {
        let expected = r#"{"error":"Job data not found (corrupted reference)","id":"missing-1"}"#;
        assert_eq!(missing("missing-1"), expected);
        let is = corrupted("bad-1", b"{not json", &Corrupt::NotText);
        let expected = r#"{"corrupted_data":"{not json","error":"Failed to unmarshal job: it is no UTF-8","id":"bad-1"}"#;
        assert_eq!(is, expected);
    }

    #[test]
    fn a_part_of_it_is_kept_wherever_that_ends() {
        let bytes = "ä".repeat(400).into_bytes();
        let is = corrupted("1", &bytes[1..], &Corrupt::NotText);
        assert!(is.len() < 700 && serde_json::from_str::<serde_json::Value>(&is).is_ok());
    }
}
