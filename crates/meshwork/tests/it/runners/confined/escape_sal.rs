//! Attempts of `attempts.sal`, each with the attempt of `attempts.py` that it repeats by functions of SAL.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use meshwork::runtime::Confinement;
use meshwork_model::outcome::Report;
use meshwork_model::sandbox::Profile;
use meshwork_test_servers::servers::{Tool, need_for, need_program};

use super::super::support::output;
use super::run_in;

const SCRIPT: &str = include_str!("attempts.sal");

/// Sign of success. A function that makes folders writes to a private place where the target is hidden.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// The answer of the script.
    Answer,
    /// This file or folder outside of the sandbox has content.
    File(&'static str),
    /// The file [`MODE`] outside of the sandbox can be executed.
    Mode,
}
use Sign::{Answer, File, Mode};

/// File whose mode an attempt changes.
const MODE: &str = "sal-mode";
/// File to which an attempt appends.
const APPENDED: &str = "sal-appended";

/// Name in the script, the attempt with the same end, and the sign of success.
const ATTEMPTS: &[(&str, &str, Sign)] = &[
    ("read_by_path", "read_by_path", Answer),
    ("read_by_symlink", "read_by_symlink", Answer),
    ("read_by_parents", "read_by_parents", Answer),
    ("read_by_hard_link", "read_by_hard_link", Answer),
    (
        "read_through_worker_root",
        "read_through_worker_root",
        Answer,
    ),
    ("read_shadow", "read_shadow", Answer),
    ("read_after_chdir", "read_by_path", Answer),
    ("copy_from_outside", "read_by_path", Answer),
    ("rsync_from_outside", "read_by_path", Answer),
    ("replace_from_outside", "read_by_path", Answer),
    ("template_from_outside", "read_by_path", Answer),
    ("run_read", "read_by_path", Answer),
    ("run_shell_read", "read_by_path", Answer),
    ("list_outside", "list_outside", Answer),
    ("stat_outside", "stat_outside", Answer),
    ("write_outside", "write_outside", File("sal-written")),
    ("copy_to_outside", "write_outside", File("sal-copied")),
    ("rsync_to_outside", "write_outside", File("sal-synced")),
    ("run_write", "write_outside", File("sal-ran")),
    ("replace_to_outside", "write_outside", File("sal-replaced")),
    ("clone_to_outside", "make_folder_outside", File("sal-tree")),
    ("append_outside", "append_outside", File("sal-appended")),
    (
        "make_folder_outside",
        "make_folder_outside",
        File("sal-made"),
    ),
    ("rename_outside", "rename_outside", Answer),
    ("remove_outside", "remove_outside", Answer),
    ("chmod_outside", "chmod_outside", Mode),
    ("write_system", "write_system", Answer),
    ("environment_of_worker", "environment_of_worker", Answer),
    ("environment_of_victim", "environment_of_victim", Answer),
    ("command_line_of_victim", "command_line_of_victim", Answer),
    ("signal_victim", "signal_victim", Answer),
    ("signal_worker", "signal_worker", Answer),
    ("tcp", "tcp", Answer),
    ("user_namespace", "user_namespace", Answer),
    ("mount", "mount", Answer),
    ("make_device", "make_device", Answer),
];

/// Makes the targets of one round anew.
fn lay_out(outside: &Path) {
    for (_, _, sign) in ATTEMPTS {
        if let File(name) = sign {
            let path = outside.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
    for name in [MODE, APPENDED] {
        fs::write(outside.join(name), "").unwrap();
        fs::set_permissions(outside.join(name), Permissions::from_mode(0o600)).unwrap();
    }
}

fn has_succeeded(sign: Sign, answer: &str, outside: &Path) -> bool {
    let about = |name: &str| fs::metadata(outside.join(name));
    match sign {
        Answer => answer == "ok",
        File(name) => about(name).is_ok_and(|about| about.is_dir() || about.len() > 0),
        Mode => about(MODE).is_ok_and(|about| about.permissions().mode() & 0o100 != 0),
    }
}

/// Returns the attempts whose programs this machine has.
pub(super) fn attempts() -> Vec<(&'static str, &'static str)> {
    let test = "nothing_leaves_a_sandbox";
    let has_rsync = need_for(test, Tool::Rsync).is_some();
    let has_git = need_program(test, "git").is_some();
    let runs = |name: &str| {
        (has_rsync || !name.starts_with("rsync")) && (has_git || !name.starts_with("clone"))
    };
    let all = ATTEMPTS.iter().copied();
    all.map(|(name, same_as, _)| (name, same_as))
        .filter(|(name, _)| runs(name))
        .collect()
}

/// Runs the attempts. Returns the answer to each, and whether it has succeeded.
pub(super) async fn tried(
    profile: Profile,
    input: &str,
    outside: &Path,
) -> Result<BTreeMap<String, (String, bool)>, Report> {
    lay_out(outside);
    let report = run_in(Confinement::of(profile), "sal", SCRIPT, input).await;
    if report.result.is_err() {
        return Err(report);
    }
    let answers: BTreeMap<String, String> = serde_json::from_str(output(&report)).unwrap();
    let ends = ATTEMPTS.iter().filter_map(|(name, _, sign)| {
        let answer = answers.get(*name)?;
        let end = has_succeeded(*sign, answer, outside);
        Some(((*name).to_owned(), (answer.clone(), end)))
    });
    Ok(ends.collect())
}
