//! Handlers of typed jobs, with what they share, and layers around them.

use meshwork_model::name::ScriptType;
use tower::{Layer, Service};

use super::Worker;
use crate::handler::{self, BoxError, JobCall, JobHandler, JobOutput, JobService, RouteError};
use crate::{Error, Job};

impl Worker {
    /// Runs the jobs of a type with this handler: an async function of the job and of arguments that implement
    /// [`FromJob`](handler::FromJob).
    ///
    /// ```
    /// # use meshwork::{Job, JobContext, Worker, Client, JobError};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize, Job)]
    /// #[job(output = u64)]
    /// struct Add { a: u64, b: u64 }
    ///
    /// async fn add(Add { a, b }: Add) -> Result<u64, JobError> {
    ///     a.checked_add(b).ok_or_else(|| JobError::permanent("the sum is too large"))
    /// }
    ///
    /// # fn build(client: &Client) -> Worker {
    /// Worker::new(client).job(add)
    /// # }
    /// ```
    #[must_use]
    pub fn job<J: Job, Args: 'static>(mut self, handler: impl JobHandler<J, Args>) -> Self {
        self.handlers.push(handler::Route::new(handler));
        self
    }

    /// Adds a value that handlers take as [`State<T>`](crate::State), one for each type. Each run gets a clone.
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Adds a [tower](https://docs.rs/tower) layer around all handlers of [`Worker::job`]: a timeout, a limit, a trace, a
    /// metric. The last layer is the outermost one. An error of a layer fails the run as one of the handler does.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<JobService> + Send + Sync + 'static,
        L::Service: Service<JobCall, Response = JobOutput> + Clone + Send + Sync + 'static,
        <L::Service as Service<JobCall>>::Error: Into<BoxError>,
        <L::Service as Service<JobCall>>::Future: Send + 'static,
    {
        self.layers.push(handler::Layered::new(layer));
        self
    }

    /// Makes the handlers of typed jobs runtimes, and refuses an invalid name of a handler.
    pub(super) fn add_handlers(&mut self) -> Result<(), Error> {
        if let Some(name) = &self.refused {
            name.parse::<ScriptType>()?;
        }
        for route in std::mem::take(&mut self.handlers) {
            let name = route.name();
            if self
                .runtimes
                .iter()
                .any(|(known, _)| known.as_str() == name)
            {
                return Err(Error::TwoHandlers { name });
            }
            let built = route.build(&self.layers, &self.states);
            self.runtimes.push(built.map_err(|error| match error {
                RouteError::Name(error) => Error::Name(error),
                RouteError::Missing(what) => Error::HandlerArgument { name, what },
            })?);
        }
        Ok(())
    }

    /// Starts the worker, and stops it when `shutdown` is ready or another program asks for it: it claims no more
    /// jobs, and waits for those that run, up to [`Worker::shutdown_timeout`].
    /// [`shutdown_signal`](crate::shutdown_signal) is ready at Ctrl-C and at SIGTERM.
    ///
    /// # Errors
    /// As [`Worker::start`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let worker = self.start().await?;
        tokio::select! {
            () = shutdown => {}
            () = worker.stop_requested() => {}
        }
        worker.stop().await;
        Ok(())
    }
}
