//! Both systems on one server, for the cases of import_bananas and export_bananas.

use meshwork_broker::Claimed;
use meshwork_broker::bananas::{Bananas, ExportItem, Exported, ImportFrom, Imported};
use meshwork_model::bananas::{Bucket, Conversion, HandlerKind, Origin, Record, Return};
use meshwork_model::keys::bananas::BananasKeys as Keys;
use meshwork_model::route::Priority;

use super::{Failure, Outcome, Side, World, same};
use crate::cases::harness::world::{Got, WORKER};
use crate::snapshot::snapshot;

/// Record of a job as Go's client with routing writes it.
pub(super) const RECORD: &str = "{\"id\":\"j\",\"name\":\"count\",\"payload\":{\"n\":1},\"status\":\"pending\",\"priority\":\"low\",\"routing_key\":\"gpu\",\"created_at\":\"2023-11-14T22:13:00Z\",\"updated_at\":\"2023-11-14T22:13:00Z\",\"attempts\":0,\"max_retries\":3}";

/// Returns the list on which such a job waits.
pub(super) fn gpu(keys: &Keys) -> String {
    format!("{}gpu:queue:low", keys.route_prefix())
}

/// Bananas beside Meshwork, under its own key names.
pub(super) struct Both<'a> {
    pub(super) side: Side<'a>,
    world: &'a World,
}

impl<'a> Both<'a> {
    pub(super) fn of(world: &'a World) -> Got<Self> {
        let verbs = world.bananas_beside()?;
        let side = Side { world, verbs };
        Ok(Self { side, world })
    }

    fn verbs(&self) -> &Bananas {
        &self.side.verbs
    }

    /// Pushes jobs to the list of their route, and returns that list.
    pub(super) async fn put(&self, ids: &[&str]) -> Got<Bucket> {
        for id in ids {
            self.put_text(id, RECORD).await?;
        }
        Ok(Bucket::List(gpu(self.side.keys())))
    }

    pub(super) async fn put_text(&self, id: &str, record: &str) -> Got<Bucket> {
        let list = gpu(self.side.keys());
        self.side.set(&self.side.keys().job(id), record).await?;
        self.side.push(&list, id).await?;
        Ok(Bucket::List(list))
    }

    /// Stores a delayed job.
    pub(super) async fn later(&self, id: &str, score: &str) -> Outcome {
        let keys = self.side.keys();
        self.side.set(&keys.job(id), RECORD).await?;
        self.world
            .raw(&["ZADD", &keys.scheduled(), score, id])
            .await
    }

    /// Stores a dead letter.
    pub(super) async fn dead(&self, id: &str, record: &str) -> Outcome {
        self.side.set(&self.side.keys().job(id), record).await?;
        self.side.push(&self.side.keys().dead(), id).await
    }

    /// Returns the ids of a list in Bananas, the next one first.
    pub(super) async fn ids_in(&self, place: &Bucket) -> Got<Vec<String>> {
        self.side.list(&place.key(self.side.keys())).await
    }

    /// Returns the jobs of a place, ready for the import.
    pub(super) async fn conversions(&self, place: &Bucket) -> Got<Vec<Conversion>> {
        self.some_passages(place, 100).await
    }

    async fn some_passages(&self, place: &Bucket, most: usize) -> Got<Vec<Conversion>> {
        let keys = self.side.keys();
        let (_, jobs) = self.verbs().peek(place, 0, most).await?;
        let conversion = |job: meshwork_broker::bananas::PeekedJobs| {
            let id = String::from_utf8_lossy(&job.id).into_owned();
            let meshwork_broker::bananas::Found::Job(record) = job.found else {
                return Err(Failure::new(format!("{id} has no record")));
            };
            let conversion =
                record.conversion(keys, &id, (place, &job.time), &HandlerKind::Function, 300);
            conversion.map_err(Failure::new)
        };
        jobs.into_iter().map(conversion).collect()
    }

    async fn over(
        &self,
        place: &Bucket,
        jobs: &[Conversion],
        (depth, overdue): (usize, bool),
    ) -> Got<Vec<Imported>> {
        let from = ImportFrom {
            keys: self.side.keys(),
            place,
            depth,
            overdue,
        };
        Ok(self.world.broker.import(from, jobs).await?)
    }

    pub(super) async fn go(&self, place: &Bucket, jobs: &[Conversion]) -> Got<Vec<Imported>> {
        self.over(place, jobs, (1_000, false)).await
    }

    pub(super) async fn go_overdue(
        &self,
        place: &Bucket,
        jobs: &[Conversion],
    ) -> Got<Vec<Imported>> {
        self.over(place, jobs, (1_000, true)).await
    }

    pub(super) async fn go_deep(
        &self,
        place: &Bucket,
        jobs: &[Conversion],
        depth: usize,
    ) -> Got<Vec<Imported>> {
        self.over(place, jobs, (depth, false)).await
    }

    /// Imports the jobs of a place.
    pub(super) async fn take(&self, place: &Bucket) -> Got<Vec<Imported>> {
        self.go(place, &self.conversions(place).await?).await
    }

    pub(super) async fn take_some(&self, place: &Bucket, most: usize) -> Got<Vec<Imported>> {
        self.go(place, &self.some_passages(place, most).await?)
            .await
    }

    /// Checks that the only job of a place is not imported, for this reason, and that nothing changes.
    pub(super) async fn stays(&self, place: &Bucket, why: Imported) -> Outcome {
        let jobs = self.conversions(place).await?;
        let before = self.all().await?;
        same!(self.go(place, &jobs).await?, [why]);
        same!(self.all().await?, before);
        Ok(())
    }

    /// Returns the imported jobs, in order.
    pub(super) async fn imported_ids(&self) -> Got<Vec<String>> {
        let jobs = self.world.broker.imported(0).await?.into_iter();
        Ok(jobs.map(|job| job.id.to_string()).collect())
    }

    /// Claims the next job of a Meshwork queue.
    pub(super) async fn claim(&self, queue: &str) -> Got<Claimed> {
        let mut taken = self.world.claim(WORKER, &[queue.to_owned()], 1).await?;
        taken
            .jobs
            .pop()
            .ok_or_else(|| Failure::new("no job was claimed"))
    }

    /// Imports a job and claims it.
    pub(super) async fn started(&self, id: &str) -> Got<Claimed> {
        let list = self.put(&[id]).await?;
        self.take(&list).await?;
        self.claim(&self.queue()).await
    }

    /// Returns the Meshwork queue to which such jobs go.
    pub(super) fn queue(&self) -> String {
        format!("{}:group:gpu:prio:2", self.world.queue_of("count"))
    }

    /// Returns the imported jobs, and the way of each back to Bananas.
    pub(super) async fn export_items(&self) -> Got<Vec<(ExportItem, Return)>> {
        let keys = self.side.keys();
        let list = gpu(keys);
        let jobs = self.world.broker.imported(0).await?.into_iter();
        let back = |over: ExportItem| {
            let (stands, (origin, record)): (_, &(Origin, Record)) =
                (over.stands.as_ref()?, over.was.as_ref()?);
            let back = record.exported_record(keys, stands, origin, &list);
            Some((over, back))
        };
        Ok(jobs.filter_map(back).collect())
    }

    pub(super) async fn export(&self, jobs: &[(ExportItem, Return)]) -> Got<Vec<Exported>> {
        let jobs: Vec<_> = jobs.iter().map(|(over, to)| (over, to.clone())).collect();
        Ok(self.world.broker.export(self.side.keys(), &jobs).await?)
    }

    /// Exports all jobs that can be exported.
    pub(super) async fn export_all(&self) -> Got<Vec<Exported>> {
        self.export(&self.export_items().await?).await
    }

    /// Returns all keys and values of Bananas.
    pub(super) async fn bananas_data(&self) -> Got<String> {
        let prefix = self.side.keys().prefix().to_string();
        Ok(snapshot(self.world.conn(), &prefix).await?)
    }

    /// Returns all keys and values of both systems.
    pub(super) async fn all(&self) -> Got<String> {
        Ok(self.world.all().await? + self.bananas_data().await?.as_str())
    }

    /// Returns the list of jobs without a route or priority.
    pub(super) fn plain(&self) -> Bucket {
        Bucket::List(self.side.keys().plain(Priority::Normal))
    }
}
