//! Options for the key of the node and for its Mycelium daemon.

use std::path::PathBuf;

use meshwork::context::{new_key, read_key, write_key};
use meshwork::mesh::{Daemon, MeshError};
use meshwork_model::actor_key::SecretKey;

use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::config_folder;

/// The key of the node.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NodeKeyArgs {
    /// Key file of the node, the same for all its supervisors [default: meshwork/node.key in $XDG_CONFIG_HOME, else in
    /// ~/.config]
    #[arg(long, value_name = "FILE", env = "MESHWORK_NODE_KEY")]
    node_key: Option<PathBuf>,
}

impl NodeKeyArgs {
    fn path(&self) -> Result<PathBuf, CommandError> {
        match &self.node_key {
            Some(path) => Ok(path.clone()),
            None => Ok(config_folder("--node-key")?.join("node.key")),
        }
    }

    /// Returns the key of the node.
    pub(crate) fn open(&self) -> Result<SecretKey, CommandError> {
        let path = self.path()?;
        match path.exists() {
            true => Ok(read_key(&path)?),
            false => Err(CommandError::usage(format_args!(
                "the key file {} of this node does not exist: `meshwork mesh card` creates it; --node-key names another one",
                path.display()
            ))),
        }
    }

    /// Same as [`Self::open`]. Creates a key if there is no file. Returns the path if this call created the file.
    pub(crate) fn create(&self) -> Result<(SecretKey, Option<PathBuf>), CommandError> {
        let path = self.path()?;
        if path.exists() {
            return Ok((read_key(&path)?, None));
        }
        let key = new_key();
        write_key(&path, &key, None)?;
        Ok((key, Some(path)))
    }
}

/// The Mycelium daemon of this host.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DaemonArgs {
    /// JSON-RPC address of the Mycelium daemon of this host
    #[arg(long, value_name = "URL", env = "MESHWORK_MYCELIUM", default_value = Daemon::DEFAULT_URL)]
    mycelium: String,
}

impl DaemonArgs {
    pub(crate) fn daemon(&self) -> Result<Daemon, CommandError> {
        Ok(Daemon::new(&self.mycelium)?)
    }
}

impl From<MeshError> for CommandError {
    fn from(error: MeshError) -> Self {
        let exit = match error {
            MeshError::Url { .. } => Exit::USAGE,
            _ => Exit::SERVER,
        };
        Self::new(exit, error)
    }
}
