//! Errors of the outbox.

use std::path::PathBuf;

use crate::database::{self, Dialect};

/// Error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database refused a call, or the connection broke.
    #[error("the database: {0}")]
    Database(#[from] sqlx::Error),
    /// The job is invalid, or the store refused a call.
    #[error(transparent)]
    Meshwork(#[from] meshwork::Error),
    /// A row is none that a relay can move.
    #[error("{0}")]
    Row(String),
    /// The tables do not exist.
    #[error(
        "the database has no table {table}: create it with `meshwork outbox migrate` or `Outbox::migrate`"
    )]
    NoTable {
        /// Name of the table.
        table: String,
    },
    /// The file of SQLite was replaced or removed while a relay ran: its connections have the old one.
    #[error("the file {} was replaced or removed while the relay ran: start the relay again", file.display())]
    FileReplaced {
        /// The file.
        file: PathBuf,
    },
    /// The client is of a context, whose ids of jobs are numbers of the store.
    #[error("an outbox has no jobs of a context: give the relay a client without one")]
    InContext,
    /// The database did not answer in time.
    #[error("the database or the store did not answer within {0} s")]
    Timeout(u64),
}

impl Error {
    /// Returns true if the same call may succeed later: the connection broke, the server starts or shuts down, or another
    /// program writes to the file of SQLite.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Database(sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut) => {
                true
            }
            Self::Database(sqlx::Error::Database(error)) => database::is_temporary(error.as_ref()),
            _ => false,
        }
    }

    /// Names the missing table in an error of the database.
    pub(crate) fn of<D: Dialect>(error: sqlx::Error, table: String) -> Self {
        match error.as_database_error().is_some_and(D::is_missing_table) {
            true => Self::NoTable { table },
            false => Self::Database(error),
        }
    }
}
