//! Passphrases of key files, and their encryption in the format of `age` (scrypt and ChaCha20-Poly1305).

use std::fmt;
use std::path::Path;

use age::DecryptError;
use age::scrypt;
use age::secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::context::error::{ContextError, KeyFileFault};
use crate::context::secret::private_file::read_private;

/// Greatest length of a passphrase, in bytes.
pub const MAX_PASSPHRASE: usize = 1024;
/// Base-2 logarithm of the cost of new files: 64 MiB and some tenths of a second for each guess, and for each command.
const COST: u8 = 16;
/// The greatest cost of a file that is read: the default of the command `age`. It takes 256 MiB.
const MAX_COST: u8 = 18;

/// The passphrase of a key file. It is wiped from memory when it is dropped, and `Debug` does not show it.
#[derive(Clone)]
pub struct Passphrase(SecretString);

impl Passphrase {
    /// Returns the passphrase of a text.
    ///
    /// # Errors
    /// [`KeyFileFault::InvalidPassphrase`]: it is empty, longer than [`MAX_PASSPHRASE`], or has a control character.
    pub fn new(text: &str) -> Result<Self, KeyFileFault> {
        if text.is_empty() || text.len() > MAX_PASSPHRASE || text.contains(char::is_control) {
            return Err(KeyFileFault::InvalidPassphrase);
        }
        Ok(Self(SecretString::from(text)))
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
        self.0.expose_secret() == other.0.expose_secret()
    }

    /// Encrypts a text.
    pub(crate) fn encrypt(&self, text: &str) -> Result<String, KeyFileFault> {
        let mut recipient = scrypt::Recipient::new(self.0.clone());
        recipient.set_work_factor(COST);
        let encrypted = age::encrypt_and_armor(&recipient, text.as_bytes());
        encrypted.map_err(|error| KeyFileFault::Encryption(error.to_string()))
    }

    /// Decrypts a file.
    pub(crate) fn decrypt(&self, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileFault> {
        let mut identity = scrypt::Identity::new(self.0.clone());
        identity.set_max_work_factor(MAX_COST);
        match age::decrypt(&identity, bytes) {
            Ok(text) => Ok(Zeroizing::new(text)),
            Err(DecryptError::DecryptionFailed) => Err(KeyFileFault::WrongPassphrase),
            Err(DecryptError::NoMatchingKeys) => Err(KeyFileFault::NotByPassphrase),
            Err(DecryptError::ExcessiveWork { required, .. }) => Err(KeyFileFault::Cost {
                cost: required,
                most: MAX_COST,
            }),
            Err(_) => Err(KeyFileFault::Damaged),
        }
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}
