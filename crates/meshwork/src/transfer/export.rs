//! Export: writes a store as lines.

use std::io::Write;

use meshwork_broker::IdList;
use meshwork_model::export::{Header, Item, StoredJob, VERSION};
use meshwork_model::job::field;

use super::{TransferError, Transferred};
use crate::Client;

/// Greatest number of skipped lists that are named.
const MOST_SKIPPED: usize = 100;

impl Client {
    /// Writes all jobs, batches, schedules and settings of queues as lines of JSON, which [`Client::import`] reads. The
    /// lines contain the secrets of jobs' environments. Changes nothing, and needs a few dozen megabytes of memory.
    /// Changes during the export may be missing: stop workers and clients first.
    ///
    /// # Errors
    /// A job runs, is in a list of an old client, or was imported from Bananas; a line cannot be written; or a call to
    /// the store fails.
    pub async fn export(
        &self,
        out: &mut (impl Write + Send),
    ) -> Result<Transferred, TransferError> {
        let broker = self.broker();
        let count = broker.running().await?;
        if count > 0 {
            return Err(TransferError::Running { count });
        }
        let (lists, old) = broker.export_lists().await?;
        let mut skipped = Vec::new();
        for list in old {
            if broker.export_has_jobs(&list).await? {
                return Err(TransferError::OldList { list });
            }
            if skipped.len() < MOST_SKIPPED {
                skipped.push(list);
            }
        }
        let mut lines = Lines {
            client: self,
            out,
            lines: 0,
            seen: Transferred {
                skipped,
                ..Transferred::default()
            },
        };
        let prefix = broker.key_prefix();
        lines.write(&Item::Export(Header {
            version: VERSION,
            prefix,
        }))?;
        for (name, value) in broker.export_settings().await? {
            lines.seen.settings += 1;
            lines.write(&Item::Setting { name, value })?;
        }
        lines.jobs().await?;
        for list in &lists {
            lines.queue(list).await?;
        }
        for ended in [false, true] {
            lines.batches(ended).await?;
        }
        lines.schedules().await?;
        let end = Item::End { lines: lines.lines };
        lines.write(&end)?;
        lines.out.flush()?;
        Ok(lines.seen)
    }
}

struct Lines<'a, W> {
    client: &'a Client,
    out: &'a mut W,
    lines: u64,
    seen: Transferred,
}

impl<W: Write + Send> Lines<'_, W> {
    fn write(&mut self, item: &Item) -> Result<(), TransferError> {
        item.check().map_err(TransferError::Record)?;
        let mut line = item.line();
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.lines += 1;
        Ok(())
    }

    async fn jobs(&mut self) -> Result<(), TransferError> {
        let mut from = 0;
        loop {
            let (ids, next) = self.client.broker().export_ids(from).await?;
            let mut ids = ids.as_slice();
            while !ids.is_empty() {
                let (jobs, looked_at) = self.client.broker().export_jobs(ids).await?;
                ids = &ids[looked_at..];
                for job in jobs {
                    may_leave(&job)?;
                    self.seen.jobs += 1;
                    self.write(&Item::Job(job))?;
                }
            }
            from = next;
            if from == 0 {
                return Ok(());
            }
        }
    }

    async fn queue(&mut self, list: &IdList) -> Result<(), TransferError> {
        for page in 0.. {
            let ids = self.client.broker().export_list(list, page).await?;
            if ids.is_empty() {
                break;
            }
            let name = list.queue.clone();
            self.write(&Item::Queue { name, ids })?;
        }
        Ok(())
    }

    async fn batches(&mut self, ended: bool) -> Result<(), TransferError> {
        let broker = self.client.broker();
        for page in 0.. {
            let batches = broker.export_batches(ended, page).await?;
            if batches.is_empty() {
                break;
            }
            for batch in batches {
                let name = &batch.name;
                let mut from = 0;
                loop {
                    let (ids, next) = broker.export_members(name, from).await?;
                    for ids in ids.chunks(meshwork_model::export::MAX_IDS) {
                        let (batch, ids) = (name.clone(), ids.to_vec());
                        self.write(&Item::Members { batch, ids })?;
                    }
                    from = next;
                    if from == 0 {
                        break;
                    }
                }
                let ids = broker.export_joined(name).await?;
                if !ids.is_empty() {
                    self.write(&Item::Joined {
                        batch: name.clone(),
                        ids,
                    })?;
                }
                self.seen.batches += 1;
                self.write(&Item::Batch(batch))?;
            }
        }
        Ok(())
    }

    async fn schedules(&mut self) -> Result<(), TransferError> {
        let mut from = 0;
        loop {
            let (schedules, next) = self.client.broker().export_schedules(from).await?;
            for schedule in schedules {
                self.seen.schedules += 1;
                self.write(&Item::Schedule(schedule))?;
            }
            from = next;
            if from == 0 {
                return Ok(());
            }
        }
    }
}

/// Returns an error if a job depends on data that an export does not have.
fn may_leave(job: &StoredJob) -> Result<(), TransferError> {
    let id = || job.id.clone();
    if job
        .fields
        .get(field::STATUS)
        .is_some_and(|status| status.0 == b"started")
    {
        return Err(TransferError::Started { id: id() });
    }
    for (name, why) in [
        (
            field::LOCK,
            "its type migrates: finish that first (`meshwork migrate status`)",
        ),
        (
            field::BANANAS,
            "it was imported from Bananas: export it, or let it run (`meshwork migrate bananas`)",
        ),
        (
            field::IMPORT,
            "an import into this store was broken off: repeat it first",
        ),
    ] {
        // An ended job depends on no other data.
        if job.fields.contains_key(name) && job.ended.is_none() && job.dead.is_none() {
            return Err(TransferError::Bound { id: id(), why });
        }
    }
    Ok(())
}
