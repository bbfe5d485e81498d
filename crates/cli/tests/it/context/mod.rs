//! Contexts, their users and their messages.

pub(crate) mod acl;
pub(crate) mod audit;
pub(crate) mod contexts;
pub(crate) mod jobs;
pub(crate) mod killed;
pub(crate) mod kills;
pub(crate) mod mesh;
pub(crate) mod mesh_flood;
pub(crate) mod messages;
pub(crate) mod sandbox;
pub(crate) mod spread;
