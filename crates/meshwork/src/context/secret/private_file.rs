//! Files with secrets: only their owner may read them.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::context::error::KeyFileFault;

/// Bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// Reads a file that only its owner may read. Of a longer file than `most` bytes, one byte more is returned.
pub(crate) fn read_private(path: &Path, most: usize) -> Result<Zeroizing<Vec<u8>>, KeyFileFault> {
    let file = fs::File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(KeyFileFault::NoFile);
    }
    let mode = about.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyFileFault::Mode { mode });
    }
    // A buffer that never grows leaves no copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 2));
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
