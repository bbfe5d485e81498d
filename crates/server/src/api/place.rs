//! Contexts of calls: the actor of the caller's key, whose roles decide there, and the jobs of a context.

use meshwork::context::Caller;
use meshwork::flow::FlowSession;
use meshwork_model::name::JobId;
use meshwork_ops::{Needs, Place, Placed};

use super::call::Call;
use super::error::{ApiError, Code};

impl Call {
    /// Refuses a caller that is no actor whose keys are valid.
    pub(crate) async fn trusted(&self) -> Result<Caller, ApiError> {
        let caller = self.caller()?;
        let actor = self.node().actor(caller.id()).await?;
        match actor.revoked_at {
            None => Ok(caller),
            Some(_) => {
                let message = format!("the keys of actor {} are revoked", actor.id);
                Err(ApiError::new(Code::Forbidden, message))
            }
        }
    }

    /// Enters a context if one is given, after a check of the permission.
    pub(crate) async fn enter(
        mut self,
        context: Option<u32>,
        needs: Needs,
    ) -> Result<Self, ApiError> {
        self.store = self.store.enter(context, needs).await?;
        Ok(self)
    }

    /// Enters the place of its jobs, after a check of the permission there.
    ///
    /// # Errors
    /// The caller has not the permission in all parts of a spread queue. Nothing was changed in any of them.
    pub(crate) async fn enter_all(
        self,
        place: Place,
        queue: Option<&str>,
        needs: Needs,
    ) -> Result<Placed<Self>, ApiError> {
        let placed = self.store.clone().enter_all(place, queue, needs).await?;
        Ok(placed.map(|store| {
            let mut call = self.clone();
            call.store = store;
            call
        }))
    }

    /// Enters the context of a job, and reads the job's id.
    pub(crate) async fn enter_job(
        mut self,
        context: Option<u32>,
        id: &str,
        needs: Needs,
    ) -> Result<(Self, JobId), ApiError> {
        let (store, id) = self.store.enter_job(context, id, needs).await?;
        self.store = store;
        Ok((self, id))
    }

    /// Opens the flows of a context; without a number those of the only one of the store.
    pub(crate) async fn flows(
        mut self,
        context: Option<u32>,
        needs: Needs,
    ) -> Result<(Self, FlowSession), ApiError> {
        let (context, caller) = self.context(context).await?;
        self.store
            .enter_as(context.clone(), caller.clone(), needs)
            .await?;
        let session = FlowSession::over(&self.client, &context, &caller)?;
        Ok((self, session))
    }
}
