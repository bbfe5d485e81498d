//! Passphrases of key files.

use std::fmt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::context::error::{ContextError, KeyFileFault};
use crate::context::secret::encryption;
use crate::context::secret::private_file::read_private;

/// Greatest length of a passphrase, in bytes.
pub const MAX_PASSPHRASE: usize = 1024;

/// The passphrase of a key file. It is wiped from memory when it is dropped, and `Debug` does not show it.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// Returns the passphrase of a text.
    ///
    /// # Errors
    /// [`KeyFileFault::InvalidPassphrase`]: it is empty, longer than [`MAX_PASSPHRASE`], or has a control character.
    pub fn new(text: &str) -> Result<Self, KeyFileFault> {
        if text.is_empty() || text.len() > MAX_PASSPHRASE || text.contains(char::is_control) {
            return Err(KeyFileFault::InvalidPassphrase);
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// Reads a passphrase from a file of one line.
    ///
    /// # Errors
    /// [`ContextError::PassphraseFile`]: the file cannot be read, others may read it, or its content is no passphrase.
    pub fn from_file(path: &Path) -> Result<Self, ContextError> {
        let read = || {
            // Two bytes more than the longest passphrase, for the end of its line.
            let bytes = read_private(path, MAX_PASSPHRASE + 2)?;
            let text = std::str::from_utf8(&bytes).map_err(|_| KeyFileFault::InvalidPassphrase)?;
            let line = text.strip_suffix('\n').unwrap_or(text);
            Self::new(line.strip_suffix('\r').unwrap_or(line))
        };
        read().map_err(|why| ContextError::PassphraseFile {
            path: path.to_owned(),
            why,
        })
    }

    /// Returns whether both are the same, for a passphrase that is typed twice.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Encrypts a text.
    pub(crate) fn encrypt(&self, text: &str) -> Result<String, KeyFileFault> {
        encryption::encrypt(&self.0, text)
    }

    /// Decrypts a file.
    pub(crate) fn decrypt(&self, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileFault> {
        encryption::decrypt(&self.0, bytes)
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}
