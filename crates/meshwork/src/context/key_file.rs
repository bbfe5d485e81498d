//! Key files of actors: mode 0600, and never written over another one.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use meshwork_model::actor_key::{KEY_BYTES, MAX_KEY_FILE, SecretKey};

use super::error::{ContextError, KeyFileFault};

/// Bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// A new key, of the system's random bytes.
#[must_use]
pub fn new_key() -> SecretKey {
    SecretKey::from_seed(&rand::random::<[u8; KEY_BYTES]>())
}

/// Reads a key file.
///
/// # Errors
/// [`ContextError::KeyFile`]: it cannot be read, others may read it, or it is no key file.
pub fn read_key(path: &Path) -> Result<SecretKey, ContextError> {
    let read = || -> Result<SecretKey, KeyFileFault> {
        let file = fs::File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(KeyFileFault::NoFile);
        }
        let mode = about.mode() & 0o777;
        if mode & OTHERS != 0 {
            return Err(KeyFileFault::Mode { mode });
        }
        let mut bytes = Vec::with_capacity(MAX_KEY_FILE + 1);
        let most = u64::try_from(MAX_KEY_FILE).unwrap_or(u64::MAX) + 1;
        file.take(most).read_to_end(&mut bytes)?;
        Ok(SecretKey::from_file(&bytes)?)
    };
    read().map_err(|why| refused(path, why))
}

/// Writes a key file, with the folders that it stands in.
///
/// # Errors
/// [`ContextError::KeyFile`]: there is a file already, or the system does not let us.
pub fn write_key(path: &Path, key: &SecretKey) -> Result<(), ContextError> {
    let write = || -> Result<(), KeyFileFault> {
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => KeyFileFault::Exists,
            _ => error.into(),
        })?;
        file.write_all(key.to_file().as_bytes())?;
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_comes_back_and_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/actor.key");
        let key = new_key();
        write_key(&path, &key).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read_key(&path).unwrap().public(), key.public());
        let again = write_key(&path, &new_key()).unwrap_err().to_string();
        assert!(again.contains("is there already"), "{again}");
        assert_eq!(read_key(&path).unwrap().public(), key.public());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("actor.key");
        write_key(&path, &new_key()).unwrap();
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
