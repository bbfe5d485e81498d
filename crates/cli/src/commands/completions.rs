//! `meshwork completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::Error;
use crate::exit::Exit;
use crate::out::Out;

/// Print a script that completes commands and options in a shell
///
/// For bash: source <(meshwork completions bash)
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, out: &mut Out) -> Result<Exit, Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "meshwork", &mut script);
        out.raw(&script)?;
        Ok(Exit::DONE)
    }
}
