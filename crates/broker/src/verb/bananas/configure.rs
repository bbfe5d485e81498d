//! configure: changes single limits of a route; limits: reads them.

use meshwork_macros::boxed;
use std::collections::BTreeMap;

use meshwork_model::name::RoutingKey;
use meshwork_model::queue::{QueueSetting, QueueSettings, Rate};

use super::Bananas;
use super::inspect::failed;
use crate::error::Error;
use crate::script::Verb;
use crate::verb::queue::settings::Settings;
use crate::verb::{MAX_ITEMS, at_most};

/// A limit of a route for Meshwork's workers, with its new value. `None` removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteLimit {
    /// Greatest number of jobs that run at once, from 1 to [`meshwork_model::queue::MAX_CONCURRENCY`].
    Concurrency(Option<u64>),
    /// Rate at which jobs start.
    Rate(Option<Rate>),
}

impl From<RouteLimit> for QueueSetting {
    fn from(limit: RouteLimit) -> Self {
        match limit {
            RouteLimit::Concurrency(most) => Self::Concurrency(most),
            RouteLimit::Rate(rate) => Self::Rate(rate),
        }
    }
}

impl Bananas {
    /// Changes single limits of a route, for all its priorities, in one step; the others stay. Jobs that Meshwork's
    /// workers run already count. The route is that of the lists: jobs on lists without a route belong to `default`.
    /// Bananas' own workers neither observe the limits nor count.
    ///
    /// # Errors
    /// A limit is not valid, or there are more than [`MAX_ITEMS`]: nothing was changed. If the server refuses the
    /// call, repeat it.
    #[boxed]
    pub async fn configure(&self, route: &RoutingKey, limits: &[RouteLimit]) -> Result<(), Error> {
        at_most("configure", MAX_ITEMS, limits.len())?;
        let mut call = self.call(Verb::BananasConfigure);
        call.push_arg(route.as_str());
        call.push_arg(limits.len());
        for limit in limits {
            let setting = QueueSetting::from(limit.clone());
            setting.check()?;
            call.push_arg(setting.name());
            call.push_arg(setting.value());
        }
        call.run(&self.conn).await
    }

    /// Returns the routes with limits, and the limits.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn limits(&self) -> Result<BTreeMap<RoutingKey, QueueSettings>, Error> {
        let mut get = redis::cmd("HGETALL");
        get.arg(self.keys.config());
        let fields = get.query_async(&mut self.conn.clone()).await;
        let settings = Settings::read(fields.map_err(failed("limits"))?);
        let routes = settings.queues.into_iter();
        Ok(routes
            .filter_map(|(route, set)| Some((route.parse().ok()?, set)))
            .collect())
    }
}
