//! A client of Redis that says bare commands: what programs of other systems are played with, to the letter. Nothing of
//! ours is in it.

use redis::{Connection, FromRedisValue, RedisResult};

/// A connection of its own.
pub struct Plain(Connection);

impl Plain {
    /// Connects to the database at `url`.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn connect(url: &str) -> RedisResult<Self> {
        Ok(Self(redis::Client::open(url)?.get_connection()?))
    }

    /// Says a command, and reads the answer as `T`.
    ///
    /// # Errors
    /// When the server refuses it, or its answer is no `T`.
    pub fn ask<T: FromRedisValue>(&mut self, words: &[&str]) -> RedisResult<T> {
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        cmd.query(&mut self.0)
    }

    /// Says several commands, one per line, with words apart by blanks; what they answer is not looked at.
    ///
    /// # Errors
    /// When the server refuses one.
    pub fn say(&mut self, lines: &str) -> RedisResult<()> {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<_> = line.split(' ').collect();
            self.ask::<redis::Value>(&words)?;
        }
        Ok(())
    }
}
