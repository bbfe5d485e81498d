//! Size of an environment: that of a job, of a flow, and of a job in a message.

use super::limits;

/// Most characters of a name that the error shows.
const SHOWN: usize = 64;

/// An environment beyond [`limits::MAX_ENV`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the environment takes {bytes} bytes, `{name}` alone {of_name}: at most {most} are allowed; pass large data as input",
    most = limits::MAX_ENV
)]
pub struct EnvTooLarge {
    /// Length of all names and values.
    bytes: usize,
    /// The largest variable.
    name: String,
    /// Length of its name and value.
    of_name: usize,
}

impl EnvTooLarge {
    /// Checks the names and values of an environment.
    ///
    /// # Errors
    /// They take more than [`limits::MAX_ENV`] bytes.
    pub fn check<'a>(
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<(), Self> {
        let (mut bytes, mut largest) = (0, ("", 0));
        for (name, value) in variables {
            let size = name.len() + value.len();
            bytes += size;
            if size > largest.1 {
                largest = (name, size);
            }
        }
        if bytes <= limits::MAX_ENV {
            return Ok(());
        }
        let (name, of_name) = largest;
        let name = name.chars().take(SHOWN).collect();
        Err(Self {
            bytes,
            name,
            of_name,
        })
    }
}
