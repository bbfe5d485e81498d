//! `meshwork job` with `--api`.

use std::time::Duration;

use meshwork::view::{JobSourceView, JobView, WhyView};
use meshwork_model::job::limits::MAX_TIMEOUT;
use meshwork_model::name::JobId;
use meshwork_model::spec::JobSpec;
use meshwork_model::state::Status;
use meshwork_ops::job::JobIds;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::{OneCommand, jsonl, logs, result, show, submit, why};
use crate::app::App;
use crate::args::routing::UNREAD_TOPIC;
use crate::ephemeral_worker::required;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::follow;
use crate::interrupt::Interrupt;
use crate::out::warn;
use crate::scope::Params;
use crate::single;
use crate::whole_id::only;

/// Longest wait of one call: a proxy may end longer ones.
const WAIT: Duration = Duration::from_secs(50);
/// Time between two looks at a log.
const LOOK: Duration = Duration::from_millis(500);

/// A job that was enqueued.
#[derive(Deserialize)]
struct Created {
    id: String,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Page of log lines.
#[derive(Deserialize)]
struct LogPage {
    lines: Vec<follow::Line<'static>>,
    last: Option<String>,
}

/// The parameters of a job.
pub(super) fn of(id: &JobId, params: Params) -> Map<String, Value> {
    params.with(json!({"id": id.as_str()}))
}

/// Completes the ids of jobs as [`crate::whole_id::complete`], by the API.
///
/// # Errors
/// Several jobs begin as an id, or a call fails.
pub(super) async fn complete(
    app: &App,
    params: Params,
    ids: Vec<&mut JobId>,
) -> Result<(), CommandError> {
    for id in ids {
        let params = params.of_job().with(json!({"id": id.as_str()}));
        let JobIds { ids } = app.call("job.ids", &params).await?;
        let found: Vec<_> = ids.into_iter().map(JobId::foreign).collect();
        *id = only(&found, id)?;
    }
    Ok(())
}

impl OneCommand {
    /// Runs the command by the API.
    pub(super) async fn by_api(
        mut self,
        app: &mut App,
        params: Params,
    ) -> Result<Exit, CommandError> {
        complete(app, params, self.ids()).await?;
        match self {
            Self::Enqueue(submit) => Box::pin(submit.by_api(app, params)).await,
            Self::Wait(wait) => {
                let patience = wait.timeout.unwrap_or(Duration::from_secs(MAX_TIMEOUT));
                let job = ended(app, of(&wait.id, params), patience).await?;
                single::print_answer(&job, &mut app.out)
            }
            Self::Result(result) => Box::pin(result.by_api(app, params)).await,
            Self::Show(show) => {
                let params = of(&show.id, params);
                let job: JobView<'_> = app.call("job.get", &params).await?;
                let source: JobSourceView<'_> = app.call("job.source", &params).await?;
                let why: WhyView<'_> = app.call("job.why", &params).await?;
                let output = single::output_of(&job);
                show::print(app, (job, &source, &why), &output)
            }
            Self::Why(why) => {
                let view: WhyView<'_> = app.call("job.why", &of(&why.id, params)).await?;
                why::print(app, &view)
            }
            Self::Logs(logs) => logs.by_api(app, params).await,
            Self::Approve(approve) => approve.by_api(app, params).await,
        }
    }
}

/// Waits for the end of a job, and reads it.
pub(super) async fn ended(
    app: &App,
    mut params: Map<String, Value>,
    patience: Duration,
) -> Result<JobView<'static>, CommandError> {
    let id = params["id"].as_str().unwrap_or_default();
    let how = format!("job {id} goes on: `meshwork job wait {id}` waits for it");
    let until = Instant::now() + patience;
    let wait = async {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            params.insert("wait".to_owned(), left.min(WAIT).as_secs_f64().into());
            // A repeated wait changes nothing.
            match app
                .retried(async || app.call("job.result", &params).await)
                .await
            {
                Err(error) if error.exit == Exit::NOT_ENDED && left > WAIT => {}
                ended => return ended,
            }
        }
    };
    let interrupt = Interrupt::listen_quietly()?;
    interrupt.or_detach(Box::pin(wait), how).await
}

impl submit::Submit {
    async fn by_api(mut self, app: &mut App, params: Params) -> Result<Exit, CommandError> {
        self.timing.settle()?;
        let script = self.script()?;
        let Some(script) = script.as_ref().filter(|_| self.jsonl.is_none()) else {
            if params.is_placed() {
                return Err(CommandError::usage(submit::LINES_IN_CONTEXT));
            }
            let file = self.jsonl.clone().unwrap_or_default();
            return jsonl::submit(app, &file, self.all(script)).await;
        };
        if self.routing.has_unread_topic(None) {
            return Err(CommandError::usage(UNREAD_TOPIC));
        }
        if self.check_worker.is_required() {
            return Err(required());
        }
        let (patience, has_id) = (self.wait, self.id.is_some());
        let job = self.request(script).await?.build();
        let job = job.map_err(meshwork::Error::from)?;
        let mut spec = JobSpec::written(&job).map_err(CommandError::usage)?;
        // Outside of contexts the new id lets a repeated call store the job once.
        if !has_id && params.is_placed() {
            spec.remove("id");
        }
        let Created { id, warnings } = app.call("job.create", &params.with(spec.into())).await?;
        warn(&warnings);
        let id = JobId::foreign(id);
        if let Some(patience) = patience {
            let ended = ended(app, of(&id, params.of_job()), patience).await?;
            return single::print_answer(&ended, &mut app.out);
        }
        let kept = !params.is_placed() && id != job.id;
        submit::print(app, &id, (kept, warnings))
    }
}

impl result::ResultOf {
    async fn by_api(self, app: &mut App, params: Params) -> Result<Exit, CommandError> {
        let params = of(&self.id, params);
        let job: JobView<'_> = match self.wait {
            Some(patience) => ended(app, params, patience).await?,
            None => app.call("job.get", &params).await?,
        };
        match is_final(&job) {
            true => single::print_answer(&job, &mut app.out),
            false => Err(result::not_ended(&job.id, &job.state)),
        }
    }
}

fn is_final(job: &JobView<'_>) -> bool {
    let status = Status::ALL.into_iter().find(|it| it.as_str() == job.status);
    status.is_some_and(Status::is_final)
}

impl logs::Logs {
    async fn by_api(self, app: &mut App, params: Params) -> Result<Exit, CommandError> {
        let (which, params) = (self.which(), of(&self.id, params));
        if self.follow {
            return follow_by_api(app, params, which).await;
        }
        let job: JobView<'_> = app.call("job.get", &params).await?;
        let source: JobSourceView<'_> = app.call("job.source", &params).await?;
        let (mut stdout, mut stderr) = (job.stdout, job.stderr);
        if stdout.is_empty() && stderr.is_empty() {
            let mut params = params;
            loop {
                let page: LogPage = app.call("job.logs", &params).await?;
                let Some(last) = page.last.filter(|_| !page.lines.is_empty()) else {
                    break;
                };
                for line in page.lines {
                    let log = match &*line.stream {
                        "stdout" => &mut stdout,
                        _ => &mut stderr,
                    };
                    log.push_str(&line.line);
                    log.push('\n');
                }
                params.insert("after".to_owned(), last.into());
            }
        }
        let streams = logs::Streams {
            id: &job.id,
            stdout: stdout.as_bytes(),
            stderr: stderr.as_bytes(),
            // The file is on the host of the worker.
            path: source.log_path.as_deref(),
            file: None,
        };
        streams.print(which, &mut app.out)?;
        Ok(Exit::DONE)
    }
}

/// Prints the output of a job until it has ended. Its outcome becomes the exit code.
async fn follow_by_api(
    app: &mut App,
    params: Map<String, Value>,
    which: logs::Which,
) -> Result<Exit, CommandError> {
    let mut after = params.clone();
    loop {
        let job: JobView<'_> = app.call("job.get", &params).await?;
        loop {
            let page: LogPage = app.call("job.logs", &after).await?;
            let is_last = page.lines.is_empty();
            for line in page.lines {
                if which.includes(&line.stream) {
                    follow::print(&mut app.out, line)?;
                }
            }
            if let Some(last) = page.last {
                after.insert("after".to_owned(), last.into());
            }
            if is_last {
                break;
            }
        }
        app.out.flush()?;
        if is_final(&job) {
            if job.status == Status::Finished.as_str() {
                return Ok(Exit::DONE);
            }
            single::tell_failure(&format!("job {}", job.id), &job);
            return Ok(Exit::FAILED);
        }
        sleep(LOOK).await;
    }
}
