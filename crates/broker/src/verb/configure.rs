//! configure: change single settings of a queue, and bring what is under way in line with them.

use meshwork_model::keys::hero::Hero;
use meshwork_model::queue::QueueSetting;

use super::{MAX_ITEMS, at_most};
use crate::script::Verb;
use crate::{Broker, Error};

/// How often all running jobs are walked through at most: once more than it takes to see that nobody was
/// missed, should leases have moved on the way.
const MAX_WALKS: usize = 3;

/// What a change of settings had to do with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Configured {
    /// Jobs that ran already, and hold a slot now.
    pub seated: usize,
    /// Keys whose jobs are set aside, and are looked at again at once.
    pub freed: usize,
}

/// How far a walk by score is: the score, and how many that have it are passed over.
type Place = (String, usize);

fn start() -> Place {
    ("-inf".to_owned(), 0)
}

impl Broker {
    /// Changes single settings of a queue, for all its priorities, in one step; the others stay. A limit of
    /// concurrency counts what runs already: with up to 500 jobs running, in the same step; with more, when
    /// this returns, a step for each 500. What is set aside for its key's sake is
    /// looked at again at once. Should the caller die before this returns, say the same again.
    ///
    /// # Errors
    /// If a setting cannot be or there are more than [`MAX_ITEMS`]: nothing was changed then. If the server
    /// does not take a call; repeat it then.
    pub async fn configure(
        &self,
        queue: &str,
        settings: &[QueueSetting],
    ) -> Result<Configured, Error> {
        at_most("configure", MAX_ITEMS, settings.len())?;
        for setting in settings {
            setting.check()?;
        }
        let queue = Hero::without_priority(queue);
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
