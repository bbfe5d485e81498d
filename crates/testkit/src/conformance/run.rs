//! One case on one place: its namespace, its time limit, and what must hold after every case.

use std::time::Duration;

use meshwork_broker::script::Scripts;

use super::world::BESIDE;
use super::{Case, Failure, Outcome, Place, World};
use crate::snapshot::keys;

/// Far more than a case takes, so that only one that hangs meets it.
pub const LIMIT: Duration = Duration::from_secs(600);

impl Case {
    /// Runs the case with `scripts`. A panic and a case that does not end within `limit` are failures too.
    ///
    /// # Errors
    /// What the case found wrong.
    pub async fn run_on(
        &'static self,
        place: &Place,
        scripts: Scripts,
        limit: Duration,
    ) -> Outcome {
        let world = World::new(place.ways().clone(), scripts)?;
        let run = tokio::spawn(async move { (self.run)(&world).await });
        let stop = run.abort_handle();
        match tokio::time::timeout(limit, run).await {
            Ok(Ok(outcome)) => outcome?,
            Ok(Err(panic)) => return Err(Failure::new(panic)),
            Err(_) => {
                stop.abort();
                return Err(Failure::new(format!("it did not end within {limit:?}")));
            }
        }
        alone(place).await
    }
}

/// Nothing is ever written outside of the namespace.
async fn alone(place: &Place) -> Outcome {
    let namespace = &place.ways().namespace;
    let beside = format!("{namespace}{BESIDE}");
    let mut ours = 0;
    for namespace in [namespace, &beside] {
        ours += keys(place.conn(), namespace).await?.len();
    }
    let all: usize = redis::cmd("DBSIZE")
        .query_async(&mut place.conn().clone())
        .await?;
    if all != ours {
        let what = format!("{} keys lie outside of the namespace", all - ours);
        return Err(Failure::new(what));
    }
    Ok(())
}
