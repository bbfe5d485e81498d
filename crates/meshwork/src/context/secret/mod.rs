//! Secret keys of actors, in files with a passphrase.

pub(crate) mod key_file;
pub(crate) mod passphrase;
#[cfg(test)]
pub(crate) mod passphrase_tests;
pub(crate) mod private_file;
