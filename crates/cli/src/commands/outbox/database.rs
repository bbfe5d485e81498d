//! The database of an outbox.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use meshwork_outbox::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use meshwork_outbox::sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use meshwork_outbox::sqlx::{self, Connection, PgPool, SqlitePool};
use meshwork_outbox::{Error, Examined, Outbox};

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
pub(crate) struct OutboxArgs {
    #[command(flatten)]
    schema: SchemaArgs,
    /// PostgreSQL database: postgres://[user@]host[:port]/name; or SQLite file: sqlite://path. A URL with a password is
    /// refused here, since other users see it: set DATABASE_URL or PGPASSWORD, or give --database-file.
    /// ?sslmode=verify-full checks the certificate
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
struct SchemaArgs {
    /// Schema of the tables: a-z, 0-9 and _. In SQLite it begins their names [default: that of the search path]
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

impl SchemaArgs {
    fn outbox(&self) -> Result<Outbox, CommandError> {
        match &self.schema {
            Some(name) => Outbox::in_schema(name).map_err(CommandError::usage),
            None => Ok(Outbox::new()),
        }
    }
}

/// Connections to the database of an outbox.
pub(super) enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

/// Evaluates the expression with the connections to either database.
macro_rules! with_pool {
    ($pool:expr, |$name:ident| $call:expr) => {
        match $pool {
            crate::commands::outbox::database::Pool::Postgres($name) => $call,
            crate::commands::outbox::database::Pool::Sqlite($name) => $call,
        }
    };
}
pub(super) use with_pool;

/// Options of connections to either database.
pub(super) enum Options {
    Postgres(Box<PgConnectOptions>),
    Sqlite(Box<SqliteConnectOptions>),
}

impl Options {
    fn parse(url: &str) -> Result<Self, CommandError> {
        // The error does not show the URL, which may have a password.
        let invalid = |error: sqlx::Error| {
            CommandError::usage(format_args!("the URL of the database is invalid: {error}"))
        };
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => {
                let options = PgConnectOptions::from_str(url).map_err(invalid)?;
                let password =
                    environment::var("PGPASSWORD").filter(|_| !environment::holds_password(url));
                // A pooler refuses settings at the start of a connection that it does not know.
                let options = options.extra_float_digits(None);
                Ok(Self::Postgres(Box::new(match password {
                    Some(password) => options.password(&password),
                    None => options,
                })))
            }
            Some("sqlite") if url.contains(":memory:") || url.contains("mode=memory") => {
                Err(CommandError::usage(
                    "a database in memory has no rows of other programs: give sqlite://path",
                ))
            }
            Some("sqlite") => {
                let options = SqliteConnectOptions::from_str(url).map_err(invalid)?;
                Ok(Self::Sqlite(Box::new(options)))
            }
            _ => Err(CommandError::usage(
                "the URL of the database begins with neither postgres:// nor sqlite://",
            )),
        }
    }

    /// Connects once, and fails if the database cannot be reached.
    pub(super) async fn check(&self) -> Result<(), CommandError> {
        let checked = match self {
            Self::Postgres(options) => check::<sqlx::PgConnection>(options).await,
            Self::Sqlite(options) => check::<sqlx::SqliteConnection>(options).await,
        };
        checked.map_err(|error| match self {
            Self::Sqlite(options) if !options.get_filename().exists() => {
                let file = options.get_filename().display();
                CommandError::usage(format_args!(
                    "there is no file {file}: create it by your program, or append ?mode=rwc to the URL"
                ))
            }
            _ => Error::from(error).into(),
        })
    }

    pub(super) fn pool(self) -> Pool {
        match self {
            Self::Postgres(options) => Pool::Postgres(
                PgPoolOptions::new()
                    .max_connections(CONNECTIONS)
                    .acquire_timeout(ACQUIRE)
                    .connect_lazy_with(*options),
            ),
            Self::Sqlite(options) => Pool::Sqlite(
                SqlitePoolOptions::new()
                    .max_connections(CONNECTIONS)
                    .acquire_timeout(ACQUIRE)
                    .connect_lazy_with((*options).busy_timeout(ACQUIRE)),
            ),
        }
    }
}

async fn check<C: Connection>(options: &C::Options) -> Result<(), sqlx::Error> {
    C::connect_with(options).await?.close().await
}

impl OutboxArgs {
    /// Names the database of this URL, or that of the environment if it is empty.
    pub(crate) fn of_url(url: &str, schema: Option<String>) -> Self {
        let database = match url {
            "" => environment::var(VARIABLE),
            url => Some(url.to_owned()),
        };
        Self {
            schema: SchemaArgs { schema },
            database,
            database_file: None,
        }
    }

    /// Examines the database and its tables.
    pub(crate) async fn examine(&self) -> Result<Examined, CommandError> {
        let (outbox, options) = self.named()?;
        options.check().await?;
        let pool = options.pool();
        Ok(with_pool!(&pool, |pool| outbox.examine(pool).await)?)
    }

    /// Connects to the database, and returns its outbox. Repeats the first connection for `--connect-timeout`.
    pub(super) async fn open(&self, context: &App) -> Result<(Outbox, Pool), CommandError> {
        let (outbox, options) = self.named()?;
        context.retried(async || options.check().await).await?;
        Ok((outbox, options.pool()))
    }

    /// Returns the outbox and the database that are named. Makes no connection.
    pub(super) fn named(&self) -> Result<(Outbox, Options), CommandError> {
        let outbox = self.schema.outbox()?;
        let url = self.url()?.ok_or_else(|| {
            CommandError::usage(
                "no database is named: set DATABASE_URL, or give --database URL or --database-file FILE",
            )
        })?;
        Ok((outbox, Options::parse(&url)?))
    }

    /// Returns the SQL of the tables, for PostgreSQL unless another database is named. Makes no connection.
    pub(super) fn schema_sql(&self) -> Result<String, CommandError> {
        let outbox = self.schema.outbox()?;
        let options = self.url()?.map(|url| Options::parse(&url)).transpose()?;
        Ok(match options {
            Some(Options::Sqlite(_)) => outbox.schema_sql::<sqlx::Sqlite>(),
            _ => outbox.schema_sql::<sqlx::Postgres>(),
        })
    }

    fn url(&self) -> Result<Option<String>, CommandError> {
        if let Some(file) = &self.database_file {
            let text = String::from_utf8(input::read(file)?);
            let text = text
                .map_err(|_| CommandError::usage(format_args!("{} is no text", file.display())))?;
            return Ok(Some(text.trim().to_owned()));
        }
        let Some(url) = self.database.clone().filter(|url| !url.is_empty()) else {
            return Ok(None);
        };
        let is_argument = environment::var(VARIABLE).as_ref() != Some(&url);
        if is_argument && environment::holds_password(&url) {
            return Err(CommandError::usage(
                "other users see the password on the command line: set DATABASE_URL instead, or give --database-file FILE",
            ));
        }
        Ok(Some(url))
    }
}
