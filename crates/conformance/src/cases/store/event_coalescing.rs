//! Events of several jobs with the same change: one entry for up to 32 jobs, without loss of information.

use crate::cases::harness::options::exchange;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    jobs_of_one_call_share_entries,
    what_differs_stands_apart,
    one_alone_is_told_as_ever,
    an_id_with_a_blank_stands_alone,
    each_job_is_told_to_those_who_ask,
];

/// Returns the stored entries: the field that names the jobs, their number, and the change.
async fn entries(world: &World) -> Result<Vec<(String, usize, String)>, crate::cases::Failure> {
    let events = world.keys().events();
    let entries: Vec<(String, Vec<String>)> = world.raw(&["XRANGE", &events, "-", "+"]).await?;
    let entry = |(_, words): (_, Vec<String>)| {
        let jobs = words[1].split(' ').count();
        (words[0].clone(), jobs, words[3].clone())
    };
    Ok(entries.into_iter().map(entry).collect())
}

fn entry(name: &str, jobs: usize, what: &str) -> (String, usize, String) {
    (name.to_owned(), jobs, what.to_owned())
}

/// 70 jobs have entries of 32, 32 and 6; also when they start, and when they end.
async fn jobs_of_one_call_share_entries(world: &World) -> Outcome {
    let jobs: Result<Vec<_>, _> = (0..70).map(|n| world.job(&format!("j{n}"))).collect();
    world.put_jobs(&jobs?).await?;
    let held = world.take(70).await?;
    exchange(world, &Vec::from_iter(&held), 0).await?;
    let mut should = Vec::new();
    for what in ["enqueue", "claim", "finished"] {
        should.extend([32, 32, 6].map(|jobs| entry("jobs", jobs, what)));
    }
    same!(entries(world).await?, should);
    let logged = world.events().await?;
    same!(logged.len(), 210);
    same!(
        logged[69],
        ["j69", "enqueue", "", "osis"].map(str::to_owned)
    );
    same!(logged[209][0], "j69");
    Ok(())
}

/// They differ in the note, the actor, or the change.
async fn what_differs_stands_apart(world: &World) -> Outcome {
    let mut other = world.job("c")?;
    other.route.script_type = "sal".parse()?;
    let jobs = [world.job("a")?, world.job("b")?, other, world.job("d")?];
    world.put_jobs(&jobs).await?;
    let mut jobs = world.take(2).await?;
    let queues = [world.queue()];
    jobs.extend(world.claim("w2", &queues, 1).await?.jobs);
    exchange(world, &[&jobs[0], &jobs[2]], 0).await?;
    let should = [
        entry("jobs", 2, "enqueue"),
        entry("job", 1, "enqueue"),
        entry("job", 1, "enqueue"),
        entry("jobs", 2, "claim"),
        entry("job", 1, "claim"),
        entry("job", 1, "finished"),
        entry("job", 1, "finished"),
    ];
    same!(entries(world).await?, should);
    let next = world.job("e")?;
    world.put_jobs(&[next]).await?;
    exchange(world, &[&jobs[1]], 1).await?;
    let later = [
        entry("job", 1, "enqueue"),
        entry("job", 1, "finished"),
        entry("job", 1, "claim"),
    ];
    let should = [&should[..], &later].concat();
    same!(entries(world).await?, should);
    Ok(())
}

/// The entry has the earlier format, for readers that know only that.
async fn one_alone_is_told_as_ever(world: &World) -> Outcome {
    let job = world.started("a").await?;
    world.finish(&job, "42").await?;
    check!(
        entries(world)
            .await?
            .iter()
            .all(|(name, _, _)| name == "job")
    );
    Ok(())
}

/// Foreign clients may choose any id.
async fn an_id_with_a_blank_stands_alone(world: &World) -> Outcome {
    for id in ["a", "b c", "d", "e"] {
        world.put_foreign(id, &[("script", "1")]).await?;
    }
    world.take(4).await?;
    let jobs: Vec<_> = entries(world).await?;
    let names: Vec<_> = jobs.iter().map(|(name, _, _)| name.as_str()).collect();
    same!(names, ["job", "job", "jobs"]);
    Ok(())
}

/// The verb that reads events returns one for each job.
async fn each_job_is_told_to_those_who_ask(world: &World) -> Outcome {
    world.put(&["a"]).await?;
    world.put_jobs(&[world.job("b")?, world.job("c")?]).await?;
    let events = world.broker.events(None, 0, 10).await?;
    let jobs: Vec<_> = events.iter().map(|event| event.job.as_str()).collect();
    same!(jobs, ["c", "b", "a"]);
    check!(events.iter().all(|event| event.event == "enqueue"));
    Ok(())
}
