//! Pictures of the dashboard for readers: the browser test takes them of the store that it fills.

use crate::process::Failure;
use crate::suite;
use crate::workspace::Workspace;

/// The test that takes them, as arguments for cargo.
const TEST: &str = "-p meshwork-cli --features otlp --test it ui::browser::pages_hold_in_a_browser";

pub(crate) fn write(workspace: &Workspace) -> Result<(), Failure> {
    let folder = workspace.root.join("docs/images");
    let folder = folder.to_string_lossy();
    let cargo: Vec<String> = TEST.split(' ').map(str::to_owned).collect();
    let selection = suite::Selection {
        cargo: &cargo,
        binaries: &[],
        environment: &[("MESHWORK_PICTURES", &folder)],
        ..suite::Selection::default()
    };
    suite::test(workspace, &selection)
}
