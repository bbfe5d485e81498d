//! Sessions for contexts: the same store, another database or another prefix.

use meshwork_broker::conn::{Conn, Target};
use meshwork_broker::{Broker, Enqueued};
use meshwork_embedded::Handle;
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout, JobKey};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::route::Route;

fn keys(id: u32, layout: ContextLayout) -> ContextKeys {
    ContextKeys::new(ContextId::new(id).unwrap(), layout)
}

/// Stores a job in the context, and finds it there.
async fn store(broker: &Broker, keys: ContextKeys) {
    let id = JobId::foreign(keys.job(JobKey::new(12, 1)));
    let context = broker.of_context(keys).await.unwrap();
    let job = NewJob::new(id.clone(), Route::to("osis".parse().unwrap()), "1");
    assert_eq!(context.enqueue(&[job]).await.unwrap(), [Enqueued::Stored]);
    let stored = context.inspect(&id).await.unwrap().unwrap();
    assert_eq!((&*stored.caller_id, stored.id), ("12", id.to_string()));
    // A connection that waits is one to the same database.
    let own = context.dedicated().await.unwrap();
    assert!(own.inspect(&id).await.unwrap().is_some());
}

async fn stores_in_both_layouts(broker: &Broker) {
    store(broker, keys(7, ContextLayout::Db)).await;
    store(broker, keys(99, ContextLayout::Prefix)).await;
    // The first database has none of the plain names.
    let plain = JobId::foreign("job:12:1".to_owned());
    let first = broker.of_context(keys(99, ContextLayout::Prefix)).await;
    assert!(first.unwrap().inspect(&plain).await.unwrap().is_none());
    let beyond = broker.of_context(keys(99, ContextLayout::Db)).await;
    assert!(beyond.is_err(), "there are 16 databases");
}

#[tokio::test]
async fn an_engine_in_memory_has_contexts() {
    let conn = Conn::embedded(&Handle::in_memory());
    stores_in_both_layouts(&Broker::new(conn, JobKeys::default())).await;
}

#[tokio::test]
async fn a_data_directory_has_contexts_for_all_who_attach() {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::Directory(dir.path().to_owned());
    let owner = Broker::connect(&target, JobKeys::default()).await.unwrap();
    stores_in_both_layouts(&owner).await;
}
