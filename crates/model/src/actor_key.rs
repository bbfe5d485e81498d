//! Ed25519 keys of actors. The public key is the identity of an actor. Secret keys are derived from bytes that the
//! caller passes in.

mod file;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

pub use file::{InvalidKeyFile, MAX_KEY_FILE, is_encrypted};

/// Bytes of a public key, and of the seed of a secret one.
pub const KEY_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;
/// Bytes of the digest that a key id shows: a hint for lookups, never a proof.
const ID_BYTES: usize = 8;

/// The reason why bytes or a text are not a public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPublicKey {
    /// The text is not 64 hexadecimal digits.
    #[error("it is no public key: write 64 hexadecimal digits")]
    NotHex,
    /// The bytes are no point of the curve, or not in canonical form.
    #[error("it is no public key of Ed25519: copy it again from `meshwork actor show`")]
    NoPoint,
    /// The key is of small order, so that anybody can make matching signatures.
    #[error(
        "it is a weak key, which protects nothing: make another one with `meshwork actor create`"
    )]
    Weak,
}

/// The public key of an actor, as 64 hexadecimal digits in text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Returns the key of these bytes.
    ///
    /// # Errors
    /// The bytes are no point, not in canonical form, or a weak key.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Result<Self, InvalidPublicKey> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| InvalidPublicKey::NoPoint)?;
        if key.is_weak() {
            return Err(InvalidPublicKey::Weak);
        }
        // Two encodings of one key would be two actors.
        if key.to_edwards().compress().as_bytes() != bytes {
            return Err(InvalidPublicKey::NoPoint);
        }
        Ok(Self(key))
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        self.0.as_bytes()
    }

    /// Returns the first 8 bytes of the SHA-256 of the key, as 16 hexadecimal digits. The id helps lookups, and
    /// proves nothing.
    #[must_use]
    pub fn key_id(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.as_bytes())[..ID_BYTES])
    }

    /// Returns whether the owner of the key signed the message. The check is strict: it accepts one signature for
    /// each message and key.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let signature = Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        let bytes = hex(text).ok_or(InvalidPublicKey::NotHex)?;
        Self::from_bytes(&bytes)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(self.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl Hash for PublicKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// The bytes of a public key, unchecked: enough to compare keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyBytes(pub [u8; KEY_BYTES]);

impl From<PublicKey> for KeyBytes {
    fn from(key: PublicKey) -> Self {
        Self(*key.as_bytes())
    }
}

impl FromStr for KeyBytes {
    type Err = InvalidPublicKey;

    fn from_str(text: &str) -> Result<Self, InvalidPublicKey> {
        hex(text).map(Self).ok_or(InvalidPublicKey::NotHex)
    }
}

impl fmt::Display for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyBytes({self})")
    }
}

/// Decodes a key of hexadecimal digits in either case.
pub(crate) fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    // The length is checked first, so that no long text is decoded.
    if text.len() != 2 * N {
        return None;
    }
    // Decoding into the array leaves no copy of a secret key on the heap.
    let mut bytes = [0; N];
    let decoded = HEXLOWER_PERMISSIVE.decode_mut(text.as_bytes(), &mut bytes);
    decoded.is_ok().then_some(bytes)
}

/// The secret key of an actor. It is wiped from memory when it is dropped, and its `Debug` shows the public key.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Returns the key of a seed. The seed must come from a cryptographic random generator.
    #[must_use]
    pub fn from_seed(seed: &[u8; KEY_BYTES]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Returns the public key, which verifies signatures of this key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test 2 of RFC 8032, section 7.1: seed, public key, message, signature.
    const RFC_8032: [&str; 4] = [
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ];

    #[test]
    fn the_vector_of_the_rfc() {
        let [seed, public, message, signature] = RFC_8032;
        let key = SecretKey::from_seed(&hex(seed).unwrap());
        assert_eq!(key.public().to_string(), public);
        let message: [u8; 1] = hex(message).unwrap();
        assert_eq!(HEXLOWER.encode(&key.sign(&message)), signature);
        let signature: [u8; SIGNATURE_BYTES] = hex(signature).unwrap();
        assert!(key.public().verifies(&message, &signature));
        assert!(!key.public().verifies(b"s", &signature));
    }

    #[test]
    fn a_text_is_one_key() {
        let text = RFC_8032[1];
        let key: PublicKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(text.to_uppercase().parse(), Ok(key));
        assert_eq!(key.key_id().len(), 16);
        for (bad, error) in [
            (String::new(), InvalidPublicKey::NotHex),
            (text[1..].to_owned(), InvalidPublicKey::NotHex),
            (format!("{text}00"), InvalidPublicKey::NotHex),
            (text.replace('3', "g"), InvalidPublicKey::NotHex),
            // y = 2 is on no point.
            (format!("02{:062}", 0), InvalidPublicKey::NoPoint),
            // The neutral element, and y = 0, of order 4.
            (format!("01{:062}", 0), InvalidPublicKey::Weak),
            ("00".repeat(32), InvalidPublicKey::Weak),
        ] {
            assert_eq!(bad.parse::<PublicKey>(), Err(error), "{bad}");
        }
        // y = 2^255 - 19 + 3, which is y = 3 in another form.
        let other = format!("f0{}7f", "ff".repeat(30));
        assert_eq!(other.parse::<PublicKey>(), Err(InvalidPublicKey::NoPoint));
    }

    #[test]
    fn a_secret_key_is_not_shown() {
        let key = SecretKey::from_seed(&hex(RFC_8032[0]).unwrap());
        let shown = format!("{key:?}");
        assert!(shown.contains(RFC_8032[1]), "{shown}");
        assert!(!shown.contains("4ccd"), "{shown}");
    }
}
