//! The plain key file of an actor: a few lines of text. The caller checks the file's permissions.

use zeroize::Zeroizing;

use super::{KEY_BYTES, PublicKey, SecretKey, hex};

/// The first line of a key file.
const HEADER: &str = "meshwork-actor-key-v1";
/// The comment for readers of the file.
const COMMENT: &str =
    "# The secret key of an actor. Whoever has it is that actor: mode 0600, and no copy by mail.";
/// Greatest length of a key file, in bytes.
pub const MAX_KEY_FILE: usize = 4096;
/// First lines of files that are encrypted with a passphrase.
const ENCRYPTED: [&str; 2] = [
    "age-encryption.org/v1",
    "-----BEGIN AGE ENCRYPTED FILE-----",
];

/// The reason why bytes are not a key file. It quotes no part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKeyFile {
    /// The file is too long.
    #[error("it has {len} bytes, and a key file has at most {MAX_KEY_FILE}: is it another file?")]
    TooLong {
        /// Length of the file, in bytes.
        len: usize,
    },
    /// The file is encrypted.
    #[error(
        "it is encrypted with a passphrase: write that into a file of mode 0600 and name it in MESHWORK_ACTOR_PASSPHRASE_FILE"
    )]
    Encrypted,
    /// The file is not text, or its first line is not the header.
    #[error("it does not begin with {HEADER:?}: it is no key file, or one of a newer release")]
    Header,
    /// A line is neither `public` nor `secret`, or occurs twice.
    #[error(
        "line {line} is neither `public` nor `secret` with 64 hexadecimal digits, or occurs twice"
    )]
    Line {
        /// Number of the line, from 1.
        line: usize,
    },
    /// A line is missing.
    #[error("the line `{word}` is missing: the file was cut")]
    Missing {
        /// First word of the line.
        word: &'static str,
    },
    /// The public key is not that of the secret key.
    #[error("its public key is not that of its secret key: the file was changed")]
    Mismatch,
}

/// Returns whether these are the bytes of an encrypted key file, by their beginning.
#[must_use]
pub fn is_encrypted(bytes: &[u8]) -> bool {
    let begins = |head: &&str| bytes.starts_with(head.as_bytes());
    ENCRYPTED.iter().any(begins)
}

impl SecretKey {
    /// Returns the text of a key file, which is wiped from memory when it is dropped.
    #[must_use]
    pub fn to_file(&self) -> Zeroizing<String> {
        let digits = Zeroizing::new(data_encoding::HEXLOWER.encode(self.0.as_bytes()));
        let public = self.public().to_string();
        // A buffer that never grows leaves no copy of the key behind.
        let mut text = Zeroizing::new(String::with_capacity(MAX_KEY_FILE));
        for part in [
            HEADER,
            "\n",
            COMMENT,
            "\npublic ",
            &public,
            "\nsecret ",
            &digits,
            "\n",
        ] {
            text.push_str(part);
        }
        text
    }

    /// Reads a key file. Skips empty lines and those that begin with `#`.
    ///
    /// # Errors
    /// [`InvalidKeyFile`], with the line that is wrong.
    pub fn from_file(bytes: &[u8]) -> Result<Self, InvalidKeyFile> {
        if is_encrypted(bytes) {
            return Err(InvalidKeyFile::Encrypted);
        }
        if bytes.len() > MAX_KEY_FILE {
            return Err(InvalidKeyFile::TooLong { len: bytes.len() });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| InvalidKeyFile::Header)?;
        let mut lines = text.lines().enumerate();
        if lines
            .next()
            .is_none_or(|(_, line)| line.trim_end() != HEADER)
        {
            return Err(InvalidKeyFile::Header);
        }
        let (mut public, mut secret) = (None, None);
        for (at, line) in lines {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = InvalidKeyFile::Line { line: at + 1 };
            let (word, digits) = line.split_once(' ').ok_or(refused)?;
            let bytes = Zeroizing::new(hex::<KEY_BYTES>(digits).ok_or(refused)?);
            let place = match word {
                "public" => &mut public,
                "secret" => &mut secret,
                _ => return Err(refused),
            };
            if place.replace(bytes).is_some() {
                return Err(refused);
            }
        }
        let public = public.ok_or(InvalidKeyFile::Missing { word: "public" })?;
        let secret = secret.ok_or(InvalidKeyFile::Missing { word: "secret" })?;
        let key = Self::from_seed(&secret);
        match PublicKey::from_bytes(&public) {
            Ok(public) if public == key.public() => Ok(key),
            _ => Err(InvalidKeyFile::Mismatch),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> SecretKey {
        SecretKey::from_seed(&[number; 32])
    }

    fn read(text: &str) -> Result<PublicKey, InvalidKeyFile> {
        SecretKey::from_file(text.as_bytes()).map(|key| key.public())
    }

    #[test]
    fn a_file_is_the_key() {
        let file = key(7).to_file();
        let public = key(7).public();
        let secret = "07".repeat(32);
        assert_eq!(
            *file,
            format!("{HEADER}\n{COMMENT}\npublic {public}\nsecret {secret}\n")
        );
        assert_eq!(read(&file), Ok(public));
        let edited = file.replace("\nsecret", "\n\n# mine\nsecret");
        let edited = edited.replace('\n', "\r\n");
        assert_eq!(read(&edited), Ok(public), "as an editor leaves it");
    }

    #[test]
    fn other_files_are_refused_and_not_repeated() {
        let file = key(7).to_file().to_string();
        let other = key(8).public().to_string();
        let lines: Vec<_> = file.lines().collect();
        let secret = lines[3].to_owned();
        let cases = [
            (String::new(), InvalidKeyFile::Header),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
                InvalidKeyFile::Header,
            ),
            (file.replace("key-v1", "key-v2"), InvalidKeyFile::Header),
            (
                file.replace(&secret, ""),
                InvalidKeyFile::Missing { word: "secret" },
            ),
            (
                lines[..2].join("\n"),
                InvalidKeyFile::Missing { word: "public" },
            ),
            (
                file.replace(&lines[2][7..], &other),
                InvalidKeyFile::Mismatch,
            ),
            (
                file.replace(&lines[2][7..], &"00".repeat(32)),
                InvalidKeyFile::Mismatch,
            ),
            (
                format!("{file}{secret}\n"),
                InvalidKeyFile::Line { line: 5 },
            ),
            (format!("{file}more\n"), InvalidKeyFile::Line { line: 5 }),
            (
                file[..file.len() - 2].to_owned(),
                InvalidKeyFile::Line { line: 4 },
            ),
            (
                format!("{file}{}", "#".repeat(MAX_KEY_FILE)),
                InvalidKeyFile::TooLong {
                    len: file.len() + 4096,
                },
            ),
            (
                "age-encryption.org/v1\n-> scrypt".to_owned(),
                InvalidKeyFile::Encrypted,
            ),
        ];
        for (text, error) in cases {
            assert_eq!(read(&text), Err(error), "{text}");
            assert!(!error.to_string().contains("0707"), "{error}");
        }
        assert_eq!(
            SecretKey::from_file(b"\xff").err(),
            Some(InvalidKeyFile::Header)
        );
    }

    proptest! {
        #[test]
        fn every_key_comes_back(seed: [u8; 32]) {
            let key = SecretKey::from_seed(&seed);
            let back = SecretKey::from_file(key.to_file().as_bytes()).unwrap();
            prop_assert_eq!(back.public(), key.public());
            prop_assert_eq!(back.sign(b"m"), key.sign(b"m"));
        }

        #[test]
        fn no_flipped_bit_gives_another_key(bit in 0..2000_usize) {
            let file = key(7).to_file();
            let mut bytes = file.as_bytes().to_vec();
            let bit = bit % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = SecretKey::from_file(&bytes) {
                prop_assert_eq!(read.public(), key(7).public());
            }
        }
    }
}
