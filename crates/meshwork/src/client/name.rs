//! Name of the actor of a program, for events.

use std::env;

/// Longest part of the names of user and host in an actor, in characters.
const MAX_NAME: usize = 64;

/// Returns `program:user@host`.
#[must_use]
pub fn local_name(program: &str) -> String {
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| {
        let value = env::var(name).ok()?;
        (!value.is_empty()).then_some(value)
    });
    let user = user.unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{program}:{}@{}", plain(&user), plain(&host))
}

/// Removes characters that must not be in a name.
fn plain(name: &str) -> String {
    let known = |c: char| {
        if c.is_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    name.chars().take(MAX_NAME).map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_program_user_and_host() {
        let name = local_name("client");
        let (program, place) = name.split_once(':').unwrap();
        let (user, host) = place.split_once('@').unwrap();
        assert!(
            program == "client" && !user.is_empty() && !host.is_empty(),
            "{name}"
        );
    }

    #[test]
    fn a_name_is_one_short_word() {
        assert_eq!(plain("a b\n:@"), "a_b___");
        assert_eq!(plain(&"x".repeat(1000)).len(), MAX_NAME);
    }
}
