//! prerequisites of a context: gates, messages and flows for which a job waits.

use meshwork_model::job::Job;

use crate::cases::harness::options::open;
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Outcome, World, cases, check, same};

cases![gates_and_other_ends_of_a_context];

async fn gates_and_other_ends_of_a_context(world: &World) -> Outcome {
    in_both(world, async |world| {
        let caller = |name: &str| {
            Ok::<_, crate::cases::Failure>(format!("{}{name}", world.named("PREFIX")?))
        };
        let (flow, message) = (caller("flow:7")?, caller("message:12:3")?);
        let mut job = Job::default();
        job.depends_on
            .extend(["approved".to_owned(), flow.clone(), message.clone()]);
        for (key, status) in [(&flow, "started"), (&message, "dispatched")] {
            world.raw::<()>(&["HSET", key, "status", status]).await?;
        }
        let status = |word: &str| Some(word.to_owned());
        let expected = [
            ("gate approved".to_owned(), None),
            (flow.clone(), status("started")),
            (message.clone(), status("dispatched")),
        ];
        same!(open(world, &job).await?, expected);
        world
            .raw::<()>(&["SADD", &world.named("GATES")?, "approved"])
            .await?;
        for (key, status) in [(&flow, "error"), (&message, "processed")] {
            world.raw::<()>(&["HSET", key, "status", status]).await?;
        }
        check!(open(world, &job).await?.is_empty());
        Ok(())
    })
    .await
}
