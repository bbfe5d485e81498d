//! Key files of actors: mode 0600, and never written over another one.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use meshwork_model::actor_key::{KEY_BYTES, MAX_KEY_FILE, SecretKey, is_encrypted};
use zeroize::Zeroizing;

use crate::context::error::{ContextError, KeyFileFault};
use crate::context::secret::passphrase::Passphrase;
use crate::context::secret::private_file::read_private;

/// A new key, of the system's random bytes.
#[must_use]
pub fn new_key() -> SecretKey {
    SecretKey::from_seed(&rand::random::<[u8; KEY_BYTES]>())
}

/// A key file that was read. Its bytes are wiped from memory when it is dropped.
pub struct KeyFile {
    path: PathBuf,
    bytes: Zeroizing<Vec<u8>>,
}

impl KeyFile {
    /// Reads a key file.
    ///
    /// # Errors
    /// [`ContextError::KeyFile`]: it cannot be read, or others may read it.
    pub fn open(path: &Path) -> Result<Self, ContextError> {
        let bytes = read_private(path, MAX_KEY_FILE).map_err(|why| refused(path, why))?;
        Ok(Self {
            path: path.to_owned(),
            bytes,
        })
    }

    /// Returns whether the key is encrypted with a passphrase.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        is_encrypted(&self.bytes)
    }

    /// Returns the key. A passphrase is used only if the file is encrypted.
    ///
    /// # Errors
    /// [`ContextError::KeyFile`]: the passphrase is missing or wrong, or the content is no key file.
    pub fn key(&self, passphrase: Option<&Passphrase>) -> Result<SecretKey, ContextError> {
        let read = || -> Result<SecretKey, KeyFileFault> {
            match passphrase.filter(|_| self.is_encrypted()) {
                Some(passphrase) => Ok(SecretKey::from_file(&passphrase.decrypt(&self.bytes)?)?),
                None => Ok(SecretKey::from_file(&self.bytes)?),
            }
        };
        read().map_err(|why| refused(&self.path, why))
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFile({})", self.path.display())
    }
}

/// Reads a key file that is not encrypted.
///
/// # Errors
/// [`ContextError::KeyFile`]: it cannot be read, others may read it, it is encrypted, or it is no key file.
pub fn read_key(path: &Path) -> Result<SecretKey, ContextError> {
    KeyFile::open(path)?.key(None)
}

/// Writes a key file, and creates its folders. With a passphrase the file is encrypted.
///
/// # Errors
/// [`ContextError::KeyFile`]: the file exists, cannot be encrypted, or the system refuses the write.
pub fn write_key(
    path: &Path,
    key: &SecretKey,
    passphrase: Option<&Passphrase>,
) -> Result<(), ContextError> {
    let write = || -> Result<(), KeyFileFault> {
        let text = match passphrase {
            Some(passphrase) => Zeroizing::new(passphrase.encrypt(&key.to_file())?),
            None => key.to_file(),
        };
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => KeyFileFault::Exists,
            _ => error.into(),
        })?;
        file.write_all(text.as_bytes())?;
        Ok(file.sync_all()?)
    };
    write().map_err(|why| refused(path, why))
}

fn refused(path: &Path, why: KeyFileFault) -> ContextError {
    ContextError::KeyFile {
        path: path.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_key_comes_back_and_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/actor.key");
        let key = new_key();
        write_key(&path, &key, None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read_key(&path).unwrap().public(), key.public());
        let again = write_key(&path, &new_key(), None).unwrap_err().to_string();
        assert!(again.contains("is there already"), "{again}");
        assert_eq!(read_key(&path).unwrap().public(), key.public());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("actor.key");
        write_key(&path, &new_key(), None).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let said = read_key(&path).unwrap_err().to_string();
        assert!(
            said.contains("mode 640") && said.contains("chmod 600"),
            "{said}"
        );
        fs::write(&path, "other").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(
            read_key(&path)
                .unwrap_err()
                .to_string()
                .contains("is no key file")
        );
        let folder = read_key(folder.path()).unwrap_err().to_string();
        assert!(folder.contains("no file"), "{folder}");
    }
}
