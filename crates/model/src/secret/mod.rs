//! Secrets in a job's environment: detection of secret variables, and masking of their values in output for people.
//! The module `mask` searches streams of text.
//!
//! A variable is secret by its name. The name is split into words at every character that is no letter or digit; case
//! does not matter. It is secret if it has one of the words `PASSWORD`, `PASSWD`, `PASSPHRASE`, `SECRET`, `TOKEN`,
//! `CREDENTIAL` and `AUTH`, in the singular or the plural. The words `API KEY`, `ACCESS KEY` or `PRIVATE KEY`, next
//! to each other or as one word, make it secret too. So `DB_PASSWORD`, `github-token` and `apikey` are secret,
//! `AUTHOR`, `TOKENIZER` and `KEYBOARD` are not.
//!
//! Values shorter than [`MIN_VALUE`] bytes are not masked in a script's output: they occur in many lines by chance,
//! and the masks would reveal them.

mod mask;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

pub use mask::{Masker, Secrets};

/// Replacement of a secret.
pub const MASK: &str = "***";
/// Least length of a masked value, in bytes.
pub const MIN_VALUE: usize = 4;

/// Words that make a name secret.
const WORDS: [&str; 10] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "TOKEN",
    "CREDENTIAL",
    "AUTH",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
];
/// Words that make a name secret before `KEY`.
const KEYS: [&str; 3] = ["API", "ACCESS", "PRIVATE"];

/// Returns whether a variable of this name is secret.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    let words: Vec<_> = name.split(|c: char| !c.is_alphanumeric()).collect();
    let singular = |word: &str| word.strip_suffix('S').unwrap_or(word).to_owned();
    words
        .iter()
        .any(|word| WORDS.contains(word) || WORDS.contains(&singular(word).as_str()))
        || words
            .windows(2)
            .any(|pair| KEYS.contains(&pair[0]) && singular(pair[1]) == "KEY")
}

/// The environment of a script. Its `Debug` shows no secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvVars(BTreeMap<String, String>);

impl EnvVars {
    /// Returns each variable with masked secrets.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| {
            let shown = if is_secret(name) { MASK } else { value };
            (name.as_str(), shown)
        })
    }

    /// Returns the secrets to mask in the output of a script with this environment.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        let secret = self.0.iter().filter(|(name, _)| is_secret(name));
        Secrets::new(secret.map(|(_, value)| value.as_str()))
    }
}

impl fmt::Debug for EnvVars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.shown()).finish()
    }
}

impl Deref for EnvVars {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for EnvVars {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl From<BTreeMap<String, String>> for EnvVars {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }
}

impl FromIterator<(String, String)> for EnvVars {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a EnvVars {
    type Item = (&'a String, &'a String);
    type IntoIter = std::collections::btree_map::Iter<'a, String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Secrets {
    /// Returns the text with masked secrets.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Secrets are text, and so are the parts between them.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Returns the bytes with masked secrets.
    #[must_use]
    pub fn mask_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let (mut masker, mut out) = (Masker::default(), Vec::with_capacity(bytes.len()));
        masker.push(self, bytes, &mut out);
        masker.finish(&mut out);
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_by_its_words() {
        for name in [
            "PASSWORD",
            "db_password",
            "DB_PASSWORDS",
            "MYSQL_PASSWD",
            "github-token",
            "API_TOKENS",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "api.keys",
            "apikey",
            "SSH_PRIVATE_KEY",
            "GOOGLE_CREDENTIALS",
            "PROXY_AUTH",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "",
            "AUTHOR",
            "TOKENIZER",
            "KEYBOARD",
            "KEY",
            "PUBLIC_KEY",
            "API",
            "KEY_API",
            "PATH",
            "PASS",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn an_environment_shows_names_but_no_secrets() {
        let pairs = [("CITY", "Ghent"), ("DB_PASSWORD", "hunter22")];
        let env: EnvVars = pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        assert_eq!(
            format!("{env:?}"),
            r#"{"CITY": "Ghent", "DB_PASSWORD": "***"}"#
        );
        assert_eq!(env.secrets().mask("in Ghent: hunter22!"), "in Ghent: ***!");
        assert!(!format!("{:?}", env.secrets()).contains("hunter"));
    }
}
