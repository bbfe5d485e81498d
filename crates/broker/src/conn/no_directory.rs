//! Data directories of a program without the embedded engine: it cannot open them.

use std::path::Path;

use super::{Conn, ConnectError};

/// Refuses to open a data directory.
pub(super) async fn open(path: &Path) -> Result<Conn, ConnectError> {
    let source = "this program has no embedded engine: build it with the feature `embedded`, or give the URL of a server";
    Err(ConnectError::Directory {
        path: path.to_owned(),
        source: source.into(),
    })
}
