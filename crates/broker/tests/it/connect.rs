//! Forms of `REDIS_URL` on real servers, and refused ones with their messages.
use meshwork_broker::Broker;
use meshwork_broker::conn::{ConnectError, Target, TlsFiles, Unsuitable};
use meshwork_broker::doctor::rights;
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::route::Route;
use meshwork_test_servers::fakes::FakeRedis6;
use meshwork_test_servers::servers::RealServer;

async fn connect(url: &str, tls: TlsFiles) -> Result<Broker, ConnectError> {
    Broker::connect(&Target::parse(url, tls)?, JobKeys::default()).await
}

/// Connects, stores a job and reads it back.
async fn works(url: &str, tls: TlsFiles) {
    let broker = connect(url, tls).await.unwrap();
    let job = NewJob::new(
        "j".parse().unwrap(),
        Route::to("osis".parse().unwrap()),
        "1",
    );
    broker.enqueue(std::slice::from_ref(&job)).await.unwrap();
    assert!(broker.inspect(&job.id).await.unwrap().is_some());
    // The connections that wait are made apart.
    let blocking = broker.blocking_conn().await.unwrap();
    let wait = std::time::Duration::from_secs(10);
    assert!(
        broker
            .wait_for_job(&blocking, "w", &job.route.queue(broker.keys()), wait)
            .await
            .unwrap()
    );
}

/// The message of a refusal, which never repeats the password.
async fn refused(url: &str, tls: TlsFiles) -> String {
    let said = connect(url, tls).await.unwrap_err().to_string();
    assert!(!said.contains("sesame"), "{said}");
    said
}

fn tls_of(server: &RealServer) -> TlsFiles {
    let files = server.tls_files().unwrap();
    TlsFiles {
        ca: Some(files.ca.clone()),
        cert: Some(files.client_cert.clone()),
        key: Some(files.client_key.clone()),
    }
}

#[tokio::test]
async fn tcp_unix_and_database() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    works(&server.url_of(3), TlsFiles::default()).await;
    let unix = format!("unix://{}?db=4", server.socket().display());
    works(&unix, TlsFiles::default()).await;
    let none = connect(&server.url_of(0), TlsFiles::default())
        .await
        .unwrap();
    assert!(
        none.inspect(&"j".parse().unwrap()).await.unwrap().is_none(),
        "3 and 4 were meant"
    );
}

#[tokio::test]
async fn a_database_that_is_not_there() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let said = refused(&server.url_of(99), TlsFiles::default()).await;
    assert!(said.contains("no such database"), "{said}");
}

#[tokio::test]
async fn password_and_user() {
    let Some(server) = RealServer::redis().password("open sesame").start() else {
        return;
    };
    works(&server.url(), TlsFiles::default()).await;
    let none = refused(&server.url_without_login(), TlsFiles::default()).await;
    assert!(
        none.contains("refuses the credentials") && none.contains("127.0.0.1"),
        "{none}"
    );
    let wrong = format!("redis://:other-sesame@127.0.0.1:{}", server.port());
    let wrong = refused(&wrong, TlsFiles::default()).await;
    assert!(wrong.contains("check user and password"), "{wrong}");

    let Some(server) = RealServer::redis().acl_user("ali", "sesame").start() else {
        return;
    };
    works(&server.url(), TlsFiles::default()).await;
}

/// The rights are enough for the handshake of every server, and for the namespace only.
#[tokio::test]
async fn a_user_with_just_the_rights() {
    for options in [RealServer::redis(), RealServer::valkey()] {
        let Some(server) = options.start() else {
            return;
        };
        let rule = rights(&"hero".parse().unwrap());
        let user = ["ACL", "SETUSER", "ali", "on", ">sesame"];
        let words = user.into_iter().chain(rule.split(' '));
        server.say::<()>(&Vec::from_iter(words)).unwrap();
        server
            .say::<()>(&["ACL", "SETUSER", "default", "off"])
            .unwrap();
        let url = format!("redis://ali:sesame@127.0.0.1:{}/2", server.port());
        works(&url, TlsFiles::default()).await;
        let target = Target::parse(&url, TlsFiles::default()).unwrap();
        let other = JobKeys::new("other".parse().unwrap());
        let broker = Broker::connect(&target, other).await.unwrap();
        let job = NewJob::new(
            "j".parse().unwrap(),
            Route::to("osis".parse().unwrap()),
            "1",
        );
        let said = broker.enqueue(&[job]).await.unwrap_err().to_string();
        assert!(said.contains("permissions"), "{said}");
    }
}

#[tokio::test]
async fn tls_with_own_authority_and_client_certificate() {
    let Some(server) = RealServer::redis().tls().start() else {
        return;
    };
    let tls = tls_of(&server);
    works(&server.url(), tls.clone()).await;
    let stranger = refused(&server.url(), TlsFiles::default()).await;
    assert!(
        stranger.contains("no TLS connection to 127.0.0.1") && stranger.contains("--tls-ca"),
        "{stranger}"
    );
    let missing = TlsFiles {
        ca: Some("/nowhere/ca.pem".into()),
        ..tls
    };
    let missing = refused(&server.url(), missing).await;
    assert!(
        missing.contains("CA certificate /nowhere/ca.pem"),
        "{missing}"
    );
}

#[tokio::test]
async fn valkey_is_as_good() {
    let Some(server) = RealServer::valkey().start() else {
        return;
    };
    works(&server.url(), TlsFiles::default()).await;
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_and_left_as_it_is() {
    let Some(server) = RealServer::redis().max_memory_policy("allkeys-lru").start() else {
        return;
    };
    let error = connect(&server.url(), TlsFiles::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, ConnectError::Unsuitable { reason: Unsuitable::Evicts(policy), .. } if policy == "allkeys-lru"),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("CONFIG SET maxmemory-policy noeviction"),
        "{error}"
    );
    let mut raw = redis::Client::open(server.url())
        .unwrap()
        .get_connection()
        .unwrap();
    assert_eq!(redis::cmd("DBSIZE").query::<usize>(&mut raw).unwrap(), 0);
}

#[tokio::test]
async fn a_redis_6_is_refused_and_left_as_it_is() {
    let fake = FakeRedis6::start();
    let error = connect(&fake.url(), TlsFiles::default()).await.unwrap_err();
    assert!(
        matches!(&error, ConnectError::Unsuitable { reason: Unsuitable::TooOld(version), .. } if version.starts_with("6.")),
        "{error}"
    );
    let writes = ["SET", "HSET", "LPUSH", "EVAL", "EVALSHA", "SCRIPT"];
    for command in fake.commands() {
        let verb = command.split(' ').next().unwrap_or_default().to_uppercase();
        assert!(!writes.contains(&verb.as_str()), "{command}");
    }
}

#[tokio::test]
async fn nobody_there() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let said = refused(
        &format!("redis://:sesame@127.0.0.1:{port}"),
        TlsFiles::default(),
    )
    .await;
    assert!(
        said.contains(&format!("no answer from 127.0.0.1:{port}")),
        "{said}"
    );
}

/// The server says why before it closes the connection; a request that crosses it must not hide that.
#[tokio::test]
async fn a_server_with_too_many_clients_is_quoted() {
    for options in [RealServer::redis(), RealServer::valkey()] {
        let Some(server) = options.start() else {
            return;
        };
        let set = ["CONFIG", "SET", "maxclients", "1"];
        let client = redis::Client::open(server.url()).unwrap();
        let mut held = client.get_connection().unwrap();
        redis::cmd("CONFIG").arg(&set[1..]).exec(&mut held).unwrap();
        let error = connect(&server.url(), TlsFiles::default())
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, ConnectError::Closed { .. }), "{text}");
        assert!(text.contains("max number of clients reached"), "{text}");
        assert!(error.is_temporary(), "{text}");
        drop(held);
        let freed = async || connect(&server.url(), TlsFiles::default()).await.ok();
        let patience = std::time::Duration::from_secs(30);
        meshwork_test_servers::eventually("there is room again", patience, freed).await;
    }
}
