//! Enqueueing one job of a spread queue.

use meshwork_broker::Enqueued;
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::ContextKeys;
use meshwork_model::name::JobId;
use meshwork_model::spread::{Place, SpreadLayout, SpreadName, SpreadTicket};

use super::{Opened, Spread, SpreadError, TRIES};
use crate::client::{Enqueueable, JobRequest, Placed};

/// Choice of the part of a job.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    /// By this key.
    Key(String),
    /// By a key that moves: its old part, where this prerequisite is.
    OldPart(String, JobId),
    /// This one, because of the job's prerequisites.
    Part(usize),
    /// The shorter of two.
    Load,
}

impl Choice {
    fn key(&self) -> Option<&String> {
        match self {
            Self::Key(key) | Self::OldPart(key, _) => Some(key),
            Self::Part(_) | Self::Load => None,
        }
    }

    /// Returns the error for a job whose key has left the part of its prerequisites.
    pub(super) fn apart(&self) -> Option<SpreadError> {
        match self {
            Self::OldPart(key, id) => Some(apart(id, key)),
            _ => None,
        }
    }
}

fn apart(id: &JobId, key: &str) -> SpreadError {
    let (id, other) = (id.clone(), format!("the key {key:?}"));
    SpreadError::Apart { id, other }
}

impl Spread {
    /// Enqueues a job in one of the parts: a value of a [`Job`](crate::Job), or a [`JobRequest`]. The answer is that of
    /// [`Client::enqueue`](crate::Client::enqueue).
    ///
    /// A job with a concurrency key or a unique name goes to the part of the key, or of the name if it has no key. So jobs
    /// of one key have one order, one limit and one set of unique names. A job with prerequisites goes to their part. Other
    /// jobs go to the shorter of two parts that are drawn at random.
    ///
    /// # Errors
    /// [`SpreadError::OtherQueue`], [`SpreadError::Option`] for an id, a batch or an instance, [`SpreadError::Apart`] for
    /// prerequisites in other parts, or [`SpreadError::Job`].
    pub async fn enqueue<E: Enqueueable>(&self, job: E) -> Result<E::Answer, SpreadError> {
        let request = job.into_request()?;
        let patience = request.wait_budget();
        let (part, placed) = self.place(request).await?;
        let client = self.state.client(&part.0, part.1).await?;
        Ok(E::answer(client, placed, patience)?)
    }

    async fn place(
        &self,
        request: JobRequest,
    ) -> Result<((std::sync::Arc<Opened>, usize), Placed), SpreadError> {
        let mut opened = self.opened();
        for _ in 0..TRIES {
            let (mut job, choice) = self.checked(request.clone(), &opened)?;
            for (part, if_present) in self.parts(&choice, &opened).await? {
                let client = self.state.client(&opened, part).await?;
                job.id = client.next_job_id().await?;
                job.spread = Some(self.ticket(&choice, &opened.layout, if_present));
                let (back, stored) = client.store_one(job).await?;
                match stored.0 {
                    Enqueued::Elsewhere => match choice.apart() {
                        Some(error) => return Err(error),
                        None => job = back,
                    },
                    Enqueued::Stale(_) => break,
                    _ => {
                        let placed = client.placed(&back, stored).await?;
                        return Ok(((opened, part), placed));
                    }
                }
            }
            opened = self.reopen().await?;
        }
        Err(SpreadError::Busy(self.name().clone()))
    }

    /// Checks a job, and returns it with the choice of its part.
    pub(super) fn checked(
        &self,
        request: JobRequest,
        opened: &Opened,
    ) -> Result<(NewJob, Choice), SpreadError> {
        let option = |what, instead| Err(SpreadError::Option { what, instead });
        if request.has_id() {
            return option("an id of your own", "a unique name prevents duplicates");
        }
        let job = request.build().map_err(crate::Error::from)?;
        if job.batch.is_some() {
            return option("a batch", "batches do not support contexts");
        }
        if job.route.instance.is_some() {
            return option(
                "an instance",
                "its worker would have to serve the same part",
            );
        }
        if SpreadName::of(&job.route) != *self.name() {
            let (name, of) = (self.name().clone(), SpreadName::of(&job.route).to_string());
            return Err(SpreadError::OtherQueue { name, of });
        }
        let key = job.key.clone();
        let key = key.or_else(|| job.unique.as_ref().map(|unique| unique.name.clone()));
        let choice = match (key, self.part_of_prerequisites(&job, opened)?) {
            (None, None) => Choice::Load,
            (None, Some((part, _))) => Choice::Part(part),
            (Some(key), None) => Choice::Key(key),
            (Some(key), Some((part, id))) => match opened.layout.place(&key) {
                Place { old: Some(old), .. } if old == part => Choice::OldPart(key, id),
                Place {
                    part: new,
                    old: None,
                } if new == part => Choice::Key(key),
                _ => return Err(apart(&id, &key)),
            },
        };
        Ok((job, choice))
    }

    /// Returns the part of the prerequisites, and the first of them.
    fn part_of_prerequisites(
        &self,
        job: &NewJob,
        opened: &Opened,
    ) -> Result<Option<(usize, JobId)>, SpreadError> {
        let mut found: Option<(usize, JobId)> = None;
        for id in &job.depends_on {
            let part = ContextKeys::named_in(id.as_str());
            let part = part.and_then(|context| opened.part_in(context));
            let part = part.ok_or_else(|| self.no_part(id.as_str()))?;
            match &found {
                Some((first, other)) if *first != part => {
                    let (id, other) = (id.clone(), other.to_string());
                    return Err(SpreadError::Apart { id, other });
                }
                Some(_) => {}
                None => found = Some((part, id.clone())),
            }
        }
        Ok(found)
    }

    /// Returns the parts to try, in this order, each with whether it takes the job only if it has unfinished jobs of the
    /// key.
    pub(super) async fn parts(
        &self,
        choice: &Choice,
        opened: &Opened,
    ) -> Result<Vec<(usize, bool)>, SpreadError> {
        Ok(match choice {
            Choice::Key(key) => {
                let Place { part, old } = opened.layout.place(key);
                let old = old.map(|old| (old, true)).into_iter();
                old.chain([(part, false)]).collect()
            }
            Choice::OldPart(key, _) => {
                let old = opened.layout.place(key).old;
                old.map(|old| (old, true)).into_iter().collect()
            }
            Choice::Part(part) => vec![(*part, false)],
            Choice::Load => vec![(self.state.choose(opened).await?, false)],
        })
    }

    pub(super) fn ticket(
        &self,
        choice: &Choice,
        layout: &SpreadLayout,
        if_present: bool,
    ) -> SpreadTicket {
        SpreadTicket {
            name: self.name().clone(),
            generation: layout.generation,
            key: choice.key().cloned(),
            if_present,
        }
    }
}
