//! configure: changes single settings of a queue, and adapts running and set aside jobs.

use meshwork_macros::boxed;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::queue::QueueSetting;

use crate::broker::Broker;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::{MAX_ITEMS, at_most};

/// Greatest number of scans of all running jobs. One more than needed shows that leases that changed meanwhile hid no
/// job.
const MAX_WALKS: usize = 3;

/// The jobs that a change of settings affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Configured {
    /// Number of running jobs that now occupy a slot.
    pub seated: usize,
    /// Number of keys whose backlog is checked again at once.
    pub freed: usize,
}

/// Position in a scan by score: the score, and the number of members with it that are skipped.
type Place = (String, usize);

fn start() -> Place {
    ("-inf".to_owned(), 0)
}

impl Broker {
    /// Changes single settings of a queue, for all its priorities, in one step; the others stay. A limit of
    /// concurrency counts running jobs: up to 500 in the same step, more of them in further steps of 500 before this
    /// returns. Backlogs are checked again at once. If the caller dies before this returns, repeat the call.
    ///
    /// # Errors
    /// A setting is not valid, or there are more than [`MAX_ITEMS`]: nothing was changed. If the server refuses a
    /// call, repeat it.
    #[boxed]
    pub async fn configure(
        &self,
        queue: &str,
        settings: &[QueueSetting],
    ) -> Result<Configured, Error> {
        at_most("configure", MAX_ITEMS, settings.len())?;
        for setting in settings {
            setting.check()?;
        }
        let queue = JobKeys::without_priority(queue);
        let (mut total, mut given) = (Configured::default(), settings);
        for _ in 0..MAX_WALKS {
            let (mut seats, mut asides) = (start(), start());
            let (mut calls, mut seated) = (0, 0);
            while !(seats.0.is_empty() && asides.0.is_empty()) {
                let (took, freed);
                (took, freed, seats, asides) =
                    self.configure_once(queue, given, &seats, &asides).await?;
                given = &[];
                calls += 1;
                seated += took;
                total.freed += freed;
            }
            total.seated += seated;
            if calls == 1 || seated == 0 {
                break;
            }
        }
        Ok(total)
    }

    async fn configure_once(
        &self,
        queue: &str,
        settings: &[QueueSetting],
        seats: &Place,
        asides: &Place,
    ) -> Result<(usize, usize, Place, Place), Error> {
        let mut call = self.scripts.call(Verb::Configure);
        call.push_arg(self.clock.argument());
        call.push_arg(queue);
        call.push_arg(settings.len());
        for setting in settings {
            call.push_arg(setting.name());
            call.push_arg(setting.value());
        }
        for (score, skip) in [seats, asides] {
            call.push_arg(score);
            call.push_arg(skip);
        }
        let mut answer = call.answer(&self.conn).await?;
        let (seated, freed) = (answer.next("seated")?, answer.next("freed")?);
        let seats = (answer.next("score")?, answer.next("skip")?);
        let asides = (answer.next("aside")?, answer.next("above")?);
        Ok((seated, freed, seats, asides))
    }
}
