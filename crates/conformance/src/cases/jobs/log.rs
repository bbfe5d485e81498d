//! log: stores the output of a run while it runs.

use meshwork_broker::{Error, Logged, MAX_ITEMS};
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::sandbox::{Effective, Limit, Profile, RunUsage, Usage};

use crate::cases::harness::world::LEASE_MS;
use crate::cases::store::events::events_of;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    lines_are_kept_in_order,
    bytes_are_kept_as_they_are,
    they_are_kept_for_7_days_after_the_last,
    progress_is_in_the_record,
    usage_is_in_the_record_and_in_an_event,
    nothing_to_say_writes_nothing,
    another_token_writes_nothing,
    a_job_that_has_ended_takes_no_lines,
    a_job_that_is_gone_does_not_appear,
    a_long_log_keeps_its_end,
    more_than_1000_lines_are_refused,
    a_log_of_another_kind_costs_no_run,
    a_run_asked_for_again_begins_anew,
];

fn log(world: &World) -> String {
    world.keys().log(&JobId::foreign("j1".to_owned()))
}

type Entries = Vec<(String, Vec<Vec<u8>>)>;

/// Returns the lines, each with its stream.
async fn lines(world: &World) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let entries: Entries = world.raw(&["XRANGE", &log(world), "-", "+"]).await?;
    let line = |(_, words): (_, Vec<Vec<u8>>)| {
        let mut words = words.into_iter();
        let stream = words.next().unwrap_or_default();
        (
            String::from_utf8_lossy(&stream).into_owned(),
            words.next().unwrap_or_default(),
        )
    };
    Ok(entries.into_iter().map(line).collect())
}

/// Each line has the name of its stream.
async fn lines_are_kept_in_order(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let first = [("stdout", &b"one"[..]), ("stderr", b"two")];
    same!(
        world.broker.log(&claimed, &first, None).await?,
        Logged::Logged
    );
    same!(
        world
            .broker
            .log(&claimed, &[("stdout", b"three")], None)
            .await?,
        Logged::Logged
    );
    let should = [("stdout", "one"), ("stderr", "two"), ("stdout", "three")];
    let should = should.map(|(stream, line)| (stream.to_owned(), line.as_bytes().to_vec()));
    same!(lines(world).await?, should);
    Ok(())
}

/// Lines may be empty, and need not be text.
async fn bytes_are_kept_as_they_are(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let odd = [("stdout", &b""[..]), ("stdout", b"\xff\0\r\n"), ("ö", b"x")];
    world.broker.log(&claimed, &odd, None).await?;
    let should = odd.map(|(stream, line)| (stream.to_owned(), line.to_vec()));
    same!(lines(world).await?, should);
    Ok(())
}

/// Each line extends the time to live.
async fn they_are_kept_for_7_days_after_the_last(world: &World) -> Outcome {
    const DAYS: u64 = 7 * 24 * 3600 * 1000;
    let claimed = world.started("j1").await?;
    for _ in 0..2 {
        world
            .broker
            .log(&claimed, &[("stdout", b"x")], None)
            .await?;
        let left: u64 = world.raw(&["PTTL", &log(world)]).await?;
        check!((DAYS - 60_000..=DAYS).contains(&left));
        world.raw::<()>(&["PEXPIRE", &log(world), "1000"]).await?;
    }
    Ok(())
}

/// The last value counts.
async fn progress_is_in_the_record(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.broker.log(&claimed, &[], Some("0.5 half")).await?;
    same!(
        world.read("j1").await?.progress.as_deref(),
        Some("0.5 half")
    );
    world
        .broker
        .log(&claimed, &[("stdout", b"x")], None)
        .await?;
    same!(
        world.read("j1").await?.progress.as_deref(),
        Some("0.5 half")
    );
    world.broker.log(&claimed, &[], Some("1")).await?;
    same!(world.read("j1").await?.progress.as_deref(), Some("1"));
    Ok(())
}

/// The usage is in the record and in an event, with the worker. Later lines leave it.
async fn usage_is_in_the_record_and_in_an_event(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let usage = RunUsage {
        sandbox: Effective {
            profile: Profile::Standard,
            limits: [(Limit::Memory, 2_097_152)].into_iter().collect(),
        },
        usage: Usage {
            user_ms: 120,
            system_ms: 8,
            peak_memory: 9_830_400,
            written: 1,
        },
    };
    same!(
        world.broker.record_usage(&claimed, &usage).await?,
        Logged::Logged
    );
    same!(world.read("j1").await?.usage, Some(usage));
    let last = events_of(world, "j1").await?.pop();
    same!(last, Some(format!("usage w1-a {usage}")));
    world
        .broker
        .log(&claimed, &[("stdout", b"x")], Some("1"))
        .await?;
    same!(world.read("j1").await?.usage, Some(usage));
    Ok(())
}

/// No empty log is created.
async fn nothing_to_say_writes_nothing(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let before = world.all().await?;
    same!(world.broker.log(&claimed, &[], None).await?, Logged::Logged);
    world.unchanged(&before).await
}

/// A worker that lost the job writes nothing, whoever has it now.
async fn another_token_writes_nothing(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.lose_all().await?;
    for _ in 0..2 {
        let before = world.all().await?;
        let said = world.broker.log(&claimed, &[("stdout", b"x")], Some("1"));
        same!(said.await?, Logged::Stale);
        world.unchanged(&before).await?;
        world.take(1).await?;
    }
    world.pass(LEASE_MS);
    Ok(())
}

/// The kind of the end does not matter.
async fn a_job_that_has_ended_takes_no_lines(world: &World) -> Outcome {
    let one = world.started("j1").await?;
    world.finish(&one, "42").await?;
    let two = world.started("j2").await?;
    world.fail(&two, FailureKind::Permanent).await?;
    let before = world.all().await?;
    for claimed in [one, two] {
        let said = world.broker.log(&claimed, &[("stdout", b"x")], Some("1"));
        same!(said.await?, Logged::Stale);
        let usage = RunUsage::default();
        same!(
            world.broker.record_usage(&claimed, &usage).await?,
            Logged::Stale
        );
    }
    world.unchanged(&before).await
}

/// Nor does a list with that name change.
async fn a_job_that_is_gone_does_not_appear(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    for list in [false, true] {
        world.raw::<()>(&["DEL", &world.key("j1")]).await?;
        if list {
            world.raw::<()>(&["LPUSH", &world.key("j1"), "x"]).await?;
        }
        let before = world.all().await?;
        let said = world.broker.log(&claimed, &[("stdout", b"x")], Some("1"));
        same!(said.await?, Logged::Stale);
        world.unchanged(&before).await?;
    }
    Ok(())
}

/// About the newest thousand lines stay.
async fn a_long_log_keeps_its_end(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let texts: Vec<_> = (0..MAX_ITEMS).map(|n| format!("line {n}")).collect();
    let part: Vec<_> = texts
        .iter()
        .map(|text| ("stdout", text.as_bytes()))
        .collect();
    for _ in 0..20 {
        world.broker.log(&claimed, &part, None).await?;
    }
    let kept = lines(world).await?;
    check!((1_000..1_300).contains(&kept.len()));
    same!(
        kept.last().map(|line| line.1.as_slice()),
        Some(&b"line 999"[..])
    );
    Ok(())
}

/// A refused call writes nothing.
async fn more_than_1000_lines_are_refused(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let before = world.all().await?;
    let lines = vec![("stdout", &b"x"[..]); MAX_ITEMS + 1];
    check!(matches!(
        world.broker.log(&claimed, &lines, Some("1")).await,
        Err(Error::TooMany { .. })
    ));
    world.unchanged(&before).await
}

/// The call fails, and the run ends as it would.
async fn a_log_of_another_kind_costs_no_run(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.raw::<()>(&["SET", &log(world), "x"]).await?;
    check!(
        world
            .broker
            .log(&claimed, &[("stdout", b"x")], None)
            .await
            .is_err()
    );
    world.finish(&claimed, "42").await?;
    same!(world.status("j1").await?, "finished");
    Ok(())
}

/// Its log is empty.
async fn a_run_asked_for_again_begins_anew(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world
        .broker
        .log(&claimed, &[("stdout", b"x")], Some("1"))
        .await?;
    world.finish(&claimed, "42").await?;
    same!(lines(world).await?.len(), 1);
    world.broker.retry(&world.read("j1").await?).await?;
    same!(lines(world).await?.len(), 0);
    same!(world.read("j1").await?.progress, None);
    Ok(())
}
