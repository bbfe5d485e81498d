//! The command, built as the test is.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the binary: `MESHWORK_BIN`, else one that is built now, beside the calling program.
///
/// # Errors
/// The build failed.
pub fn meshwork_binary() -> io::Result<PathBuf> {
    if let Some(named) = env::var_os("MESHWORK_BIN").filter(|path| !path.is_empty()) {
        return Ok(named.into());
    }
    let own = env::current_exe()?;
    let profile = own.ancestors().skip(1).find(|dir| !dir.ends_with("deps"));
    let profile = profile.ok_or_else(|| io::Error::other("no directory of built programs"))?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = std::process::Command::new(cargo);
    build.args([
        "build",
        "--quiet",
        "--package",
        "meshwork-cli",
        "--bin",
        "meshwork",
    ]);
    build.args(["--profile", profile_of(profile)]);
    if !build
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?
        .success()
    {
        return Err(io::Error::other("meshwork cannot be built"));
    }
    Ok(profile.join("meshwork"))
}

/// Returns the name of the profile that is built into `folder`.
#[must_use]
pub fn profile_of(folder: &Path) -> &str {
    match folder.file_name().and_then(OsStr::to_str) {
        Some(name) if name != "debug" => name,
        _ => "dev",
    }
}
