//! A call takes no more commands when more jobs wait: a small form of `cargo xtask scale`, which counts and does not
//! time.

use meshwork_scenarios::scale::{Call, Plan, ScaleError, run};

#[tokio::test]
async fn no_call_takes_more_commands_while_more_jobs_wait() {
    let plan = Plan {
        few: 100,
        many: 12_000,
        few_objects: 10,
        many_objects: 1_000,
        calls: 5,
        long: 12_000,
        walks: 2,
    };
    let report = match run(&plan).await {
        Err(ScaleError::Missing) => return, // reported as skipped
        report => report.unwrap(),
    };
    assert_eq!(report.pairs.len(), Call::ALL.len());
    for pair in &report.pairs {
        assert!(pair.same_commands(), "{pair:?}");
        assert!(!pair.many.commands.is_empty(), "{pair:?}");
    }
    assert!(report.walks.iter().all(|walk| !walk.took.is_zero()));
    assert_eq!(
        report.json(&plan).lines().count(),
        report.pairs.len() + report.walks.len()
    );
}
