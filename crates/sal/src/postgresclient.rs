//! Module `postgresclient`: one connection of the script to the server that the job's environment names.

use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postgres::{Client, Config, Error, NoTls, SimpleQueryMessage, SimpleQueryRow};
use rhai::{Array, Dynamic, Engine, Map};

use crate::answer::{Answer, thrown};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Server, user and database without a variable, and the port.
const HOST: &str = "localhost";
const NAME: &str = "postgres";
const PORT: u16 = 5432;

/// The connection, once a function has opened it.
#[derive(Clone, Default)]
struct Session(Arc<Mutex<Option<Client>>>);

pub(crate) fn register(engine: &mut Engine) {
    let session = Session::default();
    let own = session.clone();
    engine.register_fn("pg_connect", move || own.ping());
    let own = session.clone();
    engine.register_fn("pg_ping", move || own.ping());
    let own = session.clone();
    engine.register_fn("pg_reset", move || {
        *own.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        own.ping()
    });
    let own = session.clone();
    engine.register_fn("pg_execute", move |query: &str| -> Answer<i64> {
        let changed = own.with(|client| client.execute(query, &[]))?;
        Ok(i64::try_from(changed).unwrap_or(i64::MAX))
    });
    let own = session.clone();
    engine.register_fn("pg_query", move |query: &str| -> Answer<Array> {
        Ok(own
            .rows(query)?
            .into_iter()
            .map(Dynamic::from_map)
            .collect())
    });
    engine.register_fn("pg_query_one", move |query: &str| -> Answer<Map> {
        let mut rows = session.rows(query)?;
        match rows.len() {
            1 => Ok(rows.remove(0)),
            many => Err(thrown(format_args!(
                "PostgreSQL error: the query returned {many} rows instead of one"
            ))),
        }
    });
}

impl Session {
    /// Calls the server. After a broken connection, the next call opens another one.
    fn with<T>(&self, call: impl FnOnce(&mut Client) -> Result<T, Error>) -> Answer<T> {
        let failed = |error: Error| thrown(format_args!("PostgreSQL error: {}", described(&error)));
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut client = match place.take() {
            Some(open) => open,
            None => connect().map_err(|error| {
                let (why, [host, port]) = (described(&error), server());
                thrown(format_args!(
                    "PostgreSQL error: {why} ({host}:{port}, of POSTGRES_HOST and POSTGRES_PORT)"
                ))
            })?,
        };
        let answer = call(&mut client);
        if !client.is_closed() {
            *place = Some(client);
        }
        answer.map_err(failed)
    }

    fn ping(&self) -> Answer<bool> {
        self.with(|client| client.simple_query("SELECT 1"))
            .map(|_| true)
    }

    /// Returns the rows of a query. Values are texts, as in the published crate; NULL is `()`.
    fn rows(&self, query: &str) -> Answer<Vec<Map>> {
        let messages = self.with(|client| client.simple_query(query))?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let map = |row: &SimpleQueryRow| {
            let mut map = Map::new();
            for (at, column) in row.columns().iter().enumerate() {
                let value = row.get(at).map(|text| text.to_owned().into());
                map.insert(column.name().into(), value.unwrap_or(Dynamic::UNIT));
            }
            map
        };
        Ok(rows.map(map).collect())
    }
}

/// Returns the message of the server, which the error itself leaves out.
fn described(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => said.to_string(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// Returns the variable of the environment, if it has a value.
fn of(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns host and port of the server.
fn server() -> [String; 2] {
    let port = of("POSTGRES_PORT").and_then(|port| port.parse::<u16>().ok());
    [
        of("POSTGRES_HOST").unwrap_or_else(|| HOST.to_owned()),
        port.unwrap_or(PORT).to_string(),
    ]
}

/// Connects to the server of `POSTGRES_HOST`, `POSTGRES_PORT`, `POSTGRES_USER`, `POSTGRES_PASSWORD` and `POSTGRES_DB`.
fn connect() -> Result<Client, Error> {
    let [host, port] = server();
    let mut config = Config::new();
    config.host(&host);
    config.port(port.parse().unwrap_or(PORT));
    config.user(&of("POSTGRES_USER").unwrap_or_else(|| NAME.to_owned()));
    config.dbname(&of("POSTGRES_DB").unwrap_or_else(|| NAME.to_owned()));
    config.connect_timeout(CONNECT);
    if let Some(password) = of("POSTGRES_PASSWORD") {
        config.password(&password);
    }
    config.connect(NoTls)
}
