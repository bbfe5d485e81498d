//! tidy
use crate::process::Failure;
use crate::workspace::Workspace;
pub(crate) fn tidy(_w: &Workspace) -> Result<(), Failure> {
    Ok(())
}
