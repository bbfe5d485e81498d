//! One owner of a data directory, with real processes: attaching, takeover, the data afterwards, and the errors.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers and children of tests"
)]

use std::{
    fs::{self, Permissions},
    io::Read as _,
    os::unix::{
        fs::{PermissionsExt as _, chown, symlink},
        process::CommandExt as _,
    },
    path::Path,
    process::Command,
    time::Duration,
};

use crate::support::{Player, Raw, Runs as _, attach_to, own};
use meshwork_embedded::{LogError, OpenError, Opened, Options, Reply, attach, open, open_parents};
use meshwork_test_servers::servers::need_root;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

/// Number of writes of a child before it is killed.
const WRITES: usize = 300;

pub(crate) async fn hold(dir: &Path) {
    let _owner = own(dir, Options::default()).await;
    println!("owner");
    std::future::pending::<()>().await;
}

/// Acts as an owner, in a directory that any user may write to, and prints received data.
pub(crate) fn pose(dir: &Path) {
    let lock = fs::File::create(dir.join("lock")).unwrap();
    lock.lock().unwrap();
    let socket = std::os::unix::net::UnixListener::bind(dir.join("redis.sock")).unwrap();
    fs::set_permissions(dir.join("redis.sock"), Permissions::from_mode(0o666)).unwrap();
    println!("owner");
    for stream in socket.incoming() {
        let mut stream = stream.unwrap();
        let mut sent = Vec::new();
        stream.read_to_end(&mut sent).unwrap();
        println!("sent {}", String::from_utf8_lossy(&sent).trim());
    }
}

/// Writes keys of its own, as the owner or attached to one, and prints the acknowledged ones.
pub(crate) async fn write_for_ever(name: &str, dir: &Path) {
    let mut next = 0;
    loop {
        match open(dir, Options::default()).await.unwrap() {
            Opened::Owner(owner) => {
                println!("owner");
                let mut session = owner.handle().session();
                loop {
                    session.done(&format!("SET {name}:{next} 1")).await;
                    println!("ack {name}:{next}");
                    next += 1;
                    tokio::task::yield_now().await;
                }
            }
            Opened::Attach(socket) => {
                let Ok(stream) = socket.connect().await else {
                    continue;
                };
                println!("attached");
                let mut raw = Raw::new(stream);
                loop {
                    raw.send(&format!("SET {name}:{next} 1")).await;
                    match raw.reply().await {
                        Some(Reply::Status(_)) => println!("ack {name}:{next}"),
                        Some(other) => panic!("SET: {other:?}"),
                        None => break,
                    }
                    next += 1;
                }
            }
        }
    }
}

#[tokio::test]
async fn the_next_one_takes_over_from_a_killed_owner_and_finds_every_acknowledged_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut acked = Vec::new();
    let mut owner = Player::start("p0", dir.path());
    owner.hears("owner");
    for round in 1..=4 {
        let next = Player::start(&format!("p{round}"), dir.path());
        next.hears("attached");
        for player in [&owner, &next] {
            acked.extend((0..WRITES).map(|_| player.hears("ack")));
        }
        owner.kill();
        acked.extend(owner.heard("ack", true));
        // Before the takeover it has written through the old owner.
        loop {
            let line = next.hears("");
            match line.strip_prefix("ack ") {
                Some(key) => acked.push(key.to_owned()),
                None if line == "owner" => break,
                None => {}
            }
        }
        owner = next;
    }
    owner.kill();
    acked.extend(owner.heard("ack", true));

    let opened = own(dir.path(), Options::default()).await;
    let mut session = opened.handle().session();
    for key in &acked {
        assert_eq!(
            session.text(&format!("EXISTS {key}")).await,
            Reply::Int(1),
            "{key} is lost"
        );
    }
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_second_open_attaches_and_sees_the_same_data() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), Options::default()).await;
    let socket = attach_to(dir.path(), Options::default()).await;
    owner.handle().session().done("SET a 1").await;
    let mut raw = Raw::new(socket.connect().await.unwrap());
    assert_eq!(raw.text("GET a").await, Reply::Bulk("1".into()));
    owner.close().await.unwrap();
    assert_eq!(raw.reply().await, None, "the owner has gone");
    assert!(!dir.path().join("redis.sock").exists());
    let next = own(dir.path(), Options::default()).await;
    assert_eq!(
        next.handle().session().text("GET a").await,
        Reply::Bulk("1".into())
    );
}

#[tokio::test]
async fn dropped_it_gives_the_directory_back_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let owner = own(dir.path(), Options::default()).await;
    let handle = owner.handle().clone();
    handle.session().done("SET a 1").await;
    drop(owner);
    let refused = handle.session().text("SET b 1").await;
    assert!(
        matches!(refused, Reply::Error(_)),
        "written to nobody's directory: {refused:?}"
    );
    let next = own(dir.path(), Options::default()).await;
    assert_eq!(next.handle().session().text("DBSIZE").await, Reply::Int(1));
}

#[tokio::test]
async fn a_path_longer_than_a_socket_address_works() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("d".repeat(120)).join("e".repeat(120));
    let owner = own(&dir, Options::default()).await;
    owner.handle().session().done("SET a 1").await;
    let socket = attach_to(&dir, Options::default()).await;
    let mut raw = Raw::new(socket.connect().await.unwrap());
    assert_eq!(raw.text("GET a").await, Reply::Bulk("1".into()));
    owner.close().await.unwrap();
    assert!(!dir.join("redis.sock").exists());
}

#[tokio::test]
async fn the_directory_and_what_is_in_it_are_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    let owner = own(&dir, Options::default()).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for name in ["redis.sock", "appendonly.aof", "lock"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    let holder = fs::read_to_string(dir.join("lock")).unwrap();
    assert!(holder.contains(&std::process::id().to_string()), "{holder}");
    owner.close().await.unwrap();
}

#[tokio::test]
async fn a_loopback_address_is_served_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let tcp = |address: &str| Options {
        tcp: Some(address.parse().unwrap()),
        ..Options::default()
    };
    let error = open(dir.path(), tcp("0.0.0.0:0")).await.unwrap_err();
    assert!(matches!(error, OpenError::NotLoopback { .. }), "{error}");
    let owner = own(dir.path(), tcp("127.0.0.1:0")).await;
    let address = owner.tcp().unwrap();
    let taken = tempfile::tempdir().unwrap();
    let error = open(taken.path(), tcp(&address.to_string()))
        .await
        .unwrap_err();
    assert!(matches!(error, OpenError::Tcp { .. }), "{error}");
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    assert!(stream.peer_addr().unwrap().ip().is_loopback());
}

#[tokio::test]
async fn an_owner_that_does_not_answer_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Player::start("hold", dir.path());
    owner.hears("owner");
    owner.stop();
    let options = Options {
        attach_wait: Duration::from_millis(10),
        ..Options::default()
    };
    let error = open(dir.path(), options).await.unwrap_err();
    assert!(matches!(error, OpenError::Busy { .. }), "{error}");
    assert!(
        error.to_string().contains(&owner.pid().to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn the_one_who_waits_for_an_owner_becomes_it_when_that_dies() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = Player::start("hold", dir.path());
    owner.hears("owner");
    owner.stop();
    let waits = open(dir.path(), Options::default());
    let (opened, ()) = tokio::join!(waits, async { owner.kill() });
    assert!(matches!(opened.unwrap(), Opened::Owner(_)));
}

#[tokio::test]
async fn what_cannot_be_a_data_directory_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let refused = async |path: &Path| open(path, Options::default()).await.unwrap_err();

    let file = root.path().join("file");
    fs::write(&file, "precious").unwrap();
    let error = refused(&file).await;
    assert!(matches!(error, OpenError::NotADirectory { .. }), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    let error = refused(&file.join("below")).await;
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");

    let loops = root.path().join("loop");
    symlink(&loops, &loops).unwrap();
    let error = refused(&loops).await;
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");

    // Not even root may write there.
    let error = refused(Path::new("/proc/meshwork")).await;
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
    assert!(error.to_string().contains("/proc/meshwork"), "{error}");
}

/// A user without rights.
const NOBODY: u32 = 65_534;

#[tokio::test]
async fn a_directory_that_others_may_write_to_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (dir, link) = (root.path().join("data"), root.path().join("link"));
    fs::create_dir(&dir).unwrap();
    symlink(&dir, &link).unwrap();
    for mode in [0o777, 0o1777, 0o770, 0o720, 0o702] {
        fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
        for path in [&dir, &link] {
            let error = open(path, Options::default()).await.unwrap_err();
            assert!(
                matches!(error, OpenError::Writable { .. }),
                "{mode:o}: {error}"
            );
            assert!(error.to_string().contains("chmod go-w"), "{error}");
        }
        assert_eq!(
            fs::read_dir(&dir).unwrap().count(),
            0,
            "nothing is made there"
        );
    }
    // The same after a later change of rights, with a live owner.
    fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    let owner = own(&link, Options::default()).await;
    attach_to(&dir, Options::default()).await;
    fs::set_permissions(&dir, Permissions::from_mode(0o775)).unwrap();
    let error = open(&dir, Options::default()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Writable { mode: 0o775, .. }),
        "{error}"
    );
    owner.close().await.unwrap();
}

#[tokio::test]
async fn a_directory_of_somebody_else_is_refused_even_to_root() {
    if !need_root("a_directory_of_somebody_else_is_refused_even_to_root") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(NOBODY), None).unwrap();
    let error = open(dir.path(), Options::default()).await.unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::Foreign {
                owner: NOBODY,
                own: 0,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("chown -R 0"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn who_answers_as_another_user_is_told_nothing() {
    if !need_root("who_answers_as_another_user_is_told_nothing") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let mut nobody = Command::new(std::env::current_exe().unwrap());
    nobody.uid(NOBODY).gid(NOBODY).current_dir("/");
    let player = Player::start_as(nobody, "pose", dir.path());
    player.hears("owner");
    fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
    let error = open(dir.path(), Options::default()).await.unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::Stranger {
                user: NOBODY,
                own: 0,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(player.hears("sent"), "", "not even a PING");
    let error = attach(dir.path()).await.unwrap_err();
    assert_eq!(
        error.kind(),
        std::io::ErrorKind::PermissionDenied,
        "{error}"
    );
}

#[tokio::test]
async fn a_link_in_place_of_the_lock_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let precious = dir.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    symlink(&precious, dir.path().join("lock")).unwrap();
    let error = open(dir.path(), Options::default()).await.unwrap_err();
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
    assert_eq!(fs::read_to_string(precious).unwrap(), "kept");
}

#[test]
fn parents_that_everybody_may_write_to_are_found() {
    let root = tempfile::tempdir().unwrap();
    let (open, dir) = (root.path().join("open"), root.path().join("open/data"));
    fs::create_dir_all(&dir).unwrap();
    assert!(open_parents(&dir).unwrap().is_empty());
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    assert!(open_parents(&dir).unwrap().is_empty(), "as /tmp is");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    assert_eq!(open_parents(&dir).unwrap(), [open.canonicalize().unwrap()]);
}

/// Longer than the time limit of a script.
const PAUSE: Duration = Duration::from_secs(6);

/// A script must run to its end; otherwise a part of its writes would remain.
#[tokio::test]
async fn a_script_goes_on_after_a_pause_of_its_process() {
    const SCRIPT: &str =
        "for i = 1, 1e6 do redis.call('incr', 'n') end return redis.call('get', 'n')";
    let dir = tempfile::tempdir().unwrap();
    let player = Player::start("hold", dir.path());
    player.hears("owner");
    let mut client = Raw::new(attach(dir.path()).await.unwrap());
    let mut probe = Raw::new(attach(dir.path()).await.unwrap());
    let args: [&[u8]; 3] = [b"EVAL", SCRIPT.as_bytes(), b"0"];
    let mut reply = Box::pin(client.run(&args));
    // No other command is answered while it runs.
    let answered = async {
        loop {
            let busy = timeout(Duration::from_millis(100), probe.text("PING")).await;
            if busy.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answered => {}
        reply = &mut reply => panic!("it was not seen to run: {reply:?}"),
    }
    player.stop();
    assert!(timeout(PAUSE, &mut reply).await.is_err());
    let pid = Pid::from_raw(player.pid()).unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(reply.await, Reply::Bulk("1000000".into()));
}

#[tokio::test]
async fn a_refused_log_leaves_the_directory_free() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("appendonly.aof");
    fs::write(&log, "*1\r\n$7\r\nNOTHING\r\n").unwrap();
    let error = open(dir.path(), Options::default()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Log(LogError::Replay { offset: 0, .. })),
        "{error}"
    );
    assert!(!dir.path().join("redis.sock").exists());

    fs::write(&log, "").unwrap();
    fs::create_dir(dir.path().join("appendonlydir")).unwrap();
    let error = open(dir.path(), Options::default()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Log(LogError::TakenOver { .. })),
        "{error}"
    );

    fs::remove_dir(dir.path().join("appendonlydir")).unwrap();
    own(dir.path(), Options::default())
        .await
        .close()
        .await
        .unwrap();
}
