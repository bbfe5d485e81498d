//! Imports the append-only files of a Redis server into a data directory, also those of a server that took it over.

use std::path::{Path, PathBuf};

use super::{OpenError, check_place, create, lock::Lock, refused};
use crate::{engine::Handle, log};

/// An import.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportedAof {
    /// Imported files, in their order.
    pub files: Vec<PathBuf>,
    /// Keys in all databases, with those that have expired meanwhile.
    pub keys: u64,
}

/// Makes the append-only files of a stopped Redis server in `from` the data of the data directory `dir`, which must have
/// none. `from` is the server's directory, or the one with its manifest. The import can be repeated if it was interrupted.
///
/// # Errors
/// [`OpenError`]: a process uses the directory, it has data, or the files cannot be read. Nothing was changed.
pub fn import_aof(dir: &Path, from: &Path) -> Result<ImportedAof, OpenError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(refused(path, "find"));
    let (dir, from) = (absolute(dir)?, absolute(from)?);
    create(&dir)?;
    check_place(&dir)?;
    let lock = Lock::try_take(&dir).map_err(refused(&dir, "lock"))?;
    let Some(_lock) = lock else {
        let holder = Lock::holder(&dir);
        return Err(OpenError::Used { path: dir, holder });
    };
    let engine = Handle::in_memory();
    let files = log::import(&dir, &from, |effects| {
        effects
            .iter()
            .try_for_each(|effect| engine.replay(effect.db, &effect.args))
    })?;
    Ok(ImportedAof {
        files,
        keys: engine.keys(),
    })
}
