//! The store of a client: its connection, and the context whose jobs the client has.

use std::path::{Path, PathBuf};

use meshwork::context::{ContextHandle, ContextId, Identity, Node, Object, Operation, read_key};
use meshwork::testing::Clock;
use meshwork::{JobId, JobRequest, host_ms};
use meshwork_model::name::NameError;
use meshwork_model::schedule::zone::Zone;
use meshwork_model::spec::{JobSpec, SpecPlace};

use crate::error::Fault;

/// Prefix of the URL of a folder.
const DIRECTORY: &str = "dir:";
/// URL of a store in the memory of this process.
const MEMORY: &str = "memory:";

/// Store of a client, and its context.
#[derive(Debug)]
pub(crate) struct Location {
    pub(crate) url: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) context: Option<ContextKey>,
    /// The clock of a store in memory.
    pub(crate) clock: Clock,
}

/// A context, and the key file of the actor that uses it.
#[derive(Debug)]
pub(crate) struct ContextKey {
    pub(crate) id: ContextId,
    pub(crate) key_file: PathBuf,
}

/// A store that is connected; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) client: meshwork::Client,
    scope: Option<Scope>,
}

/// An actor in a context.
#[derive(Debug, Clone)]
struct Scope {
    me: Identity,
    handle: ContextHandle,
}

impl Location {
    /// Connects. The actor of a context needs the right to read its jobs.
    pub(crate) async fn connect(&self) -> Result<Store, Fault> {
        let client = self.open().await?;
        let Some(ContextKey { id, key_file }) = &self.context else {
            let scope = None;
            return Ok(Store { client, scope });
        };
        let node = Node::of(client.broker());
        let handle = node.context(*id).await?;
        let me = node.identify(read_key(Path::new(key_file))?).await?;
        let client = handle.client(&me, Object::Job, Operation::Read).await?;
        let scope = Some(Scope { me, handle });
        Ok(Store { client, scope })
    }

    async fn open(&self) -> Result<meshwork::Client, meshwork::Error> {
        let of_host = || {
            std::env::var("REDIS_URL")
                .ok()
                .filter(|url| !url.is_empty())
        };
        let url = self.url.clone().or_else(of_host);
        let mut builder = meshwork::Client::builder().name(meshwork::local_name("python"));
        if let Some(namespace) = &self.namespace {
            builder = builder.namespace(namespace);
        }
        let folder = match url.as_deref() {
            Some(MEMORY) => return Ok(self.clock.client()),
            Some(url) => match url.strip_prefix(DIRECTORY) {
                Some(folder) => Some(PathBuf::from(folder)),
                None => return builder.url(url).connect().await,
            },
            None => meshwork::data_directory(),
        };
        match folder {
            Some(folder) => builder.directory(folder).connect().await,
            None => builder.connect().await,
        }
    }
}

impl Store {
    /// Checks that the actor may do this with jobs of the context.
    pub(crate) async fn allow(&self, operation: Operation) -> Result<(), Fault> {
        if let Some(Scope { me, handle }) = &self.scope {
            handle.allow(me.id(), Object::Job, operation).await?;
        }
        Ok(())
    }

    /// Returns the id of a job; in a context a number is that of a job of the actor.
    pub(crate) fn job_id(&self, text: &str) -> Result<JobId, Fault> {
        match &self.scope {
            Some(Scope { me, handle }) => Ok(handle.job_id(me.id(), text)?),
            None => named(text).map_err(Fault::Refused),
        }
    }

    /// Reads a job in JSON.
    pub(crate) fn request(&self, spec: &str) -> Result<JobRequest, Fault> {
        let spec = meshwork_model::read::from_json(spec.as_bytes());
        self.request_of(spec.map_err(Fault::Refused)?)
    }

    /// Returns the request of a job.
    pub(crate) fn request_of(&self, mut spec: JobSpec) -> Result<JobRequest, Fault> {
        let Some(script_type) = spec.script_type.take() else {
            let why = "type: give the name of the task".to_owned();
            return Err(Fault::Refused(why));
        };
        let id = |id: &str| self.job_id(id).map_err(|fault| fault.to_string());
        let awaited = |id: &str| match &self.scope {
            Some(Scope { me, handle }) => Ok(handle.awaited(me.id(), id)),
            None => named(id),
        };
        let place = SpecPlace {
            id: &id,
            awaited: &awaited,
            now_ms: host_ms(),
            zone: &Zone::default(),
        };
        let request = JobRequest::new(script_type.0, "").with_spec(spec, &place);
        request.map_err(|error| Fault::Refused(error.to_string()))
    }
}

fn named(text: &str) -> Result<JobId, String> {
    text.parse().map_err(|error: NameError| error.to_string())
}
