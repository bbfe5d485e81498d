//! `cargo xtask packages`: the packages for Python and Node.js, each with the native module and the command, and their trials
//! in empty environments.

mod mistakes;
mod node;
mod python;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Failure};
use crate::workspace::Workspace;

/// Limit of a build.
const BUILD: Duration = Duration::from_secs(3600);
/// Limit of an installation, and of a trial.
const INSTALL: Duration = Duration::from_secs(600);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build profile: dist is what is shipped, dev the soonest
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Interpreters of Python that try the wheel
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: Vec<PathBuf>,
    /// Programs of Node.js that try the packages
    #[arg(long, value_name = "PROGRAM", default_value = "node")]
    node: Vec<PathBuf>,
}

/// Builds the packages into `target/packages`, and tries each in an empty environment.
pub(crate) fn build(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let place = Place {
        workspace,
        home: workspace.target("packages"),
        profile: &options.profile,
    };
    let parts = place.parts()?;
    let of_python = python::build(&place, &parts.command, &options.python)?;
    let of_node = node::build(&place, &parts, &options.node)?;
    for file in of_python.into_iter().chain(of_node) {
        let size = fs::metadata(&file).map_err(failed)?.len() / 1_000_000;
        eprintln!("{} ({size} MB)", file.display());
    }
    Ok(())
}

/// Programs that the packages carry.
struct Parts {
    command: PathBuf,
    /// The native module of Node.js.
    module: PathBuf,
}

/// Sources and destination of the packages.
struct Place<'a> {
    workspace: &'a Workspace,
    home: PathBuf,
    profile: &'a str,
}

impl Place<'_> {
    /// Builds the command and the module of Node.js, and returns both without the symbols for debuggers.
    fn parts(&self) -> Result<Parts, Failure> {
        let arguments = [
            "build",
            "--profile",
            self.profile,
            "--package",
            "meshwork-cli",
        ];
        let arguments = [&arguments[..], &["--package", "meshwork-node"]].concat();
        process::run(&mut self.workspace.cargo(&arguments), BUILD)?;
        let folder = match self.profile {
            "dev" => "debug",
            other => other,
        };
        let built = self.workspace.built().with_file_name(folder);
        Ok(Parts {
            command: self.stripped(&built.join("meshwork"), "meshwork")?,
            module: self.stripped(&built.join("libmeshwork_node.so"), "meshwork.node")?,
        })
    }

    /// Copies a program or module without the symbols for debuggers.
    fn stripped(&self, file: &Path, name: &str) -> Result<PathBuf, Failure> {
        let parts = self.home.join("parts");
        fs::create_dir_all(&parts).map_err(failed)?;
        let stripped = parts.join(name);
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&stripped).arg(file);
        process::run(&mut strip, INSTALL)?;
        Ok(stripped)
    }

    fn source(&self, path: &str) -> PathBuf {
        self.workspace.root.join(path)
    }

    /// Returns a folder without files.
    fn empty(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.home.join(name);
        // It may not exist yet.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(failed)?;
        Ok(folder)
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::new(error.to_string())
}

/// Returns a failure if a program of a trial printed something else.
fn expect(who: &str, said: &str, expected: &str) -> Result<(), Failure> {
    match said.trim() == expected {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{who} printed {said:?}, not {expected:?}"
        ))),
    }
}
