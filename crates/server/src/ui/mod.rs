//! The dashboard: pages of HTML over the methods of the API, so that scopes, roles and audit are the same. Each page works
//! without its script; with it, parts of a page are read again when something has changed.

mod actions;
mod ansi;
mod assets;
mod caller;
mod changes;
mod figures;
mod forms;
mod front;
mod layout;
mod live;
mod many;
mod pages;
mod parts;
mod reads;
mod search_text;
mod selection;
mod session;
mod text;
mod views;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{any, get, post};
use meshwork::Client;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::http::Listener;
use crate::http::guard::{Authenticate, Guard};
use crate::mcp;
use figures::Poller;
use many::ManyChanges;
use reads::Reads;
use session::Sessions;

pub use front::PROFILE;
pub use session::{Door, LinkToken};

/// Settings of a dashboard.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Path before `/ui/`, for a proxy in front; without a slash at its end.
    pub prefix: String,
    /// True to show no script, no input and no result of a job.
    pub hide_payloads: bool,
    /// True to serve the pages alone, without the API.
    pub alone: bool,
}

/// The dashboard of a store.
#[derive(Debug, Clone)]
pub struct Dashboard(Arc<Shared>);

/// State of all requests.
#[derive(Debug)]
pub(crate) struct Shared {
    api: Api,
    /// Path of all pages, without a slash at its end.
    base: String,
    options: Options,
    sessions: Arc<Sessions>,
    reads: Reads,
    poller: Poller,
    many: ManyChanges,
    searches: Arc<Semaphore>,
}

impl Dashboard {
    /// Returns the dashboard of the store that `client` is connected to, over the methods of `api`.
    #[must_use]
    pub fn new(api: Api, client: &Client, door: Door, options: Options) -> Self {
        let base = format!("{}/ui", options.prefix);
        Self(Arc::new(Shared {
            sessions: Arc::new(Sessions::new(door, base.clone())),
            reads: Reads::default(),
            many: ManyChanges::default(),
            searches: Arc::new(Semaphore::new(search_text::AT_ONCE)),
            poller: Poller::new(client.broker().clone()),
            api,
            base,
            options,
        }))
    }

    /// Checks keys and sessions; `None` if everybody may call all methods.
    #[must_use]
    pub fn authenticate(&self) -> Option<Arc<dyn Authenticate>> {
        let is_open = self.0.sessions.is_open();
        (!is_open).then(|| Arc::clone(&self.0.sessions) as _)
    }

    /// Path of all pages, with a slash at its end.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/", self.0.base)
    }

    /// Reads what open pages share, until it is dropped. Reads nothing while no page is open.
    pub async fn poll(&self) -> ! {
        let poller = self.0.poller.run(self.0.api.calls());
        match self.0.options.alone {
            // No other task scans for the methods of the API.
            true => tokio::select! {
                never = poller => never,
                never = self.0.api.scan() => never,
            },
            false => poller.await,
        }
    }

    /// Serves until `stop`, and then until the requests under way have ended or their grace is over.
    pub async fn serve(&self, listener: Listener, guard: Guard, stop: CancellationToken) {
        let pages = self.pages();
        let router = match self.0.options.alone {
            true => pages,
            false => {
                let agents = mcp::routes(&self.0.api);
                self.0.api.router().merge(agents).merge(pages)
            }
        };
        let lead = middleware::from_fn_with_state(Arc::clone(&self.0), front::lead);
        let router = router.layer(lead);
        self.0.api.serve(router, (listener, guard), stop).await;
    }

    fn pages(&self) -> Router {
        let shared = &self.0;
        let at = |path: &str| format!("{}{path}", shared.base);
        let mut pages = Router::new()
            .route(&shared.base, get(front::to_overview))
            .route(&at("/{*path}"), any(front::nowhere))
            .route(&at("/sign-in"), get(front::sign_in).post(front::open))
            .route(&at("/sign-out"), post(front::close))
            .route(&at("/assets/{name}"), get(assets::file))
            .route(&at("/live"), get(live::changes))
            .route(&at("/log"), get(live::log))
            .route(&at("/do/{method}"), post(actions::run))
            .route(&at("/many/{method}"), post(pages::many::count));
        for (path, handler) in pages::all() {
            pages = pages.route(&at(path), handler);
        }
        pages
            .layer(middleware::from_fn(front::with_headers))
            .with_state(Arc::clone(shared))
    }
}
