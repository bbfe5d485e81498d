//! The list of dependents in the record of a job that others wait for: for people, and bounded.

use super::waits::{put_after, run};
use super::{Outcome, World, cases, same};

cases![
    the_other_knows_its_dependents,
    of_dependents_that_others_wrote_none_is_lost,
    its_list_of_dependents_is_bounded,
];

/// Hero's field, in their order, each once.
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

/// What is no list is replaced by one.
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

/// It is for people; who is told stands elsewhere.
async fn its_list_of_dependents_is_bounded(world: &World) -> Outcome {
    let many = format!("[\"{}\"]", "x".repeat(40_000));
    world.put_foreign("first", &[("dependents", &many)]).await?;
    put_after(world, "child", &["first"]).await?;
    same!(world.field("first", "dependents").await?, Some(many));
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}
