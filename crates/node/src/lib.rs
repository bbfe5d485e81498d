//! The native module of the Node.js package `meshwork`: a client of the store. Jobs are JSON in both directions; the types for
//! people are in `packages/node`.

mod client;
mod error;

use std::sync::Arc;

use error::ClientError;
use napi::bindgen_prelude::{PromiseRaw, ToNapiValue};
use napi::{Env, Error, Result};
use napi_derive::napi;

/// A client of a store. It connects with the first call.
#[napi]
pub struct Client {
    // Calls share it: Node.js frees this object at the end of a thread, when calls may still run.
    inner: Arc<client::Client>,
}

#[napi]
impl Client {
    /// A client of the store at a URL.
    #[napi(constructor)]
    #[must_use]
    pub fn new(url: Option<String>, namespace: Option<String>) -> Self {
        let inner = client::Client::new(url, namespace);
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Enqueues a job in JSON, and returns its id. With `reply`, its end is sent to those who wait for it.
    ///
    /// # Errors
    /// The job is wrong, or the store does not answer.
    #[napi]
    pub fn enqueue<'e>(
        &self,
        env: &'e Env,
        spec: String,
        reply: bool,
    ) -> Result<PromiseRaw<'e, String>> {
        self.call(env, async move |client| client.enqueue(&spec, reply).await)
    }

    /// Enqueues jobs in JSON, and returns their ids. Nothing is enqueued if one of them is wrong.
    ///
    /// # Errors
    /// A job is wrong, or the store does not answer.
    #[napi]
    pub fn enqueue_many<'e>(
        &self,
        env: &'e Env,
        specs: Vec<String>,
    ) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.call(env, async move |client| client.enqueue_many(&specs).await)
    }

    /// Returns a job in JSON.
    ///
    /// # Errors
    /// There is no such job, or the store does not answer.
    #[napi]
    pub fn job<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, String>> {
        self.call(env, async move |client| client.job(&id).await)
    }

    /// Waits until a job has ended, at most this number of seconds, and returns it in JSON; null if it has not ended.
    ///
    /// # Errors
    /// There is no such job, or the store does not answer.
    #[napi]
    pub fn wait<'e>(
        &self,
        env: &'e Env,
        id: String,
        seconds: Option<f64>,
    ) -> Result<PromiseRaw<'e, Option<String>>> {
        self.call(env, async move |client| {
            match client.wait(&id, seconds).await {
                Err(ClientError::ResultTimeout(_)) => Ok(None),
                ended => ended.map(Some),
            }
        })
    }

    /// Cancels a job, and returns what became of it.
    ///
    /// # Errors
    /// There is no such job, or the store does not answer.
    #[napi]
    pub fn cancel<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, String>> {
        self.call(env, async move |client| client.cancel(&id).await)
    }

    /// Returns the lines of the log of a job, a list of texts in JSON.
    ///
    /// # Errors
    /// There is no such job, or the store does not answer.
    #[napi]
    pub fn logs<'e>(&self, env: &'e Env, id: String) -> Result<PromiseRaw<'e, String>> {
        self.call(env, async move |client| client.logs(&id).await)
    }

    /// Closes the connection. A later call opens it again.
    #[napi]
    pub fn close(&self) {
        self.inner.close();
    }

    /// Starts a call, and returns its promise.
    fn call<'e, T, F>(
        &self,
        env: &'e Env,
        act: impl FnOnce(Arc<client::Client>) -> F,
    ) -> Result<PromiseRaw<'e, T>>
    where
        T: ToNapiValue + Send + 'static,
        F: Future<Output = std::result::Result<T, ClientError>> + Send + 'static,
    {
        let call = act(Arc::clone(&self.inner));
        let failed = |error: ClientError| Error::from_reason(error.into_message());
        env.spawn_future(async move { call.await.map_err(failed) })
    }
}
