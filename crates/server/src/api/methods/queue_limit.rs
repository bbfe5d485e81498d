//! The limits of a queue.

use std::collections::BTreeMap;

use meshwork_model::api_key::Scope;
use meshwork_model::queue::{QueueSetting, Rate};
use meshwork_model::sandbox::Limit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::queue::{CHANGE, InPlace, changed};
use crate::api::call::Call;
use crate::api::error::ApiError;
use crate::api::method::{HttpVerb, Method, Reply};
use meshwork_ops::params::{parse, parse_some};
use meshwork_ops::queue::{QueueState, refuse_unknown};

/// The method.
pub(in crate::api) fn methods() -> Vec<Method> {
    vec![Method::new(
        ("queue.limit", Scope::Admin),
        (HttpVerb::Put, "/v1/queues/{queue}/limits"),
        "Change the limits of a queue; those that are not given stay, null removes one",
        limit,
    )]
}

/// New limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "QueueLimitParams")]
struct LimitParams {
    /// The queue.
    queue: String,
    /// True to limit it although it does not exist yet.
    #[serde(default)]
    create: bool,
    /// Greatest number of jobs that may wait.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    length: Option<Option<u64>>,
    /// Greatest number of jobs that run at once.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    concurrency: Option<Option<u64>>,
    /// Rate at which jobs start, such as `10/1m`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    rate: Option<Option<String>>,
    /// Greatest number of jobs of one key that run at once.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    key_concurrency: Option<Option<u64>>,
    /// Rate at which jobs of one key start.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    key_rate: Option<Option<String>>,
    /// Greatest size of a job, in bytes.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<u64>")]
    payload: Option<Option<u64>>,
    /// Profile of the sandbox of its jobs: `open`, `standard` or `strict`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    sandbox: Option<Option<String>>,
    /// Limits of runs, by resource: `memory`, `disk` and `output` in bytes, `cpu` in milliseconds, `processes`, `files`.
    /// Null removes one.
    #[serde(default)]
    run_limits: BTreeMap<String, Option<u64>>,
    /// True if keys take turns.
    fair: Option<bool>,
    /// Weights of keys in a fair queue, 1 to 100. Null removes one.
    #[serde(default)]
    weights: BTreeMap<String, Option<u64>>,
}

/// Reads a value that may be null, apart from one that is missing.
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Returns the changes of the sandbox.
fn sandbox(
    profile: Option<Option<String>>,
    limits: BTreeMap<String, Option<u64>>,
) -> Result<Vec<QueueSetting>, ApiError> {
    let profile = profile.map(|name| parse_some("sandbox", name.as_deref()));
    let profile = profile.transpose()?.map(QueueSetting::Sandbox);
    let limits = limits.into_iter().map(|(name, value)| {
        let known = Limit::ALL.into_iter().find(|limit| limit.as_str() == name);
        let limit = known.ok_or_else(|| {
            let names = Limit::ALL.map(Limit::as_str).join(", ");
            ApiError::invalid(format!("run_limits: `{name}` is none of {names}"))
        })?;
        Ok(QueueSetting::RunLimit(limit, value))
    });
    profile.into_iter().map(Ok).chain(limits).collect()
}

async fn limit(call: Call, params: InPlace<LimitParams>) -> Result<Reply<QueueState>, ApiError> {
    let InPlace {
        beside: place,
        own: params,
    } = params;
    let rate = |name: &str, given: &Option<Option<String>>| {
        let rate = given.as_ref();
        let parsed = rate.map(|it| it.as_deref().map(|it| parse::<Rate>(name, it)).transpose());
        parsed.transpose()
    };
    let rates = (
        rate("rate", &params.rate)?,
        rate("key_rate", &params.key_rate)?,
    );
    let sandbox = sandbox(params.sandbox, params.run_limits)?;
    let weights = params.weights.into_iter();
    // A weight of 1 is the default.
    let weights = weights.map(|(key, n)| QueueSetting::Weight(key, n.filter(|n| *n != 1)));
    let settings: Vec<_> = [
        params.concurrency.map(QueueSetting::Concurrency),
        rates.0.map(QueueSetting::Rate),
        params.key_concurrency.map(QueueSetting::KeyConcurrency),
        rates.1.map(QueueSetting::KeyRate),
        params.payload.map(QueueSetting::Payload),
        params.fair.map(QueueSetting::Fair),
    ]
    .into_iter()
    .flatten()
    .chain(sandbox)
    .chain(weights)
    .collect();
    let (length, create) = (params.length, params.create || place.spread);
    let limit = async |call: Call, list: String| {
        refuse_unknown(&call.client, &list, create).await?;
        call.noted("limit queue", &list).await?;
        if !settings.is_empty() {
            call.client.update_queue(&list, &settings).await?;
        }
        if let Some(length) = length {
            call.client.set_max_length(Some(&list), length).await?;
        }
        Ok(())
    };
    changed(call, (place, params.queue), CHANGE, limit).await
}
