//! Passphrases of key files: from files or typed without an echo. An argument would be visible to other users of the host.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use console::Term;
use meshwork::context::Passphrase;

use crate::environment;
use crate::error::CommandError;

/// Names the file with the passphrase of the key file that is used.
const FILE: &str = "MESHWORK_ACTOR_PASSPHRASE_FILE";

/// The options of commands that make a key file.
#[derive(Debug, clap::Args)]
pub(crate) struct NewPassphrase {
    /// Encrypt the key file with the passphrase in this file, which only you may read: one line [default: not encrypted]
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Encrypt the key file with a passphrase that is typed
    #[arg(long, conflicts_with = "passphrase_file")]
    passphrase_prompt: bool,
}

impl NewPassphrase {
    /// The passphrase, if the file is to be encrypted.
    pub(crate) fn read(&self) -> Result<Option<Passphrase>, CommandError> {
        if let Some(path) = &self.passphrase_file {
            return Ok(Some(Passphrase::from_file(path)?));
        }
        if !self.passphrase_prompt {
            return Ok(None);
        }
        if !is_interactive() {
            return Err(CommandError::usage(
                "there is no terminal for the passphrase: name a file with --passphrase-file",
            ));
        }
        let typed = typed("passphrase for the new key file: ")?;
        match typed.is_same(&self::typed("the same again: ")?) {
            true => Ok(Some(typed)),
            false => Err(CommandError::usage(
                "the two passphrases differ; nothing was created: try again",
            )),
        }
    }
}

/// The passphrase of an encrypted key file: from the file that the environment names, or typed. None where nobody can type.
pub(crate) fn of(key_file: &Path) -> Result<Option<Passphrase>, CommandError> {
    if let Some(path) = environment::var_os(FILE).filter(|path| !path.is_empty()) {
        return Ok(Some(Passphrase::from_file(Path::new(&path))?));
    }
    match is_interactive() {
        true => typed(&format!("passphrase of {}: ", key_file.display())).map(Some),
        false => Ok(None),
    }
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn typed(prompt: &str) -> Result<Passphrase, CommandError> {
    let term = Term::stderr();
    let line = term
        .write_str(prompt)
        .and_then(|()| term.read_secure_line());
    let line = line.map_err(|source| CommandError::system("read the passphrase", &source))?;
    let passphrase = Passphrase::new(&line);
    passphrase
        .map_err(|why| CommandError::usage(format_args!("the passphrase cannot be used: {why}")))
}
