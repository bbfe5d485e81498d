//! JSON-RPC 2.0 over HTTP: single requests and batches.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use super::answers::{Answer, Unsent};
use super::problem::Problem;
use super::{Shared, answers, json, rest};
use crate::api::access::{Access, KeyRing};
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::find;
use crate::api::hero::{self, Session};
use crate::api::holder::{client, holder};
use crate::api::rpc::{Failure, Handler, answer, is_batch, named, no_method};
use crate::http::Closing;
use crate::http::guard::{Holder, Permit, Share};

/// Runs the methods of the table for a caller.
pub(super) struct Table<'a> {
    pub(super) shared: &'a Shared,
    pub(super) access: Option<&'a Access>,
    pub(super) session: &'a Session,
    /// `Idempotency-Key` of a single request.
    pub(super) key: Option<String>,
    /// The end of the connection.
    pub(super) closing: Option<&'a Closing>,
    pub(super) holder: &'a Holder,
    /// Memory of all answers to the text.
    pub(super) memory: &'a Mutex<Share>,
    /// The socket that the text came from.
    pub(super) socket: Option<&'a Unsent>,
}

impl Table<'_> {
    fn call(&self) -> Call {
        let mut call = self.shared.call(self.access.cloned().map(Extension));
        call.idempotency_key.clone_from(&self.key);
        match self.closing {
            Some(closing) => call.ending_with(closing.begins()),
            None => call,
        }
    }
}

impl Handler for Table<'_> {
    fn run<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Failure>> {
        async move {
            let answers = &self.shared.answers;
            let _page = answers.page(method, self.holder, self.socket).await;
            let result = self.called(method, params).await?;
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            answers::grow(&mut memory, result.get().len())?;
            Ok(result)
        }
        .boxed()
    }
}

impl Table<'_> {
    async fn called(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, ApiError> {
        if let Some(answer) = hero::run(self.call(), self.session, method, params).await {
            return answer;
        }
        let hint = "rpc.discover lists the methods";
        let method = find(method).ok_or_else(|| no_method(method).hint(hint))?;
        let params = named(params)?;
        method.call(self.call(), params).await
    }
}

/// Answers a request or a batch.
pub(super) async fn call(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Problem> {
    let access = request.extensions().get::<Access>().cloned();
    let keys = request.extensions().get::<KeyRing>().cloned();
    let session = Session::new(keys, client(request.extensions()));
    let permit = request.extensions().get::<Arc<Permit>>().cloned();
    let closing = request.extensions().get::<Closing>().cloned();
    rest::check_content_type(request.headers())?;
    let key = rest::idempotency_key(request.headers())?;
    let holder = holder(request.extensions());
    let received = shared.bodies.read(request.into_body(), &holder).await;
    let received = received.map_err(|refusal| Problem::refused(&refusal))?;
    if key.is_some() && is_batch(received.bytes()) {
        let message = "Idempotency-Key: a batch of requests takes none: send them one by one";
        return Err(ApiError::invalid(message).into());
    }
    let _busy = permit.as_ref().map(Permit::busy);
    let _slot = shared.slot(&holder)?;
    let memory = Mutex::new(shared.answers.memory(&holder)?);
    let table = Table {
        shared: &shared,
        access: access.as_ref(),
        session: &session,
        key,
        closing: closing.as_ref(),
        holder: &holder,
        memory: &memory,
        socket: None,
    };
    let text = answer(&table, received.bytes()).await;
    let memory = memory.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(match text {
        Some(text) => json(StatusCode::OK, Answer::new(text, memory).into_bytes()),
        None => (StatusCode::NO_CONTENT, Body::empty()).into_response(),
    })
}
