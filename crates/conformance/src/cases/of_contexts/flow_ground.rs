//! The flow of the cases about flows.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_broker::flow::{
    Answered, Approval, FlowClaim, FlowJob, FlowLease, Flows, Moves, NewFlow, StepDone, Stored,
};
use meshwork_model::job::NewJob;
use meshwork_model::keys::context::{ActorId, FlowId};
use meshwork_model::route::Route;

use crate::cases::harness::world::{Got, LEASE};
use crate::cases::{Failure, World, same};

/// The actor of these cases.
pub(crate) const ACTOR: ActorId = ActorId(12);

/// The flow of a case.
pub(crate) struct Ground<'w> {
    pub(crate) world: &'w World,
    pub(crate) flows: Flows,
    pub(crate) id: FlowId,
}

impl<'w> Ground<'w> {
    pub(crate) fn new(world: &'w World) -> Got<Self> {
        let flows = Flows::of(&world.broker).ok_or_else(|| Failure::new("no context"))?;
        let id = FlowId(33);
        Ok(Self { world, flows, id })
    }

    pub(crate) const fn new_flow(&self) -> NewFlow<'static> {
        NewFlow {
            id: self.id,
            mark: "m",
            caller: ACTOR,
        }
    }

    pub(crate) fn job(&self, node: &str, name: &str, script_type: &str) -> Got<FlowJob> {
        let route = Route::to(script_type.parse()?);
        let job = NewJob::new(self.flows.unnumbered(ACTOR), route, "1");
        Ok(FlowJob {
            node: node.to_owned(),
            name: name.to_owned(),
            generation: 0,
            waits: node != "0",
            job,
            more: Vec::new(),
        })
    }

    /// A flow of two jobs and an approval, sealed.
    pub(crate) async fn sealed(world: &'w World) -> Got<Self> {
        let ground = Self::new(world)?;
        let new = ground.new_flow();
        same!(ground.flows.open(new, "{}", &[]).await?, Stored::Stored);
        let jobs = [
            ground.job("0", "a", "osis")?,
            ground.job("1", "b", "osis")?,
            ground.job("2", "ask", "approve")?,
        ];
        same!(ground.flows.add(new, &jobs).await?, Stored::Stored);
        let fields = [("jobs", "[1,2,3]".to_owned())];
        same!(ground.flows.seal(new, None, &fields).await?, Stored::Stored);
        Ok(ground)
    }

    pub(crate) async fn lease(&self) -> Got<FlowLease> {
        match self.flows.claim(&self.world.token(), LEASE).await? {
            FlowClaim::Claimed(lease) => Ok(lease),
            FlowClaim::Idle(_) => Err(Failure::new("no flow was claimed")),
        }
    }

    pub(crate) async fn key(&self, name: &str) -> Got<String> {
        let names = self.flows.names(self.id).await?;
        let id = names
            .get(name)
            .ok_or_else(|| Failure::new(format!("no job {name}")))?;
        Ok(format!("{}job:12:{id}", self.flows.keys().prefix()))
    }

    pub(crate) async fn node(&self, place: &str) -> Got<String> {
        Ok(self
            .flows
            .nodes(self.id)
            .await?
            .remove(place)
            .unwrap_or_default())
    }

    pub(crate) async fn flow_field(&self, name: &str) -> Got<Option<String>> {
        Ok(self.flows.record(self.id).await?.remove(name))
    }

    /// Lets the first job run.
    pub(crate) async fn release(&self, lease: &FlowLease) -> Got<String> {
        let key = self.key("a").await?;
        let mut moves = Moves::default();
        moves.release(
            "0",
            0,
            &key,
            &self.world.queue(),
            vec![("mw_input", b"7".to_vec())],
        );
        same!(self.flows.commit(lease, &moves).await?, StepDone::Done);
        Ok(key)
    }

    pub(crate) async fn rest(&self, lease: &FlowLease) -> Got<StepDone> {
        let mut moves = Moves::default();
        let dirty = self.flow_field("mw_dirty").await?.unwrap_or_default();
        moves.rest(&dirty, Some(Duration::from_secs(5)));
        Ok(self.flows.commit(lease, &moves).await?)
    }

    /// All that a step could change.
    pub(crate) async fn all(&self, key: &str) -> Got<String> {
        let record = BTreeMap::from_iter(self.flows.record(self.id).await?);
        let nodes = BTreeMap::from_iter(self.flows.nodes(self.id).await?);
        let (job, due) = (self.world.record(key).await?, self.due().await?);
        let waiting = self.world.waiting().await?;
        Ok(format!("{record:?} {nodes:?} {job:?} {due:?} {waiting:?}"))
    }

    /// The time at which retention got a job.
    pub(crate) async fn kept(&self, key: &str) -> Got<Option<u64>> {
        let ended = self.flows.keys().ended();
        self.world.raw(&["ZSCORE", &ended, key]).await
    }

    /// Answers the approval for actor 7.
    pub(crate) async fn answer(&self, yes: bool) -> Got<Answered> {
        self.answer_of(0, yes).await
    }

    /// Answers the approval, as one who has seen this generation of it.
    pub(crate) async fn answer_of(&self, generation: u32, yes: bool) -> Got<Answered> {
        let job = meshwork_model::name::JobId::foreign(self.key("ask").await?);
        let approval = Approval {
            flow: self.id,
            job: &job,
            node: "2",
            generation,
            name: "ask",
        };
        Ok(self.flows.answer(approval, ActorId(7), yes).await?)
    }

    /// Opens the question of the approval, and returns the key of its record.
    pub(crate) async fn opened(&self, lease: &FlowLease) -> Got<String> {
        let key = self.key("ask").await?;
        let mut moves = Moves::default();
        moves.release("2", 0, &key, "", Vec::new());
        same!(self.flows.commit(lease, &moves).await?, StepDone::Done);
        Ok(key)
    }

    /// The last entry of the audit trail: what was done, and to which object.
    pub(crate) async fn audited(&self) -> Got<[String; 2]> {
        let trail = self.flows.keys().audit();
        let words = ["XREVRANGE", &trail, "+", "-", "COUNT", "1"];
        let entries: Vec<(String, Vec<String>)> = self.world.raw(&words).await?;
        let fields = entries.first().map_or(&[][..], |(_, fields)| fields);
        let field = |name: &str| {
            let mut pairs = fields.chunks(2);
            let found = pairs.find(|pair| pair[0] == name);
            found.map(|pair| pair[1].clone()).unwrap_or_default()
        };
        Ok([field("what"), field("object")])
    }

    /// The time of the next look at the flow.
    pub(crate) async fn due(&self) -> Got<Option<u64>> {
        let due = self.flows.keys().flows_due();
        self.world
            .raw(&["ZSCORE", &due, &self.id.to_string()])
            .await
    }
}
