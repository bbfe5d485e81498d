//! Settings for `CONFIG`. Most are facts about the engine that clients query; the others are stored, and have no
//! effect.

use std::collections::BTreeMap;

/// Values of a Redis server of this version, where clients depend on them.
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

/// Settings that cannot be changed, because the engine would not follow them.
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

/// The reason why a setting was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Unknown,
    Fixed,
}

impl Settings {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Checks that a setting can be changed.
    pub(crate) fn check(&self, name: &str) -> Result<(), Refused> {
        match self.0.keys().find(|known| known.eq_ignore_ascii_case(name)) {
            None => Err(Refused::Unknown),
            Some(known) if FIXED.contains(known) => Err(Refused::Fixed),
            Some(_) => Ok(()),
        }
    }

    /// Changes a setting that [`Self::check`] permits.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        let mut known = self.0.iter_mut();
        if let Some((_, held)) = known.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            *held = value;
        }
    }
}
