//! Progress of what a call waits for, for a caller who wants to know it.

use std::time::Duration;

use meshwork::Error;
use meshwork::flow::FlowView;
use meshwork::view::JobAbout;
use meshwork_model::job::Job;
use meshwork_model::name::JobId;

use super::call::{Call, Progress};

/// Pause between two looks at a job.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Call {
    fn tell(&self, progress: Progress) {
        if let Some(steps) = &self.steps {
            steps.send_if_modified(|last| {
                let is_new = *last != progress;
                *last = progress;
                is_new
            });
        }
    }

    /// Waits for the end of a job.
    pub(crate) async fn until_ended(&self, id: &JobId, wait: Duration) -> Result<Job, Error> {
        let ended = self.client.wait(id, wait);
        if self.steps.is_none() {
            return ended.await;
        }
        let tells = async {
            loop {
                // An error here is one of the wait, too.
                if let Ok(progress) = self.progress(id).await {
                    self.tell(progress);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            biased;
            ended = ended => ended,
            never = tells => never,
        }
    }

    async fn progress(&self, id: &JobId) -> Result<Progress, Error> {
        let job = self.client.summary(id).await?;
        let states = self.client.states(std::slice::from_ref(&job)).await?;
        let state = states.first().copied().flatten();
        let state = state.map_or(job.status.as_str(), |state| state.as_str());
        let said = JobAbout::new(&job, None).progress_value;
        let text = said.as_ref().and_then(|it| it.message.as_deref());
        Ok(Progress {
            fraction: said.as_ref().map_or(0.0, |it| it.fraction),
            text: match text {
                Some(text) => format!("{state}: {}", job.env_vars.secrets().mask(text)),
                None => state.to_owned(),
            },
        })
    }

    /// Tells how many jobs of a flow have ended.
    pub(crate) fn tell_flow(&self, flow: &FlowView) {
        let open = ["waiting", "ready", "started"];
        let ended = flow.jobs.iter().filter(|job| !open.contains(&job.status));
        let ended = ended.count();
        let all = flow.jobs.len();
        self.tell(Progress {
            fraction: ended as f64 / all.max(1) as f64,
            text: format!("{}: {ended} of {all} jobs have ended", flow.status),
        });
    }
}
