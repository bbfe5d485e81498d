//! Results of prerequisites for a job, and results of a batch for its callback.

use meshwork_model::batch::Callback;
use meshwork_model::job::Input;
use meshwork_model::job::limits::MAX_INPUTS;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::state::Status;

use crate::cases::dependencies::batches::{add, batch_id, open, run, seal};
use crate::cases::harness::world::Got;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    inputs_are_those_of_prerequisites,
    inputs_over_the_limit_are_left_out,
    inputs_of_a_callback_are_those_of_its_batch,
    inputs_of_a_callback_are_bounded,
    inputs_lists_go_with_their_batches,
];

/// Greatest number of a batch's results for a callback.
const LISTED: usize = 1000;

async fn inputs(world: &World, id: &str) -> Got<Vec<Input>> {
    let job = world.read(id).await?;
    Ok(world.broker.inputs(&job).await?)
}

/// Each input has its status and its result, in order, and deleted jobs are included.
async fn inputs_are_those_of_prerequisites(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let mut job = world.job("after")?;
    for id in ["j2", "j1", "j3"] {
        job.depends_on.push(id.parse()?);
    }
    job.input_names.insert("first".to_owned(), "j1".parse()?);
    job.on_failure = meshwork_model::job::OnFailure::Continue;
    world.put_jobs(&[job]).await?;
    let names = world.read("after").await?.input_names;
    same!(names.get("first").map(String::as_str), Some("j1"));
    for id in ["j1", "j2"] {
        let claimed = world.take_one().await?;
        same!(claimed.job.id, id);
        world.finish(&claimed, &format!("of {id}")).await?;
    }
    let failed = world.take_one().await?;
    world.fail(&failed, FailureKind::Permanent).await?;
    world.raw::<()>(&["DEL", &world.key("j2")]).await?;
    let seen = inputs(world, "after").await?;
    let seen: Vec<_> = seen
        .iter()
        .map(|input| (input.id.as_str(), input.status, input.output.as_deref()))
        .collect();
    let finished = Some(Status::Finished);
    same!(
        seen,
        [
            ("j2", None, None),
            ("j1", finished, Some(&b"of j1"[..])),
            ("j3", Some(Status::Error), None)
        ]
    );
    Ok(())
}

/// Inputs within the limit are still returned.
async fn inputs_over_the_limit_are_left_out(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let mut job = world.job("after")?;
    job.depends_on = ["j1", "j2", "j3"]
        .map(|id| JobId::foreign(id.to_owned()))
        .into();
    world.put_jobs(&[job]).await?;
    let large = "x".repeat(MAX_INPUTS - 1);
    for result in ["1", &large, "2"] {
        let claimed = world.take_one().await?;
        world.finish(&claimed, result).await?;
    }
    let sizes = inputs(world, "after").await?;
    let sizes: Vec<_> = sizes
        .iter()
        .map(|input| input.output.as_ref().map(Vec::len))
        .collect();
    same!(sizes, [Some(1), Some(MAX_INPUTS - 1), None]);
    Ok(())
}

/// The order is that of the results.
async fn inputs_of_a_callback_are_those_of_its_batch(world: &World) -> Outcome {
    open(world, "b", &[(Callback::Done, "done")]).await?;
    add(world, "b", &["j1", "j2"]).await?;
    add(world, "b", &["j3"]).await?;
    seal(world, "b").await?;
    for (id, well) in [("j1", true), ("j2", false), ("j3", true)] {
        run(world, id, well).await?;
    }
    let seen = inputs(world, "done").await?;
    let seen: Vec<_> = seen
        .iter()
        .map(|input| (input.id.as_str(), input.output.is_some()))
        .collect();
    same!(seen, [("j1", true), ("j2", false), ("j3", true)]);
    Ok(())
}

/// The first results are returned.
async fn inputs_of_a_callback_are_bounded(world: &World) -> Outcome {
    open(world, "b", &[(Callback::Done, "done")]).await?;
    let ids: Vec<_> = (0..LISTED + 10).map(|n| format!("j{n}")).collect();
    for part in ids.chunks(LISTED - 10) {
        let part: Vec<_> = part.iter().map(String::as_str).collect();
        add(world, "b", &part).await?;
    }
    let listed = world.keys().joined(&batch_id("b")?);
    same!(world.raw::<usize>(&["LLEN", &listed]).await?, LISTED);
    let seen = inputs(world, "done").await?;
    check!(seen.iter().map(|input| &input.id).eq(&ids[..LISTED]));
    Ok(())
}

/// The list goes even if the batch was deleted before.
async fn inputs_lists_go_with_their_batches(world: &World) -> Outcome {
    for batch in ["b1", "b2"] {
        open(world, batch, &[]).await?;
        add(world, batch, &[&format!("j-{batch}")]).await?;
    }
    seal(world, "b1").await?;
    run(world, "j-b1", true).await?;
    world
        .raw::<()>(&["DEL", &world.keys().batch(&batch_id("b2")?)])
        .await?;
    let retention = meshwork_broker::Retention {
        age: std::time::Duration::from_secs(60),
        count: 10,
    };
    world.pass(61_000);
    world.broker.sweep_batches(retention).await?;
    for batch in ["b1", "b2"] {
        let listed = world.keys().joined(&batch_id(batch)?);
        same!(world.raw::<u8>(&["EXISTS", &listed]).await?, 0);
    }
    Ok(())
}
