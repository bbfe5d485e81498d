//! Environment of a program on its way from the worker to the program's own process: the content of an anonymous file. In the
//! environment of a launcher, variables of a job would act outside of the sandbox, as `LD_PRELOAD` does.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{MemfdFlags, memfd_create};

/// Name of the file in lists of descriptors.
const NAME: &str = "meshwork-variables";
/// Separates variables. A process cannot have it in one.
const END: u8 = 0;

/// Variables of a program.
#[derive(Debug)]
pub(in super::super) struct Environment(OwnedFd);

impl Environment {
    /// Stores variables, each of which has another name.
    pub(in super::super) fn of(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let mut text = Vec::new();
        for (name, value) in variables {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            if name.is_empty() || name.contains(&b'=') || [name, value].concat().contains(&END) {
                let name = String::from_utf8_lossy(name);
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("no process can have the variable {name:?}"),
                ));
            }
            text.extend([name, b"=", value, &[END]].concat());
        }
        let file = memfd_create(NAME, MemfdFlags::CLOEXEC).map(File::from);
        // The sandbox of a worker that is itself a job may refuse it.
        let mut file = file.or_else(|_| tempfile::tempfile())?;
        file.write_all(&text)?;
        file.rewind()?;
        Ok(Self(file.into()))
    }

    /// Returns the variables. They can be read once.
    pub(in super::super) fn read(self) -> io::Result<Vec<(OsString, OsString)>> {
        let mut text = Vec::new();
        File::from(self.0).read_to_end(&mut text)?;
        let lines = text.split(|byte| *byte == END);
        let pairs = lines.filter_map(|line| {
            let middle = line.iter().position(|byte| *byte == b'=')?;
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((part(&line[..middle]), part(&line[middle + 1..])))
        });
        Ok(pairs.collect())
    }
}

impl From<OwnedFd> for Environment {
    fn from(received: OwnedFd) -> Self {
        Self(received)
    }
}

impl AsFd for Environment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn of(variables: &[(&str, &[u8])]) -> io::Result<Vec<(OsString, OsString)>> {
        let owned =
            |(name, value): &(&str, &[u8])| ((*name).into(), OsStr::from_bytes(value).to_owned());
        Environment::of(variables.iter().map(owned))?.read()
    }

    #[test]
    fn variables_arrive_as_they_were() {
        let large = vec![b'x'; 300_000];
        for variables in [
            &[][..],
            &[("A", &b""[..]), ("B", b"=\xff\n= "), ("C", &large)],
        ] {
            let read = of(variables).unwrap();
            assert_eq!(read.len(), variables.len());
            for ((name, value), expected) in read.iter().zip(variables) {
                assert_eq!(
                    (name.to_str(), value.as_bytes()),
                    (Some(expected.0), expected.1)
                );
            }
        }
    }

    #[test]
    fn a_variable_that_no_process_can_have_is_refused_by_name() {
        for (name, value) in [("", ""), ("A=B", ""), ("A\0", ""), ("A", "x\0y")] {
            let refused = of(&[(name, value.as_bytes())]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            assert!(
                refused.to_string().contains(&format!("{name:?}")),
                "{refused}"
            );
        }
    }
}
