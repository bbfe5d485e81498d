//! The orders of one run for the launcher: its confinement, and its form on the way from the worker to the launcher and the process that confines
//! itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use meshwork_model::sandbox::{Limits, SandboxSettings};

use super::groups::Hierarchies;
use crate::Confinement;

/// Greatest length of the encoded form: far more than paths need, and less than the buffer of a socket, so that a write
/// to a launcher that does not read yet never blocks.
const MAX_ENCODED: usize = 64 * 1024;
/// Separates fields. Paths do not contain it.
const END: u8 = 0;

/// Parts of the isolation that the host offers to a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Isolation {
    /// The run is not confined.
    #[default]
    None,
    /// Landlock and a filter of system calls.
    Rules,
    /// Namespaces and a root of its own, and the rules.
    Namespaces,
}

impl Isolation {
    const ALL: [Self; 3] = [Self::None, Self::Rules, Self::Namespaces];

    const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rules => "rules",
            Self::Namespaces => "namespaces",
        }
    }
}

/// A confinement with all that the launcher has to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Orders {
    pub(super) confinement: Confinement,
    pub(super) isolation: Isolation,
    /// Paths of the interpreter, to be read. One that does not exist is left out.
    pub(super) interpreter: Vec<PathBuf>,
    /// True if the run cannot connect to Unix sockets.
    pub(super) lacks_sockets: bool,
    /// Control groups that count what the run uses.
    pub(super) groups: Hierarchies,
}

impl Orders {
    /// Returns the limits of the run.
    pub(in super::super) fn limits(&self) -> &Limits {
        &self.confinement.limits
    }

    /// Returns true if the processes of the run inherit the socket for their requests.
    pub(in super::super) fn inherits_calls(&self) -> bool {
        self.lacks_sockets
    }

    /// Encodes the orders, but for what only the worker has to know.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut encoded = Vec::new();
        let mut field = |name: &str, value: &[u8]| {
            encoded.extend_from_slice(name.as_bytes());
            encoded.push(b'=');
            encoded.extend_from_slice(value);
            encoded.push(END);
        };
        field("isolation", self.isolation.word().as_bytes());
        let settings = SandboxSettings {
            profile: Some(self.confinement.profile),
            parent: None,
            limits: self.confinement.limits,
        };
        field("sandbox", settings.to_string().as_bytes());
        for (name, paths) in [
            ("read", &self.confinement.read),
            ("write", &self.confinement.write),
            ("interpreter", &self.interpreter),
        ] {
            for path in paths {
                field(name, path.as_os_str().as_bytes());
            }
        }
        for hierarchy in self.groups.encode() {
            field("group", &hierarchy);
        }
        match encoded.len() {
            0..=MAX_ENCODED => Ok(encoded),
            length => Err(io::Error::other(format!(
                "the paths of the sandbox have {length} bytes, the limit is {MAX_ENCODED}: name fewer"
            ))),
        }
    }

    /// Decodes orders.
    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let unreadable = || io::Error::other("the orders of the worker cannot be read");
        let mut orders = Self::default();
        for field in bytes.split(|byte| *byte == END).filter(|f| !f.is_empty()) {
            let at = field.iter().position(|byte| *byte == b'=');
            let (name, value) = field.split_at(at.ok_or_else(unreadable)?);
            let value = OsStr::from_bytes(&value[1..]);
            let path = || PathBuf::from(OsString::from_vec(value.as_bytes().to_vec()));
            match name {
                b"isolation" => {
                    let known = Isolation::ALL.into_iter().find(|one| value == one.word());
                    orders.isolation = known.ok_or_else(unreadable)?;
                }
                b"sandbox" => {
                    let text = value.to_str().ok_or_else(unreadable)?;
                    let settings: SandboxSettings = text.parse().map_err(io::Error::other)?;
                    orders.confinement.profile = settings.profile.unwrap_or_default();
                    orders.confinement.limits = settings.limits;
                }
                b"read" => orders.confinement.read.push(path()),
                b"write" => orders.confinement.write.push(path()),
                b"interpreter" => orders.interpreter.push(path()),
                b"group" => orders
                    .groups
                    .decode(value.as_bytes())
                    .ok_or_else(unreadable)?,
                _ => return Err(unreadable()),
            }
        }
        Ok(orders)
    }
}

#[cfg(test)]
mod tests {
    use meshwork_model::sandbox::Limit;

    use super::*;

    #[test]
    fn orders_arrive_as_they_were() {
        let bytes = PathBuf::from(OsString::from_vec(b"/a=\xff\n".to_vec()));
        let orders = Orders {
            confinement: Confinement {
                profile: meshwork_model::sandbox::Profile::Strict,
                read: vec![bytes.clone(), "/b".into()],
                write: vec!["/c".into()],
                limits: [(Limit::Memory, 1 << 30)].into_iter().collect(),
            },
            isolation: Isolation::Namespaces,
            interpreter: vec![bytes],
            lacks_sockets: false,
            groups: Hierarchies::of_test("/sys/fs/cgroup/a b"),
        };
        assert_eq!(Orders::decode(&orders.encode().unwrap()).unwrap(), orders);
        let none = Orders::default();
        assert_eq!(Orders::decode(&none.encode().unwrap()).unwrap(), none);
    }

    #[test]
    fn too_many_paths_are_refused() {
        let orders = Orders {
            interpreter: vec!["/x".repeat(2048).into(); 20],
            ..Orders::default()
        };
        assert!(
            orders
                .encode()
                .unwrap_err()
                .to_string()
                .contains("name fewer")
        );
        assert!(Orders::decode(b"huh=1\0").is_err());
    }
}
