//! read and scan: several keys at one time, each in its own form.

use meshwork_broker::Error;
use meshwork_broker::context::{Commit, Database, Read};

use super::{Outcome, World, cases, check, key, same};

cases![
    hashes_come_with_all_fields,
    the_value_of_a_string_comes,
    two_fields_of_each_hash_come,
    a_key_of_another_kind_has_no_fields,
    the_length_of_two_fields_comes,
    the_tail_is_what_is_popped_next,
    parts_of_a_list_come,
    what_is_due_comes,
    a_sorted_set_comes_in_pages,
    entries_come_from_either_end,
    keys_that_begin_alike_are_found,
    a_key_of_another_kind_among_several_is_named,
];

const NODE: Database = Database::Node;

fn texts(bytes: Vec<Vec<u8>>) -> Vec<String> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    bytes.into_iter().map(text).collect()
}

async fn hashes_come_with_all_fields(world: &World) -> Outcome {
    let [one, none, other] = [key(world, "1")?, key(world, "2")?, key(world, "3")?];
    world.raw::<()>(&["HSET", &one, "a", "1"]).await?;
    world.raw::<()>(&["HSET", &other, "b", "2"]).await?;
    let found = world.contexts().hashes(NODE, &[one, none, other]).await?;
    let pair = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    same!(
        found,
        [vec![pair("a", "1")], Vec::new(), vec![pair("b", "2")]]
    );
    Ok(())
}

async fn the_value_of_a_string_comes(world: &World) -> Outcome {
    let [one, none] = [key(world, "1")?, key(world, "2")?];
    world.raw::<()>(&["SET", &one, "x"]).await?;
    same!(
        world.contexts().text(NODE, &one).await?,
        Some(b"x".to_vec())
    );
    same!(world.contexts().text(NODE, &none).await?, None);
    Ok(())
}

async fn two_fields_of_each_hash_come(world: &World) -> Outcome {
    let [one, none] = [key(world, "1")?, key(world, "2")?];
    world
        .raw::<()>(&["HSET", &one, "a", "1", "b", "2", "c", "3"])
        .await?;
    let found = world
        .contexts()
        .pairs(NODE, &[one, none], ("b", "d"))
        .await?;
    same!(
        found,
        [(b"2".to_vec(), Vec::new()), (Vec::new(), Vec::new())]
    );
    Ok(())
}

async fn a_key_of_another_kind_has_no_fields(world: &World) -> Outcome {
    let [one, text] = [key(world, "1")?, key(world, "2")?];
    world.raw::<()>(&["HSET", &one, "a", "1", "b", "2"]).await?;
    world.raw::<()>(&["SET", &text, "x"]).await?;
    let keys = [text, one];
    let found = world.contexts().pairs(NODE, &keys, ("a", "b")).await?;
    same!(
        found,
        [(Vec::new(), Vec::new()), (b"1".to_vec(), b"2".to_vec())]
    );
    let lengths = world.contexts().lengths(NODE, &keys, ("a", "b")).await?;
    same!(lengths, [0, 2]);
    Ok(())
}

async fn the_length_of_two_fields_comes(world: &World) -> Outcome {
    let [one, none] = [key(world, "1")?, key(world, "2")?];
    let record = ["HSET", &one, "a", "123", "b", "4567", "c", "8"];
    world.raw::<()>(&record).await?;
    let keys = [one, none];
    let lengths = world.contexts().lengths(NODE, &keys, ("a", "b")).await?;
    same!(lengths, [7, 0]);
    let lengths = world.contexts().lengths(NODE, &keys, ("x", "c")).await?;
    same!(lengths, [1, 0]);
    Ok(())
}

async fn parts_of_a_list_come(world: &World) -> Outcome {
    let list = key(world, "l")?;
    let push = ["RPUSH", &list, "a", "b", "c", "d", "e"];
    world.raw::<()>(&push).await?;
    let parts = [
        Read::Head(2),
        Read::Page(0, 2),
        Read::Page(2, 2),
        Read::Page(4, 2),
        Read::Page(6, 2),
    ];
    let found = world.contexts().lists(NODE, &list, &parts).await?;
    let found: Vec<_> = found.into_iter().map(texts).collect();
    same!(
        found,
        [&["a", "b"][..], &["d", "e"], &["b", "c"], &["a"], &[]]
    );
    Ok(())
}

async fn the_tail_is_what_is_popped_next(world: &World) -> Outcome {
    let list = key(world, "l")?;
    world.raw::<()>(&["LPUSH", &list, "a", "b", "c"]).await?;
    let tail = world
        .contexts()
        .elements(NODE, &list, Read::Tail(2))
        .await?;
    same!(texts(tail), ["b", "a"]);
    Ok(())
}

async fn what_is_due_comes(world: &World) -> Outcome {
    let set = key(world, "z")?;
    let store = world.contexts();
    let now = world.now();
    let commit = [(0, "a"), (1, "b"), (2, "c")]
        .iter()
        .fold(Commit::default(), |commit, (in_ms, member)| {
            commit.mark(&set, now + in_ms, member.as_bytes())
        });
    check!(store.commit(NODE, &commit).await?.is_done());
    same!(
        texts(store.elements(NODE, &set, Read::Due(9)).await?),
        ["a"]
    );
    world.pass(5);
    same!(
        texts(store.elements(NODE, &set, Read::Due(2)).await?),
        ["a", "b"]
    );
    Ok(())
}

async fn a_sorted_set_comes_in_pages(world: &World) -> Outcome {
    let set = key(world, "z")?;
    world
        .raw::<()>(&["ZADD", &set, "3", "c", "1", "a", "2", "b"])
        .await?;
    let store = world.contexts();
    for (page, expected) in [
        (Read::Members(2, 0), &["a", "b"][..]),
        (Read::Members(2, 2), &["c"]),
        (Read::Members(2, 3), &[]),
    ] {
        same!(texts(store.elements(NODE, &set, page).await?), expected);
    }
    same!(texts(store.elements(NODE, &set, Read::Count).await?), ["3"]);
    Ok(())
}

async fn entries_come_from_either_end(world: &World) -> Outcome {
    let stream = key(world, "s")?;
    for at in ["1-1", "2-1", "3-1"] {
        world.raw::<()>(&["XADD", &stream, at, "n", at]).await?;
    }
    let store = world.contexts();
    let ids = async |read| {
        let entries = store.entries(NODE, &stream, read).await?;
        Ok::<_, super::Failure>(
            entries
                .into_iter()
                .map(|entry| entry.id)
                .collect::<Vec<_>>(),
        )
    };
    same!(ids(Read::Last(2)).await?, ["3-1", "2-1"]);
    same!(ids(Read::After(5, "1-1")).await?, ["2-1", "3-1"]);
    same!(ids(Read::After(1, "0-0")).await?, ["1-1"]);
    Ok(())
}

async fn keys_that_begin_alike_are_found(world: &World) -> Outcome {
    for name in ["a[1]:x", "a[1]:y", "a1:x"] {
        world.raw::<()>(&["SET", &key(world, name)?, ""]).await?;
    }
    let (store, prefix) = (world.contexts(), key(world, "a[1]:")?);
    let (mut cursor, mut found) = (0, Vec::new());
    loop {
        let (next, keys) = store.scan(NODE, cursor, &prefix, 100).await?;
        found.extend(texts(keys));
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    found.sort();
    same!(found, [format!("{prefix}x"), format!("{prefix}y")]);
    Ok(())
}

async fn a_key_of_another_kind_among_several_is_named(world: &World) -> Outcome {
    let [one, other] = [key(world, "1")?, key(world, "2")?];
    world.raw::<()>(&["HSET", &one, "a", "1"]).await?;
    world.raw::<()>(&["SET", &other, "x"]).await?;
    let keys = [one, other];
    let refused = world.contexts().hashes(NODE, &keys).await;
    check!(matches!(refused, Err(Error::WrongType { key, .. }) if key == keys[1]));
    Ok(())
}
