//! Start of a program that is the launcher of its scripts, too.

use super::sandbox::{self, ScriptStage};

/// Scripts whose process is this program.
const STAGES: &[ScriptStage] = &[
    #[cfg(feature = "sal")]
    (super::sal::child::STAGE, super::sal::child::run),
];

/// Enables the launcher for scripts: runtimes start this program again as their launcher. Call it first in `main`,
/// before threads are started and arguments are read; `#[tokio::main]` starts threads:
///
/// ```
/// fn main() -> std::io::Result<()> {
///     meshwork::runtime::init();
///     let runtime = tokio::runtime::Runtime::new()?;
///     runtime.block_on(async { /* the program itself */ });
///     Ok(())
/// }
/// ```
///
/// In a process that was started as the launcher, this does the launcher's work and does not return. Otherwise it
/// returns at once. With a launcher, all processes of a Python script end within milliseconds of its run, its worker or
/// its launcher. One case remains: if a script kills its own launcher, processes that left the script's group survive,
/// unless the program calls [`adopt_orphans`](super::adopt_orphans), too.
///
/// Without this call, or without `/proc`, scripts are children of the program itself. Then processes that leave the
/// process group outlive the run. A killed program ends its scripts only while their interpreter runs Python code: not
/// during a long call of C code, and not after `exec`.
pub fn init() {
    sandbox::init(STAGES);
}
