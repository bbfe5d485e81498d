//! Encryption with a passphrase, in the format of `age` (scrypt and ChaCha20-Poly1305).

use age::DecryptError;
use age::scrypt;
use age::secrecy::SecretString;
use zeroize::Zeroizing;

use crate::context::error::KeyFileFault;

/// Base-2 logarithm of the cost of new files: 64 MiB and some tenths of a second for each guess, and for each command.
const COST: u8 = 16;
/// The greatest cost of a file that is read: the default of the command `age`. It takes 256 MiB.
const MAX_COST: u8 = 18;

/// Encrypts a text.
pub(super) fn encrypt(passphrase: &str, text: &str) -> Result<String, KeyFileFault> {
    let mut recipient = scrypt::Recipient::new(SecretString::from(passphrase));
    recipient.set_work_factor(COST);
    let encrypted = age::encrypt_and_armor(&recipient, text.as_bytes());
    encrypted.map_err(|error| KeyFileFault::Encryption(error.to_string()))
}

/// Decrypts a file.
pub(super) fn decrypt(passphrase: &str, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileFault> {
    let mut identity = scrypt::Identity::new(SecretString::from(passphrase));
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
