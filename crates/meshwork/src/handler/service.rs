//! Handlers as services with layers around them, and services as runtimes.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::name::{NameError, ScriptType};
use meshwork_model::outcome::Report;
use tower::{Layer, Service, ServiceExt};

use super::{BoxError, JobCall, JobHandler, JobOutput, JobService, States};
use crate::Job;
use crate::handler::function::{Call, HandlerIo, finish};
use meshwork_runtime as runtime;
use meshwork_runtime::{JobError, Run, Runtime};

/// A layer of a worker.
#[derive(Clone)]
pub(crate) struct Layered(Arc<dyn Fn(JobService) -> JobService + Send + Sync>);

impl Layered {
    pub(crate) fn new<L>(layer: L) -> Self
    where
        L: Layer<JobService> + Send + Sync + 'static,
        L::Service: Service<JobCall, Response = JobOutput> + Clone + Send + Sync + 'static,
        <L::Service as Service<JobCall>>::Error: Into<BoxError>,
        <L::Service as Service<JobCall>>::Future: Send + 'static,
    {
        Self(Arc::new(move |inner| {
            let service = layer.layer(inner);
            JobService::new(service.map_err(Into::into))
        }))
    }
}

/// A handler of typed jobs, before the worker starts.
#[derive(Clone)]
pub(crate) struct Route {
    name: &'static str,
    check: fn(&States) -> Result<(), String>,
    service: JobService,
}

impl Route {
    pub(crate) fn new<J: Job, Args: 'static, H: JobHandler<J, Args>>(handler: H) -> Self {
        let handler = Arc::new(handler);
        let service = tower::service_fn(move |call: JobCall| {
            let handler = Arc::clone(&handler);
            async move {
                let job: J = serde_json::from_slice(call.payload()).map_err(|error| {
                    JobError::permanent(format!("the payload is no {}: {error}", J::NAME))
                })?;
                let output = handler.run(job, &call).await?;
                let written = serde_json::to_vec(&output).map_err(|error| {
                    JobError::permanent(format!("the result cannot be written as JSON: {error}"))
                })?;
                Ok::<_, BoxError>(JobOutput(written))
            }
        });
        Self {
            name: J::NAME,
            check: H::check,
            service: JobService::new(service),
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the jobs, and their runtime. The first layer is the innermost one.
    pub(crate) fn build(
        self,
        layers: &[Layered],
        states: &States,
    ) -> Result<(ScriptType, Arc<dyn Runtime>), RouteError> {
        let name = self.name.parse().map_err(RouteError::Name)?;
        (self.check)(states).map_err(RouteError::Missing)?;
        let service = layers
            .iter()
            .fold(self.service, |inner, layer| (layer.0)(inner));
        let states = states.clone();
        Ok((name, Arc::new(Handled { service, states })))
    }
}

/// Reason why a handler cannot be started.
pub(crate) enum RouteError {
    Name(NameError),
    Missing(String),
}

/// A service as a runtime.
struct Handled {
    service: JobService,
    states: States,
}

impl fmt::Debug for Handled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handled")
    }
}

impl Runtime for Handled {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        let (io, cancelled) = HandlerIo::new(&run);
        let call = JobCall {
            record: Arc::clone(&run.job),
            context: io.context(&run, &cancelled),
            states: self.states.clone(),
        };
        let service = self.service.clone();
        let call: Call = Box::pin(async move {
            let output = service.oneshot(call).await;
            output
                .map(|output| output.0)
                .map_err(|error| runtime::failure_of(&*error))
        });
        Box::pin(async move {
            let report = finish(call, &run, cancelled.drop_guard()).await;
            io.end(report)
        })
    }
}
