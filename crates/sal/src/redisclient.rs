//! Module `redisclient`: one connection of the script to the server that the job's environment names.

use std::collections::HashMap;
use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{
    Cmd, Connection, ConnectionAddr, ConnectionInfo, ConnectionLike, FromRedisValue,
    IntoConnectionInfo, RedisConnectionInfo, RedisError,
};
use rhai::{Array, Engine, Map};

use crate::answer::{Answer, thrown};

/// Longest wait for a connection, and for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Server without a variable.
const HOST: &str = "127.0.0.1";
/// Port without a variable.
const PORT: u16 = 6379;

/// The connection, once a function has opened it.
#[derive(Clone, Default)]
struct Client(Arc<Mutex<Option<Connection>>>);

pub(crate) fn register(engine: &mut Engine) {
    let client = Client::default();
    let own = client.clone();
    engine.register_fn("redis_ping", move || own.call::<String>(&["PING"]));
    let own = client.clone();
    engine.register_fn("redis_set", move |key: &str, value: &str| -> Answer<bool> {
        let answer: String = own.call(&["SET", key, value])?;
        Ok(answer == "OK")
    });
    let own = client.clone();
    engine.register_fn("redis_get", move |key: &str| own.text(&["GET", key]));
    let own = client.clone();
    engine.register_fn("redis_del", move |key: &str| own.changed(&["DEL", key]));
    let own = client.clone();
    engine.register_fn("redis_reset", move || own.reset());
    register_hashes(engine, &client);
    register_lists(engine, &client);
}

fn register_hashes(engine: &mut Engine, client: &Client) {
    let own = client.clone();
    engine.register_fn(
        "redis_hset",
        move |key: &str, field: &str, value: &str| -> Answer<bool> {
            own.call::<i64>(&["HSET", key, field, value]).map(|_| true)
        },
    );
    let own = client.clone();
    engine.register_fn("redis_hget", move |key: &str, field: &str| {
        own.text(&["HGET", key, field])
    });
    let own = client.clone();
    engine.register_fn("redis_hdel", move |key: &str, field: &str| {
        own.changed(&["HDEL", key, field])
    });
    let own = client.clone();
    engine.register_fn("redis_hgetall", move |key: &str| -> Answer<Map> {
        let fields: HashMap<String, String> = own.call(&["HGETALL", key])?;
        Ok(fields
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect())
    });
}

fn register_lists(engine: &mut Engine, client: &Client) {
    for (name, command) in [("redis_rpush", "RPUSH"), ("redis_lpush", "LPUSH")] {
        let own = client.clone();
        engine.register_fn(name, move |key: &str, value: &str| {
            own.call::<i64>(&[command, key, value])
        });
    }
    let own = client.clone();
    engine.register_fn("redis_llen", move |key: &str| {
        own.call::<i64>(&["LLEN", key])
    });
    let own = client.clone();
    engine.register_fn(
        "redis_lrange",
        move |key: &str, start: i64, stop: i64| -> Answer<Array> {
            let range = [start.to_string(), stop.to_string()];
            let items: Vec<String> = own.call(&["LRANGE", key, &range[0], &range[1]])?;
            Ok(items.into_iter().map(Into::into).collect())
        },
    );
}

impl Client {
    /// Sends a command. After a broken connection, the next command opens another one.
    fn call<T: FromRedisValue>(&self, words: &[&str]) -> Answer<T> {
        let failed = |error: RedisError| thrown(format_args!("Redis error: {error}"));
        let mut command = Cmd::new();
        for word in words {
            command.arg(*word);
        }
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match place.take() {
            Some(open) => open,
            None => connect()
                .map_err(|error| thrown(format_args!("Redis error: {error} ({})", server().1)))?,
        };
        let answer = command.query(&mut connection);
        if connection.is_open() {
            *place = Some(connection);
        }
        answer.map_err(failed)
    }

    /// Returns a text, or an empty one if there is none.
    fn text(&self, words: &[&str]) -> Answer<String> {
        self.call::<Option<String>>(words)
            .map(Option::unwrap_or_default)
    }

    /// Returns true if the command has changed something.
    fn changed(&self, words: &[&str]) -> Answer<bool> {
        self.call::<i64>(words).map(|changed| changed > 0)
    }

    /// Opens the connection anew.
    fn reset(&self) -> Answer<bool> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.call::<String>(&["PING"]).map(|_| true)
    }
}

/// Returns the variable of the environment, if it has a value.
fn of(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the server of `REDIS_URL`, else of `REDIS_HOST` and `REDIS_PORT`, and its name for messages, without credentials.
fn server() -> (Result<ConnectionInfo, RedisError>, String) {
    match of("REDIS_URL") {
        Some(url) => {
            let info = url.into_connection_info();
            let name = info.as_ref().map(|info| info.addr().to_string());
            let name = name.unwrap_or_else(|_| "a server".to_owned());
            (info, format!("{name}, of REDIS_URL"))
        }
        None => {
            let port = of("REDIS_PORT").and_then(|port| port.parse().ok());
            let host = of("REDIS_HOST").unwrap_or_else(|| HOST.to_owned());
            let address = ConnectionAddr::Tcp(host, port.unwrap_or(PORT));
            let name = format!("{address}, of REDIS_URL, or REDIS_HOST and REDIS_PORT");
            (address.into_connection_info(), name)
        }
    }
}

/// Connects to the server, with `REDIS_USERNAME`, `REDIS_PASSWORD` and `REDISDB` if there is no `REDIS_URL`.
fn connect() -> Result<Connection, RedisError> {
    let mut info = server().0?;
    if of("REDIS_URL").is_none() {
        let mut settings = RedisConnectionInfo::default();
        if let Some(database) = of("REDISDB").and_then(|number| number.parse().ok()) {
            settings = settings.set_db(database);
        }
        if let Some(name) = of("REDIS_USERNAME") {
            settings = settings.set_username(name);
        }
        if let Some(password) = of("REDIS_PASSWORD") {
            settings = settings.set_password(password);
        }
        info = info.set_redis_settings(settings);
    }
    let client = redis::Client::open(info)?;
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}
