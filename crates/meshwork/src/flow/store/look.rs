//! Polls of the places that may still run: their deadlines, the states of jobs of foreign workers, and messages.

use meshwork_broker::flow::{MAX_MOVES, StepDone};
use meshwork_flow::run::{End, Phase, Stop};
use meshwork_model::flow::{Wait, Work};
use meshwork_model::keys::context::JobKey;
use meshwork_model::state::Status;
use serde_json::Value;

use super::FlowError;
use super::results::{GONE, ResultSlot};
use super::sender::{SENT, SINCE, Waiting};
use super::step::{LOOK, Step};
use super::view::View;

impl Step<'_> {
    /// Polls the changes that no script reports: timeouts, and the states of jobs of foreign workers.
    pub(super) async fn look(&mut self, view: &mut View) -> Result<(), FlowError> {
        let now = self.flows.broker().now().await?;
        self.now = now;
        if view.state.stop.is_none() && view.number("mw_expires").is_some_and(|at| at <= now) {
            view.state.stop(Stop::TimedOut);
            self.moves.note(&[("mw_stop", "timeout".to_owned())]);
        }
        let looked = view.number("mw_looked").unwrap_or(0);
        let due = now >= looked + LOOK.as_millis() as u64;
        let runs = |at: &ResultSlot| self.plan.jobs[at.0].has_worker();
        let active: Vec<ResultSlot> = active(view).filter(|at| due || !runs(at)).collect();
        self.next = None;
        if active.is_empty() {
            return Ok(());
        }
        if due {
            self.moves.note(&[("mw_looked", now.to_string())]);
        }
        for places in active.chunks(MAX_MOVES) {
            let places = places
                .iter()
                .filter_map(|it| Some((*it, view.job(self.plan, *it)?)));
            let places: Vec<(ResultSlot, JobKey)> = places.collect();
            let keys: Vec<JobKey> = places.iter().map(|(_, key)| *key).collect();
            let found = self
                .flows
                .job_fields(&keys, &["status", "mw_until", "mw_stop", SENT, SINCE])
                .await?;
            for ((at, key), fields) in places.into_iter().zip(found) {
                let message = self.of_message(at, key, &fields).await?;
                let text = |n: usize| fields.get(n)?.as_deref().map(String::from_utf8_lossy);
                let status = text(0).and_then(|word| word.parse::<Status>().ok());
                let until = text(1).and_then(|ms| ms.parse::<u64>().ok());
                if status == Some(Status::Started) && runs(&at) {
                    self.note_start(view);
                }
                if status == Some(Status::Error) && text(2).is_none() && runs(&at) {
                    self.failed_plainly(view, at, key).await?;
                    continue;
                }
                let is_question = matches!(self.plan.jobs[at.0].work, Work::Approve(_));
                let end = match status {
                    _ if message.is_some() => message.unwrap_or(End::Cancelled),
                    Some(Status::Finished) if !is_question => End::Finished(Value::Null),
                    Some(Status::Error) if text(2).is_some() => End::Cancelled,
                    Some(Status::Error) => End::Failed(String::new()),
                    None if text(0).is_none() => End::Failed(GONE.to_owned()),
                    _ if until.is_some_and(|until| until <= now) => self.over(at),
                    _ => {
                        if status == Some(Status::Finished) {
                            self.reopen(view, at, key);
                        }
                        self.look_at(until);
                        continue;
                    }
                };
                self.finalize(view, at, &end, Some(key));
                let generation = self.generation(view, at);
                // The place was released, so it can end.
                let _ = view.state.ended(at.0, at.1, generation, end);
                // A full commit is written now; it can be repeated.
                if self.flush_if_full().await? != StepDone::Done {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the end of a place that waits for a message, if there is one. `fields` are those that [`Self::look`] reads.
    async fn of_message(
        &mut self,
        at: ResultSlot,
        key: JobKey,
        fields: &[Option<Vec<u8>>],
    ) -> Result<Option<End>, FlowError> {
        let text = |n: usize| std::str::from_utf8(fields.get(n)?.as_deref()?).ok();
        let is_open = text(0) == Some(Status::Started.as_str()) && text(2).is_none();
        if !is_open || !self.plan.jobs[at.0].waits_for_message() {
            return Ok(None);
        }
        let sent = text(3).filter(|sent| !sent.is_empty());
        let since = text(4).and_then(|ms| ms.parse().ok()).unwrap_or(self.now);
        let waiting = Waiting {
            at,
            key,
            sent,
            since,
        };
        self.message_end(&waiting).await
    }

    /// Returns the end of a place after its deadline: failure for an approval, success for a delay.
    fn over(&self, (job, _): ResultSlot) -> End {
        match self.plan.jobs[job].work {
            Work::Approve(_) | Work::Wait(Wait::Message { .. }) => {
                End::Failed("timeout".to_owned())
            }
            _ => End::Finished(Value::Null),
        }
    }
}

/// Returns the places that may still run.
fn active(view: &View) -> impl Iterator<Item = ResultSlot> + '_ {
    let jobs = view.state.jobs.iter().enumerate();
    jobs.flat_map(|(job, run)| {
        let own = matches!(run.phase, Phase::Released).then_some((job, None));
        let items = run.items.iter().flatten().enumerate();
        let items = items.filter(|(_, item)| item.phase.is_active());
        own.into_iter()
            .chain(items.map(move |(item, _)| (job, Some(item))))
    })
}
