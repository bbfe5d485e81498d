//! Names of keys in records, lists and sets that others may write, in both layouts: no script pushes to a list, or changes
//! a record, of another context or namespace. The job goes to the queue of its type, or ends with a reason.

use std::time::Duration;

use meshwork_broker::Retention;
use meshwork_model::job::{NewJob, OnDuplicate, Unique, Until};
use meshwork_model::keys::context::ContextLayout;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;

use super::ways_back::{WAYS, add, before, go, push, set};
use crate::cases::harness::world::Got;
use crate::cases::of_contexts::{
    contexts::{job_of, new},
    in_context::in_both,
};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    every_way_back_leads_to_a_queue_of_its_own,
    a_job_without_a_type_ends_with_the_reason,
    a_fallback_of_others_counts_as_none,
    the_next_job_of_a_key_enters_no_list_of_others,
    a_late_job_frees_no_place_in_a_list_of_others,
    prefetched_ids_return_to_the_queues_of_their_records,
    a_backlog_of_others_is_sent_home,
    a_list_of_others_is_no_place_of_a_job,
    records_of_others_are_no_jobs,
    a_unique_name_holds_no_job_of_others,
    an_alert_is_a_job_of_the_context,
    an_alert_enters_no_list_of_others,
    a_lock_of_others_is_none,
    an_end_changes_no_record_of_others,
];

/// Returns a key of another context; in a database of its own, one that is no queue; of another namespace.
fn others(world: &World, name: &str) -> String {
    match world.keys().context() {
        Some(keys) if keys.layout() == ContextLayout::Prefix => {
            // No case uses a context with such a number.
            format!("{{ctx:{}}}:{name}", 100_000 + keys.context().get())
        }
        Some(_) => format!("mw:others:{name}"),
        None => format!("others-{}:{name}", world.keys().namespace()),
    }
}

async fn there(world: &World, key: &str) -> Got<bool> {
    world.raw(&["EXISTS", key]).await
}

async fn every_way_back_leads_to_a_queue_of_its_own(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        for (number, way) in (1_u32..).zip(WAYS) {
            let id = before(world, way, 10 * number).await?;
            go(world, way, &id, &[("mw_queue", &list)]).await?;
            same!((way, world.waiting().await?), (way, vec![id.clone()]));
            check!(!there(world, &list).await?);
            let claimed = world.take_one().await?;
            world.finish(&claimed, "1").await?;
            same!(
                (way, world.status(&id).await?),
                (way, "finished".to_owned())
            );
        }
        Ok(())
    })
    .await
}

async fn a_job_without_a_type_ends_with_the_reason(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        world.put_jobs(&[new(world, 1)?]).await?;
        let claimed = world.take_one().await?;
        let id = claimed.job.id.clone();
        set(world, &id, &[("mw_queue", &list), ("script_type", "")]).await?;
        world.broker.release(&claimed).await?;
        let error = world.field(&id, "error").await?;
        same!(
            error.as_deref(),
            Some("its record names no queue and no type")
        );
        same!(world.status(&id).await?, "error");
        check!(!there(world, &list).await?);
        Ok(())
    })
    .await
}

async fn a_fallback_of_others_counts_as_none(world: &World) -> Outcome {
    in_both(world, async |world| {
        let (list, presence) = (others(world, "queue:osis"), others(world, "presence"));
        world.raw::<()>(&["SET", &presence, "{}"]).await?;
        let own = format!("{}gone", world.keys().presence_prefix());
        let mut pairs = vec![format!("{own} {list}")];
        if world.keys().prefix() != "" {
            pairs.push(format!("{presence} {}", world.queue()));
        }
        for (number, pair) in (1_u32..).zip(&pairs) {
            world.put_jobs(&[new(world, number)?]).await?;
            let id = job_of(world, number)?;
            set(world, &id, &[("mw_fallback", pair)]).await?;
            add(world, "WATCHED", "", "0", &id).await?;
            world.broker.check_orphans().await?;
            same!(world.field(&id, "mw_fallback").await?, None);
            same!(world.waiting().await?, [id]);
            check!(!there(world, &list).await?);
            let claimed = world.take_one().await?;
            world.finish(&claimed, "1").await?;
        }
        world.raw(&["DEL", &presence]).await
    })
    .await
}

/// Adds a member to a set of the scripts, by the name of its key there and the end of the key.
async fn the_next_job_of_a_key_enters_no_list_of_others(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        world.put_jobs(&[new(world, 1)?]).await?;
        let claimed = world.take_one().await?;
        let (id, next) = (claimed.job.id.clone(), job_of(world, 2)?);
        let slot = [("mw_slot", &*list), ("mw_key", "k"), ("mw_with", "1")];
        set(world, &id, &slot).await?;
        add(world, "SLOTS", &format!("{list} k"), "1", &id).await?;
        add(world, "BACKLOG", &format!("{list} k"), "1", &next).await?;
        world.finish(&claimed, "1").await?;
        same!(world.status(&id).await?, "finished");
        for priority in ["", ":prio:0", ":prio:1", ":prio:2"] {
            check!(!there(world, &format!("{list}{priority}")).await?);
        }
        Ok(())
    })
    .await
}

async fn a_late_job_frees_no_place_in_a_list_of_others(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        world.put_jobs(&[new(world, 1)?]).await?;
        let (id, next) = (job_of(world, 1)?, job_of(world, 2)?);
        let forged = [
            ("mw_queue", &*list),
            ("mw_key", "k"),
            ("mw_with", "1"),
            ("mw_start_by", "1 1"),
        ];
        set(world, &id, &forged).await?;
        add(world, "HEADS", &format!("{list} k"), "1", &id).await?;
        add(world, "BACKLOG", &format!("{list} k"), "1", &next).await?;
        check!(world.take(1).await?.is_empty());
        same!(world.status(&id).await?, "error");
        check!(!there(world, &list).await?);
        Ok(())
    })
    .await
}

async fn prefetched_ids_return_to_the_queues_of_their_records(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        world.put_jobs(&[new(world, 1)?]).await?;
        let id = job_of(world, 1)?;
        let feed = world.keys().feed("w", &list);
        world
            .raw::<()>(&["LMOVE", &world.queue(), &feed, "RIGHT", "LEFT"])
            .await?;
        add(world, "PREFETCH_LISTS", "", "1", &format!("w {list}")).await?;
        world.broker.reclaim().await?;
        same!(world.waiting().await?, [id]);
        check!(!there(world, &list).await? && !there(world, &feed).await?);
        Ok(())
    })
    .await
}

async fn a_backlog_of_others_is_sent_home(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        world.put_jobs(&[new(world, 2)?, new(world, 1)?]).await?;
        let runs = world.take_one().await?.job.id.clone();
        let id = job_of(world, 1)?;
        world.raw::<()>(&["DEL", &world.queue()]).await?;
        add(world, "BACKLOG", &format!("{list} k"), "1", &id).await?;
        add(world, "BACKLOG", &format!("{list} k"), "2", &runs).await?;
        add(world, "BACKLOG_INDEX", "", "1", &format!("{list} k")).await?;
        world.broker.promote().await?;
        same!(world.waiting().await?, [id]);
        check!(!there(world, &list).await?);
        same!(
            world
                .raw::<u32>(&["EXISTS", &world.named("BACKLOG_INDEX")?])
                .await?,
            0
        );
        Ok(())
    })
    .await
}

async fn a_list_of_others_is_no_place_of_a_job(world: &World) -> Outcome {
    in_both(world, async |world| {
        let list = others(world, "queue:osis");
        let id = job_of(world, 1)?;
        world.put_foreign(&id, &[("script_type", "osis")]).await?;
        world.raw::<()>(&["DEL", &world.queue()]).await?;
        set(
            world,
            &id,
            &[("mw_queue", &world.queue()), ("mw_seen", "1 x")],
        )
        .await?;
        world.raw::<()>(&["LPUSH", &list, &id]).await?;
        add(world, "LISTS", "", "1", &list).await?;
        add(world, "WATCHED", "", "0", &id).await?;
        world.broker.check_orphans().await?;
        same!(world.field(&id, "mw_queue").await?, Some(world.queue()));
        world.raw(&["DEL", &list]).await
    })
    .await
}

/// Sets of a context may name records of another one, whose jobs nobody here ends, deletes or runs.
async fn records_of_others_are_no_jobs(world: &World) -> Outcome {
    in_both(world, async |world| {
        if world.keys().prefix() == "" {
            return Ok(()); // no name leads into another database
        }
        let queue = world.queue();
        let states = [
            ("ENDED", "finished"),
            ("LEASES", "started"),
            ("DELAYED", "dispatched"),
            ("WATCHED", "dispatched"),
            ("STARTS", "dispatched"),
            ("MEMBERS", "waiting_for_prerequisites"),
        ];
        let mut before = Vec::new();
        for (number, (name, status)) in (1..).zip(states) {
            let id = others(world, &format!("job:1:{number}"));
            let fields = [
                ("status", status),
                ("script_type", "osis"),
                ("mw_queue", &*queue),
                ("mw_reply", "1"),
                ("mw_start_by", "1 1"),
            ];
            set(world, &id, &fields).await?;
            match name {
                "MEMBERS" => {
                    let gone = job_of(world, 99)?;
                    set(world, &id, &[("mw_waiting", &format!("\"{gone}\""))]).await?;
                    push(world, "DEPENDENTS", &gone, &id).await?;
                    push(world, "UNRESOLVED", "", &format!(" {gone}")).await?;
                }
                _ => add(world, name, "", "1", &id).await?,
            }
            before.push((id.clone(), world.record(&id).await?));
        }
        let retention = Retention {
            age: Duration::from_secs(1),
            ..Retention::default()
        };
        for _ in 0..2 {
            world.pass(60_000);
            world.broker.prune(retention).await?;
            world.broker.reclaim().await?;
            world.broker.promote().await?;
            world.broker.check_orphans().await?;
            world.broker.resolve_dependents().await?;
        }
        for (id, record) in &before {
            same!((id, &world.record(id).await?), (id, record));
            let job = world.broker.inspect(&JobId::foreign(id.clone())).await;
            if let Ok(Some(job)) = job {
                world.broker.cancel(&job, "stopped", true).await.ok();
                world.broker.delete(&job).await.ok();
                same!((id, &world.record(id).await?), (id, record));
            }
            world.raw::<()>(&["DEL", id]).await?;
        }
        check!(world.waiting().await?.is_empty());
        Ok(())
    })
    .await
}

async fn a_unique_name_holds_no_job_of_others(world: &World) -> Outcome {
    in_both(world, async |world| {
        if world.keys().prefix() == "" {
            return Ok(());
        }
        let holder = others(world, "job:1:1");
        let fields = [("status", "dispatched"), ("script_type", "osis")];
        set(world, &holder, &fields).await?;
        let before = world.record(&holder).await?;
        let name = format!("{}osis:u", world.named("UNIQUE")?);
        world.raw::<()>(&["SET", &name, &holder]).await?;
        let mut job = new(world, 1)?;
        let (name, until, policy) = ("u".to_owned(), Until::Done, OnDuplicate::Replace);
        job.unique = Some(Unique {
            name,
            until,
            policy,
        });
        world.put_jobs(&[job]).await?;
        same!(world.record(&holder).await?, before);
        world.raw(&["DEL", &holder]).await
    })
    .await
}

async fn alert(world: &World, prefix: &str, queue: &str) -> Outcome {
    let base = world.queue();
    let key = format!("{}{base}", world.named("ALERTS")?);
    world
        .raw(&[
            "HSET",
            &key,
            "after",
            "1",
            "prefix",
            prefix,
            "queue",
            queue,
            "job script_type",
            "osis",
            "job script",
            "1",
        ])
        .await
}

/// Fails a job whose queue has an alert.
async fn fail_with_alert(world: &World, job: NewJob) -> Outcome {
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let base = world.queue();
    set(
        world,
        &claimed.job.id,
        &[("mw_alert", &base), ("mw_with", "1")],
    )
    .await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(world.status(&claimed.job.id).await?, "error");
    Ok(())
}

async fn an_alert_is_a_job_of_the_context(world: &World) -> Outcome {
    in_both(world, async |world| {
        let first = others(world, "job:1:1");
        alert(world, &first, &world.queue()).await?;
        fail_with_alert(world, new(world, 1)?).await?;
        check!(!there(world, &format!("{first}.1")).await?);
        check!(world.waiting().await?.is_empty());
        Ok(())
    })
    .await
}

async fn an_alert_enters_no_list_of_others(world: &World) -> Outcome {
    let list = others(world, "queue");
    alert(world, "alert", &list).await?;
    fail_with_alert(world, world.job("j1")?).await?;
    check!(!there(world, &list).await?);
    same!(world.status("alert.1").await?, "error");
    Ok(())
}

async fn a_lock_of_others_is_none(world: &World) -> Outcome {
    let list = others(world, "list");
    world.raw::<()>(&["LPUSH", &list, "j1", "j2"]).await?;
    world.put(&["j1", "j2"]).await?;
    for id in ["j1", "j2"] {
        set(world, id, &[("mw_lock", &list)]).await?;
    }
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "stopped", false).await?;
    same!(world.take_one().await?.job.id, "j2");
    same!(world.list(&list).await?, ["j1", "j2"]);
    world.raw(&["DEL", &list]).await
}

async fn an_end_changes_no_record_of_others(world: &World) -> Outcome {
    let [record, result] = ["record", "result"].map(|name| others(world, name));
    let context = "{ctx:100001}";
    let names = [
        format!("{record} {result} c"),
        format!("{context}:job:j2 {context}:result:j2 {context}:result:notify:j2"),
    ];
    for (id, names) in ["j1", "j2"].into_iter().zip(&names) {
        let claimed = world.started(id).await?;
        let fields = [
            ("mw_bananas", &**names),
            ("mw_record", "{}"),
            ("mw_with", "1"),
        ];
        set(world, id, &fields).await?;
        world.finish(&claimed, "1").await?;
        same!(world.status(id).await?, "finished");
        for key in names.split(' ') {
            same!((key, there(world, key).await?), (key, false));
        }
    }
    Ok(())
}
