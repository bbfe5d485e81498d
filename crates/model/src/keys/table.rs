//! The table of keys: each key that Meshwork writes, or the beginning of the keys of a kind, with the types of its value.
//! `docs/reliability.md` has the same rows with what the keys hold, and what happens if one is lost.

use super::context::NodeKeys;

/// Types of a value, as the command `TYPE` names them.
pub type Kinds = &'static [&'static str];

pub(super) const ANY: Kinds = &["hash", "list", "set", "stream", "string", "zset"];
pub(super) const HASH: Kinds = &["hash"];
pub(super) const LIST: Kinds = &["list"];
pub(super) const SET: Kinds = &["set"];
pub(super) const STREAM: Kinds = &["stream"];
pub(super) const STRING: Kinds = &["string"];
pub(super) const SORTED: Kinds = &["zset"];

/// A row: a key, or the beginning of the keys of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The key. If it ends with a colon, all keys that begin with it are meant.
    pub key: String,
    /// Types that a value may have.
    pub kinds: Kinds,
    /// True if what it holds is found again by other records, or only counts. A value of another type is moved away.
    pub is_found_again: bool,
}

/// The rows of a namespace, of a context, or of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTable(Vec<KeyRow>);

impl KeyTable {
    /// Returns the rows of the keys that belong to no context.
    #[must_use]
    pub fn of_node(keys: NodeKeys) -> Self {
        let rows = NODE.iter();
        Self::new(rows.map(|(name, kinds)| (keys.moved(name), *kinds, false)))
    }

    pub(super) fn new(rows: impl IntoIterator<Item = (String, Kinds, bool)>) -> Self {
        let row = |(key, kinds, is_found_again)| KeyRow {
            key,
            kinds,
            is_found_again,
        };
        Self(rows.into_iter().map(row).collect())
    }

    /// Returns all rows.
    #[must_use]
    pub fn rows(&self) -> &[KeyRow] {
        &self.0
    }

    /// Returns the keys that are one of a kind.
    pub fn fixed(&self) -> impl Iterator<Item = &str> {
        let keys = self.0.iter().map(|row| row.key.as_str());
        keys.filter(|key| !key.ends_with(':'))
    }

    /// Returns the row of a key: that with the longest name; `None` for keys that are not Meshwork's.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&KeyRow> {
        let named = self.0.iter().filter(|row| {
            key == row.key || row.key.ends_with(':') && key.starts_with(row.key.as_str())
        });
        named.max_by_key(|row| row.key.len())
    }

    /// Returns the types that a key has to have if `kind` is none of them.
    #[must_use]
    pub fn expected(&self, key: &str, kind: &str) -> Option<Kinds> {
        let kinds = self.row(key)?.kinds;
        (kind != "none" && !kinds.contains(&kind)).then_some(kinds)
    }

    /// Returns true for a key whose content is found again.
    #[must_use]
    pub fn is_found_again(&self, key: &str) -> bool {
        self.row(key).is_some_and(|row| row.is_found_again)
    }

    /// Returns true for a value of another type that was moved away.
    #[must_use]
    pub fn is_moved(&self, key: &str) -> bool {
        self.row(key).is_some_and(|row| row.kinds == ANY)
    }

    /// Returns the names that keys of a kind may have whose other part is that of one of these keys.
    #[must_use]
    pub fn related<'a>(&'a self, keys: impl Iterator<Item = &'a str>) -> Vec<String> {
        let parts: Vec<_> = keys
            .filter_map(|key| key.strip_prefix(self.row(key)?.key.as_str()))
            .filter(|part| !part.is_empty())
            .collect();
        let kinds = self.0.iter().map(|row| row.key.as_str());
        let kinds = kinds.filter(|key| key.ends_with(':'));
        kinds
            .flat_map(|kind| parts.iter().map(move |part| format!("{kind}{part}")))
            .collect()
    }
}

/// Keys of a context beside those of jobs, as in its layout `db`.
pub(super) const CONTEXT: [(&str, Kinds); 27] = [
    ("context:", HASH),
    ("flow:", HASH),
    ("message:", HASH),
    ("runner:", HASH),
    ("job:", HASH),
    ("msg_in", LIST),
    ("msg_in:", LIST),
    ("msg_out", LIST),
    ("msg_out_coordinator", LIST),
    ("mw:answer:", STRING),
    ("mw:audit", STREAM),
    ("mw:deployed", SORTED),
    ("mw:deployed:", HASH),
    // The plan is a string, the names and nodes are hashes.
    ("mw:flow:", &["hash", "string"]),
    ("mw:flows", SORTED),
    ("mw:flows-due", SORTED),
    ("mw:gates", SET),
    ("mw:id:", STRING),
    ("mw:index:", SORTED),
    ("mw:letters", SORTED),
    ("mw:messages", SORTED),
    ("mw:open", SORTED),
    ("mw:origin:", STRING),
    ("mw:outbound", SORTED),
    ("mw:refused", HASH),
    ("mw:runners-seen", HASH),
    ("mw:sent", SORTED),
];

/// Keys of the node, as on a single server.
const NODE: [(&str, Kinds); 15] = [
    ("actor:", HASH),
    ("mw:actors", HASH),
    ("mw:audit", STREAM),
    ("mw:contexts", HASH),
    ("mw:id:", STRING),
    ("mw:mesh", HASH),
    ("mw:mesh-refused", HASH),
    ("mw:moving", HASH),
    ("mw:node", HASH),
    ("mw:peer:", HASH),
    ("mw:peer-in:", SORTED),
    ("mw:peer-out:", SORTED),
    ("mw:peers", HASH),
    ("mw:refused", HASH),
    ("mw:spreads", HASH),
];
