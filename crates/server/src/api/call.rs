//! One call of a method: the client of the store, the key of the caller, and what the transport has to know.

use std::ops::Deref;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use meshwork::Client;
use meshwork::context::Caller;
use meshwork_model::api_key::Scope;
use meshwork_model::keys::context::ActorId;
use meshwork_model::route::bindings::Bindings;
use meshwork_model::trace::TraceContext;
use meshwork_ops::{Sessions, Store};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::access::{Access, KeyRing};
use super::census::{Census, Found};
use super::error::{ApiError, Code};
use super::nonces::Nonces;
use super::rights::{CHECK_EVERY, Ground};

/// Greatest number of parts in one call.
const MOST_PARTS: usize = 256;

/// State that all calls share.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) client: Client,
    pub(crate) census: Arc<Census>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) nonces: Arc<Nonces>,
    pub(crate) rights: KeyRing,
    pub(crate) own_actor: Option<ActorId>,
    /// Routes of new jobs without one.
    pub(crate) bindings: Option<Arc<Bindings>>,
}

impl Calls {
    /// Returns the state for calls to the store of `client`. Callers that need no key act as `own_actor` in contexts.
    pub(crate) fn new(client: Client, own_actor: Option<ActorId>) -> Self {
        Self {
            rights: KeyRing::new(client.broker().clone()),
            client,
            census: Arc::new(Census::new()),
            sessions: Arc::default(),
            nonces: Arc::new(Nonces::new()),
            own_actor,
            bindings: None,
        }
    }
}

/// Number of the actor as which a caller acts in contexts: that of its key, or of the server if it needs none.
fn actor_of(access: &Access, own_actor: Option<ActorId>) -> Option<ActorId> {
    match access {
        Access::Key(key) => key.actor,
        Access::Actor(actor) => Some(*actor),
        Access::All | Access::Local(_) => own_actor,
        Access::Nobody => None,
    }
}

/// The store for a caller.
fn store_of(
    client: &Client,
    access: &Access,
    own_actor: Option<ActorId>,
    sessions: &Arc<Sessions>,
) -> Store {
    // Events name the key.
    let client = match access.actor_name() {
        Some(name) => client.acting_as(&name),
        None => client.clone(),
    };
    let through = access.key_name().map(|name| format!("api:{name}"));
    let caller = actor_of(access, own_actor).map(|id| Caller::new(id, through.as_deref()));
    Store::new(client, caller, Arc::clone(sessions)).confined(access.context(), MOST_PARTS)
}

/// Progress of a job or a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// The part that is done, from 0 to 1.
    pub(crate) fraction: f64,
    /// State, and what the job says.
    pub(crate) text: String,
}

/// One call of a method.
#[derive(Debug, Clone)]
pub struct Call {
    /// The store, in the place of the call.
    pub(crate) store: Store,
    /// The caller.
    pub access: Access,
    census: Arc<Census>,
    /// True for a page, which many look at for a long time.
    is_of_page: bool,
    /// True for an agent, who is warned of each type that no worker runs.
    pub(crate) is_of_agent: bool,
    /// Takes the progress of what the call waits for, if its caller wants that.
    pub(crate) steps: Option<Arc<watch::Sender<Progress>>>,
    sessions: Arc<Sessions>,
    pub(crate) nonces: Arc<Nonces>,
    /// Rights of callers.
    pub(crate) rights: KeyRing,
    /// Rights that the call has used, and its clones.
    grounds: Arc<Mutex<Vec<Ground>>>,
    /// Actor of the server, as which callers without keys act in contexts.
    own_actor: Option<ActorId>,
    /// Routes of new jobs without one.
    pub(crate) bindings: Option<Arc<Bindings>>,
    /// `Idempotency-Key` of the request.
    pub(crate) idempotency_key: Option<String>,
    /// Trace of the request.
    pub(crate) trace: Option<TraceContext>,
    /// Digest of the parameters.
    pub(crate) digest: String,
    status: Arc<AtomicU16>,
    /// Cancelled when waits are over, since the connection is to end.
    closing: CancellationToken,
}

impl Call {
    /// Returns a call of `access`.
    pub(crate) fn new(shared: &Calls, access: Access) -> Self {
        Self {
            store: store_of(&shared.client, &access, shared.own_actor, &shared.sessions),
            access,
            census: Arc::clone(&shared.census),
            is_of_page: false,
            is_of_agent: false,
            steps: None,
            sessions: Arc::clone(&shared.sessions),
            nonces: Arc::clone(&shared.nonces),
            rights: shared.rights.clone(),
            grounds: Arc::default(),
            own_actor: shared.own_actor,
            bindings: shared.bindings.clone(),
            idempotency_key: None,
            trace: None,
            digest: String::new(),
            status: Arc::default(),
            closing: CancellationToken::new(),
        }
    }

    /// Ends its waits with this token.
    pub(crate) fn ending_with(mut self, closing: &CancellationToken) -> Self {
        self.closing = closing.clone();
        self
    }

    /// Waits for an event, at most for this time. Returns `None` if the wait is over before.
    pub(crate) async fn wait<T>(
        &self,
        event: impl Future<Output = T>,
        most: Duration,
    ) -> Option<T> {
        tokio::select! {
            biased;
            event = event => Some(event),
            () = self.closing.cancelled() => None,
            () = tokio::time::sleep(most) => None,
        }
    }

    /// Makes it the call of a page: it requests a scan of all keys at most once in 30 s.
    pub(crate) fn of_page(mut self) -> Self {
        self.is_of_page = true;
        self
    }

    /// Makes it the call of an agent.
    pub(crate) fn of_agent(mut self) -> Self {
        self.is_of_agent = true;
        self
    }

    /// Tells of the progress of what it waits for.
    pub(crate) fn telling(mut self, steps: watch::Sender<Progress>) -> Self {
        self.steps = Some(Arc::new(steps));
        self
    }

    /// Returns true for a caller without a key, of a server that is no actor.
    pub(crate) fn is_of_server(&self) -> bool {
        matches!(self.access, Access::All) && self.own_actor.is_none()
    }

    /// Makes this the actor of the server.
    pub(crate) fn with_own_actor(mut self, actor: ActorId) -> Self {
        self.own_actor = Some(actor);
        self.store = store_of(&self.client, &self.access, self.own_actor, &self.sessions);
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
        self.store = store_of(&self.client, &access, self.own_actor, &self.sessions);
        self.access = access;
    }

    /// Refuses a caller without this scope outside of contexts.
    pub(crate) async fn outside(&self, needed: Scope, name: &str) -> Result<(), ApiError> {
        let scope = self.rights.outside(&self.access).await?;
        if scope.is_some_and(|scope| scope.allows(needed)) {
            self.rest_on(Ground::Outside(needed));
            return Ok(());
        }
        let has = scope.map_or_else(
            || "has no rights".to_owned(),
            |it| format!("has the scope {it}"),
        );
        let (message, hint) = match (self.access.context(), self.actor()) {
            (Some(context), _) => (
                format!(
                    "{name} works outside of contexts, and this key is for context {context} alone"
                ),
                "name its context where a method takes one",
            ),
            (None, Some(actor)) => (
                format!(
                    "{name} needs the scope {needed} outside of contexts, and actor {actor} {has} there"
                ),
                "name a context where a method takes one; `meshwork actor grant-node ACTOR --scope SCOPE` gives rights outside of them",
            ),
            (None, None) => (
                format!("{name} needs the scope {needed} outside of contexts"),
                "`meshwork key create NAME --scope user` makes a key",
            ),
        };
        Err(ApiError::new(Code::Forbidden, message).hint(hint))
    }

    /// Number of the actor that the caller acts as in contexts, if there is one.
    pub(crate) fn actor(&self) -> Option<ActorId> {
        actor_of(&self.access, self.own_actor)
    }

    /// Notes a right that the call has used.
    fn rest_on(&self, ground: Ground) {
        let mut grounds = self.grounds.lock().unwrap_or_else(PoisonError::into_inner);
        if !grounds.contains(&ground) {
            grounds.push(ground);
        }
    }

    /// Returns true if the caller has lost a right that the call has used, its key or its actor.
    pub(crate) async fn has_lost(&self) -> bool {
        let grounds = self
            .grounds
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let roles = self.used_roles().into_iter();
        let roles = roles.map(|(context, actor, needs)| Ground::Role(context, actor, needs));
        for ground in grounds.into_iter().chain(roles) {
            // While the store is away a call keeps its rights.
            if let Ok(false) = self.rights.has(&self.access, ground).await {
                return true;
            }
        }
        !self.rights.is_caller(&self.access).await
    }

    /// Waits until the caller has lost one. A call that is short costs no read.
    pub(crate) async fn lost(&self) {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            if self.has_lost().await {
                return;
            }
        }
    }

    /// Runs a step of the call while the caller has the rights that it uses.
    pub(crate) async fn while_allowed<T>(
        &self,
        run: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        tokio::select! {
            biased;
            result = run => result,
            () = self.lost() => {
                let message = "rights that this call needs were revoked while it was under way";
                Err(ApiError::new(Code::Forbidden, message))
            }
        }
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

impl Deref for Call {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
