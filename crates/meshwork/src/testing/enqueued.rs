//! Jobs that wait in a store.

use std::panic::Location;

use meshwork_model::state::Status;

use crate::{Client, Error, Job, JobFilter, JobHandle};

/// Returns the typed jobs that have not ended, with their payloads: those that wait, are delayed, or run.
///
/// # Errors
/// A call to the server fails, or the payload of a job is not of the type.
///
/// ```
/// use meshwork::Client;
/// use meshwork::testing::{assert_enqueued, enqueued, refute_enqueued};
///
/// #[meshwork::job]
/// struct Pay { order: u64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), meshwork::Error> {
/// let client = Client::in_memory();
/// client.enqueue(Pay { order: 7 }).await?;
/// assert_enqueued::<Pay>(&client, |pay| pay.order == 7).await;
/// refute_enqueued::<Pay>(&client, |pay| pay.order == 8).await;
/// let (job, pay) = &enqueued::<Pay>(&client).await?[0];
/// assert_eq!((job.is_new(), pay.order), (false, 7));
/// # Ok(())
/// # }
/// ```
pub async fn enqueued<J: Job>(client: &Client) -> Result<Vec<(JobHandle<J>, J)>, Error> {
    let filter = JobFilter {
        script_type: Some(J::NAME.parse()?),
        ..JobFilter::default()
    };
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let page = client.find(&filter, from).await?;
        for summary in page.jobs {
            if summary.status().is_some_and(Status::is_final) {
                continue;
            }
            let id = summary.job_id();
            let record = client.status(&id).await?;
            let job = serde_json::from_slice(&record.script).map_err(|source| Error::Payload {
                what: "payload",
                id: id.clone(),
                source,
            })?;
            found.push((client.job(id), job));
        }
        from = page.next;
        if from == 0 {
            return Ok(found);
        }
    }
}

/// Asserts that a job of this type that `is_match` accepts has not ended, and returns it.
///
/// [`enqueued`] has an example.
///
/// # Panics
/// There is none, or the store cannot be read. The message has the line of the call.
#[track_caller]
pub fn assert_enqueued<J: Job>(
    client: &Client,
    is_match: impl Fn(&J) -> bool,
) -> impl Future<Output = JobHandle<J>> {
    let at = Location::caller();
    async move {
        let jobs = read::<J>(client, at).await;
        let open = jobs.len();
        let found = jobs.into_iter().find(|(_, job)| is_match(job));
        let Some((handle, _)) = found else {
            panic!(
                "{at}: none of {open} open jobs of the type {} matches",
                J::NAME
            );
        };
        handle
    }
}

/// Asserts that `is_match` accepts no open job of this type.
///
/// [`enqueued`] has an example.
///
/// # Panics
/// It accepts one, or the store cannot be read. The message has the line of the call.
#[track_caller]
pub fn refute_enqueued<J: Job>(
    client: &Client,
    is_match: impl Fn(&J) -> bool,
) -> impl Future<Output = ()> {
    let at = Location::caller();
    async move {
        let jobs = read::<J>(client, at).await;
        if let Some((handle, _)) = jobs.into_iter().find(|(_, job)| is_match(job)) {
            panic!("{at}: job {} of the type {} matches", handle.id(), J::NAME);
        }
    }
}

async fn read<J: Job>(client: &Client, at: &Location<'_>) -> Vec<(JobHandle<J>, J)> {
    match enqueued::<J>(client).await {
        Ok(jobs) => jobs,
        Err(error) => panic!("{at}: {error}"),
    }
}
