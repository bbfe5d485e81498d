//! commit and draw: a commit is atomic, and each number is drawn once.

use meshwork_broker::context::{Commit, Committed, Database};

use super::{Failure, Got, Outcome, World, cases, check, key, same};

cases![
    all_steps_are_done,
    a_condition_that_does_not_hold_changes_nothing,
    conditions_are_counted,
    a_value_is_as_it_was_read,
    an_element_must_be_listed,
    a_database_with_keys_is_not_empty,
    a_key_of_another_kind_changes_nothing,
    what_a_key_of_another_kind_cannot_hold_is_removed,
    a_counter_that_holds_no_number_is_named,
    what_is_dropped_is_gone_everywhere,
    what_is_kept_goes,
    a_deleted_key_is_gone,
    an_entry_has_its_time,
    a_time_in_seconds_has_its_milliseconds,
    a_row_counts_what_an_author_does_in_a_minute,
    the_oldest_rows_go_first,
    numbers_follow,
    numbers_of_others_are_stepped_over,
    numbers_end,
    many_numbers_of_others_are_stepped_over,
];

const NODE: Database = Database::Node;

async fn done(world: &World, commit: Commit) -> Got<Committed> {
    Ok(world.contexts().commit(NODE, &commit).await?)
}

/// Runs a commit that must succeed.
async fn put(world: &World, commit: Commit) -> Outcome {
    same!(done(world, commit).await?, Committed::Done);
    Ok(())
}

async fn all_steps_are_done(world: &World) -> Outcome {
    let [hash, list, set] = [key(world, "h")?, key(world, "l")?, key(world, "z")?];
    let commit = Commit::default()
        .set(&hash, [("a", "1"), ("b", "2")])
        .push(&list, b"x")
        .push(&list, b"y")
        .mark(&set, 7, b"m")
        .mark(&set, 8, b"n")
        .unmark(&set, b"n");
    same!(done(world, commit).await?, Committed::Done);
    same!(
        world
            .raw::<Vec<String>>(&["HMGET", &hash, "a", "b"])
            .await?,
        ["1", "2"]
    );
    same!(
        world
            .raw::<Vec<String>>(&["LRANGE", &list, "0", "-1"])
            .await?,
        ["y", "x"]
    );
    let members = world
        .raw::<Vec<String>>(&["ZRANGE", &set, "0", "-1", "WITHSCORES"])
        .await?;
    same!(members, ["m", "7"]);
    Ok(())
}

async fn a_condition_that_does_not_hold_changes_nothing(world: &World) -> Outcome {
    let [hash, list] = [key(world, "h")?, key(world, "l")?];
    put(world, Commit::default().set(&hash, [("a", "1")])).await?;
    let before = world.all().await?;
    // The position of the condition does not matter.
    let commit = Commit::default().push(&list, b"x").absent(&hash);
    same!(done(world, commit).await?, Committed::Unmet(1));
    same!(world.all().await?, before);
    Ok(())
}

async fn conditions_are_counted(world: &World) -> Outcome {
    let [hash, none] = [key(world, "h")?, key(world, "none")?];
    put(world, Commit::default().set(&hash, [("a", "1")])).await?;
    let commit = |value: &[u8]| Commit::default().absent(&none).is(&hash, "a", value);
    same!(done(world, commit(b"2")).await?, Committed::Unmet(2));
    same!(done(world, commit(b"1")).await?, Committed::Done);
    Ok(())
}

async fn a_value_is_as_it_was_read(world: &World) -> Outcome {
    let hash = key(world, "h")?;
    let change = |from: &'static str, to: &'static str| {
        Commit::default()
            .is(&hash, "a", from.as_bytes())
            .set(&hash, [("a", to)])
    };
    same!(done(world, change("", "1")).await?, Committed::Done);
    same!(done(world, change("", "2")).await?, Committed::Unmet(1));
    same!(done(world, change("0", "2")).await?, Committed::Unmet(1));
    same!(done(world, change("1", "2")).await?, Committed::Done);
    same!(world.raw::<String>(&["HGET", &hash, "a"]).await?, "2");
    Ok(())
}

async fn an_element_must_be_listed(world: &World) -> Outcome {
    let [list, hash] = [key(world, "l")?, key(world, "h")?];
    let commit = || {
        Commit::default()
            .listed(&list, b"x")
            .set(&hash, [("a", "1")])
    };
    same!(done(world, commit()).await?, Committed::Unmet(1));
    put(world, Commit::default().push(&list, b"x")).await?;
    same!(done(world, commit()).await?, Committed::Done);
    Ok(())
}

async fn a_database_with_keys_is_not_empty(world: &World) -> Outcome {
    let hash = key(world, "h")?;
    let commit = || Commit::default().empty(&hash).set(&hash, [("a", "1")]);
    same!(done(world, commit()).await?, Committed::Done);
    same!(done(world, commit()).await?, Committed::Unmet(1));
    Ok(())
}

async fn a_key_of_another_kind_changes_nothing(world: &World) -> Outcome {
    let [hash, text] = [key(world, "h")?, key(world, "t")?];
    world.raw::<()>(&["SET", &text, "x"]).await?;
    let before = world.all().await?;
    let first = || Commit::default().set(&hash, [("a", "1")]);
    for commit in [
        first().set(&text, [("a", "1")]),
        first().push(&text, b"x"),
        first().mark(&text, 1, b"x"),
        first().is(&text, "a", b""),
        first().listed(&text, b"x"),
    ] {
        check!(world.contexts().commit(NODE, &commit).await.is_err());
        same!(world.all().await?, before);
    }
    Ok(())
}

async fn what_a_key_of_another_kind_cannot_hold_is_removed(world: &World) -> Outcome {
    let [hash, text] = [key(world, "h")?, key(world, "t")?];
    world.raw::<()>(&["SET", &text, "x"]).await?;
    let commit = Commit::default()
        .drop(&text, b"x")
        .unmark(&text, b"x")
        .note(&text, 10, &[("a", "1")])
        .set(&hash, [("a", "1")]);
    put(world, commit).await?;
    same!(world.raw::<String>(&["GET", &text]).await?, "x");
    same!(world.raw::<String>(&["HGET", &hash, "a"]).await?, "1");
    Ok(())
}

async fn a_counter_that_holds_no_number_is_named(world: &World) -> Outcome {
    let counter = key(world, "n")?;
    for wrong in [&["SET", &counter, "x"][..], &["LPUSH", &counter, "1"]] {
        world.raw::<redis::Value>(&["DEL", &counter]).await?;
        world.raw::<redis::Value>(wrong).await?;
        let drawn = world.contexts().draw(NODE, &counter, "o:").await;
        let Err(error) = drawn else {
            return Err(Failure::new("a number was drawn"));
        };
        use meshwork_broker::Error as E;
        check!(matches!(error, E::WrongType { .. } | E::WrongKind { .. }));
        check!(error.to_string().contains(&counter));
    }
    Ok(())
}

async fn a_deleted_key_is_gone(world: &World) -> Outcome {
    let [hash, text, other] = [key(world, "h")?, key(world, "t")?, key(world, "o")?];
    world.raw::<()>(&["SET", &text, "x"]).await?;
    let fields = [("a", "1")];
    put(
        world,
        Commit::default().set(&hash, fields).set(&other, fields),
    )
    .await?;
    let none = key(world, "none")?;
    let commit = Commit::default().delete(&hash).delete(&text).delete(&none);
    put(world, commit).await?;
    same!(world.raw::<i64>(&["EXISTS", &hash, &text]).await?, 0);
    same!(world.raw::<i64>(&["EXISTS", &other]).await?, 1);
    Ok(())
}

async fn what_is_dropped_is_gone_everywhere(world: &World) -> Outcome {
    let list = key(world, "l")?;
    world.raw::<()>(&["RPUSH", &list, "x", "y", "x"]).await?;
    put(world, Commit::default().drop(&list, b"x")).await?;
    same!(
        world
            .raw::<Vec<String>>(&["LRANGE", &list, "0", "-1"])
            .await?,
        ["y"]
    );
    Ok(())
}

async fn what_is_kept_goes(world: &World) -> Outcome {
    let text = key(world, "t")?;
    put(world, Commit::default().keep(&text, "v", 60_000)).await?;
    same!(world.raw::<String>(&["GET", &text]).await?, "v");
    let left = world.raw::<i64>(&["PTTL", &text]).await?;
    check!(left > 0 && left <= 60_000);
    Ok(())
}

async fn an_entry_has_its_time(world: &World) -> Outcome {
    let stream = key(world, "s")?;
    let commit = Commit::default().note(&stream, 10, &[("what", "x"), ("who", "y")]);
    put(world, commit).await?;
    let store = world.contexts();
    let read = meshwork_broker::context::Read::Last(5);
    let entries = store.entries(NODE, &stream, read).await?;
    let seconds = (world.now() / 1000).to_string();
    let fields = entries[0].fields.clone();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    same!(
        fields,
        [pair("at", &seconds), pair("what", "x"), pair("who", "y")]
    );
    let many = (0..400).fold(Commit::default(), |commit, _| {
        commit.note(&stream, 10, &[("what", "x")])
    });
    put(world, many).await?;
    check!(world.raw::<usize>(&["XLEN", &stream]).await? < 300);
    Ok(())
}

async fn rows(world: &World, key: &str) -> Got<Vec<(String, String)>> {
    let mut rows: Vec<(String, String)> = world.raw(&["HGETALL", key]).await?;
    rows.sort();
    Ok(rows)
}

async fn a_row_counts_what_an_author_does_in_a_minute(world: &World) -> Outcome {
    let hash = key(world, "c")?;
    let count =
        |who: &'static str, text: &'static str| Commit::default().count(&hash, 10, who, text);
    put(world, count("actor 2", "one")).await?;
    put(world, count("actor 2", "two words")).await?;
    put(world, count("stranger", "x")).await?;
    let first = world.now() / 60_000 * 60;
    let row = |at: u64, who: &str, text: &str| (format!("{at} {who}"), text.to_owned());
    same!(
        rows(world, &hash).await?,
        [
            row(first, "actor 2", "2 two words"),
            row(first, "stranger", "1 x")
        ]
    );
    world.at((first + 60) * 1000);
    put(world, count("actor 2", "three")).await?;
    same!(
        rows(world, &hash).await?[2],
        row(first + 60, "actor 2", "1 three")
    );
    // A key of another kind prevents nothing.
    let list = key(world, "l")?;
    put(world, Commit::default().push(&list, b"x")).await?;
    put(world, Commit::default().count(&list, 10, "actor 2", "x")).await
}

async fn the_oldest_rows_go_first(world: &World) -> Outcome {
    let hash = key(world, "c")?;
    let begin = world.now() / 60_000 * 60;
    for minute in 0..21 {
        world.at((begin + minute * 60) * 1000);
        put(world, Commit::default().count(&hash, 20, "actor 2", "x")).await?;
    }
    let left: Vec<_> = rows(world, &hash)
        .await?
        .into_iter()
        .map(|(row, _)| row)
        .collect();
    let expected: Vec<_> = (2..21)
        .map(|minute| format!("{} actor 2", begin + minute * 60))
        .collect();
    same!(left, expected);
    Ok(())
}

async fn draw(world: &World) -> Got<Option<u32>> {
    let [counter, prefix] = [key(world, "n")?, key(world, "o:")?];
    Ok(world.contexts().draw(NODE, &counter, &prefix).await?)
}

async fn a_time_in_seconds_has_its_milliseconds(world: &World) -> Outcome {
    let hash = key(world, "h")?;
    let now = world.now();
    let exact = async |seconds: u64, more: &[(&str, &str)]| -> Got<[Option<String>; 2]> {
        world.raw::<()>(&["DEL", &hash]).await?;
        let seconds = seconds.to_string();
        let times = [("created_at", &*seconds), ("updated_at", &seconds)];
        let commit = Commit::default().set(&hash, more.iter().copied());
        put(world, commit.set(&hash, times)).await?;
        let words = ["HMGET", &hash, "mw_created_ms", "mw_updated_ms"];
        world.raw(&words).await
    };
    let both = |ms: u64| [Some(ms.to_string()), Some(ms.to_string())];
    let second = now / 1000;
    same!(exact(second, &[]).await?, both(now));
    // The second has ended since the caller has read the time.
    same!(exact(second - 1, &[]).await?, both(second * 1000 - 1));
    for other in [second - 2, second + 1, 0] {
        same!(exact(other, &[]).await?, [None, None]);
    }
    // A message of another context has been created there.
    let received = [("mw_received_ms", "1")];
    same!(
        exact(second, &received).await?,
        [None, Some(now.to_string())]
    );
    Ok(())
}

async fn numbers_follow(world: &World) -> Outcome {
    for number in 1..4 {
        same!(draw(world).await?, Some(number));
    }
    Ok(())
}

async fn numbers_of_others_are_stepped_over(world: &World) -> Outcome {
    for number in ["1", "3"] {
        let taken = key(world, &format!("o:{number}"))?;
        world.raw::<()>(&["HSET", &taken, "id", number]).await?;
    }
    same!(draw(world).await?, Some(2));
    same!(draw(world).await?, Some(4));
    Ok(())
}

async fn numbers_end(world: &World) -> Outcome {
    let counter = key(world, "n")?;
    world.raw::<()>(&["SET", &counter, "4294967294"]).await?;
    same!(draw(world).await?, Some(u32::MAX));
    same!(draw(world).await?, None);
    same!(world.raw::<String>(&["GET", &counter]).await?, "4294967295");
    Ok(())
}

async fn many_numbers_of_others_are_stepped_over(world: &World) -> Outcome {
    for number in 1..=1_005 {
        let taken = key(world, &format!("o:{number}"))?;
        world.raw::<()>(&["SET", &taken, ""]).await?;
    }
    same!(draw(world).await?, Some(1_006));
    Ok(())
}
