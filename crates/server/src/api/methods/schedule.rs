//! Methods of schedules.

use meshwork::NewSchedule;
use meshwork::view::{ScheduleJobView, ScheduleView};
use meshwork_model::api_key::Scope;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::spec::JobSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::new_job;
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::Paging;
use meshwork_ops::params::{self, Span, moment, parse_some};
use meshwork_ops::warnings::{self, Warned};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use HttpVerb::{Delete, Get, Post, Put};
    use Scope::{Admin, User, Viewer};
    vec![
        Method::new(
            ("schedule.put", Admin),
            (Put, "/v1/schedules/{name}"),
            "Create or replace a schedule",
            put,
        ),
        Method::new(
            ("schedule.get", Viewer),
            (Get, "/v1/schedules/{name}"),
            "Read a schedule, with its job",
            get,
        ),
        Method::new(
            ("schedule.list", Viewer),
            (Get, "/v1/schedules"),
            "List schedules, page by page, in no order",
            list,
        ),
        Method::new(
            ("schedule.pause", Admin),
            (Post, "/v1/schedules/{name}/pause"),
            "Let a schedule fire no more",
            pause,
        ),
        Method::new(
            ("schedule.resume", Admin),
            (Post, "/v1/schedules/{name}/resume"),
            "Let a paused schedule fire again",
            resume,
        ),
        Method::new(
            ("schedule.run", User),
            (Post, "/v1/schedules/{name}/run"),
            "Enqueue a job of a schedule now",
            run,
        ),
        Method::new(
            ("schedule.delete", Admin),
            (Delete, "/v1/schedules/{name}"),
            "Delete a schedule; its jobs stay",
            delete,
        ),
    ]
}

/// A schedule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "SchedulePutParams")]
struct PutParams {
    /// Name of the schedule.
    name: String,
    /// Cron expression. Give this or `every`.
    cron: Option<String>,
    /// Interval.
    every: Option<Span>,
    /// Time zone of the cron expression. Default: UTC.
    zone: Option<String>,
    /// First time at which it may fire (RFC 3339).
    start_at: Option<String>,
    /// Time after which it does not fire (RFC 3339).
    end_at: Option<String>,
    /// Rule for missed slots.
    catch_up: Option<String>,
    /// Rule for a slot whose previous job has not ended.
    overlap: Option<String>,
    /// The job.
    job: JobSpec,
}

/// The name of a schedule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "ScheduleParams")]
struct NameParams {
    /// Name of the schedule.
    name: String,
}

async fn shown(call: &Call, name: &str) -> Result<Reply<ScheduleView>, ApiError> {
    let there = call.client.schedule(name)?.show().await?;
    Ok(Reply::new(&ScheduleView::from(&there)))
}

async fn put(call: Call, params: PutParams) -> Result<Reply<Warned<ScheduleView>>, ApiError> {
    let job = new_job::request_in(&call, "job", params.job)?;
    let route = job.destination().clone();
    let mut request = match (&params.cron, params.every) {
        (Some(cron), None) => NewSchedule::cron(cron, job)?,
        (None, Some(every)) => NewSchedule::every(every.0, job)?,
        _ => return Err(ApiError::invalid("cron and every: give one of them")),
    };
    if let Some(zone) = &params.zone {
        request = request.zone(zone)?;
    }
    if let Some(at) = &params.start_at {
        request = request.start(moment("start_at", at)?);
    }
    if let Some(at) = &params.end_at {
        request = request.end(moment("end_at", at)?);
    }
    if let Some(rule) = parse_some::<CatchUp>("catch_up", params.catch_up.as_deref())? {
        request = request.catch_up(rule);
    }
    if let Some(rule) = parse_some::<Overlap>("overlap", params.overlap.as_deref())? {
        request = request.overlap(rule);
    }
    let schedule = call.client.schedule(&params.name)?;
    schedule.replace(request).await?;
    Ok(Reply::new(&Warned {
        answer: ScheduleView::from(&schedule.show().await?),
        warnings: warnings::of_stored(&call.client, [&route], call.is_of_agent).await,
    }))
}

async fn get(call: Call, params: NameParams) -> Result<Reply<ScheduleJobView<'static>>, ApiError> {
    let there = call.client.schedule(&params.name)?.show().await?;
    Ok(Reply::borrowed(&ScheduleJobView::from(&there)))
}

/// Page of schedules.
#[derive(Debug, Serialize, JsonSchema)]
struct SchedulePage {
    /// The schedules, in no order.
    schedules: Vec<ScheduleView>,
    /// Cursor of the next page; null after the last one.
    next: Option<String>,
}

async fn list(call: Call, page: Paging) -> Result<Reply<SchedulePage>, ApiError> {
    let limit = page.limit()?;
    let step = async |from: u64| {
        let page = call.client.schedules(from).await?;
        let schedules = page.schedules.iter().map(ScheduleView::from);
        Ok((schedules.collect(), page.next))
    };
    let cursor = page.cursor.as_deref();
    // One step, so that a call costs the same in a large store.
    let (schedules, next) = params::scanned(cursor, limit, 1, step).await?;
    Ok(Reply::new(&SchedulePage { schedules, next }))
}

async fn pause(call: Call, params: NameParams) -> Result<Reply<ScheduleView>, ApiError> {
    call.client.schedule(&params.name)?.pause().await?;
    shown(&call, &params.name).await
}

async fn resume(call: Call, params: NameParams) -> Result<Reply<ScheduleView>, ApiError> {
    call.client.schedule(&params.name)?.resume().await?;
    shown(&call, &params.name).await
}

/// Job of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
struct StartedJob {
    /// Id of the job.
    id: String,
}

async fn run(call: Call, params: NameParams) -> Result<Reply<StartedJob>, ApiError> {
    let id = call.client.schedule(&params.name)?.run().await?;
    let id = id.to_string();
    Ok(Reply::new(&StartedJob { id }))
}

/// A schedule that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
struct DeletedSchedule {
    /// Name of the schedule.
    name: String,
}

async fn delete(call: Call, params: NameParams) -> Result<Reply<DeletedSchedule>, ApiError> {
    call.client.schedule(&params.name)?.remove().await?;
    let name = params.name;
    Ok(Reply::new(&DeletedSchedule { name }))
}
