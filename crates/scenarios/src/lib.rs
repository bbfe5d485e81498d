//! Scenarios with many processes of Meshwork and of other systems, which are killed while they work; and measurements
//! of Meshwork's speed.

pub mod actions;
pub mod bananas;
pub mod bench;
pub mod chaos;
pub mod legacy;
pub mod scale;
pub mod simulate;
