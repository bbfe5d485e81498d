//! Index of the jobs of a context, by which users without the right to scan list them.

use meshwork_model::keys::context::Counter;

use crate::cases::harness::world::Got;
use crate::cases::of_contexts::contexts::{job_of, new, plain};
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Failure, Outcome, World, cases, same};

cases![jobs_are_listed_without_a_scan];

/// The index has jobs of Meshwork's clients from the beginning, and those of plain clients from their first claim.
async fn jobs_are_listed_without_a_scan(world: &World) -> Outcome {
    in_both(world, async |world| {
        let keys = world.keys().context();
        let keys = keys.ok_or_else(|| Failure::new("no context"))?;
        let index = keys.index(Counter::Job);
        let indexed = async || {
            let members: Got<Vec<String>> = world.raw(&["ZRANGE", &index, "0", "-1"]).await;
            members
        };
        world.put_jobs(&[new(world, 1)?]).await?;
        let first = job_of(world, 1)?;
        same!(indexed().await?, std::slice::from_ref(&first));
        let claimed = world.take_one().await?;
        let second = plain(world, 2, &[("script_type", "osis")]).await?;
        world.take_one().await?;
        same!(indexed().await?, [first.clone(), second.clone()]);
        world.finish(&claimed, "1").await?;
        world.broker.delete(&world.read(&first).await?).await?;
        same!(indexed().await?, std::slice::from_ref(&second));
        // A user of the layout `prefix` may not scan.
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let page = world.broker.list(from).await?;
            found.extend(page.jobs.into_iter().map(|job| job.id));
            from = page.next;
            if from == 0 {
                break;
            }
        }
        same!(found, [second]);
        Ok(())
    })
    .await
}
