//! The times that SET, GETEX and their like are given.

use bytes::Bytes;

use crate::command::{
    Ctx, Stop,
    args::{bad_expire_time, int},
};

/// How a time is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    SecondsAt,
    MillisAt,
}

impl Unit {
    fn is_absolute(self) -> bool {
        matches!(self, Self::SecondsAt | Self::MillisAt)
    }
}

/// The point in time, in milliseconds, that a time argument stands for.
pub(super) fn deadline(
    ctx: &Ctx<'_>,
    args: &[Bytes],
    unit: Unit,
    time: &[u8],
) -> Result<i64, Stop> {
    let refused = || bad_expire_time(args);
    let mut time = int(time)?;
    if time <= 0 {
        return Err(refused());
    }
    if matches!(unit, Unit::Seconds | Unit::SecondsAt) {
        time = time.checked_mul(1000).ok_or_else(refused)?;
    }
    if !unit.is_absolute() {
        time = time.checked_add(ctx.now()).ok_or_else(refused)?;
    }
    Ok(time)
}
