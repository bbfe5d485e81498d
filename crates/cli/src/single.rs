//! One job from the enqueue to its printed result.

use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration;

use indicatif::ProgressBar;
use meshwork::view::JobView;
use meshwork::{Client, JobRequest};
use meshwork_model::job::{Job, NewJob};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use serde_json::value::RawValue;

use crate::app::App;
use crate::ephemeral_worker::{self, EphemeralWorker, WorkerTuning};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::{Out, note, script_note};

/// Longest time to cancel a job on an interruption.
const STOPPING: Duration = Duration::from_secs(5);
/// Interval of the spinner's steps.
const WHEEL: Duration = Duration::from_millis(100);

/// Runs the job and prints its result.
pub(crate) async fn run(
    context: &mut App,
    request: JobRequest,
    tuning: WorkerTuning,
) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::listen()?;
    let request = request.reply(true);
    request.clone().build().map_err(meshwork::Error::from)?;
    let client = interrupt.or(context.client()).await?;
    let request = context.with_next_id(request).await?;
    let job = request.clone().build().map_err(meshwork::Error::from)?;
    let mut ephemeral = EphemeralWorker::ensure(&client, &interrupt, (&job.route, tuning)).await?;
    ephemeral.own_jobs([&job.id]);
    context
        .record_in_audit("enqueue job", job.id.as_str())
        .await?;
    let work = Box::pin(work(&client, &mut ephemeral, request, &job));
    let ended = interrupt.or(work).await;
    ephemeral.shutdown().await;
    match ended {
        Ok(ended) => print(&ended, &mut context.out),
        Err(error) => {
            if interrupt.is_urgent() {
                let id = &job.id;
                note(format_args!(
                    "job {id} goes on: `meshwork job wait {id}` waits for it, `meshwork job cancel {id}` cancels it"
                ));
            } else if error.exit != Exit::NOT_ENDED {
                stop(&client, &job.id).await;
            }
            Err(error)
        }
    }
}

/// Enqueues the job and waits for its end, while a worker runs it.
async fn work(
    client: &Client,
    ephemeral: &mut EphemeralWorker,
    request: JobRequest,
    job: &NewJob,
) -> Result<Job, CommandError> {
    let patience = request.wait_budget();
    client.enqueue(request).await?;
    let wheel = wheel(job);
    let mut ended = pin!(client.wait(&job.id, patience));
    let mut ticks = tokio::time::interval(ephemeral_worker::CLAIM_POLL);
    // Concurrent with the wait, since a cancelled call would leave its reply unread.
    let look = async {
        loop {
            ticks.tick().await;
            if ephemeral.is_open() {
                check_claim(client, ephemeral, job).await;
            }
            if let Err(error) = ephemeral.poll().await {
                return error;
            }
        }
    };
    let result = tokio::select! {
        ended = &mut ended => ended,
        error = look => return Err(error),
    };
    wheel.finish_and_clear();
    let ended = result?;
    ephemeral.ended(&ended);
    Ok(ended)
}

/// Checks for a claim of the job. Errors are ignored, since the next check follows.
async fn check_claim(client: &Client, ephemeral: &mut EphemeralWorker, job: &NewJob) {
    let Ok(statuses) = client
        .broker()
        .statuses(std::slice::from_ref(&job.id))
        .await
    else {
        return;
    };
    let dispatched = statuses == [Some(Status::Dispatched)];
    // A job with prerequisites is in no queue.
    ephemeral.seen(!dispatched, dispatched && job.depends_on.is_empty());
}

/// Returns the spinner of a terminal.
fn wheel(job: &NewJob) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let wheel =
        ProgressBar::new_spinner().with_message(format!("{} {}", job.route.script_type, job.id));
    wheel.enable_steady_tick(WHEEL);
    wheel
}

/// Cancels a job that nobody waits for, if the server is reachable.
async fn stop(client: &Client, id: &JobId) {
    let stopped = tokio::time::timeout(STOPPING, client.cancel(id)).await;
    match stopped {
        Ok(Ok(_) | Err(meshwork::Error::JobNotFound { .. })) => {}
        Ok(Err(error)) => note(format_args!("job {id} could not be cancelled: {error}")),
        Err(_) => note(format_args!(
            "job {id} could not be cancelled: the server does not answer"
        )),
    }
}

/// Lines of each stream that a command prints which waits for a job of others.
const LAST_LINES: usize = 10;

/// Prints the end of a job as [`print()`], with the last lines of its output only.
pub(crate) fn print_end(job: &Job, out: &mut Out) -> Result<Exit, CommandError> {
    let output = job.output.as_deref().unwrap_or_default();
    let job = JobView::new(job, job.state(false), out.context);
    print_with((&job, output), out, Some(LAST_LINES))
}

/// Prints the end of a job: its result on stdout, its output and its failure on stderr.
pub(crate) fn print(job: &Job, out: &mut Out) -> Result<Exit, CommandError> {
    let output = job.output.as_deref().unwrap_or_default();
    let job = JobView::new(job, job.state(false), out.context);
    print_with((&job, output), out, None)
}

/// Prints the end of a job of the API as [`print_end`].
pub(crate) fn print_answer(job: &JobView<'_>, out: &mut Out) -> Result<Exit, CommandError> {
    print_with((job, &output_of(job)), out, Some(LAST_LINES))
}

/// Returns the result of a job: a text as it is, another value as JSON.
pub(crate) fn output_of(job: &JobView<'_>) -> Vec<u8> {
    let output = job.output.as_deref().map(RawValue::get).unwrap_or_default();
    let text = serde_json::from_str::<String>(output);
    text.unwrap_or_else(|_| output.to_owned()).into_bytes()
}

fn print_with(
    (job, output): (&JobView<'_>, &[u8]),
    out: &mut Out,
    most: Option<usize>,
) -> Result<Exit, CommandError> {
    let finished = job.status == Status::Finished.as_str();
    if out.is_json() {
        out.json(job)?;
    } else {
        tell_logs((job, output), most);
        if finished {
            out.raw(output)?;
        } else {
            tell_failure(&format!("job {}", job.id), job);
        }
    }
    out.flush()?;
    Ok(if finished { Exit::DONE } else { Exit::FAILED })
}

/// Prints the output of the script, of each stream at most so many of its last lines.
fn tell_logs((job, output): (&JobView<'_>, &[u8]), most: Option<usize>) {
    let output = output.trim_ascii();
    for log in [&job.stdout, &job.stderr] {
        let log = log.as_bytes().trim_ascii_end();
        if log.is_empty() || log.trim_ascii() == output {
            continue;
        }
        let lines: Vec<_> = log.split(|byte| *byte == b'\n').collect();
        let left_out = most.map_or(0, |most| lines.len().saturating_sub(most));
        if left_out > 0 {
            note(format_args!(
                "({left_out} earlier lines: `meshwork job logs {}`)",
                job.id
            ));
        }
        script_note(&lines[left_out..].join(&b'\n'));
    }
}

/// Prints the failure of a job.
pub(crate) fn tell_failure(what: &str, job: &JobView<'_>) {
    let message = job.error.as_deref().unwrap_or("it does not say why");
    note(format_args!("{what} failed: {message}"));
    if let Some(traceback) = &job.traceback {
        note(traceback.trim_end());
    }
}
