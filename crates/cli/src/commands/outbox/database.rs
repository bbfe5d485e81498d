//! The database of an outbox.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use meshwork_outbox::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use meshwork_outbox::sqlx::{Connection, PgConnection, PgPool};
use meshwork_outbox::{Error, Outbox};

use crate::app::App;
use crate::args::input;
use crate::environment;
use crate::error::CommandError;

/// Variable with the URL.
const VARIABLE: &str = "DATABASE_URL";
/// Longest wait for a connection of the pool.
const ACQUIRE: Duration = Duration::from_secs(5);
/// Connections of a command: one for batches, and one for maintenance.
const CONNECTIONS: u32 = 2;

/// Options that name the outbox.
#[derive(Debug, clap::Args)]
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "the help shows what may be left out in brackets"
)]
pub(super) struct OutboxArgs {
    #[command(flatten)]
    schema: SchemaArgs,
    /// PostgreSQL database: postgres://[user@]host[:port]/name. A URL with a password is refused here, since other users
    /// see it: set DATABASE_URL or PGPASSWORD, or give --database-file. ?sslmode=verify-full checks the certificate
    #[arg(
        long,
        value_name = "URL",
        env = VARIABLE,
        hide_env_values = true
    )]
    database: Option<String>,
    /// File with the URL of the database, which may have a password
    #[arg(long, value_name = "FILE")]
    database_file: Option<PathBuf>,
}

/// Option that names the schema.
#[derive(Debug, clap::Args)]
pub(super) struct SchemaArgs {
    /// Schema of the tables: a-z, 0-9 and _ [default: that of the search path]
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

impl SchemaArgs {
    pub(super) fn outbox(&self) -> Result<Outbox, CommandError> {
        match &self.schema {
            Some(name) => Outbox::in_schema(name).map_err(CommandError::usage),
            None => Ok(Outbox::new()),
        }
    }
}

impl OutboxArgs {
    /// Connects to the database, and returns its outbox. Repeats the first connection for `--connect-timeout`.
    pub(super) async fn open(&self, context: &App) -> Result<(Outbox, PgPool), CommandError> {
        let outbox = self.schema.outbox()?;
        let options = self.options()?;
        context
            .retried(async || {
                let connected = PgConnection::connect_with(&options).await;
                let closed = connected.map_err(Error::from)?.close().await;
                Ok(closed.map_err(Error::from)?)
            })
            .await?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE)
            .connect_lazy_with(options);
        Ok((outbox, pool))
    }

    fn options(&self) -> Result<PgConnectOptions, CommandError> {
        let url = self.url()?;
        let options = PgConnectOptions::from_str(&url);
        // The error does not show the URL, which may have a password.
        let options = options.map_err(|error| {
            CommandError::usage(format_args!("the URL of the database is invalid: {error}"))
        })?;
        let password =
            environment::var("PGPASSWORD").filter(|_| !environment::holds_password(&url));
        Ok(match password {
            Some(password) => options.password(&password),
            None => options,
        })
    }

    fn url(&self) -> Result<String, CommandError> {
        if let Some(file) = &self.database_file {
            let text = String::from_utf8(input::read(file)?);
            let text = text
                .map_err(|_| CommandError::usage(format_args!("{} is no text", file.display())))?;
            return Ok(text.trim().to_owned());
        }
        let Some(url) = self.database.clone().filter(|url| !url.is_empty()) else {
            return Err(CommandError::usage(
                "no database is named: set DATABASE_URL, or give --database URL or --database-file FILE",
            ));
        };
        let is_argument = environment::var(VARIABLE).as_ref() != Some(&url);
        if is_argument && environment::holds_password(&url) {
            return Err(CommandError::usage(
                "other users see the password on the command line: set DATABASE_URL instead, or give --database-file FILE",
            ));
        }
        Ok(url)
    }
}
