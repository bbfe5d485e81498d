//! `meshwork completions`.

use clap_complete::Shell;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;

/// Print a script that completes commands and options in a shell
///
/// For bash: source <(meshwork completions bash)
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut (context.command_line)(),
            "meshwork",
            &mut script,
        );
        context.out.raw(&script)?;
        Ok(Exit::DONE)
    }
}
