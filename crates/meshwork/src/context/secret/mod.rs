//! Secret keys of actors, in files with a passphrase.

#[cfg(feature = "passphrase")]
mod encryption;
pub(crate) mod key_file;
#[cfg(not(feature = "passphrase"))]
mod no_encryption;
pub(crate) mod passphrase;
#[cfg(test)]
#[cfg(feature = "passphrase")]
pub(crate) mod passphrase_tests;
pub(crate) mod private_file;

#[cfg(not(feature = "passphrase"))]
use no_encryption as encryption;
