//! The way back from a Redis server that has taken a data directory over, with real servers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use crate::support::{Content, LOG, PATIENCE, Raw, Runs as _, content, content_of, own};
use meshwork_embedded::{LogError, OpenError, Options, import_aof, open};
use meshwork_test_servers::{
    eventually,
    servers::{RealServer, ServerOptions},
};

/// Number of jobs before the server.
const JOBS: usize = 201;

/// A data directory with jobs.
async fn jobs(dir: &Path) {
    let owner = own(dir, Options::default()).await;
    let mut session = owner.handle().session();
    for job in 0..JOBS {
        session.done(&format!("HSET job:{job} status queued")).await;
    }
    session.done("SELECT 3").await;
    session.done("RPUSH list a b").await;
    owner.close().await.unwrap();
}

/// Starts a server on the directory, adds a key, and returns all data. With a format of rewrites, rewrites.
async fn served(server: ServerOptions, dir: &Path, rewrite: Option<&str>) -> Option<Content> {
    let mut server = server
        .append_only()
        .args(&["--dir", dir.to_str().unwrap()])
        .start()?;
    let mut client = Raw::connect(&server.socket()).await;
    client.done("SET from:server 1").await;
    if let Some(preamble) = rewrite {
        let set = format!("CONFIG SET aof-use-rdb-preamble {preamble}");
        client.done(&set).await;
        client.done("BGREWRITEAOF").await;
        eventually("the files are rewritten", PATIENCE, async || {
            let idle = |name| server.info(name).as_deref() == Some("0");
            let all = idle("aof_rewrite_in_progress") && idle("aof_rewrite_scheduled");
            all.then_some(())
        })
        .await;
    }
    client.done("SET at:the:end 1").await;
    let content = content(&mut client).await;
    server.kill9();
    Some(content)
}

#[tokio::test]
async fn all_keys_come_back_from_a_server() {
    for server in [RealServer::redis, RealServer::valkey] {
        for rewrite in [None, Some("no")] {
            let dir = tempfile::tempdir().unwrap();
            jobs(dir.path()).await;
            let Some(expected) = served(server(), dir.path(), rewrite).await else {
                continue;
            };
            let error = open(dir.path(), Options::default()).await.unwrap_err();
            assert!(
                matches!(error, OpenError::Log(LogError::TakenOver { .. })),
                "{error}"
            );
            let command = format!("import --aof {}", dir.path().display());
            assert!(error.to_string().contains(&command), "{error}");
            let imported = import_aof(dir.path(), dir.path()).unwrap();
            assert_eq!(imported.keys, JOBS as u64 + 3);
            assert_eq!(imported.files.len(), 2, "{imported:?}");
            let owner = own(dir.path(), Options::default()).await;
            assert_eq!(content_of(&owner).await, expected);
            owner.close().await.unwrap();
            // The data has been imported, and a second time would undo later changes.
            import_aof(dir.path(), dir.path()).unwrap_err();
        }
    }
}

#[tokio::test]
async fn files_of_another_directory_stay_and_come_into_an_empty_one() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    jobs(from.path()).await;
    let Some(expected) = served(RealServer::redis(), from.path(), None).await else {
        return;
    };
    let dir = to.path().join("data");
    let server_dir = from.path().join("appendonlydir");
    let imported = import_aof(&dir, &server_dir).unwrap();
    assert_eq!(imported.keys, JOBS as u64 + 3);
    let owner = own(&dir, Options::default()).await;
    assert_eq!(content_of(&owner).await, expected);
    // While a process uses the directory, and when it has data.
    let error = import_aof(&dir, &server_dir).unwrap_err();
    assert!(matches!(error, OpenError::Used { .. }), "{error}");
    owner.handle().session().done("SET later 1").await;
    owner.close().await.unwrap();
    let before = fs::read(dir.join(LOG)).unwrap();
    let error = import_aof(&dir, &server_dir).unwrap_err();
    assert!(
        matches!(error, OpenError::Log(LogError::Present { .. })),
        "{error}"
    );
    assert_eq!(fs::read(dir.join(LOG)).unwrap(), before);
}

#[tokio::test]
async fn a_binary_base_file_is_refused_and_the_remedy_in_the_error_works() {
    for server in [RealServer::redis, RealServer::valkey] {
        let dir = tempfile::tempdir().unwrap();
        jobs(dir.path()).await;
        if served(server(), dir.path(), Some("yes")).await.is_none() {
            continue;
        }
        let error = import_aof(dir.path(), dir.path()).unwrap_err();
        assert!(
            matches!(error, OpenError::Log(LogError::Rdb { .. })),
            "{error}"
        );
        assert!(
            error.to_string().contains("--aof-use-rdb-preamble no"),
            "{error}"
        );
        assert!(!dir.path().join(LOG).exists(), "nothing is changed");
        let expected = served(server(), dir.path(), Some("no")).await.unwrap();
        import_aof(dir.path(), dir.path()).unwrap();
        let owner = own(dir.path(), Options::default()).await;
        assert_eq!(content_of(&owner).await, expected);
    }
}

#[tokio::test]
async fn an_interrupted_import_is_repeated_and_a_torn_end_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    jobs(dir.path()).await;
    if served(RealServer::redis(), dir.path(), None)
        .await
        .is_none()
    {
        return;
    }
    let incr = dir.path().join("appendonlydir/appendonly.aof.1.incr.aof");
    let torn = [&fs::read(&incr).unwrap()[..], b"*3\r\n$3\r\nSET\r\n"].concat();
    fs::write(&incr, torn).unwrap();
    let first = import_aof(dir.path(), dir.path()).unwrap();
    // As after an interruption before the last step.
    let moved = dir.path().join("appendonlydir.imported-1");
    fs::rename(moved, dir.path().join("appendonlydir")).unwrap();
    let again = import_aof(dir.path(), dir.path()).unwrap();
    assert_eq!(first, again);
    assert_eq!(again.keys, JOBS as u64 + 3);
}

#[test]
fn a_directory_without_one_manifest_is_refused_by_name() {
    let (dir, from) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let error = import_aof(dir.path(), from.path()).unwrap_err();
    assert!(
        matches!(error, OpenError::Log(LogError::Manifest { .. })),
        "{error}"
    );
    assert!(
        error.to_string().contains(from.path().to_str().unwrap()),
        "{error}"
    );
    assert!(!dir.path().join(LOG).exists());
}
