//! Import: checks the lines of an export, then stores their content.

use std::io::{BufRead, Read, Seek};

use meshwork_broker::MAX_ITEMS;
use meshwork_model::export::{BadItem, Item, StoredJob, VERSION};

use super::{MAX_LINE, TransferError, Transferred};
use crate::Client;

/// Greatest number of bytes of jobs in one call, except for a single larger job. A larger call would block other
/// clients.
const CALL_BYTES: usize = 4 * 1024 * 1024;

impl Client {
    /// Stores the content of an export by [`Client::export`], after a check of all lines. Existing items stay as they
    /// are, so an interrupted import can be repeated. Workers of this store may run meanwhile.
    ///
    /// # Errors
    /// The file is no export, is incomplete, has another version or namespace, or has an invalid line; nothing was
    /// imported then. Or a call to the store fails; items that were stored before stay.
    pub async fn import<R: BufRead + Seek + Send>(
        &self,
        file: &mut R,
    ) -> Result<Transferred, TransferError> {
        file.rewind()?;
        let mut lines = Lines::new(file, self.broker().key_prefix());
        while lines.next()?.is_some() {}
        file.rewind()?;
        let mut lines = Lines::new(file, self.broker().key_prefix());
        let mut sender = Sender {
            client: self,
            jobs: Vec::new(),
            bytes: 0,
            seen: Transferred::default(),
        };
        while let Some((item, bytes)) = lines.next()? {
            sender.take(item, bytes).await?;
        }
        sender.flush().await?;
        Ok(sender.seen)
    }
}

/// Lines of a file, whose first and last line are checked.
struct Lines<'a, R> {
    file: &'a mut R,
    prefix: String,
    /// Number of lines before this one.
    line: u64,
    ended: bool,
}

impl<'a, R: BufRead> Lines<'a, R> {
    fn new(file: &'a mut R, prefix: String) -> Self {
        Self {
            file,
            prefix,
            line: 0,
            ended: false,
        }
    }

    /// Returns the next item, and the size of its line; `None` after the last one.
    fn next(&mut self) -> Result<Option<(Item, usize)>, TransferError> {
        let mut text = Vec::new();
        let size = self
            .file
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut text)?;
        let line = self.line + 1;
        if size == 0 {
            return match self.ended {
                true => Ok(None),
                false => Err(TransferError::Truncated { lines: self.line }),
            };
        }
        if self.ended {
            return Err(TransferError::Count {
                line,
                lines: self.line,
            });
        }
        let item = match Item::read(&text) {
            Ok(item) => item,
            Err(_) if self.line == 0 => return Err(TransferError::NoExport),
            // The last line of an incomplete file.
            Err(BadItem::Unreadable(_)) if text.last() != Some(&b'\n') => {
                return Err(TransferError::Truncated { lines: self.line });
            }
            Err(fault) => return Err(TransferError::Line { line, fault }),
        };
        self.look(&item, line)?;
        self.line = line;
        Ok(Some((item, size)))
    }

    fn look(&mut self, item: &Item, line: u64) -> Result<(), TransferError> {
        match item {
            Item::Export(header) if self.line == 0 => {
                if header.version != VERSION {
                    return Err(TransferError::Version {
                        version: header.version,
                    });
                }
                if header.prefix != self.prefix {
                    let name = |prefix: &str| prefix.trim_end_matches(':').to_owned();
                    return Err(TransferError::Namespace {
                        theirs: name(&header.prefix),
                        ours: name(&self.prefix),
                    });
                }
            }
            _ if self.line == 0 => return Err(TransferError::NoExport),
            Item::Export(_) => {
                let fault = BadItem::Unreadable("an export begins within an export".to_owned());
                return Err(TransferError::Line { line, fault });
            }
            Item::End { lines } if *lines != self.line => {
                return Err(TransferError::Count {
                    line,
                    lines: *lines,
                });
            }
            Item::End { .. } => self.ended = true,
            _ => {}
        }
        Ok(())
    }
}

/// Stores items, with several jobs per call.
struct Sender<'a> {
    client: &'a Client,
    jobs: Vec<StoredJob>,
    bytes: usize,
    seen: Transferred,
}

impl Sender<'_> {
    async fn take(&mut self, item: Item, bytes: usize) -> Result<(), TransferError> {
        if let Item::Job(job) = item {
            if self.jobs.len() == MAX_ITEMS || self.bytes + bytes > CALL_BYTES {
                self.flush().await?;
            }
            self.bytes += bytes;
            self.jobs.push(job);
            return Ok(());
        }
        self.flush().await?;
        let (broker, seen) = (self.client.broker(), &mut self.seen);
        let (done, left, taken) = match &item {
            Item::Setting { name, value } => {
                let taken = broker.import_setting(name, value).await?;
                (&mut seen.settings, &mut seen.settings_left, taken)
            }
            Item::Batch(batch) => {
                let taken = broker.import_batch(batch).await?;
                (&mut seen.batches, &mut seen.batches_left, taken)
            }
            Item::Schedule(schedule) => {
                let taken = broker.import_schedule(schedule).await?;
                (&mut seen.schedules, &mut seen.schedules_left, taken)
            }
            Item::Queue { name, ids } => {
                return Ok(broker.import_queue(name, ids).await.map(drop)?);
            }
            Item::Members { batch, ids } => {
                return Ok(broker.import_members(batch, ids).await.map(drop)?);
            }
            Item::Joined { batch, ids } => {
                return Ok(broker.import_joined(batch, ids).await.map(drop)?);
            }
            Item::Export(_) | Item::Job(_) | Item::End { .. } => return Ok(()),
        };
        *done += taken as u64;
        *left += 1 - (taken as u64).min(1);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), TransferError> {
        if self.jobs.is_empty() {
            return Ok(());
        }
        let taken = self.client.broker().import_jobs(&self.jobs).await? as u64;
        self.seen.jobs += taken;
        self.seen.jobs_left += self.jobs.len() as u64 - taken;
        self.jobs.clear();
        self.bytes = 0;
        Ok(())
    }
}
