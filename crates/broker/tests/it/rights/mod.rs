//! Rights on a real server: denied channels, and the ACL users of contexts.

mod bananas;
mod contexts;
