//! save_object, delete_object, read_objects: objects of scripts, their index and their history.

use meshwork_broker::{ObjectPage, Quota, SavedObject, StoredObject};
use meshwork_model::object::{NewObject, Space, field_set, type_set, word_sets};
use serde_json::{Value, json};

use crate::cases::harness::world::Got;
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    an_object_is_read_as_it_was_saved,
    a_change_moves_its_index,
    unchanged_fields_stay_in_their_sets,
    a_deleted_object_leaves_its_history,
    two_writers_are_in_the_history_in_order,
    a_history_is_bounded,
    objects_are_listed_in_the_order_of_their_creation,
    pages_follow_each_other,
    a_page_has_a_size,
    all_words_have_to_match,
    another_type_keeps_its_id,
    quotas_refuse_and_change_nothing,
    a_deletion_gives_the_quota_back,
    a_key_of_another_type_changes_nothing,
    spaces_do_not_meet,
];

const QUOTA: Quota = Quota {
    objects: 3,
    bytes: 10_000,
    versions: 3,
};

fn space() -> Got<Space> {
    Space::new(["a", "b"]).map_err(Failure::new)
}

fn note(map: &Value) -> Got<NewObject> {
    let map = map.as_object().cloned().unwrap_or_default();
    NewObject::new("note", &map).map_err(Failure::new)
}

async fn save_with(world: &World, id: &str, map: &Value, quota: Quota) -> Got<SavedObject> {
    let (space, object) = (space()?, note(map)?);
    let saved = world
        .broker
        .save_object(&space, (id, &object), "job-1", quota);
    Ok(saved.await?)
}

async fn save(world: &World, id: &str, map: &Value) -> Got<SavedObject> {
    save_with(world, id, map, QUOTA).await
}

async fn delete(world: &World, id: &str) -> Got<bool> {
    Ok(world
        .broker
        .delete_object(&space()?, id, "job-2", QUOTA)
        .await?)
}

async fn get(world: &World, id: &str) -> Got<Option<StoredObject>> {
    Ok(world.broker.object(&space()?, id).await?)
}

/// Returns the ids of the objects in these sets.
async fn ids_from(world: &World, sets: &[String], from: usize, most: usize) -> Got<Vec<String>> {
    let page = ObjectPage {
        most,
        ..ObjectPage::after(from)
    };
    let found = world.broker.objects(&space()?, sets, page).await?;
    Ok(found.into_iter().map(|object| object.id).collect())
}

async fn with(world: &World, field: &str, value: Value) -> Got<Vec<String>> {
    let set = field_set("note", field, &value).map_err(Failure::new)?;
    ids_from(world, &[set.unwrap_or_default()], 0, 10).await
}

async fn about(world: &World, text: &str) -> Got<Vec<String>> {
    ids_from(
        world,
        &word_sets("note", text).map_err(Failure::new)?,
        0,
        10,
    )
    .await
}

fn all() -> Got<Vec<String>> {
    Ok(vec![type_set("note").map_err(Failure::new)?])
}

/// Returns number, time, job and object of each version.
async fn history(world: &World, id: &str) -> Got<Vec<(u64, u64, String, Option<String>)>> {
    let versions = world.broker.object_history(&space()?, id).await?;
    let version = versions
        .into_iter()
        .map(|one| (one.number, one.at_ms, one.job, one.json));
    Ok(version.collect())
}

async fn an_object_is_read_as_it_was_saved(world: &World) -> Outcome {
    in_both(world, saved_and_read).await?;
    saved_and_read(world).await
}

async fn saved_and_read(world: &World) -> Outcome {
    same!(get(world, "x").await?, None);
    same!(
        save(world, "x", &json!({"n": 1})).await?,
        SavedObject::Saved(1)
    );
    let start = world.now();
    world.pass(7);
    same!(
        save(world, "x", &json!({"n": 2})).await?,
        SavedObject::Saved(2)
    );
    let expected = StoredObject {
        id: "x".to_owned(),
        kind: "note".to_owned(),
        json: r#"{"n":2}"#.to_owned(),
        version: 2,
        created_ms: start,
        changed_ms: start + 7,
    };
    same!(get(world, "x").await?, Some(expected));
    same!(with(world, "n", json!(2)).await?, ["x"]);
    Ok(())
}

async fn a_change_moves_its_index(world: &World) -> Outcome {
    save(world, "x", &json!({"n": 1, "text": "red car"})).await?;
    save(world, "x", &json!({"n": 2, "text": "blue car"})).await?;
    check!(with(world, "n", json!(1)).await?.is_empty());
    check!(about(world, "red").await?.is_empty());
    same!(with(world, "n", json!(2)).await?, ["x"]);
    same!(about(world, "BLUE").await?, ["x"]);
    Ok(())
}

async fn unchanged_fields_stay_in_their_sets(world: &World) -> Outcome {
    save(world, "x", &json!({"n": 1, "m": 1})).await?;
    save(world, "x", &json!({"n": 1, "m": 2})).await?;
    same!(with(world, "n", json!(1)).await?, ["x"]);
    same!(ids_from(world, &all()?, 0, 10).await?, ["x"]);
    Ok(())
}

async fn a_deleted_object_leaves_its_history(world: &World) -> Outcome {
    check!(!delete(world, "x").await?);
    check!(history(world, "x").await?.is_empty());
    save(world, "x", &json!({"n": 1, "text": "red"})).await?;
    check!(delete(world, "x").await?);
    same!(get(world, "x").await?, None);
    check!(with(world, "n", json!(1)).await?.is_empty());
    check!(
        about(world, "red").await?.is_empty() && ids_from(world, &all()?, 0, 10).await?.is_empty()
    );
    let history = history(world, "x").await?;
    let last = history
        .last()
        .map(|(number, _, job, json)| (*number, job.as_str(), json.clone()));
    same!(last, Some((2, "job-2", None)));
    // The next version has the next number.
    same!(save(world, "x", &json!({})).await?, SavedObject::Saved(3));
    check!(with(world, "n", json!(1)).await?.is_empty());
    Ok(())
}

async fn two_writers_are_in_the_history_in_order(world: &World) -> Outcome {
    let (space, object) = (space()?, note(&json!({"n": 1}))?);
    let start = world.now();
    for (job, pass) in [("one", 5), ("two\nlines", 0)] {
        world
            .broker
            .save_object(&space, ("x", &object), job, QUOTA)
            .await?;
        world.pass(pass);
    }
    let json = Some(r#"{"n":1}"#.to_owned());
    let expected = [
        (1, start, "one".to_owned(), json.clone()),
        (2, start + 5, "two lines".to_owned(), json),
    ];
    same!(history(world, "x").await?, expected);
    Ok(())
}

async fn a_history_is_bounded(world: &World) -> Outcome {
    let usage = async || {
        let key = world.named("USAGE")?;
        world.raw::<usize>(&["HGET", &key, "bytes"]).await
    };
    let mut bytes = Vec::new();
    for n in 1..=5 {
        save(world, "x", &json!({ "n": n })).await?;
        bytes.push(usage().await?);
    }
    // Each version that is kept counts.
    let version = bytes[0] - r#"{"n":1}"#.len();
    let more: Vec<_> = bytes.iter().map(|all| all - bytes[0]).collect();
    same!(more, [0, version, 2 * version, 2 * version, 2 * version]);
    let numbers: Vec<_> = history(world, "x")
        .await?
        .iter()
        .map(|version| version.0)
        .collect();
    same!(numbers, [3, 4, 5]);
    // Versions that are gone take no room.
    let long = json!({"text": ["x".repeat(2_000)]});
    for _ in 0..20 {
        same!(
            matches!(save(world, "x", &long).await?, SavedObject::Saved(_)),
            true
        );
    }
    Ok(())
}

async fn objects_are_listed_in_the_order_of_their_creation(world: &World) -> Outcome {
    for id in ["c", "a", "b"] {
        save(world, id, &json!({"n": 1})).await?;
        world.pass(1);
    }
    save(world, "c", &json!({"n": 1, "m": 1})).await?;
    same!(ids_from(world, &all()?, 0, 10).await?, ["c", "a", "b"]);
    same!(with(world, "n", json!(1)).await?, ["c", "a", "b"]);
    Ok(())
}

async fn pages_follow_each_other(world: &World) -> Outcome {
    for id in ["a", "b", "c"] {
        save(world, id, &json!({"text": "red car"})).await?;
        world.pass(1);
    }
    same!(ids_from(world, &all()?, 0, 2).await?, ["a", "b"]);
    same!(ids_from(world, &all()?, 2, 2).await?, ["c"]);
    let both = word_sets("note", "red car").map_err(Failure::new)?;
    same!(ids_from(world, &both, 0, 2).await?, ["a", "b"]);
    same!(ids_from(world, &both, 1, 2).await?, ["b", "c"]);
    same!(ids_from(world, &both, 2, 2).await?, ["c"]);
    Ok(())
}

async fn a_page_has_a_size(world: &World) -> Outcome {
    for id in ["a", "b", "c"] {
        save(world, id, &json!({"text": ["x".repeat(100)]})).await?;
        world.pass(1);
    }
    let page = ObjectPage {
        bytes: 150,
        ..ObjectPage::after(0)
    };
    let found = world.broker.objects(&space()?, &all()?, page).await?;
    same!(found.len(), 2);
    Ok(())
}

async fn all_words_have_to_match(world: &World) -> Outcome {
    save(world, "a", &json!({"text": "a red car"})).await?;
    save(world, "b", &json!({"text": "red", "more": "bike"})).await?;
    same!(about(world, "red").await?.len(), 2);
    same!(about(world, "red car").await?, ["a"]);
    same!(about(world, "bike, red").await?, ["b"]);
    check!(about(world, "car bike").await?.is_empty());
    check!(about(world, "none").await?.is_empty());
    Ok(())
}

async fn another_type_keeps_its_id(world: &World) -> Outcome {
    save(world, "x", &json!({"n": 1})).await?;
    let before = world.all().await?;
    let object = NewObject::new("task", &serde_json::Map::new()).map_err(Failure::new)?;
    let refused = world
        .broker
        .save_object(&space()?, ("x", &object), "j", QUOTA)
        .await?;
    same!(refused, SavedObject::OfType("note".to_owned()));
    same!(world.all().await?, before);
    Ok(())
}

async fn quotas_refuse_and_change_nothing(world: &World) -> Outcome {
    for id in ["a", "b", "c"] {
        save(world, id, &json!({"n": 1})).await?;
    }
    let before = world.all().await?;
    same!(
        save(world, "d", &json!({"n": 1})).await?,
        SavedObject::TooMany
    );
    let large = json!({"text": ["x".repeat(5_000)]});
    same!(save(world, "a", &large).await?, SavedObject::TooLarge);
    same!(world.all().await?, before);
    // A change is no further object.
    same!(
        save(world, "a", &json!({"n": 2})).await?,
        SavedObject::Saved(2)
    );
    // The quota is of all spaces.
    let (other, object) = (Space::new(["z"]).map_err(Failure::new)?, note(&json!({}))?);
    let refused = world
        .broker
        .save_object(&other, ("d", &object), "j", QUOTA)
        .await?;
    same!(refused, SavedObject::TooMany);
    Ok(())
}

async fn a_deletion_gives_the_quota_back(world: &World) -> Outcome {
    let quota = Quota {
        objects: 1,
        bytes: 3_000,
        versions: 1,
    };
    let map = json!({"text": ["x".repeat(1_000)]});
    for at in 0..5 {
        let id = format!("x{at}");
        same!(
            save_with(world, &id, &map, quota).await?,
            SavedObject::Saved(1)
        );
        same!(
            save_with(world, &id, &map, quota).await?,
            SavedObject::Saved(2)
        );
        check!(
            world
                .broker
                .delete_object(&space()?, &id, "j", quota)
                .await?
        );
    }
    Ok(())
}

async fn a_key_of_another_type_changes_nothing(world: &World) -> Outcome {
    save(world, "x", &json!({"n": 1, "m": 1})).await?;
    let prefix = world.broker.keys().objects_prefix();
    for (key, id) in [
        ("field:note:n=2", "y"),
        ("field:note:m=1", "x"),
        ("history:y", "y"),
        ("object:y", "y"),
    ] {
        let key = format!("{prefix}a,b:{key}");
        let _: i64 = world.raw(&["DEL", &key]).await?;
        let _: String = world.raw(&["SET", &key, "text"]).await?;
        let before = world.all().await?;
        let saved = save(world, id, &json!({"a": 1, "n": 2, "m": 2})).await;
        check!(saved.is_err());
        same!(world.all().await?, before);
        if id == "x" {
            check!(delete(world, id).await.is_err());
            same!(world.all().await?, before);
        }
        let _: i64 = world.raw(&["DEL", &key]).await?;
    }
    Ok(())
}

async fn spaces_do_not_meet(world: &World) -> Outcome {
    save(world, "x", &json!({"n": 1})).await?;
    let other = space()?.of_caller("ann");
    same!(world.broker.object(&other, "x").await?, None);
    check!(
        world
            .broker
            .objects(&other, &all()?, ObjectPage::after(0))
            .await?
            .is_empty()
    );
    check!(world.broker.object_history(&other, "x").await?.is_empty());
    Ok(())
}
