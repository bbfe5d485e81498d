//! Programs without the feature `passphrase`: key files with a passphrase are refused.

use zeroize::Zeroizing;

use crate::context::error::KeyFileFault;

/// Refuses to encrypt.
pub(super) fn encrypt(_: &str, _: &str) -> Result<String, KeyFileFault> {
    Err(KeyFileFault::NoEncryption)
}

/// Refuses to decrypt.
pub(super) fn decrypt(_: &str, _: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileFault> {
    Err(KeyFileFault::NoEncryption)
}
