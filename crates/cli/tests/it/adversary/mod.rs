//! Hostile tenants beside honest ones.

mod context;
mod tenant;
