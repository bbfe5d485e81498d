//! Meshwork's keys with values of another type, in the namespace, in contexts and of the node. Calls that need one fail.

use meshwork_model::keys::context::NodeKeys;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::keys::table::KeyTable;

use super::{Finding, Level, such_as};
use crate::conn::Conn;
use crate::verb::MAX_ITEMS;
use crate::verb::move_away::{MAX_SEARCHED, WrongType, page, wrong_types};

/// Greatest number of keys that are named.
const MOST_NAMED: usize = 20;

/// Checks the types of the keys of the namespace. Keys that this user may not read are skipped.
pub(super) async fn check(conn: &Conn, keys: &JobKeys) -> Vec<Finding> {
    let mut looks = Looks::default();
    looks.look(conn, &keys.table(), &keys.prefix(), None).await;
    looks.into_findings()
}

/// The findings about several tables of keys, and the bound that they share.
#[derive(Default)]
pub(super) struct Looks {
    pub(super) findings: Vec<Finding>,
    looked: usize,
    /// Keys that workers have moved away.
    moved: Vec<String>,
}

impl Looks {
    pub(super) fn into_findings(mut self) -> Vec<Finding> {
        const CHECK: &str = "keys that were moved away";
        const WHY: &str = "another program wrote values of another type over keys of Meshwork, which has found their content again";
        if !self.moved.is_empty() {
            let what = such_as(self.moved.len(), &self.moved);
            let remedy = "find the program, look at the values, and DEL them";
            self.findings
                .push(Finding::bad(Level::Warning, CHECK, what, WHY, remedy));
        }
        self.findings
    }

    /// Looks at the keys that belong to no context.
    pub(super) async fn at_node(&mut self, conn: &Conn, keys: NodeKeys) {
        let table = KeyTable::of_node(keys);
        self.look(conn, &table, &keys.moved("mw:"), None).await;
        self.search(conn, &table, &keys.moved("actor:"), None).await;
    }

    /// Looks at the keys that are one of a kind, and at those with this prefix. `database` is named if the URL names another
    /// one.
    pub(super) async fn look(
        &mut self,
        conn: &Conn,
        table: &KeyTable,
        prefix: &str,
        database: Option<u32>,
    ) {
        let fixed: Vec<_> = table.fixed().map(str::to_owned).collect();
        self.types(conn, table, &fixed, database).await;
        self.search(conn, table, prefix, database).await;
    }

    async fn search(&mut self, conn: &Conn, table: &KeyTable, prefix: &str, database: Option<u32>) {
        let fixed: Vec<_> = table.fixed().collect();
        let mut cursor = 0;
        while self.looked < MAX_SEARCHED && self.findings.len() < MOST_NAMED {
            let Ok((next, mut keys)) = page(conn, prefix, cursor).await else {
                break;
            };
            self.looked += MAX_ITEMS;
            keys.retain(|key| !fixed.contains(&key.as_str()));
            let moved = keys.iter().filter(|key| table.is_moved(key));
            self.moved.extend(moved.cloned());
            self.types(conn, table, &keys, database).await;
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        self.findings.truncate(MOST_NAMED);
    }

    /// Adds a finding for each of these keys with another type.
    async fn types(
        &mut self,
        conn: &Conn,
        table: &KeyTable,
        keys: &[String],
        database: Option<u32>,
    ) {
        const CHECK: &str = "keys";
        const WHY: &str = "calls that need it fail; docs/reliability.md has what it holds";
        let place = database.map_or_else(String::new, |it| format!(" in database {it}"));
        for WrongType { key, found, kinds } in wrong_types(conn, table, keys).await {
            let has_to = kinds.join(" or a ");
            let what = format!("{key}{place} is a {found}, and has to be a {has_to}");
            let remedy =
                format!("RENAME {key} to a name that is not Meshwork's, or DEL {key}{place}");
            let bad = Finding::bad(Level::Problem, CHECK, what, WHY, remedy);
            self.findings.push(bad);
        }
    }
}
