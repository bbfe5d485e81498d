//! Objects that scripts store: in a context by the roles of the job's caller, and outside by the caller.

use meshwork::context::{ContextHandle, Node, new_key};
use meshwork::{Client, Error, JobRequest, Worker};
use meshwork_broker::Broker;
use meshwork_model::access::{Object, Operation, Role};
use meshwork_model::keys::context::ActorId;
use meshwork_model::keys::hero::JobKeys;

use super::PATIENCE;
use super::world::World;
use crate::engines::on_each_engine;
use crate::worker_support::osis;

const SAVE: &str = r#"
    let cars = get_context(["ann", "bob"]);
    cars.save("car", #{ id: "c1", colour: "red", doors: 4, note: "fast, and red" })
"#;
const GET: &str = r#"get_context(["bob", "ann"]).get("c1").colour"#;

/// Runs a script for a caller of the context, and returns its result or its error.
async fn run_as(
    client: &Client,
    context: &ContextHandle,
    actor: ActorId,
    script: &str,
) -> Result<String, String> {
    let caller = client
        .in_context(context.keys().clone(), actor)
        .await
        .unwrap();
    let id = caller
        .enqueue(JobRequest::new(osis(), script))
        .await
        .unwrap();
    ended(caller.result(&id, PATIENCE).await)
}

fn ended(result: Result<meshwork_model::job::Job, Error>) -> Result<String, String> {
    match result {
        Ok(job) => Ok(String::from_utf8(job.output.unwrap()).unwrap()),
        Err(Error::Failed { message, .. }) => Err(message),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_roles_of_the_caller_decide() {
    for world in World::everywhere().await {
        // With the clock of the server: a lease of the world's clock never ends.
        let broker = Broker::new(world.conn.clone(), JobKeys::default());
        let node = Client::new(broker.clone());
        let context = world.context(7).await.over(&Node::of(&broker));
        let client = context
            .client(&world.me, Object::Queue, Operation::Pop)
            .await
            .unwrap();
        let worker = Worker::new(&client)
            .script_type(&osis())
            .unwrap()
            .start()
            .await
            .unwrap();
        let mut actors = Vec::new();
        for role in [Some(Role::Reader), Some(Role::Executor), None] {
            let actor = world.node.trust(new_key().public(), None).await.unwrap().id;
            if let Some(role) = role {
                context.grant(&world.me, role, actor).await.unwrap();
            }
            actors.push(actor);
        }
        let [reader, executor, stranger] = actors[..] else {
            panic!()
        };
        let run = async |actor, script| run_as(&node, &context, actor, script).await;
        assert_eq!(run(executor, SAVE).await.as_deref(), Ok("c1"));
        assert_eq!(run(reader, GET).await.as_deref(), Ok("red"));
        let refused = run(reader, SAVE).await.unwrap_err();
        assert!(refused.contains("object of scripts"), "{refused}");
        let refused = run(stranger, GET).await.unwrap_err();
        assert!(refused.contains("object of scripts"), "{refused}");
        let refusals = context.refusals(&world.me, 100).await.unwrap();
        let refusals = refusals.iter();
        let refused: Vec<_> = refusals
            .filter(|row| row.last.contains("object of scripts"))
            .map(|row| row.who.clone())
            .collect();
        for actor in [reader, stranger] {
            assert!(
                refused.iter().any(|who| who.contains(&actor.to_string())),
                "{refused:?}"
            );
        }
        worker.stop().await;
    }
}

on_each_engine! {
    scripts_save_find_and_delete,
    each_caller_has_a_space,
    an_index_answers_among_many,
}

async fn script(client: &Client, caller: &str, script: &str) -> Result<String, String> {
    let request = JobRequest::new(osis(), script)
        .caller(caller, "")
        .reply(true);
    let id = client.enqueue(request).await.unwrap();
    ended(client.result(&id, PATIENCE).await)
}

async fn scripts_save_find_and_delete(client: Client) {
    let worker = Worker::new(&client)
        .script_type(&osis())
        .unwrap()
        .start()
        .await
        .unwrap();
    assert_eq!(script(&client, "a", SAVE).await.as_deref(), Ok("c1"));
    let text = r#"
        let cars = get_context(["ann", "bob"]);
        let car = cars.get("c1");
        car.colour = "blue";
        car.parts = ["x", 1.5, #{ deep: true }];
        cars.save("car", car);
        let other = cars.save("car", #{ colour: "red", doors: 2 });
        #{
            got: cars.get("c1").parts,
            none: cars.get("none"),
            all: cars.list("car").len(),
            rest: cars.list("car", 1).len(),
            red: cars.find("car", "colour", "red")[0].id == other,
            doors: cars.find("car", "doors", 4).map(|car| car.id),
            words: cars.search("car", "RED fast").map(|car| car.id),
            deleted: [cars.delete("c1"), cars.delete("c1")],
            history: cars.history("c1").map(|one| [one.version, if one.object == () { () } else { one.object.colour }]),
            found: cars.find("car", "doors", 4),
        }
    "#;
    let expected = concat!(
        r#"{"all":2,"deleted":[true,false],"doors":["c1"],"found":[],"#,
        r#""got":["x",1.5,{"deep":true}],"history":[[1,"red"],[2,"blue"],[3,null]],"none":null,"#,
        r#""red":true,"rest":1,"words":["c1"]}"#
    );
    assert_eq!(script(&client, "a", text).await.as_deref(), Ok(expected));
    for (text, part) in [
        ("get_context([]).list(\"x\")", "1 to 32 keys"),
        ("get_context([1])", "takes texts"),
        (
            "get_context([\"a\"]).save(\"a b\", #{})",
            "the type `a b` is invalid",
        ),
        (
            "let c = get_context([\"a\"]); c.save(\"a\", #{id: \"x\"}); c.save(\"b\", #{id: \"x\"})",
            "is of the type `a`",
        ),
        ("get_context([\"a\"]).search(\"a\", \"-\")", "needs a word"),
    ] {
        let error = script(&client, "a", text).await.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    worker.stop().await;
}

async fn each_caller_has_a_space(client: Client) {
    let worker = Worker::new(&client)
        .script_type(&osis())
        .unwrap()
        .start()
        .await
        .unwrap();
    script(&client, "a", SAVE).await.unwrap();
    assert_eq!(script(&client, "a", GET).await.as_deref(), Ok("red"));
    let other = r#"get_context(["bob", "ann"]).get("c1") == ()"#;
    assert_eq!(script(&client, "b", other).await.as_deref(), Ok("true"));
    worker.stop().await;
}

/// A script that reads by an index does not look at the other objects.
async fn an_index_answers_among_many(client: Client) {
    let worker = Worker::new(&client)
        .script_type(&osis())
        .unwrap()
        .start()
        .await
        .unwrap();
    let many = r#"
        let c = get_context(["a"]);
        for n in 0..2000 { c.save("row", #{ id: `r${n}`, n: n, parity: n % 2 }); }
        let page = c.find("row", "parity", 1);
        [c.find("row", "n", 1234).len(), page.len(), c.find("row", "parity", 1, 999).len(), c.list("row").len()]
    "#;
    assert_eq!(
        script(&client, "a", many).await.as_deref(),
        Ok("[1,1000,1,1000]")
    );
    worker.stop().await;
}
