//! One case on one place: its namespace, its time limit, and what must hold after every case.

use std::time::Duration;

use meshwork_broker::script::Scripts;

use super::world::BESIDE;
use super::{Case, Failure, Outcome, Place, World};
use crate::snapshot::keys_outside;

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
    let outside = keys_outside(place.conn(), &[namespace, &beside]).await?;
    if let Some(first) = outside.first() {
        let (many, first) = (outside.len(), first.escape_ascii());
        let what = format!("{many} keys lie outside of the namespace, `{first}` among them");
        return Err(Failure::new(what));
    }
    Ok(())
}
