//! Call of a function, within its time limit.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use meshwork_model::outcome::{Failure, Report};

use super::context::ActionContext;
use super::error::ActionError;
use super::handler::Act;
use super::message::Message;
use crate::handler::function::LOST_GRACE;
use meshwork_runtime::{Run, Runtime, StopReason, panic_text};

/// Call of a function, as a runtime.
struct Call {
    act: Arc<dyn Act>,
    message: Arc<Message>,
    context: ActionContext,
}

/// Returns the runtime for the call of a function.
pub(super) fn call(
    act: &Arc<dyn Act>,
    message: &Arc<Message>,
    context: ActionContext,
) -> Arc<dyn Runtime> {
    message.run().expected = Some(context.expected());
    Arc::new(Call {
        act: Arc::clone(act),
        message: Arc::clone(message),
        context,
    })
}

impl Runtime for Call {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        Box::pin(async move {
            let (act, context) = (Arc::clone(&self.act), self.context.clone());
            let data = context.action.data.clone();
            // Decoding of the data happens before the function's first step.
            let act = async move { act.act(data, context).await };
            let act = async {
                let ended = AssertUnwindSafe(act).catch_unwind().await;
                ended.unwrap_or_else(|panic| Err(ActionError::panicked(panic_text(&*panic))))
            };
            tokio::pin!(act);
            let (failure, grace) = tokio::select! {
                biased;
                given = &mut act => return self.message.ended(given),
                () = tokio::time::sleep_until(run.deadline) => (Failure::timeout(), run.grace),
                reason = run.stop.stopped() => match reason {
                    StopReason::Requested => (Failure::stopped(), run.grace),
                    StopReason::Lost => (Failure::stopped(), LOST_GRACE.min(run.grace)),
                },
            };
            self.context.stop.cancel();
            match tokio::time::timeout(grace, act).await {
                // A result that arrives at the deadline counts.
                Ok(given) => self.message.ended(given),
                Err(_) => Report::failed(failure),
            }
        })
    }
}
