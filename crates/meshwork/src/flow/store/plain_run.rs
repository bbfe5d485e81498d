//! Runs of plain runners, which write only the record of a job. A failed run is retried as `retries` allows.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_flow::run::End;
use meshwork_model::keys::context::JobKey;
use meshwork_model::route::Route;
use meshwork_model::stored;

use super::FlowError;
use super::node::place;
use super::results::ResultSlot;
use super::step::Step;
use super::view::View;

/// Pause before the first retry without `backoff`, as for other jobs. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause, as for other jobs.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Greatest length of an error from a result, in bytes.
const LONGEST_ERROR: usize = 10_000;

impl Step<'_> {
    /// Marks the flow as started, since a plain runner that starts its first job does not.
    pub(super) fn note_start(&mut self, view: &mut View) {
        let status = view.record.get_mut("status");
        if let Some(status) = status.filter(|status| *status == "dispatched") {
            "started".clone_into(status);
            self.moves.note(&[("status", "started".to_owned())]);
        }
    }

    /// Opens an approval again whose record ended without an answer: the right to write jobs is no right to approve.
    pub(super) fn reopen(&mut self, view: &View, at: ResultSlot, key: JobKey) {
        let (node, key) = (place(at.0, at.1), self.flows.keys().job(key));
        tracing::warn!(flow = %view.id, job = key, "approval finished without an answer: opened again");
        let seen = view.nodes.get(&node).map_or("", String::as_str);
        self.moves.reopen(&node, seen, &key);
    }

    /// Handles a failed run that no worker of Meshwork reported: it is retried, or the job fails for good.
    pub(super) async fn failed_plainly(
        &mut self,
        view: &mut View,
        at: ResultSlot,
        key: JobKey,
    ) -> Result<(), FlowError> {
        let fields = ["error", "result", "mw_attempt", "script_type", "mw_queue"];
        let mut found = self.flows.job_fields(&[key], &fields).await?;
        let mut found = found.pop().unwrap_or_default().into_iter();
        let mut next = || found.next().flatten();
        let error = error(next(), next());
        let mut text = || Some(String::from_utf8_lossy(&next()?).into_owned());
        // The start of a run without a lease counted no attempt.
        let runs = text().and_then(|text| text.parse().ok()).unwrap_or(0) + 1;
        let script_type = text().and_then(|text| text.parse().ok());
        let of_type = script_type.map(|name| Route::to(name).queue(self.flows.broker().keys()));
        let queue = text().filter(|text| !text.is_empty()).or(of_type);
        let node = &self.plan.jobs[at.0];
        let generation = self.generation(view, at);
        if let Some(queue) = queue
            && runs <= node.retries
            && view.state.stop.is_none()
        {
            let name = place(at.0, at.1);
            let key = self.flows.keys().job(key);
            let pause = pause(node.backoff_ms, runs);
            self.moves
                .rerun((&name, generation), (&key, &queue), pause, &error);
        } else {
            let end = End::Failed(error);
            self.finalize(view, at, &end, Some(key));
            // The place was released, so it can end.
            let _ = view.state.ended(at.0, at.1, generation, end);
        }
        let _ = self.flush_if_full().await?;
        Ok(())
    }
}

/// Returns the pause after this number of failed runs, in milliseconds.
fn pause(first: Option<u64>, runs: u32) -> u64 {
    let first = first.unwrap_or(FIRST_PAUSE.as_millis() as u64);
    let doubled = first.saturating_mul(1 << (runs - 1).min(u64::BITS / 2));
    doubled.min(LONGEST_PAUSE.as_millis() as u64)
}

/// Returns the error of a plain runner: that of the result, else the field `error`, else the result itself. An earlier
/// run may have written the field.
fn error(error: Option<Vec<u8>>, result: Option<Vec<u8>>) -> String {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let result = result.unwrap_or_default();
    let map: Option<BTreeMap<String, String>> = serde_json::from_slice(&result).ok();
    let of_map = map.and_then(|mut map| map.remove("error"));
    let written = || error.map(text);
    let plain = || stored::plain_output(result).map(text);
    let is_there = |text: &String| !text.is_empty();
    let said = of_map.filter(is_there);
    let said = said.or_else(|| written().filter(is_there)).or_else(plain);
    let mut said = said.unwrap_or_else(|| "its runner gave no reason".to_owned());
    said.truncate(said.floor_char_boundary(LONGEST_ERROR));
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_where_the_runner_has_written_it() {
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(error(bytes("boom"), bytes("{}")), "boom");
        assert_eq!(error(bytes("old"), bytes(r#"{"error":"boom"}"#)), "boom");
        assert_eq!(error(None, bytes(r#"{"error":"boom"}"#)), "boom");
        assert_eq!(error(bytes(""), bytes(r#"{"result":"boom"}"#)), "boom");
        assert_eq!(error(None, None), "its runner gave no reason");
    }

    #[test]
    fn pauses_double_and_are_bounded() {
        assert_eq!((pause(None, 1), pause(Some(3_000), 3)), (1_000, 12_000));
        assert_eq!(pause(None, u32::MAX), 600_000);
    }
}
