//! `meshwork message send`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use meshwork::context::{MessageJob, MessageView, NewMessage, Node};
use meshwork_model::context::{Message, MessageFormat, MessageType};
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{MessageTarget, PeerName};
use meshwork_model::name::ScriptType;
use serde_json::json;

use super::settle;
use super::wait::wait_for;
use crate::app::App;
use crate::args::parsers;
use crate::args::script::Script;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;

/// Send a message and print its key
///
/// With --job the message contains jobs, else a line of a conversation. Your key signs it; with --api it has no signature.
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
        let new = self.message()?;
        let (of, message) = match context.remote {
            Some(_) => self.by_api(context, &new).await?,
            None => self.signed(context, new).await?,
        };
        if self.wait {
            return wait_for(context, (of, message.key()), None).await;
        }
        settle(context).await?;
        match context.out.is_json() {
            true => context.out.json(&message)?,
            false => context.out.line(message.key())?,
        }
        Ok(Exit::DONE)
    }

    /// Sends a message, signed unless that is not wanted.
    async fn signed(
        &self,
        context: &mut App,
        mut new: NewMessage,
    ) -> Result<(ContextId, Message), CommandError> {
        if let Some(name) = &self.to.node {
            // An unknown node creates no actor and no context.
            let node = Node::of(context.client().await?.broker());
            new.node = Some(node.peer_named(name).await?.card.node);
        }
        let (me, handle) = self.args.create(context).await?;
        context.actor = Some(me.id());
        let message = handle.send(&me, &new).await?;
        Ok((handle.id(), message))
    }

    /// Sends a message by the API, which signs none.
    async fn by_api(
        &self,
        context: &mut App,
        new: &NewMessage,
    ) -> Result<(ContextId, Message), CommandError> {
        let of = self.args.need_for_calls(context).await?;
        let jobs = new.jobs.iter().map(|job| {
            json!({
                "type": job.script_type.as_str(),
                "script": job.script,
                "retries": job.retries,
                "after": job.after,
            })
        });
        let params = json!({
            "context": of,
            "to": self.to.context,
            "node": self.to.node.as_ref().map(PeerName::as_str),
            "type": new.message_type,
            "format": new.format,
            "text": new.text,
            "jobs": jobs.collect::<Vec<_>>(),
            "topic": new.topic,
            "timeout": new.timeout,
            "timeout_ack": new.timeout_ack,
            "timeout_result": new.timeout_result,
        });
        let sent: BTreeMap<String, String> = context.call("message.create", &params).await?;
        let id = sent.get("id").map_or("", String::as_str);
        let key = MessageKey::of_numbers(id).map_err(CommandError::usage)?;
        let message: MessageView = context.call("message.get", &super::params(of, key)).await?;
        Ok((of, message.message))
    }
}
