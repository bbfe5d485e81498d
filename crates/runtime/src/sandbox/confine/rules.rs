//! Rules of Landlock, which repeat the view of a run below its root folder. Without a root folder of its own they are
//! all that hides files.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use meshwork_model::sandbox::Profile;

use super::view::{Access, View};

/// Version of Landlock whose rights are used. Older kernels enforce a part of them.
const TESTED: ABI = ABI::V7;
/// Version from which on abstract sockets and processes outside cannot be reached.
const SCOPED: u32 = 6;

/// Files of the system that every run uses.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The enforced version of Landlock. 0 without Landlock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Enforced(pub(super) u32);

impl Enforced {
    /// Returns true if abstract sockets of the host cannot be reached.
    pub(super) fn hides_abstract_sockets(self) -> bool {
        self.0 >= SCOPED
    }
}

/// Restricts this process and all that it starts.
pub(super) fn restrict(
    view: &View,
    profile: Profile,
    folder: &Path,
    has_root: bool,
) -> Result<Enforced, RulesetError> {
    let all = AccessFs::from_all(TESTED);
    let read = AccessFs::from_read(TESTED);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(TESTED))?;
    if profile == Profile::Strict {
        // No rule allows a port.
        ruleset = ruleset.handle_access(AccessNet::from_all(TESTED))?;
    }
    let with = |access: Access| {
        let files = view.files.iter().filter(move |(_, has)| **has == access);
        files.map(|(path, _)| path)
    };
    let mut writable: Vec<PathBuf> = with(Access::Write).cloned().collect();
    writable.push(folder.to_owned());
    writable.push("/dev/shm".into());
    let mut devices: Vec<PathBuf> = DEVICES.map(|name| Path::new("/dev").join(name)).into();
    let mut listed: Vec<&Path> = Vec::new();
    if has_root {
        writable.push("/tmp".into());
        devices.push("/dev/pts".into());
        // All that is below it is shown to the run.
        listed.push(Path::new("/"));
    }
    let device = AccessFs::ReadFile
        | AccessFs::WriteFile
        | AccessFs::ReadDir
        | AccessFs::Truncate
        | AccessFs::IoctlDev;
    let list: BitFlags<AccessFs> = AccessFs::ReadDir.into();
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(with(Access::Read), read))?
        .add_rules(path_beneath_rules(["/proc"], read))?
        .add_rules(path_beneath_rules(writable, all))?
        .add_rules(path_beneath_rules(devices, device))?
        .add_rules(path_beneath_rules(listed, list))?
        .restrict_self()?;
    Ok(Enforced(match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as u32,
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    }))
}
