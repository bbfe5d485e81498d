//! A wait on a server that was replaced by another one behind the same address. The connection of the wait is silent,
//! and all others lead to the new server.

use std::time::Duration;

use meshwork_broker::conn::Conn;
use meshwork_broker::nooble::Nooble;
use meshwork_conformance::agreeing::FakeAgreeing;
use meshwork_conformance::moody::{Mood, Moody};
use meshwork_model::keys::nooble::{Dialect, NoobleKeys};
use meshwork_model::name::Namespace;

const BOUND: Duration = Duration::from_secs(60);

/// The new server confirms the end of the wait each time.
#[tokio::test]
async fn a_wait_that_takes_what_it_finds_ends() {
    let silent = Some(("BLMPOP", Mood::Silent));
    let conn = Conn::new(Moody::new(Conn::new(FakeAgreeing), silent));
    let names = NoobleKeys::new(Namespace::nooble(), None, Dialect::Lists);
    let nooble = Nooble::new(conn, names);
    let blocking = nooble.blocking_conn().await.unwrap();
    let lists = ["answers".to_owned()];
    let soon = Duration::from_millis(1);
    let waits = nooble.replies(&blocking, &lists, soon, Duration::ZERO);
    let ended = tokio::time::timeout(BOUND, waits).await.unwrap();
    assert!(ended.unwrap_err().is_connection_lost());
}
