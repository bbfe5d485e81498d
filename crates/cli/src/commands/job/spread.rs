//! `meshwork job enqueue --spread`: jobs of a spread queue, one or many.

use std::path::Path;
use std::time::Duration;

use meshwork::JobRequest;
use meshwork::context::{Identity, Node};
use meshwork::spread::{Spread, SpreadName};
use meshwork_model::keys::context::ContextKeys;
use meshwork_model::name::JobId;
use meshwork_model::number::counted;
use meshwork_ops::warnings;
use serde::Serialize;

use super::jsonl::All;
use super::jsonl_source::Source;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{note, warn};
use crate::scope::ActorArgs;
use crate::single;

/// Greatest number of jobs in one call.
const BATCH: usize = 1000;

/// A spread queue that a command enqueues into.
struct Target {
    node: Node,
    me: Identity,
    spread: Spread,
}

#[derive(Debug, Serialize)]
struct Stored<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Target {
    async fn open(
        context: &App,
        actor: &ActorArgs,
        name: SpreadName,
    ) -> Result<Self, CommandError> {
        let (node, me) = actor.identity().open(context).await?;
        let spread = Spread::open(&node, &me, name).await?;
        Ok(Self { node, me, spread })
    }

    /// Writes an entry into the audit trail of the job's part.
    async fn note(&self, id: &JobId) -> Result<(), CommandError> {
        if let Some(part) = ContextKeys::named_in(id.as_str()) {
            let part = self.node.context(part).await?;
            part.noted(&self.me, "enqueue job", id.as_str()).await?;
        }
        Ok(())
    }
}

/// Enqueues a job, and waits for its end for this time, if one is given.
pub(super) async fn enqueue(
    context: &mut App,
    actor: &ActorArgs,
    request: JobRequest,
    patience: Option<Duration>,
) -> Result<Exit, CommandError> {
    let name = name_of(&request)?;
    let target = Target::open(context, actor, name).await?;
    let route = request.destination().clone();
    let id = target.spread.enqueue(request).await?;
    target.note(&id).await?;
    let mut warnings = Vec::new();
    if let Some(part) = ContextKeys::named_in(id.as_str()) {
        let part = target.spread.part(part).await?;
        warnings = warnings::of_stored(&part, [&route], false).await;
        warn(&warnings);
        if let Some(patience) = patience {
            let ended = part.wait(&id, patience).await?;
            return single::print_end(&ended, &mut context.out);
        }
    }
    if context.out.is_json() {
        let id = Some(id.as_str());
        context.out.json(&Stored {
            line: None,
            id,
            error: None,
            warnings,
        })?;
    } else {
        context.out.line(&id)?;
    }
    Ok(Exit::DONE)
}

fn name_of(request: &JobRequest) -> Result<SpreadName, CommandError> {
    let job = request.clone().build().map_err(meshwork::Error::from)?;
    Ok(SpreadName::of(&job.route))
}

/// Enqueues the jobs of a file, which have one queue. All lines are checked first.
pub(super) async fn enqueue_lines(
    context: &mut App,
    actor: &ActorArgs,
    path: &Path,
    all: All,
) -> Result<Exit, CommandError> {
    let source = Source::open(path)?;
    let mut queue: Option<SpreadName> = None;
    source.each(|line, text| {
        let fault = |fault: String| source.fault(line, fault);
        let name = SpreadName::of(&all.job(text).map_err(fault)?.route);
        match &queue {
            Some(known) if *known != name => Err(fault(format!(
                "its queue is {name}, and that of the first line {known}: with --spread, all lines need one queue"
            ))),
            _ => {
                queue = Some(name);
                Ok(())
            }
        }
    })?;
    let Some(name) = queue else {
        note("0 of 0 jobs stored");
        return Ok(Exit::DONE);
    };
    let target = Target::open(context, actor, name).await?;
    let (mut lines, mut batch) = (source.lines()?, Vec::new());
    let (mut number, mut sent, mut exit) = (0, Sent::default(), Exit::DONE);
    while let Some(text) = source.next(&mut lines)? {
        number += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        batch.push((
            number,
            all.request_of(&text)
                .map_err(|fault| source.fault(number, fault))?,
        ));
        if batch.len() == BATCH {
            exit = exit.or(sent
                .send(context, &target, std::mem::take(&mut batch))
                .await?);
        }
    }
    exit = exit.or(sent.send(context, &target, batch).await?);
    note(format_args!(
        "{} of {} stored",
        sent.stored,
        counted(sent.all, "job")
    ));
    Ok(exit)
}

/// Numbers of jobs.
#[derive(Default)]
struct Sent {
    all: usize,
    stored: usize,
}

impl Sent {
    /// Enqueues some jobs, and prints the result of each.
    async fn send(
        &mut self,
        context: &mut App,
        target: &Target,
        batch: Vec<(usize, JobRequest)>,
    ) -> Result<Exit, CommandError> {
        let (lines, requests): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let mut exit = Exit::DONE;
        let answers = target.spread.enqueue_all(requests).await?;
        for (line, answer) in lines.into_iter().zip(answers) {
            self.all += 1;
            self.stored += usize::from(answer.is_ok());
            if let Err(error) = &answer {
                exit = exit.or(Exit::FAILED);
                note(format_args!("line {line}: {error}"));
            }
            if context.out.is_json() {
                let error = answer.as_ref().err().map(ToString::to_string);
                let id = answer.as_ref().ok().map(|id| id.as_str());
                let line = Some(line);
                let warnings = Vec::new();
                context.out.json(&Stored {
                    line,
                    id,
                    error,
                    warnings,
                })?;
            } else if let Ok(id) = &answer {
                context.out.line(id)?;
            }
        }
        context.out.flush()?;
        Ok(exit)
    }
}
