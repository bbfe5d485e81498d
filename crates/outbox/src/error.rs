//! Errors of the outbox.

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
    /// The tables do not exist.
    #[error(
        "the database has no table {table}: create it with `meshwork outbox migrate` or `Outbox::migrate`"
    )]
    NoTable {
        /// Name of the table.
        table: String,
    },
    /// The client is of a context, whose ids of jobs are numbers of the store.
    #[error("an outbox has no jobs of a context: give the relay a client without one")]
    InContext,
    /// The database did not answer in time.
    #[error("the database or the store did not answer within {0} s")]
    Timeout(u64),
}

impl Error {
    /// Returns true if the same call may succeed later: the connection broke, or the server starts or shuts down.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        /// Beginning of PostgreSQL's codes for a server that starts, shuts down or ends a connection.
        const INTERVENTION: &str = "57P";
        match self {
            Self::Timeout(_) | Self::Database(sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut) => {
                true
            }
            Self::Database(sqlx::Error::Database(error)) => error
                .code()
                .is_some_and(|code| code.starts_with(INTERVENTION)),
            _ => false,
        }
    }

    /// Names the missing table in an error of the database.
    pub(crate) fn of(error: sqlx::Error, table: &str) -> Self {
        /// Code of PostgreSQL for a table that does not exist.
        const UNDEFINED_TABLE: &str = "42P01";
        let code = error.as_database_error().and_then(|error| error.code());
        match code.as_deref() {
            Some(UNDEFINED_TABLE) => Self::NoTable {
                table: table.to_owned(),
            },
            _ => Self::Database(error),
        }
    }
}
