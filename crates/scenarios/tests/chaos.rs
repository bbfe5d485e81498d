//! Twenty kills: seven, seven and six, and some troubles of a fleet, at moments of a fixed seed. `cargo
//! xtask chaos` has more.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that panics has failed, and tells what it counted"
)]

use std::time::Duration;

use meshwork_scenarios::chaos::fleet::{self, Ground};
use meshwork_scenarios::chaos::{
    Plan, Scenario, flows, hostile, limits, mesh, messages, outbox, play, schedules, spread,
};
use meshwork_test_servers::binary::meshwork_binary;
use meshwork_test_servers::servers::{Tool, need};
use tokio::sync::Mutex;

/// Lets one scenario run at a time: each keeps the machine busy, and a lease lasts a second.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

async fn holds(scenario: Scenario, kills: u32) {
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = Plan {
        binary: meshwork_binary().unwrap(),
        kills,
        seed: 20,
    };
    let report = play(&plan, scenario)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[tokio::test]
async fn run_alone_is_killed_seven_times() {
    if need(Tool::Python).is_some() {
        holds(Scenario::Alone, 7).await;
    }
}

#[tokio::test]
async fn a_worker_on_a_server_is_killed_seven_times() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        holds(Scenario::Server, 7).await;
    }
}

#[tokio::test]
async fn owners_and_attached_are_killed_six_times() {
    if need(Tool::Python).is_some() {
        holds(Scenario::Attached, 6).await;
    }
}

async fn fleet_holds(ground: Ground, troubles: u32) {
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = fleet::Plan {
        binary: meshwork_binary().unwrap(),
        ground,
        troubles,
        seed: 20,
    };
    let report = fleet::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
    assert!(report.wrong_clocks, "all clocks were right");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_goes_through_six_troubles() {
    let tools = [Tool::Python, Tool::Redis, Tool::Faketime];
    if tools.into_iter().all(|tool| need(tool).is_some()) {
        fleet_holds(Ground::Server, 6).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_goes_through_two_failovers() {
    let tools = [Tool::Python, Tool::Redis, Tool::Faketime];
    if tools.into_iter().all(|tool| need(tool).is_some()) {
        fleet_holds(Ground::Failover, 3).await;
    }
}

/// Two hours in five seconds, and six kills.
#[tokio::test(flavor = "multi_thread")]
async fn schedulers_are_killed_six_times() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = schedules::Plan {
        scheduler: (
            env!("CARGO_BIN_EXE_chaos").into(),
            vec!["--scheduler".to_owned()],
        ),
        span: Duration::from_secs(2 * 3600),
        kills: 6,
        seed: 20,
    };
    let report = schedules::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
    assert!(report.busy > 1, "only one scheduler did anything");
}

/// With some hundred jobs.
#[tokio::test(flavor = "multi_thread")]
async fn limited_workers_are_killed_six_times() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = limits::Plan {
        worker: (
            env!("CARGO_BIN_EXE_chaos").into(),
            vec!["--limited-worker".to_owned()],
        ),
        kills: 6,
        seed: 20,
    };
    let report = limits::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
    let met = report.killed > 0 || report.starts > report.jobs;
    assert!(met, "no kill has ended a run, or lost its report");
}

/// Sixty jobs on each engine, and the six faults that do the most harm there.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_user_loses_no_job_and_leaves_nothing() {
    let tools = [Tool::Python, Tool::Redis];
    if !tools.into_iter().all(|tool| need(tool).is_some()) {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = hostile::Plan {
        binary: meshwork_binary().unwrap(),
        engines: hostile::Engine::ALL.to_vec(),
        jobs: 60,
        faults: 6,
        seed: 20,
        progress: |line| println!("{line}"),
    };
    let report = hostile::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// Twenty-four random flows on each engine, and eight kills.
#[tokio::test(flavor = "multi_thread")]
async fn random_flows_end_as_in_memory_under_kills() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = flows::Plan {
        binary: meshwork_binary().unwrap(),
        engines: hostile::Engine::ALL.to_vec(),
        dags: 24,
        kills: 8,
        seed: 20,
        progress: |line| println!("{line}"),
    };
    let report = flows::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// More than a hundred slots on each engine, and nine kills.
#[tokio::test(flavor = "multi_thread")]
async fn each_slot_of_a_schedule_has_one_flow_under_kills() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = flows::Plan {
        binary: meshwork_binary().unwrap(),
        engines: Vec::new(),
        dags: 0,
        kills: 9,
        seed: 20,
        progress: |line| println!("{line}"),
    };
    for engine in hostile::Engine::ALL {
        let report = flows::play_slots(&plan, engine)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        println!("{report:?}");
        assert!(
            report.slots >= 100 && report.wrong.is_empty(),
            "{report:#?}"
        );
    }
}

/// Three hundred job messages between two contexts, and six kills.
#[tokio::test(flavor = "multi_thread")]
async fn each_job_message_has_one_result_under_kills() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = messages::Plan {
        binary: meshwork_binary().unwrap(),
        messages: 300,
        kills: 6,
        seed: 20,
        progress: |line| println!("{line}"),
    };
    let report = messages::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// Four hundred job messages between three nodes, and ten troubles, one of each kind.
#[tokio::test(flavor = "multi_thread")]
async fn each_message_between_nodes_has_one_outcome_under_kills() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = mesh::Plan {
        binary: meshwork_binary().unwrap(),
        daemon: (
            env!("CARGO_BIN_EXE_chaos").into(),
            vec!["--mycelium".to_owned()],
        ),
        messages: 400,
        kills: 10,
        seed: 20,
        progress: |line| println!("{line}"),
    };
    let report = mesh::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

/// Four hundred transactions with jobs, half of them rolled back, and two kills of each sort.
async fn each_committed_transaction_has_one_job_and_one_effect(database: outbox::Kind, kills: u32) {
    let _guard = ONE_AT_A_TIME.lock().await;
    let plan = outbox::Plan {
        binary: meshwork_binary().unwrap(),
        database,
        worker: (
            env!("CARGO_BIN_EXE_chaos").into(),
            vec!["--outbox-worker".to_owned()],
        ),
        transactions: 400,
        kills,
        seed: 20,
        progress: |line| println!("{line}"),
    };
    let report = outbox::play(&plan)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_postgres_transactions_survive_kills() {
    let tools = [Tool::Redis, Tool::Postgres];
    if tools.into_iter().all(|tool| need(tool).is_some()) {
        each_committed_transaction_has_one_job_and_one_effect(outbox::Kind::Postgres, 10).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_sqlite_transactions_survive_kills() {
    if need(Tool::Redis).is_some() {
        each_committed_transaction_has_one_job_and_one_effect(outbox::Kind::Sqlite, 6).await;
    }
}

/// Two thousand jobs of a hundred keys while the queue gets four more parts, with six kills of workers and two of servers: on
/// one, and on a Cluster.
#[tokio::test(flavor = "multi_thread")]
async fn each_key_of_a_spread_queue_keeps_its_order_under_kills() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().await;
    for servers in spread::Kind::ALL {
        let plan = spread::Plan {
            worker: (
                env!("CARGO_BIN_EXE_chaos").into(),
                vec!["--spread-worker".to_owned()],
            ),
            servers,
            jobs: 2_000,
            kills: 8,
            seed: 21,
            progress: |line| println!("{line}"),
        };
        let report = spread::play(&plan)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        println!("{report}");
        assert!(report.holds(), "{report}");
    }
}
