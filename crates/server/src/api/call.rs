//! One call of a method: the client of the store, the key of the caller, and what the transport has to know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use data_encoding::HEXLOWER;
use meshwork::Client;
use meshwork_model::keys::context::ActorId;
use meshwork_model::trace::TraceContext;
use sha2::{Digest, Sha256};

use super::access::Access;
use super::census::{Census, Found};
use super::error::{ApiError, Code};
use super::nonces::Nonces;
use super::sessions::{Entered, Sessions};

/// State that all calls share.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) client: Client,
    pub(crate) census: Arc<Census>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) nonces: Arc<Nonces>,
    pub(crate) own_actor: Option<ActorId>,
}

impl Calls {
    /// Returns the state for calls to the store of `client`. Callers that need no key act as `own_actor` in contexts.
    pub(crate) fn new(client: Client, own_actor: Option<ActorId>) -> Self {
        Self {
            client,
            census: Arc::new(Census::new()),
            sessions: Arc::default(),
            nonces: Arc::default(),
            own_actor,
        }
    }
}

/// One call of a method.
#[derive(Debug, Clone)]
pub struct Call {
    /// The store.
    pub(crate) client: Client,
    /// The caller.
    pub access: Access,
    census: Arc<Census>,
    /// True for a page, which many look at for a long time.
    is_of_page: bool,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) nonces: Arc<Nonces>,
    /// Actor of the server, as which callers without keys act in contexts.
    pub(crate) own_actor: Option<ActorId>,
    /// Context of the call, if its parameters name one.
    pub(crate) entered: Option<Arc<Entered>>,
    /// `Idempotency-Key` of the request.
    pub(crate) idempotency_key: Option<String>,
    /// Trace of the request.
    pub(crate) trace: Option<TraceContext>,
    /// Digest of the parameters.
    pub(crate) digest: String,
    status: Arc<AtomicU16>,
}

impl Call {
    /// Returns a call of `access`.
    pub(crate) fn new(shared: &Calls, access: Access) -> Self {
        // Events name the key.
        let client = match access.actor_name() {
            Some(name) => shared.client.acting_as(&name),
            None => shared.client.clone(),
        };
        Self {
            client,
            access,
            census: Arc::clone(&shared.census),
            is_of_page: false,
            sessions: Arc::clone(&shared.sessions),
            nonces: Arc::clone(&shared.nonces),
            own_actor: shared.own_actor,
            entered: None,
            idempotency_key: None,
            trace: None,
            digest: String::new(),
            status: Arc::default(),
        }
    }

    /// Makes it the call of a page: it requests a scan of all keys at most once in 30 s.
    pub(crate) fn of_page(mut self) -> Self {
        self.is_of_page = true;
        self
    }

    /// Returns the last scan of all keys.
    pub(crate) async fn found(&self) -> Result<Arc<Found>, ApiError> {
        let found = match self.is_of_page {
            true => self.census.found_for_page().await,
            false => self.census.found().await,
        };
        let message = "the store has not been scanned yet: ask again";
        found.ok_or_else(|| ApiError::new(Code::StorageError, message))
    }

    /// Gives the call to another caller.
    pub(crate) fn act_as(&mut self, access: Access) {
        if let Some(name) = access.actor_name() {
            self.client = self.client.acting_as(&name);
        }
        self.access = access;
    }

    /// Id of a job that is created with an idempotency key: the same for the same caller and key.
    pub(crate) fn idempotent_id(&self) -> Option<String> {
        let key = self.idempotency_key.as_ref()?;
        let caller = self.access.actor_name().unwrap_or_default();
        let digest = Sha256::digest(format!("{caller}\n{key}"));
        Some(format!("api-{}", &HEXLOWER.encode(&digest)[..32]))
    }

    /// Gives the response the status 202: the job goes on.
    pub(crate) fn accepted(&self) {
        self.status.store(202, Ordering::Relaxed);
    }

    /// Status that the method gave the response, if it is not the usual one.
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.status.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }
}
