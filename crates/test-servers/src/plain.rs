//! A Redis client for raw commands, with which tests imitate programs of other systems exactly. It uses no code of
//! Meshwork.

use redis::{Connection, FromRedisValue, RedisResult};

/// A separate connection.
pub struct Plain(Connection);

impl Plain {
    /// Connects to the database at `url`.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn connect(url: &str) -> RedisResult<Self> {
        Ok(Self(redis::Client::open(url)?.get_connection()?))
    }

    /// Sends a command, and returns the answer as `T`.
    ///
    /// # Errors
    /// The server refuses the command, or the answer is not a `T`.
    pub fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T> {
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        cmd.query(&mut self.0)
    }

    /// Sends several commands, one in each line, with words separated by blanks; ignores their answers.
    ///
    /// # Errors
    /// The server refuses one.
    pub fn say(&mut self, lines: &str) -> RedisResult<()> {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<_> = line.split(' ').collect();
            self.ask::<redis::Value>(&words)?;
        }
        Ok(())
    }
}
