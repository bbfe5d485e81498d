//! Settings files in YAML, read whole and with a size limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

/// Greatest size of a settings file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Advice of the YAML parser for programmers, which is cut from messages.
const FOR_PROGRAMMERS: &str = ", set DuplicateKeyPolicy in Options if acceptable";

/// Errors of settings files; callers add the path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Invalid(String),
}

/// Reads a file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, YamlError> {
    let mut bytes = Vec::new();
    // Bounded while reading: the length of a pipe is unknown.
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(YamlError::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|error| YamlError::Invalid(error.to_string()))?;
    parse(&text)
}

/// Parses a text.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    let nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(nothing) {
        return Err(YamlError::Invalid("it says nothing".to_owned()));
    }
    serde_saphyr::from_str(text)
        .map_err(|error| YamlError::Invalid(error.to_string().replace(FOR_PROGRAMMERS, "")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_wrong_is_said_for_who_wrote_the_file() {
        for (text, says) in [("", "it says nothing"), ("# later\n\n", "it says nothing")] {
            let error = parse::<BTreeMap<String, u32>>(text).unwrap_err();
            assert_eq!(error.to_string(), says);
        }
        let error = parse::<BTreeMap<String, u32>>("a: 1\na: 2\n").unwrap_err();
        let said = error.to_string();
        assert!(said.contains("duplicate mapping key"), "{said}");
        assert!(!said.contains("Policy"), "{said}");
    }
}
