//! Jobs of dead workers, and jobs that no list holds.

pub(crate) mod check_orphans;
pub(crate) mod check_orphans_edge;
pub(crate) mod deregister;
pub(crate) mod expire_workers;
pub(crate) mod prefetch;
pub(crate) mod reclaim;
pub(crate) mod rescue;
pub(crate) mod rescue_foreign;
pub(crate) mod scan_orphans;
pub(crate) mod track_orphans;
pub(crate) mod wait_and_claim;
