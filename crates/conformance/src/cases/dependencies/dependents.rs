//! The list of dependents in the record of a prerequisite: information for people, with a bound.

use crate::cases::dependencies::prerequisites::{put_after, run};
use crate::cases::{Outcome, World, cases, same};

cases![
    the_other_knows_its_dependents,
    of_dependents_that_others_wrote_none_is_lost,
    its_list_of_dependents_is_bounded,
];

/// The list is Hero's field, in order, without repetitions.
async fn the_other_knows_its_dependents(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    for id in ["a", "b", "c"] {
        put_after(world, id, &["first"]).await?;
    }
    let b = world.read("b").await?;
    world.broker.delete(&b).await?;
    put_after(world, "b", &["first"]).await?;
    let dependents = world.field("first", "dependents").await?;
    same!(dependents.as_deref(), Some(r#"["a","b","c"]"#));
    same!(world.read("first").await?.dependents, ["a", "b", "c"]);
    Ok(())
}

/// A value that is no list is replaced.
async fn of_dependents_that_others_wrote_none_is_lost(world: &World) -> Outcome {
    for (is, should) in [
        (r#" [ "x" ] "#, r#"[ "x" ,"a"]"#),
        ("[]", r#"["a"]"#),
        ("x", r#"["a"]"#),
        ("", r#"["a"]"#),
    ] {
        world.put_foreign("first", &[("dependents", is)]).await?;
        put_after(world, "a", &["first"]).await?;
        same!(
            world.field("first", "dependents").await?.as_deref(),
            Some(should)
        );
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// The list is for people; another key has the dependents to notify.
async fn its_list_of_dependents_is_bounded(world: &World) -> Outcome {
    let many = format!("[\"{}\"]", "x".repeat(40_000));
    world.put_foreign("first", &[("dependents", &many)]).await?;
    put_after(world, "child", &["first"]).await?;
    same!(world.field("first", "dependents").await?, Some(many));
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}
