//! Worlds of many processes, ours and those of other systems, that are killed while they work; and what measures how
//! fast ours are.

pub mod actions;
pub mod bananas;
pub mod bench;
pub mod chaos;
pub mod legacy;
pub mod scale;
