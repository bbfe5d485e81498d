//! A crate outside of the workspace builds the program of README.md, with `meshwork` and tokio only.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::process::{self, Failure};
use crate::sizes;
use crate::workspace::Workspace;

/// Timeout of a build: the first one checks all dependencies.
const LIMIT: Duration = Duration::from_secs(60 * 30);

/// Begins the program in README.md.
const FENCE: &str = "```rust,no_run\n";

/// Page with the numbers of crates.
const PAGE: &str = "docs/library.md";

/// Builds the program with default features and without, and compares the numbers of crates with those of docs/library.md.
pub(crate) fn build(workspace: &Workspace) -> Result<(), Failure> {
    let folder = workspace.target("outside");
    let readme = read(&workspace.root.join("README.md"))?;
    let program = readme
        .split_once(FENCE)
        .and_then(|(_, rest)| rest.split_once("\n```"));
    let Some((program, _)) = program else {
        return Err(Failure::new("README.md has no program in Rust"));
    };
    write(&folder.join("src/main.rs"), program)?;
    // The versions of the workspace: nothing is fetched.
    write(
        &folder.join("Cargo.lock"),
        &read(&workspace.root.join("Cargo.lock"))?,
    )?;
    let all = count(
        workspace,
        &folder,
        r#", features = ["mesh", "passphrase", "sal"]"#,
    )?;
    let least = count(workspace, &folder, ", default-features = false")?;
    check(workspace, &folder)?;
    let default = count(workspace, &folder, "")?;
    check(workspace, &folder)?;
    let text = format!(
        "{default} crates with default features, {least} without, {all} with `mesh`, `passphrase` and `sal`"
    );
    let page = read(&workspace.root.join(PAGE))?.replace('\n', " ");
    match page.contains(&text) {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{PAGE} states other numbers: write `{text}`"
        ))),
    }
}

/// Checks the program with the features of the last manifest.
fn check(workspace: &Workspace, folder: &Path) -> Result<(), Failure> {
    let mut check = workspace.cargo(&["check", "--offline", "--manifest-path"]);
    check.arg(folder.join("Cargo.toml"));
    process::run_quoting(check.env("CARGO_TARGET_DIR", folder.join("target")), LIMIT)
}

/// Writes the manifest, and returns the number of crates that a build compiles, without the program.
fn count(workspace: &Workspace, folder: &Path, features: &str) -> Result<u64, Failure> {
    let library = workspace.root.join("crates/meshwork");
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         meshwork = {{ path = {library:?}{features} }}\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n"
    );
    write(&folder.join("Cargo.toml"), &manifest)?;
    let path = folder.join("Cargo.toml");
    let path = path.to_string_lossy();
    let arguments = ["--offline", "-p", "meshwork", "--manifest-path", &path];
    sizes::crates(workspace, &arguments)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| fault(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| fs::write(path, text));
    written.map_err(|error| fault(path, &error))
}

fn fault(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}
