//! Foreign clients that wait on lists, from `CLIENT LIST`, which does not name the lists.

use crate::broker::Broker;
use crate::conn::CLIENT_NAME;
use crate::error::Error;

/// Commands that wait for an element of a list.
const WAITS: [&str; 5] = ["blpop", "brpop", "blmove", "brpoplpush", "blmpop"];

/// A foreign client that waits on a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its address.
    pub addr: String,
    /// Name of the client; may be empty.
    pub name: String,
    /// Its blocking command.
    pub command: String,
}

impl Broker {
    /// Returns the foreign clients that wait on lists of this database; `None` if this user may not see them.
    pub(super) async fn waiting_clients(&self) -> Result<Option<Vec<Waiting>>, Error> {
        let list = redis::cmd("CLIENT").arg("LIST").to_owned();
        match self.ask::<String>("migrate", &list).await {
            Ok(text) => {
                let db = redis::aio::ConnectionLike::get_db(&self.conn);
                Ok(Some(
                    text.lines().filter_map(|line| waiting(line, db)).collect(),
                ))
            }
            Err(Error::Denied { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Parses a line of `CLIENT LIST`: names and values, with `=` between.
fn waiting(line: &str, db: i64) -> Option<Waiting> {
    let value = |name: &str| {
        let mut pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(known, _)| *known == name)
            .map_or("", |(_, value)| value)
    };
    let (name, command) = (value("name"), value("cmd"));
    let waits = value("flags").contains('b') && WAITS.contains(&command);
    let here = value("db").parse() == Ok(db);
    (waits && here && name != CLIENT_NAME).then(|| Waiting {
        addr: value("addr").to_owned(),
        name: name.to_owned(),
        command: command.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_from_the_rest() {
        let line = |name: &str, flags: &str, db: &str, cmd: &str| {
            let line =
                format!("id=3 addr=127.0.0.1:5 name={name} flags={flags} db={db} cmd={cmd} resp=2");
            waiting(&line, 0)
        };
        let old = line("", "b", "0", "blpop").unwrap();
        assert_eq!(
            (&*old.addr, &*old.name, &*old.command),
            ("127.0.0.1:5", "", "blpop")
        );
        assert!(line("actor", "b", "0", "brpoplpush").is_some());
        for (name, flags, db, cmd) in [
            ("meshwork", "b", "0", "blmove"),
            ("", "N", "0", "blpop"),
            ("", "b", "1", "blpop"),
            ("", "b", "0", "xread"),
        ] {
            assert_eq!(line(name, flags, db, cmd), None);
        }
        assert_eq!(waiting("", 0), None);
    }
}
