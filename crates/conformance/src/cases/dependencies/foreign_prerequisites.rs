//! Prerequisites in records of clients that do not support waiting: they push the id at once, and the claim reads the
//! prerequisites.

use meshwork_model::outcome::FailureKind;
use meshwork_model::state::Status;

use crate::cases::dependencies::prerequisites::{run, waits};
use crate::cases::harness::world::{START, WORKER, ids};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    is_held_until_the_other_has_finished,
    either_field_counts,
    an_empty_list_is_none,
    waits_whatever_its_record_says_of_its_status,
    waits_in_the_queue_it_came_from,
    a_failed_prerequisite_ends_it,
    a_prerequisite_may_come_later,
    a_prerequisite_that_never_comes_ends_it,
    a_note_of_who_waits_may_be_gone,
    ids_are_read_however_they_are_written,
    what_is_no_list_of_ids_is_unreadable,
    one_that_names_itself_is_refused,
    the_status_of_one_that_waits_is_theirs,
    a_failed_prerequisite_may_not_matter,
    its_time_is_that_of_its_record,
    too_many_prerequisites_end_it,
    many_prerequisites_end_the_call_early,
    is_not_asked_again_once_it_ran,
    a_job_of_ours_is_not_asked_at_all,
];

const AFTER_FIRST: (&str, &str) = ("prerequisites", r#"["first"]"#);

/// Their dispatcher writes both fields and pushes.
async fn is_held_until_the_other_has_finished(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    world.put_foreign("child", &[AFTER_FIRST]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["first"], 1));
    check!(waits(world, "child").await?);
    same!(world.lease("child").await?, None);
    check!(world.waiting().await?.is_empty());
    world.finish(&taken.jobs[0], "42").await?;
    let claimed = world.take_one().await?;
    same!((claimed.job.id.as_str(), claimed.job.attempt), ("child", 1));
    world.finish(&claimed, "43").await?;
    same!(world.list(&world.reply("child")).await?, ["43"]);
    Ok(())
}

/// The prerequisites are in `prerequisites`, `dependencies`, or both; each counts once.
async fn either_field_counts(world: &World) -> Outcome {
    world.put(&["first", "second"]).await?;
    let records: [&[(&str, &str)]; 4] = [
        &[("dependencies", r#"[ "first" ]"#)],
        &[("prerequisites", "[]"), ("dependencies", r#"["first"]"#)],
        &[AFTER_FIRST, ("dependencies", "[]")],
        &[AFTER_FIRST, ("dependencies", r#"["first"]"#)],
    ];
    for (n, fields) in records.into_iter().enumerate() {
        world.put_foreign(&format!("child{n}"), fields).await?;
    }
    let both = [AFTER_FIRST, ("dependencies", r#"["second"]"#)];
    world.put_foreign("both", &both).await?;
    let taken = world.take(9).await?;
    same!(ids(&taken), ["first", "second"]);
    world.finish(&taken[0], "42").await?;
    same!(
        world.waiting().await?,
        ["child0", "child1", "child2", "child3"]
    );
    world.finish(&taken[1], "42").await?;
    same!(world.waiting().await?.pop().as_deref(), Some("both"));
    Ok(())
}

/// There are several forms of an empty list.
async fn an_empty_list_is_none(world: &World) -> Outcome {
    for (n, list) in ["[]", "[ ]", "", "null", "{}", " { } ", " "]
        .into_iter()
        .enumerate()
    {
        let fields = [("prerequisites", list), ("dependencies", list)];
        world.put_foreign(&format!("j{n}"), &fields).await?;
    }
    same!(world.take(9).await?.len(), 7);
    Ok(())
}

/// The status is missing or empty: the job waits, and runs then.
async fn waits_whatever_its_record_says_of_its_status(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    for (id, status) in [("none", None), ("empty", Some(""))] {
        let status = status.map(|status| ("status", status));
        let fields: Vec<_> = status.into_iter().chain([AFTER_FIRST]).collect();
        world.put_foreign(id, &fields).await?;
    }
    let taken = world.take(9).await?;
    same!(ids(&taken), ["first"]);
    for id in ["none", "empty"] {
        let status = world.read(id).await?.status();
        same!((id, status), (id, Some(Status::WaitingForPrerequisites)));
    }
    world.finish(&taken[0], "42").await?;
    same!(world.waiting().await?, ["none", "empty"]);
    Ok(())
}

/// The queue may be that of a group.
async fn waits_in_the_queue_it_came_from(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    world.put_foreign("child", &[AFTER_FIRST]).await?;
    let (queue, group) = (world.queue(), world.queue_of("osis:group:io"));
    world
        .raw::<()>(&["LMOVE", &queue, &group, "LEFT", "LEFT"])
        .await?;
    check!(
        world
            .claim(WORKER, std::slice::from_ref(&group), 1)
            .await?
            .jobs
            .is_empty()
    );
    run(world, "first", true).await?;
    same!(world.list(&group).await?, ["child"]);
    Ok(())
}

/// The job ends at once, and its client receives a reply.
async fn a_failed_prerequisite_ends_it(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    run(world, "first", false).await?;
    world.put_foreign("child", &[AFTER_FIRST]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 1));
    let why = "prerequisite first did not finish";
    same!(world.read("child").await?.error.as_deref(), Some(why));
    same!(world.status("child").await?, "error");
    same!(world.list(&world.reply("child")).await?, [why]);
    Ok(())
}

/// Foreign clients write jobs in any order.
async fn a_prerequisite_may_come_later(world: &World) -> Outcome {
    world.put_foreign("child", &[AFTER_FIRST]).await?;
    check!(world.take(5).await?.is_empty());
    check!(waits(world, "child").await?);
    check!(world.record("first").await?.is_empty());
    world.pass(5_000);
    world.broker.check_orphans().await?;
    check!(!world.broker.resolve_dependents().await?);
    check!(waits(world, "child").await?);
    world.put_foreign("first", &[]).await?;
    world.put_foreign("last", &[AFTER_FIRST]).await?;
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["last", "child"]);
    Ok(())
}

/// The record has the timeout; no state is left of the job then.
async fn a_prerequisite_that_never_comes_ends_it(world: &World) -> Outcome {
    let next = format!("{}first", world.named("DEPENDENTS")?);
    for (id, timeout) in [("child", "7"), ("longer", "9000"), ("shorter", "8")] {
        world
            .put_foreign(id, &[AFTER_FIRST, ("timeout", timeout)])
            .await?;
        check!(world.take(5).await?.is_empty());
    }
    let ms: u64 = world.raw(&["PTTL", &next]).await?;
    check!((9_000_000..=9_000_000 + 3_600_000).contains(&ms) && ms > 12_000_000);
    for (ms, status) in [(6_999, "dispatched"), (1, "error")] {
        world.pass(ms);
        world.broker.check_orphans().await?;
        same!(world.status("child").await?, status);
    }
    let why = "prerequisite first does not exist";
    same!(world.list(&world.reply("child")).await?, [why]);
    same!(world.status("shorter").await?, "dispatched");
    // A list that has the name of a job is no prerequisite either.
    world.raw::<()>(&["DEL", &next]).await?;
    world
        .raw::<()>(&["LPUSH", &world.key("first"), "x"])
        .await?;
    world.put_foreign("other", &[AFTER_FIRST]).await?;
    check!(world.take(5).await?.is_empty());
    check!(waits(world, "other").await?);
    Ok(())
}

/// The prerequisite still ends.
async fn a_note_of_who_waits_may_be_gone(world: &World) -> Outcome {
    let next = format!("{}first", world.named("DEPENDENTS")?);
    world.put_foreign("child", &[AFTER_FIRST]).await?;
    check!(world.take(5).await?.is_empty());
    world.raw::<()>(&["DEL", &next]).await?;
    world.put_foreign("first", &[]).await?;
    run(world, "first", true).await?;
    check!(waits(world, "child").await?);
    world.pass(5_000);
    world.broker.check_orphans().await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// The list may have numbers, and no brackets.
async fn ids_are_read_however_they_are_written(world: &World) -> Outcome {
    for (list, ids) in [
        ("a", &["a"][..]),
        (" a-1.b:c ", &["a-1.b:c"]),
        ("a,b , c", &["a", "b", "c"]),
        ("42", &["42"]),
        ("7,8", &["7", "8"]),
        (r#""a""#, &["a"]),
        ("[1, 22]", &["1", "22"]),
        (r#" ["a" ,"b c", 3] "#, &["a", "b c", "3"]),
        (r#"["a","a"]"#, &["a"]),
    ] {
        for field in ["prerequisites", "dependencies"] {
            world.put_foreign("child", &[(field, list)]).await?;
            check!(world.take(5).await?.is_empty());
            let quoted = format!("\"{}\"", ids.join("\" \""));
            same!(
                (list, world.field("child", "mw_waiting").await?),
                (list, Some(quoted))
            );
            same!(
                (list, world.read("child").await?.depends_on),
                (list, ids.iter().map(|id| (*id).to_owned()).collect())
            );
            world.raw::<()>(&["FLUSHDB"]).await?;
        }
    }
    Ok(())
}

/// The value is neither guessed nor read in part.
async fn what_is_no_list_of_ids_is_unreadable(world: &World) -> Outcome {
    for list in [
        "a b",
        "a,",
        ",",
        "a,,b",
        "['a']",
        "{a}",
        r#"{"a":1}"#,
        r#"["a""#,
        r#"["a"] x"#,
        r#"["a",]"#,
        r#"["a" "b"]"#,
        "[a]",
        "[-1]",
        "[1.5]",
        "[null]",
        r#"[["a"]]"#,
        r#"[""]"#,
        r#""""#,
        r#""a"#,
        r#"["a\"b"]"#,
        r#"["\u0061"]"#,
        "a\u{1}b",
        "]",
        "[",
    ] {
        for field in ["prerequisites", "dependencies"] {
            world.put_foreign("child", &[(field, list)]).await?;
            let taken = world.claim(WORKER, &[world.queue()], 5).await?;
            same!((taken.jobs.len(), taken.dropped), (0, 1));
            let why = format!("unreadable: its field `{field}` is no list of job ids: `{list}`");
            let child = world.read("child").await?;
            same!((list, child.error.as_deref()), (list, Some(why.as_str())));
            same!((list, child.dead.as_deref()), (list, Some("unreadable")));
            same!(world.list(&world.reply("child")).await?, [why]);
            world.raw::<()>(&["FLUSHDB"]).await?;
        }
    }
    Ok(())
}

/// The job would wait for ever.
async fn one_that_names_itself_is_refused(world: &World) -> Outcome {
    for list in [r#"["x","child"]"#, "child"] {
        world
            .put_foreign("child", &[("dependencies", list)])
            .await?;
        check!(world.take(5).await?.is_empty());
        let why = "prerequisite child is the job itself";
        same!(world.list(&world.reply("child")).await?, [why]);
        same!(world.read("child").await?.dead, None);
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// With prerequisites the job waits for them; without, it is ready.
async fn the_status_of_one_that_waits_is_theirs(world: &World) -> Outcome {
    let theirs = ("status", "waiting_for_prerequisites");
    world.put(&["first"]).await?;
    world.put_foreign("child", &[theirs, AFTER_FIRST]).await?;
    world
        .put_foreign("free", &[theirs, ("prerequisites", "[]")])
        .await?;
    same!(ids(&world.take(5).await?), ["first", "free"]);
    same!(world.status("child").await?, "dispatched");
    check!(waits(world, "child").await?);
    Ok(())
}

/// Meshwork's field may have been set by hand.
async fn a_failed_prerequisite_may_not_matter(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    run(world, "first", false).await?;
    let fields = [AFTER_FIRST, ("mw_on_failure", "continue")];
    world.put_foreign("child", &fields).await?;
    run(world, "child", true).await
}

/// A record without a timeout has the default.
async fn its_time_is_that_of_its_record(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    for (id, timeout) in [("a", "7"), ("b", "soon")] {
        let fields = [AFTER_FIRST, ("timeout", timeout)];
        world.put_foreign(id, &fields).await?;
    }
    world.take(5).await?;
    let expires = |ms: u64| Some((START + ms).to_string());
    same!(world.field("a", "mw_expires").await?, expires(7_000));
    same!(world.field("b", "mw_expires").await?, expires(1_800_000));
    Ok(())
}

fn list_of(most: usize) -> String {
    let ids: Vec<_> = (0..most).map(|n| format!("\"x{n}\"")).collect();
    format!("[{}]", ids.join(","))
}

/// A Meshwork job cannot have as many either.
async fn too_many_prerequisites_end_it(world: &World) -> Outcome {
    // The text after the last allowed one is not read.
    for list in [list_of(1001), list_of(1001).replace(']', ", {]")] {
        let fields = [("prerequisites", &*list)];
        world.put_foreign("child", &fields).await?;
        let taken = world.claim(WORKER, &[world.queue()], 5).await?;
        same!((taken.jobs.len(), taken.dropped, taken.more), (0, 1, true));
        let why = "it has more than 1000 prerequisites";
        same!(world.read("child").await?.error.as_deref(), Some(why));
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// Each prerequisite is read; the remaining ids return in order.
async fn many_prerequisites_end_the_call_early(world: &World) -> Outcome {
    for n in 0..5 {
        let fields = [("prerequisites", &*list_of(400))];
        world.put_foreign(&format!("j{n}"), &fields).await?;
    }
    let taken = world.claim(WORKER, &[world.queue()], 9).await?;
    same!((taken.jobs.len(), taken.dropped, taken.more), (0, 3, true));
    same!(world.waiting().await?, ["j3", "j4"]);
    let taken = world.claim(WORKER, &[world.queue()], 9).await?;
    same!((taken.dropped, taken.more), (2, false));
    Ok(())
}

/// Its prerequisites may be deleted by then.
async fn is_not_asked_again_once_it_ran(world: &World) -> Outcome {
    world.put(&["first", "second"]).await?;
    let fields = [("prerequisites", r#"["first","second"]"#)];
    world.put_foreign("child", &fields).await?;
    let taken = world.take(5).await?;
    world.finish(&taken[0], "42").await?;
    world.broker.delete(&taken[0].job).await?;
    world.finish(&taken[1], "42").await?;
    world.broker.delete(&taken[1].job).await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.id, "child");
    world.lose_all().await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    same!(world.read("child").await?.error.as_deref(), Some("boom"));
    Ok(())
}

/// Enqueue has checked the prerequisites.
async fn a_job_of_ours_is_not_asked_at_all(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    run(world, "first", true).await?;
    crate::cases::dependencies::prerequisites::put_after(world, "child", &["first"]).await?;
    world.broker.delete(&world.read("first").await?).await?;
    run(world, "child", true).await
}
