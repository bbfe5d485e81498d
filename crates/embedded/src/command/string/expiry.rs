//! Times in the arguments of SET and GETEX.

use bytes::Bytes;

use crate::command::{
    Ctx, Stop,
    args::{bad_expire_time, int},
};

/// Unit and base of a time.
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

/// Returns the deadline of a time argument, in milliseconds.
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
