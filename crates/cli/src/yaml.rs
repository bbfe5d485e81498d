//! Files of settings in YAML, read whole and no larger than a bound. What they mean is where they are asked for.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::de::DeserializeOwned;

/// A file of settings that is larger than this is none.
const MAX_BYTES: u64 = 1024 * 1024;

/// What the reader of YAML adds for those who use it in a program.
const FOR_PROGRAMMERS: &str = ", set DuplicateKeyPolicy in Options if acceptable";

/// What is wrong with a file; who asks says which file it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Invalid(String),
}

/// What the file says.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, YamlError> {
    let mut bytes = Vec::new();
    // Bounded while it is read: a pipe does not say how much will come.
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(YamlError::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|error| YamlError::Invalid(error.to_string()))?;
    parse(&text)
}

/// What the text says.
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
