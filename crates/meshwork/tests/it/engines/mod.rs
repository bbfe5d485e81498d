//! Tests of the library on each engine that a program may have: a real Redis, and an embedded one in memory.

use meshwork::Client;
use meshwork_broker::Broker;
use meshwork_broker::conn::Conn;
use meshwork_model::keys::hero::JobKeys;

/// A client with an embedded engine of its own, which keeps nothing on disk.
pub(crate) fn embedded() -> Client {
    let conn = Conn::embedded(&meshwork_embedded::Handle::in_memory());
    Client::new(Broker::new(conn, JobKeys::default()))
}

/// Each test, a function that takes a client, on a real Redis, in a database of its own, and on an embedded
/// engine of its own.
macro_rules! on_each_engine {
    ($($name:ident,)*) => {
        mod on_redis {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    use ::meshwork_test_servers::servers::{Tool, shared};
                    if let Some(database) = shared(Tool::Redis) {
                        let client = ::meshwork::Client::open(&database.url()).await;
                        super::$name(client.unwrap()).await;
                    }
                }
            )*
        }
        mod on_embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $name() {
                    super::$name($crate::engines::embedded()).await;
                }
            )*
        }
    };
}

pub(crate) use on_each_engine;
