//! Stores: connections, checks and transfers.

pub(crate) mod cluster;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod doctor_jobs;
pub(crate) mod footprint;
pub(crate) mod full_disk;
pub(crate) mod migrate;
pub(crate) mod outage;
pub(crate) mod tls;
pub(crate) mod transfer;
