//! The store of contexts: records of actors, contexts, messages, runners and jobs, and the lists of messages. Each
//! step is a script, which selects the database of its context: one connection serves all contexts of a server. The
//! content of records is not checked here.

mod acl;
mod commit;
mod moved;
mod read;
mod take;

pub use commit::{Commit, Committed};
pub use read::{Entry, Read};
pub use take::Outbox;

use meshwork_macros::boxed;
use std::ops::Deref;

use meshwork_model::keys::context::NodeKeys;

use crate::broker::Broker;
use crate::conn::Conn;
use crate::error::Error;
use crate::script::{Call, Scripts, Verb};
use crate::session::Session;

/// Greatest number of steps in one [`Commit`]: a message with the greatest number of jobs has a record and an element
/// for each.
pub const MAX_STEPS: usize = 4_000;
/// Greatest number of attempts to draw a free number.
const DRAWS: usize = 16;

/// Fields of a record, in the form from which the model parses records.
pub type RecordFields = Vec<(String, Vec<u8>)>;

/// Database of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Database {
    /// The connection's database: the node's, and that of contexts in the layout `prefix`.
    Node,
    /// A context's own database.
    Own(u32),
}

impl Database {
    fn argument(self) -> String {
        match self {
            Self::Node => String::new(),
            Self::Own(number) => number.to_string(),
        }
    }

    /// Adds the database as the next argument of a script that includes `enter_database.lua`.
    fn entered(self, call: Call<'_>) -> Call<'_> {
        let call = call.arg(self.argument());
        match self {
            Self::Node => call,
            Self::Own(_) => call.undeclared(),
        }
    }
}

/// Verbs over one [`Session`]; cheap to clone. Each takes the keys as arguments.
#[derive(Debug, Clone)]
pub struct ContextStore {
    session: Session<()>,
}

impl Deref for ContextStore {
    type Target = Session<()>;

    fn deref(&self) -> &Session<()> {
        &self.session
    }
}

impl ContextStore {
    /// Creates the verbs over the connection of `broker`, with its clock and its rule for replicas.
    #[must_use]
    pub fn of(broker: &Broker) -> Self {
        let scripts = Scripts::default().named_context();
        let mut session = Session::new(broker.conn.clone(), (), scripts);
        session.clock = broker.clock.clone();
        session.confirmed = broker.confirmed.clone();
        Self { session }
    }

    /// Returns the keys that belong to no context.
    #[must_use]
    pub fn node_keys(&self) -> NodeKeys {
        match self.conn.is_cluster() {
            true => NodeKeys::TAGGED,
            false => NodeKeys::PLAIN,
        }
    }

    /// Replaces the scripts, for tests.
    #[must_use]
    pub fn with_scripts(mut self, scripts: &Scripts) -> Self {
        self.session.scripts = scripts.named_context();
        self
    }

    /// Draws the next number of a kind of objects, whose keys begin with `prefix`; `None` if no number is left. With
    /// [`Broker::acknowledge`] it succeeds when replicas have it: while there are none, no object is stored under a number
    /// that a repeated call would not know.
    ///
    /// # Errors
    /// The call to the server fails, or replicas have not confirmed.
    #[boxed]
    pub async fn draw(
        &self,
        database: Database,
        counter: &str,
        prefix: &str,
    ) -> Result<Option<u32>, Error> {
        for _ in 0..DRAWS {
            let call = self.scripts.call(Verb::ContextDraw).key(counter);
            let call = database.entered(call).arg(prefix);
            let conn = self.conn_for(counter).await?;
            match self.confirmed(counter, conn, call).await? {
                0 => return Ok(None),
                number if number > 0 => return Ok(u32::try_from(number).ok()),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Makes a call that writes keys like this one, and waits until replicas have confirmed it, if there is a rule.
    async fn confirmed(&self, key: &str, conn: &Conn, call: Call<'_>) -> Result<i64, Error> {
        let Some(confirmed) = &self.session.confirmed else {
            return call.run(conn).await;
        };
        let write = async |conn: &Conn| call.run(conn).await;
        let what = || format!("a change of {key} is");
        confirmed.write_at(key, conn, write, what).await
    }

    /// Scans a page of about `many` keys. Returns those that begin with `prefix`, and the cursor of the next page; the
    /// first is at 0, and 0 comes after the last. A key may come twice.
    ///
    /// # Errors
    /// The call to the server fails.
    #[boxed]
    pub async fn scan(
        &self,
        database: Database,
        cursor: u64,
        prefix: &str,
        many: usize,
    ) -> Result<(u64, Vec<Vec<u8>>), Error> {
        // The prefix stands for all keys: in a cluster, it leads to their node.
        let call = self.scripts.call(Verb::ContextScan).key(prefix);
        let call = database.entered(call).arg(cursor);
        let pattern = format!("{}*", glob(prefix));
        let conn = self.conn_for(prefix).await?;
        call.arg(pattern).arg(many).run(conn).await
    }
}

/// Escapes a text for a glob pattern.
fn glob(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Refusals of `SELECT` for a database that the server lacks: beyond its databases, beyond 2^31 - 1 (by the release of the
/// server), and on a cluster.
const NO_DATABASE: [&str; 4] = [
    "DB index is out of range",
    "value must between -2147483648 and 2147483647",
    "invalid DB index",
    "SELECT is not allowed",
];

/// Returns true if the server lacks the database: the number is too high, or the server is a cluster.
#[must_use]
pub fn has_no_database(error: &Error) -> bool {
    let Error::Call { source, .. } = error else {
        return false;
    };
    let text = source.to_string();
    NO_DATABASE.iter().any(|part| text.contains(part))
}
