//! Snapshots of the keys inside and outside of a namespace, for tests.

use meshwork::{Client, Target};
use meshwork_conformance::snapshot::{keys, keys_outside};

#[tokio::test]
async fn a_key_of_no_namespace_lies_outside() {
    let dir = tempfile::Builder::new().prefix("mw-").tempdir().unwrap();
    let target = Target::Directory(dir.path().to_owned());
    let client = Client::connect(&target).await.unwrap();
    let mut conn = client.broker().conn().clone();
    for key in ["a:1", "b:1", "ab:1", "a"] {
        let mut set = redis::cmd("SET");
        let set = set.arg(key).arg(1).query_async::<()>(&mut conn);
        set.await.unwrap();
    }
    assert_eq!(keys(&conn, "a").await.unwrap(), [b"a:1"]);
    let outside = keys_outside(&conn, &["a", "b"]).await.unwrap();
    assert_eq!(outside, [b"a".as_slice(), b"ab:1"]);
}
