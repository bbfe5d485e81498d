//! `meshwork message send`.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::context::{MessageJob, NewMessage, Node};
use meshwork_model::context::{MessageFormat, MessageType};
use meshwork_model::mesh::MessageTarget;
use meshwork_model::name::ScriptType;

use super::wait::{print, until_ended};
use crate::app::App;
use crate::args::parsers;
use crate::args::script::Script;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Send a message and print its key
///
/// With --job the message contains jobs, else a line of a conversation. Your key signs it.
#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    /// Context that receives the message, as 8, or bob/8 on the node bob
    #[arg(value_name = "TO")]
    to: MessageTarget,
    /// Text of the message
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// Script to run there; may be given several times
    #[arg(long = "job", value_name = "FILE")]
    jobs: Vec<PathBuf>,
    /// Type of these scripts [default: by extension]
    #[arg(long = "type", value_name = "TYPE", requires = "jobs")]
    script_type: Option<ScriptType>,
    /// Topic of the runner that gets the jobs, as runner20 [default: any worker of their types]
    #[arg(long, value_name = "TOPIC", requires = "jobs")]
    topic: Option<String>,
    /// Let each job wait until the one before has finished
    #[arg(long, requires = "jobs")]
    chain: bool,
    /// Retries of each job after a failure, 0 to 100
    #[arg(long, value_name = "N", default_value_t = 0, requires = "jobs",
          value_parser = parsers::whole::<u8>(0..=100))]
    retries: u8,
    /// Send a letter instead of a line of a conversation
    #[arg(long, conflicts_with = "jobs")]
    mail: bool,
    /// Format of the text: html, text or md
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: MessageFormat,
    /// Longest time until the target has stored the message, in seconds [default: 3600]
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, allow_hyphen_values = true)]
    timeout: Option<Duration>,
    /// Longest time until the target has acknowledged the message, in seconds [default: 7200]
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, allow_hyphen_values = true)]
    timeout_ack: Option<Duration>,
    /// Longest time until the message is processed, in seconds [default: 86400]
    #[arg(long, value_name = "DURATION", value_parser = parsers::job_timeout, allow_hyphen_values = true)]
    timeout_result: Option<Duration>,
    /// Send the message without a signature
    #[arg(long)]
    unsigned: bool,
    /// Wait until the message is processed, and print the results
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    args: ContextArgs,
}

impl Send {
    fn message(&self) -> Result<NewMessage, CommandError> {
        let message_type = match (self.jobs.is_empty(), self.mail) {
            (false, _) => MessageType::Job,
            (true, true) => MessageType::Mail,
            (true, false) => MessageType::Chat,
        };
        let mut new = NewMessage::new(self.to.context, message_type);
        for (at, file) in self.jobs.iter().enumerate() {
            let script = Script::read(file, self.script_type.clone())?;
            new.jobs.push(MessageJob {
                script_type: script.script_type,
                script: script.text,
                timeout: None,
                retries: self.retries,
                env_vars: Default::default(),
                after: at
                    .checked_sub(1)
                    .filter(|_| self.chain)
                    .into_iter()
                    .collect(),
            });
        }
        let seconds = |given: Option<Duration>, default: u32| {
            given.map_or(default, |given| {
                u32::try_from(given.as_secs()).unwrap_or(u32::MAX)
            })
        };
        new.timeout = seconds(self.timeout, new.timeout);
        new.timeout_ack = seconds(self.timeout_ack, new.timeout_ack);
        new.timeout_result = seconds(self.timeout_result, new.timeout_result);
        new.format = self.format;
        new.topic.clone_from(&self.topic);
        new.text.clone_from(&self.text);
        new.signed = !self.unsigned;
        Ok(new)
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let mut new = self.message()?;
        if let Some(name) = &self.to.node {
            // An unknown node creates no actor and no context.
            let node = Node::of(context.client().await?.broker());
            new.node = Some(node.peer_named(name).await?.card.node);
        }
        let (me, handle) = self.args.create(context).await?;
        let message = handle.send(&me, &new).await?;
        let coordinator = super::without_supervisor(context, handle.node()).await?;
        if self.wait {
            let view = until_ended(&handle, &me, message.key(), coordinator.as_ref(), None).await?;
            return print(context, &handle, &me, &view).await;
        }
        if let Some(coordinator) = coordinator {
            coordinator.settle().await?;
        }
        match context.out.is_json() {
            true => context.out.json(&message)?,
            false => context.out.line(message.key())?,
        }
        Ok(Exit::DONE)
    }
}
