//! Flows of plain clients: found by a scan, and taken up by a step.

use meshwork_broker::flow::{FlowClaim, FlowLease, Moves, StepDone};
use meshwork_model::keys::context::FlowId;

use crate::cases::harness::world::Got;
use crate::cases::of_contexts::flow_ground::Ground;
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_flow_of_a_plain_client_is_found_until_it_is_taken_up,
    a_flow_that_is_lost_among_those_that_are_due_is_found,
    a_job_joins_its_flow_once,
    a_job_that_has_begun_keeps_its_environment,
    ended_and_missing_jobs_join_too,
    a_job_that_nobody_has_pushed_waits_for_its_prerequisites,
    a_wait_in_a_flow_has_no_limit,
    jobs_that_wait_for_each_other_have_their_timeouts,
];

impl Ground<'_> {
    /// Writes a flow as a plain client does.
    async fn write(&self, id: FlowId, fields: &[&str]) -> Got<()> {
        let key = self.flows.keys().flow(id);
        let words = [&["HSET", &key, "caller_id", "12", "jobs", "[1]"], fields];
        self.world.raw(&words.concat()).await
    }

    /// Puts a flow among those that are due.
    async fn due_at(&self, id: &str, at: &str) -> Got<()> {
        let due = self.flows.keys().flows_due();
        self.world.raw(&["ZADD", &due, at, id]).await
    }

    /// All flows that the scan finds.
    async fn scan(&self) -> Got<Vec<FlowId>> {
        let (mut found, mut page) = (Vec::new(), 0);
        loop {
            let swept = self.flows.sweep(page).await?;
            found.extend(swept.found);
            page = swept.next;
            if page == 0 {
                found.sort_unstable();
                found.dedup();
                return Ok(found);
            }
        }
    }

    async fn claimed(&self) -> Got<FlowLease> {
        self.write(self.id, &["status", "dispatched"]).await?;
        let due = self.flows.keys().flows_due();
        let (now, id) = (self.world.now().to_string(), self.id.to_string());
        self.world.raw::<()>(&["ZADD", &due, &now, &id]).await?;
        self.lease().await
    }

    async fn join(&self, lease: &FlowLease, before: &str, missing: bool) -> Got<String> {
        self.join_limited(lease, before, (missing, false)).await
    }

    async fn join_limited(
        &self,
        lease: &FlowLease,
        before: &str,
        flags: (bool, bool),
    ) -> Got<String> {
        let key = format!("{}job:12:1", self.flows.keys().prefix());
        let mut moves = Moves::default();
        let (job, queue) = (("0", "job_1", 1), (&*key, &*self.world.queue()));
        moves.join(job, queue, (before.as_bytes(), "{\"A\":\"1\"}"), flags);
        same!(self.flows.commit(lease, &moves).await?, StepDone::Done);
        Ok(key)
    }
}

/// Returns false for the user of a runner in the layout with a prefix, who may not scan.
async fn may_scan(ground: &Ground<'_>) -> Got<bool> {
    let words = redis::cmd("SCAN").arg("0").to_owned();
    let conn = &mut ground.flows.broker().conn().clone();
    let scanned: redis::RedisResult<redis::Value> = words.query_async(conn).await;
    Ok(scanned.is_ok())
}

async fn a_flow_of_a_plain_client_is_found_until_it_is_taken_up(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        for (id, fields) in [
            (34, &["status", "dispatched"][..]),
            (35, &["status", "started", "mw_plain", "1"]),
            (36, &["status", "finished"]),
            (37, &["mw_mark", "m", "status", "started"]),
            (38, &[]),
        ] {
            ground.write(FlowId(id), fields).await?;
        }
        for id in ["35", "37"] {
            ground.due_at(id, "99999999999999").await?;
        }
        let nobodys = ground.flows.keys().flow(FlowId(39));
        world
            .raw::<()>(&["HSET", &nobodys, "status", "started"])
            .await?;
        let without = ground.flows.keys().flow(FlowId(41));
        let jobs = ["HSET", &without, "jobs", "[1]", "status", "dispatched"];
        world.raw::<()>(&jobs).await?;
        let garbage = ground.flows.keys().flow(FlowId(40));
        world.raw::<()>(&["SET", &garbage, "x"]).await?;
        if !may_scan(ground).await? {
            same!(ground.scan().await?, Vec::<FlowId>::new());
            return Ok(());
        }
        for _ in 0..2 {
            same!(ground.scan().await?, vec![FlowId(34), FlowId(41)]);
        }
        let key = ground.flows.keys().flow(FlowId(34));
        same!(world.field(&key, "mw_dirty").await?.as_deref(), Some("1"));
        // The flow of this context was first.
        let mut claimed = Vec::new();
        for _ in 0..3 {
            let FlowClaim::Claimed(lease) = ground
                .flows
                .claim("t", crate::cases::harness::world::LEASE)
                .await?
            else {
                return Err(Failure::new("three flows are due"));
            };
            claimed.push(lease.id);
        }
        claimed.sort_unstable();
        same!(claimed, vec![ground.id, FlowId(34), FlowId(41)]);
        Ok(())
    })
    .await
}

/// Also for a user who may not scan. A flow that is not sealed has its hour again, and one that has ended rests.
async fn a_flow_that_is_lost_among_those_that_are_due_is_found(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::sealed(world).await?;
        let list = ground.flows.keys().flows();
        for (id, fields) in [
            (34, &["mw_mark", "m", "status", "started"][..]),
            (35, &["mw_plain", "1", "status", "started"]),
            (36, &["mw_mark", "m", "mw_lease", "t", "status", "finished"]),
            (37, &["mw_mark", "m", "status", "finished"]),
            (38, &["mw_mark", "m"]),
            (40, &["mw_mark", "m", "status", "started"]),
        ] {
            ground.write(FlowId(id), fields).await?;
            let add = ["ZADD", &list, "1", &id.to_string()];
            world.raw::<()>(&add).await?;
        }
        let later = (world.now() + 5_000).to_string();
        ground.due_at("40", &later).await?;
        same!(ground.scan().await?, [34, 35, 36, 38].map(FlowId).to_vec());
        same!(ground.scan().await?, Vec::<FlowId>::new());
        let due = ground.flows.keys().flows_due();
        let (now, hour) = (world.now(), world.now() + 3_600_000);
        for (id, at) in [("34", now), ("36", now), ("38", hour), ("40", now + 5_000)] {
            let score: Option<u64> = world.raw(&["ZSCORE", &due, id]).await?;
            same!((id, score), (id, Some(at)));
        }
        Ok(())
    })
    .await
}

async fn a_job_joins_its_flow_once(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::new(world)?;
        let lease = ground.claimed().await?;
        let key = ground.join(&lease, "{}", false).await?;
        same!(ground.node("0").await?, "");
        let written = ["HSET", &key, "status", "dispatched", "script_type", "osis"];
        world
            .raw::<()>(&[&written[..], &["script", "1", "env_vars", "{}"]].concat())
            .await?;
        // Somebody has written another environment since it was read.
        ground.join(&lease, "{\"B\":\"1\"}", false).await?;
        same!(
            (ground.node("0").await?, world.field(&key, "mw_flow").await?),
            (String::new(), None)
        );
        for _ in 0..2 {
            ground.join(&lease, "{}", false).await?;
            same!(ground.node("0").await?, "r 0");
            let record = world.record(&key).await?;
            same!(record["env_vars"], "{\"A\":\"1\"}");
            same!(record["mw_queue"], world.queue());
            same!(
                (record["mw_flow"].as_str(), record["mw_node"].as_str()),
                ("33", "0")
            );
            same!(ground.key("job_1").await?, key.as_str());
        }
        let mut moves = Moves::default();
        moves.plan("{}");
        same!(ground.flows.commit(&lease, &moves).await?, StepDone::Done);
        same!(ground.flows.plan(ground.id).await?.as_deref(), Some("{}"));
        same!(ground.flows.list(0, 10).await?, vec![ground.id]);
        // Its end counts.
        world.raw::<()>(&["LPUSH", &world.queue(), &key]).await?;
        let claimed = world.take_one().await?;
        same!(
            ground.flow_field("status").await?.as_deref(),
            Some("started")
        );
        world.finish(&claimed, "42").await?;
        same!(ground.node("0").await?, "f 0 1");
        ground.join(&lease, "{}", false).await?;
        same!(ground.node("0").await?, "f 0 1");
        Ok(())
    })
    .await
}

async fn a_job_that_has_begun_keeps_its_environment(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::new(world)?;
        let lease = ground.claimed().await?;
        let key = format!("{}job:12:1", ground.flows.keys().prefix());
        let begun = ["HSET", &key, "status", "started", "env_vars", "{}"];
        world.raw::<()>(&begun).await?;
        ground.join(&lease, "{}", false).await?;
        same!(world.field(&key, "env_vars").await?.as_deref(), Some("{}"));
        same!(world.field(&key, "mw_flow").await?.as_deref(), Some("33"));
        same!(ground.node("0").await?, "r 0");
        // A job of another flow stays there.
        let nodes = ground.flows.keys().flow_part(ground.id, "nodes");
        world.raw::<()>(&["DEL", &nodes]).await?;
        world
            .raw::<()>(&["HSET", &key, "mw_flow", "9", "status", "dispatched"])
            .await?;
        ground.join(&lease, "{}", false).await?;
        same!(world.field(&key, "mw_flow").await?.as_deref(), Some("9"));
        same!(world.field(&key, "env_vars").await?.as_deref(), Some("{}"));
        same!(ground.node("0").await?, "r 0");
        Ok(())
    })
    .await
}

async fn ended_and_missing_jobs_join_too(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::new(world)?;
        let lease = ground.claimed().await?;
        let key = ground.join(&lease, "", true).await?;
        same!(ground.node("0").await?, "r 0");
        check!(!world.raw::<bool>(&["EXISTS", &key]).await?);
        let nodes = ground.flows.keys().flow_part(ground.id, "nodes");
        for (status, state) in [("finished", "f 0 1"), ("error", "e 0 2")] {
            world.raw::<()>(&["DEL", &nodes]).await?;
            world.raw::<()>(&["HSET", &key, "status", status]).await?;
            ground.join(&lease, "", false).await?;
            same!(ground.node("0").await?, state);
            same!(world.field(&key, "mw_flow").await?, None);
        }
        Ok(())
    })
    .await
}

/// Its client pushes only what can start.
async fn a_job_that_nobody_has_pushed_waits_for_its_prerequisites(world: &World) -> Outcome {
    in_both(world, async |world| {
        for (needs, status) in [("[9]", "dispatched"), ("[9]", "finished"), ("[8]", "error")] {
            let ground = &Ground::new(world)?;
            let lease = ground.claimed().await?;
            let key = format!("{}job:12:1", ground.flows.keys().prefix());
            let other = format!("{}job:12:{}", ground.flows.keys().prefix(), &needs[1..2]);
            world.raw::<()>(&["HSET", &other, "status", status]).await?;
            let written = ["HSET", &key, "status", "waiting_for_prerequisites"];
            let fields = ["script_type", "osis", "script", "1", "dependends", needs];
            let written = [&written[..], &fields, &["env_vars", "{}"]].concat();
            world.raw::<()>(&written).await?;
            ground.join(&lease, "{}", false).await?;
            if status == "error" {
                let error = world.field(&key, "error").await?;
                let why = format!("prerequisite {other} did not finish");
                same!(error, Some(why));
                check!(ground.node("0").await?.starts_with("e 0 "));
                return Ok(());
            }
            same!(
                world.field(&key, "mw_waiting").await?,
                Some(format!("\"{other}\""))
            );
            same!(world.field(&key, "mw_expires").await?, None);
            same!(world.list(&world.queue()).await?.len(), 0);
            world
                .raw::<()>(&["HSET", &other, "status", "finished"])
                .await?;
            for _ in 0..2 {
                world.pass(5_000);
                world.broker.check_orphans().await?;
                world.broker.resolve_dependents().await?;
            }
            same!(world.list(&world.queue()).await?, [key.as_str()]);
            let nodes = ground.flows.keys().flow_part(ground.id, "nodes");
            world
                .raw::<()>(&["DEL", &nodes, &key, &world.queue()])
                .await?;
        }
        Ok(())
    })
    .await
}

/// A claim has begun the wait before the flow was found. A wait for what may never come keeps its limit.
async fn a_wait_in_a_flow_has_no_limit(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::new(world)?;
        let lease = ground.claimed().await?;
        let key = format!("{}job:12:1", ground.flows.keys().prefix());
        let other = format!("{}job:12:9", ground.flows.keys().prefix());
        let nodes = ground.flows.keys().flow_part(ground.id, "nodes");
        let cases = [
            (false, false, true),
            (true, false, false),
            (true, true, true),
        ];
        for (exists, is_cycle, limited) in cases {
            let waiting = format!("\"{other}\"");
            let written = ["HSET", &key, "status", "waiting_for_prerequisites"];
            let fields = ["mw_waiting", &waiting, "mw_expires", "7", "env_vars", "{}"];
            world.raw::<()>(&["DEL", &nodes, &key]).await?;
            world.raw::<()>(&[&written[..], &fields].concat()).await?;
            if exists {
                let words = ["HSET", &other, "status", "started"];
                world.raw::<()>(&words).await?;
            }
            let flags = (false, is_cycle);
            ground.join_limited(&lease, "{}", flags).await?;
            let expires = world.field(&key, "mw_expires").await?;
            same!(expires.is_some(), limited);
        }
        Ok(())
    })
    .await
}

async fn jobs_that_wait_for_each_other_have_their_timeouts(world: &World) -> Outcome {
    in_both(world, async |world| {
        let ground = &Ground::new(world)?;
        let lease = ground.claimed().await?;
        let key = format!("{}job:12:1", ground.flows.keys().prefix());
        let other = format!("{}job:12:9", ground.flows.keys().prefix());
        let needs = |key: &str, needs: &str| {
            let status = ["HSET", key, "status", "waiting_for_prerequisites"];
            let fields = ["script_type", "osis", "dependends", needs, "timeout", "5"];
            let words: Vec<String> = [&status[..], &fields, &["env_vars", "{}"]]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect();
            words
        };
        for words in [needs(&key, "[9]"), needs(&other, "[1]")] {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            world.raw::<()>(&words).await?;
        }
        ground.join_limited(&lease, "{}", (false, true)).await?;
        world.pass(5_001);
        world.broker.check_orphans().await?;
        let error = world.field(&key, "error").await?;
        same!(
            error,
            Some(format!("timeout: prerequisite {other} has not ended"))
        );
        Ok(())
    })
    .await
}
