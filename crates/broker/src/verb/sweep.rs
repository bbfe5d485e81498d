//! sweep: find jobs of other clients that no script of ours knows of, while types migrate.

use meshwork_model::name::{JobId, ScriptType};

use super::MAX_ITEMS;
use crate::{Broker, Error};

/// Pages looked at in one call, of 1,000 keys each: about 20 ms of the server's time.
const PAGES: usize = 8;

/// What a sweep met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Where the next one goes on; 0 if all keys have been looked at.
    pub next: u64,
    /// Jobs that are under watch now and were not before.
    pub adopted: usize,
    /// Open jobs of other clients whose type cannot be told: nobody can look after them.
    pub unroutable: usize,
}

impl Broker {
    /// Looks at a part of all jobs, beginning at `from` (0 at first), and takes open ones of other clients
    /// whose type migrates under watch ([`Broker::adopt`]): a client may die between storing its job and
    /// pushing it, and an old worker between taking and starting one. Does nothing while no type migrates.
    ///
    /// # Errors
    /// If the server does not take a call; repeat it then.
    pub async fn sweep(&self, from: u64) -> Result<Swept, Error> {
        let migrations = self.migrations().await?;
        let mut swept = Swept {
            next: from,
            ..Swept::default()
        };
        if migrations.is_empty() {
            return Ok(Swept::default());
        }
        for _ in 0..PAGES {
            let (open, next) = self.open_jobs(swept.next).await?;
            let mut found: Vec<(JobId, ScriptType)> = Vec::new();
            for job in open.into_iter().filter(|job| job.foreign && !job.ours) {
                match job.type_in(&migrations, self) {
                    Some(name) if migrations.contains_key(&name) => {
                        found.push((job.id, ScriptType::foreign(name)));
                    }
                    Some(_) => {}
                    None => swept.unroutable += 1,
                }
            }
            for chunk in found.chunks(MAX_ITEMS) {
                swept.adopted += self.adopt(chunk).await?;
            }
            swept.next = next;
            if next == 0 {
                break;
            }
        }
        Ok(swept)
    }
}
