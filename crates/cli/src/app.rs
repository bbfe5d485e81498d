//! Shared state of all commands: the connection settings and stdout.

use std::collections::BTreeMap;
use std::io;

use meshwork::context::{ContextHandle, Identity};
use meshwork::{Client, Error as MeshworkError, JobRequest, Target, local_name};
use meshwork_broker::conn::ConnectError;
use meshwork_broker::{Backoff, Broker};
use meshwork_model::keys::context::{ActorId, ContextKeys};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;
use meshwork_model::time::duration_of;
use meshwork_ops::Store;
use meshwork_ops::params::MAX_LIMIT;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::args::location::DataLocation;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, note};
use crate::remote::{Remote, RpcError, on_store, read};

/// Greatest length of an object in an audit entry, in bytes. A longer one is cut.
const MAX_AUDIT_OBJECT: usize = 200;

/// Settings shared by all commands.
pub(crate) struct App {
    pub(crate) place: DataLocation,
    /// The API that is used in place of the store, if any.
    pub(crate) remote: Option<Remote>,
    pub(crate) namespace: Namespace,
    pub(crate) out: Out,
    /// True with `--verbose`.
    pub(crate) verbose: bool,
    /// Context of the node that the command uses, if any.
    pub(crate) entered: Option<Entered>,
    /// Actor as which methods of the API are called on the store, if any.
    pub(crate) actor: Option<ActorId>,
    /// Client of the store, once it is connected.
    pub(crate) near_client: OnceCell<Client>,
    /// Ends the command with an error from any task, such as the loss of the store.
    pub(crate) fatal: UnboundedSender<CommandError>,
    /// Builder of the whole command line, for completions.
    pub(crate) command_line: fn() -> clap::Command,
}

/// Context that a command uses, with its client.
pub(crate) struct Entered {
    pub(crate) me: Identity,
    pub(crate) handle: ContextHandle,
    pub(crate) client: Client,
}

impl App {
    /// Returns the names of all keys.
    pub(crate) fn keys(&self) -> JobKeys {
        let of_context = self.entered_keys();
        of_context.unwrap_or_else(|| JobKeys::new(self.namespace.clone()))
    }

    /// Returns the printed name of a queue; with `--verbose` its whole key.
    pub(crate) fn queue_name(&self, queue: &str) -> String {
        // The API gives lists of contexts, too.
        let far = self.remote.as_ref();
        let far = far.and_then(|_| ContextKeys::queue_name_in(queue));
        match (self.verbose, far) {
            (true, _) => queue.to_owned(),
            (false, Some(name)) => name.to_owned(),
            (false, None) => self.keys().queue_name(queue).to_owned(),
        }
    }

    /// Returns the printed name of a queue of a store; with `--verbose` its whole key.
    pub(crate) fn queue_in(&self, store: &Store, queue: &str) -> String {
        match self.verbose {
            true => queue.to_owned(),
            false => store.client.broker().keys().queue_name(queue).to_owned(),
        }
    }

    /// Connects a client, or returns that of the command's context.
    pub(crate) async fn client(&self) -> Result<Client, CommandError> {
        if let Some(client) = self.entered_client() {
            return Ok(client.clone());
        }
        let client = self.near_client.get_or_try_init(|| self.connect_client());
        client.await.cloned()
    }

    async fn connect_client(&self) -> Result<Client, CommandError> {
        let connect = async |target: &Target| Broker::connect(target, self.keys()).await;
        let broker = self.connected(connect).await?;
        self.end_when_lost(broker.conn().lost());
        Ok(Client::new(broker.acting_as(&local_name("cli"))))
    }

    /// Calls a method of the API: of the one that is used in place of the store, else on the store.
    pub(crate) async fn call<A: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<A, CommandError> {
        let params = to_raw_value(params).map_err(RpcError::NoObject)?;
        // It is large, and would be a part of each command.
        let answer = Box::pin(self.answer(method, &params)).await?;
        read(&answer)
    }

    async fn answer(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, CommandError> {
        let Some(remote) = &self.remote else {
            return on_store((&self.client().await?, self.actor), method, &params).await;
        };
        self.retried(async || remote.connect().await).await?;
        remote.call(method, params).await
    }

    /// Reads the pages of a list of the API: up to `most` items of this field of its answers. Returns the cursor of the rest,
    /// if there are more.
    pub(crate) async fn pages<A: DeserializeOwned>(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        (field, most): (&str, usize),
    ) -> Result<(Vec<A>, Option<String>), CommandError> {
        let mut items = Vec::new();
        loop {
            let left = most - items.len();
            params.insert("limit".to_owned(), left.min(MAX_LIMIT).into());
            let mut page: BTreeMap<String, Box<RawValue>> = self.call(method, &params).await?;
            let found: Vec<A> = read(&page.remove(field).unwrap_or_default())?;
            let next: Option<String> = read(&page.remove("next").unwrap_or_default())?;
            items.extend(found);
            match next {
                Some(next) if items.len() < most => {
                    params.insert("cursor".to_owned(), next.into());
                }
                next => return Ok((items, next)),
            }
        }
    }

    /// Connects a client; none if the API is used.
    pub(crate) async fn near(&self) -> Result<Option<Client>, CommandError> {
        match self.remote {
            Some(_) => Ok(None),
            None => Ok(Some(self.client().await?)),
        }
    }

    /// Ends the command with an error when `lost` returns, which is the reason for the loss of the store.
    fn end_when_lost(&self, lost: impl Future<Output = String> + Send + 'static) {
        let fatal = self.fatal.clone();
        tokio::spawn(async move {
            let reason = lost.await;
            // Without a receiver the command has ended already.
            let _ = fatal.send(CommandError::new(Exit::SERVER, io::Error::other(reason)));
        });
    }

    /// Repeats `connect` for `--connect-timeout`, with growing pauses, while its errors are temporary. Prints the first
    /// error on stderr.
    pub(crate) async fn connected<T>(
        &self,
        connect: impl AsyncFn(&Target) -> Result<T, ConnectError>,
    ) -> Result<T, CommandError> {
        let target = self.place.target()?;
        self.retried(async || {
            connect(&target).await.map_err(|error| {
                let temporary = error.is_temporary();
                CommandError::from(MeshworkError::from(error)).temporary(temporary)
            })
        })
        .await
    }

    /// Repeats an idempotent call in the same way as [`Self::connected`].
    pub(crate) async fn retried<T>(
        &self,
        call: impl AsyncFn() -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let limit = self.place.connect_timeout;
        let (until, mut backoff, mut is_noted) = (Instant::now() + limit, Backoff::new(), false);
        loop {
            let error = match call().await {
                Ok(connected) => return Ok(connected),
                Err(error) => error,
            };
            let left = until.saturating_duration_since(Instant::now());
            if !error.is_temporary() || left.is_zero() {
                return Err(error);
            }
            if !std::mem::replace(&mut is_noted, true) {
                let limit = duration_of(limit);
                note(format_args!("retrying for up to {limit}: {error}"));
            }
            // The last attempt starts when the time is over.
            let _ = tokio::time::timeout(left, backoff.wait()).await;
        }
    }

    /// Returns the client of the command's context.
    pub(crate) fn entered_client(&self) -> Option<&Client> {
        self.entered.as_ref().map(|entered| &entered.client)
    }

    /// Returns the key names of the command's context.
    pub(crate) fn entered_keys(&self) -> Option<JobKeys> {
        let entered = self.entered.as_ref();
        entered.map(|entered| JobKeys::of_context(entered.handle.keys().clone()))
    }

    /// Sets the id of a new job to the next number of the command's context, if there is one.
    pub(crate) async fn with_next_id(
        &self,
        request: JobRequest,
    ) -> Result<JobRequest, CommandError> {
        match self.entered_client() {
            Some(client) => Ok(request.id(client.next_job_id().await?)),
            None => Ok(request),
        }
    }

    /// Writes an entry into the audit trail of the command's context. A change writes it first, so that an interrupted one has
    /// an entry.
    pub(crate) async fn record_in_audit(
        &self,
        what: &str,
        object: &str,
    ) -> Result<(), CommandError> {
        let Some(Entered { me, handle, .. }) = &self.entered else {
            return Ok(());
        };
        let object = &object[..object.floor_char_boundary(MAX_AUDIT_OBJECT)];
        Ok(handle.noted(me, what, object).await?)
    }
}
