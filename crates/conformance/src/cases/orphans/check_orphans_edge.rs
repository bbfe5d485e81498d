//! watch, with invalid records, clocks that jump, and concurrent calls.

use crate::cases::harness::legacy_worker::{AGE, look_after, migrate, old, pop, set, start, write};
use crate::cases::harness::world::{LEASE_MS, START, WORKER, ids};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    what_is_no_job_is_forgotten,
    other_statuses_are_left,
    odd_fields_stop_nobody,
    an_id_that_is_no_text_stops_nobody,
    the_clock_was_ahead,
    the_clock_is_set_back_while_a_job_is_away,
    at_most_200_in_one_call,
    two_at_once_push_once,
];

/// The key has no record, or a list with that name.
async fn what_is_no_job_is_forgotten(world: &World) -> Outcome {
    let watch = world.keys().watch();
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    world.raw::<()>(&["SET", &world.key("string"), "x"]).await?;
    let before = world.all().await?;
    world
        .raw::<()>(&["ZADD", &watch, "1", "gone", "1", "list", "1", "string"])
        .await?;
    same!(world.broker.check_orphans().await?.looked, 3);
    // Records may come back.
    let left: Vec<String> = world.raw(&["ZRANGE", &watch, "0", "-1"]).await?;
    same!(left, ["list", "string"]);
    world.raw::<()>(&["DEL", &watch]).await?;
    world.unchanged(&before).await
}

/// The writer of the status does not matter.
async fn other_statuses_are_left(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    write(world, "j1", &["status", "paused"]).await?;
    for _ in 0..4 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(world.status("j1").await?, "paused");
    write(world, "j1", &["status", ""]).await?;
    look_after(world, AGE).await?;
    same!(look_after(world, AGE).await?, ["j1"]);
    Ok(())
}

/// With any field values, the next job is checked, and no job runs before its time.
async fn odd_fields_stop_nobody(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let odd = [
        ("timeout", ["nan", "inf", "-1", "1e400", "soon"]),
        ("mw_seen", ["", "nan x", "soon", "9 ", "started 1"]),
        ("mw_lost", ["nan", "-1", "many", "", "0x"]),
        ("mw_fallback", ["", " ", "x", "a b c", "\t"]),
        ("mw_lock", ["", "nowhere", " ", "x", "y"]),
        ("script_type", ["", "OSIS", "ö", "a b", "*"]),
    ];
    for (field, values) in odd {
        for (at, value) in values.iter().enumerate() {
            let id = format!("{field}{at}");
            world.put(&[&id]).await?;
            start(world, &id).await?;
            write(world, &id, &[field, value]).await?;
        }
    }
    world.put(&["last"]).await?;
    pop(world).await?;
    // The default timeout is half an hour.
    for _ in 0..20 {
        world.pass(AGE);
        // Where the type has no migration, checks are farther apart.
        check!(world.broker.check_orphans().await?.looked > odd.len() * 4);
        world
            .raw::<()>(&["ZADD", &world.keys().watch(), "1", "last"])
            .await?;
    }
    for (field, _) in odd {
        same!(world.status(&format!("{field}3")).await?, "started");
    }
    same!(ids(&world.take(99).await?), ["last"]);
    Ok(())
}

/// The job is checked like the others.
async fn an_id_that_is_no_text_stops_nobody(world: &World) -> Outcome {
    let mut watched = redis::cmd("ZADD");
    watched.arg(world.keys().watch()).arg(1).arg(b"\xff\xfe");
    watched.query_async::<()>(&mut world.conn().clone()).await?;
    let mut key = world.key("").into_bytes();
    key.extend(b"\xff\xfe");
    let mut store = redis::cmd("HSET");
    store.arg(&key).arg("status").arg("dispatched");
    store.arg("mw_queue").arg(world.queue());
    store.query_async::<()>(&mut world.conn().clone()).await?;
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    for _ in 0..40 {
        look_after(world, AGE).await?;
    }
    same!(world.raw::<usize>(&["LLEN", &world.queue()]).await?, 2);
    Ok(())
}

/// The clock was ahead by years when the job was pushed; the job is checked all the same.
async fn the_clock_was_ahead(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.at(START + 100_000_000_000);
    world.put(&["j1"]).await?;
    pop(world).await?;
    world.at(START);
    same!(world.broker.check_orphans().await?.looked, 1);
    same!(look_after(world, AGE).await?, ["j1"]);
    same!(look_after(world, 0).await?.len(), 0);
    Ok(())
}

/// The time until its next check begins again.
async fn the_clock_is_set_back_while_a_job_is_away(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    world.at(START + 100_000_000_000);
    same!(look_after(world, 0).await?.len(), 0);
    world.at(START);
    same!(look_after(world, 0).await?.len(), 0);
    same!(look_after(world, AGE - 1).await?.len(), 0);
    same!(look_after(world, 1).await?, ["j1"]);
    Ok(())
}

/// The rest comes with the next call; jobs that have been due longest come first.
async fn at_most_200_in_one_call(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let names: Vec<_> = (0..450).map(|n| format!("j{n}")).collect();
    for (n, id) in names.iter().enumerate() {
        world.at(START + n as u64);
        world.put(&[id]).await?;
    }
    world.pass(AGE);
    for looked in [200, 200, 50, 0] {
        same!(world.broker.check_orphans().await?.looked, looked);
    }
    Ok(())
}

/// Two workers may run the same maintenance.
async fn two_at_once_push_once(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    check!(world.take(5).await?.is_empty());
    look_after(world, AGE).await?;
    world.pass(AGE);
    let (one, two) = tokio::try_join!(world.broker.check_orphans(), world.broker.check_orphans())?;
    same!(one.pushed.len() + two.pushed.len(), 1);
    same!(world.waiting().await?, ["j1"]);
    same!(world.list(&old(world)).await?, ["j1"]);
    set(world, "osis", "").await?;
    same!(
        ids(&world.claim(WORKER, &[world.queue()], 5).await?.jobs),
        ["j1"]
    );
    world.pass(LEASE_MS);
    Ok(())
}
