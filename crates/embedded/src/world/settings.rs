//! The settings that `CONFIG` shows. Most are facts about the engine that clients ask for; the
//! others are kept for whoever sets and reads them, and change nothing.

use std::collections::BTreeMap;

/// What a Redis server of this version says, where a client decides something by it.
const KNOWN: [(&str, &str); 16] = [
    ("appendfsync", "everysec"),
    ("appendonly", "no"),
    ("bind", ""),
    ("databases", "16"),
    ("dir", "."),
    ("hash-max-listpack-entries", "512"),
    ("lua-time-limit", "5000"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("notify-keyspace-events", ""),
    ("port", "0"),
    ("proto-max-bulk-len", "536870912"),
    ("requirepass", ""),
    ("save", ""),
    ("timeout", "0"),
];

/// What cannot be set: the engine would not do as it says.
const FIXED: [&str; 8] = [
    "appendonly",
    "bind",
    "databases",
    "dir",
    "maxmemory",
    "maxmemory-policy",
    "port",
    "requirepass",
];

/// The settings by name.
pub(crate) struct Settings(BTreeMap<&'static str, String>);

impl Default for Settings {
    fn default() -> Self {
        Self(
            KNOWN
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        )
    }
}

/// Why a setting was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Unknown,
    Fixed,
}

impl Settings {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Whether a setting could be set.
    pub(crate) fn check(&self, name: &str) -> Result<(), Refused> {
        match self.0.keys().find(|known| known.eq_ignore_ascii_case(name)) {
            None => Err(Refused::Unknown),
            Some(known) if FIXED.contains(known) => Err(Refused::Fixed),
            Some(_) => Ok(()),
        }
    }

    /// Sets what [`Self::check`] allows.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        let mut known = self.0.iter_mut();
        if let Some((_, held)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            *held = value;
        }
    }
}
