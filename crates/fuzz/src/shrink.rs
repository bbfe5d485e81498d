//! Finds fewer steps that still show a difference, by omitting more and more of them.

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use super::{pair::Pair, step::Step};

/// Time limit. A server that does not answer costs its timeout at each try.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Returns fewer steps that lead to a difference, and the difference after the last of them.
pub(super) fn shrink(
    mut steps: Vec<Step>,
    mut seen: String,
    socket: &Path,
) -> io::Result<(Vec<Step>, String)> {
    let end = Instant::now() + TIME_MAX;
    let mut width = steps.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + width).min(steps.len()));
            match play(&fewer, socket)? {
                Some((len, different)) => {
                    fewer.truncate(len);
                    (steps, seen) = (fewer, different);
                }
                None => at += width,
            }
        }
        width /= 2;
    }
    Ok((steps, seen))
}

/// Returns the number of steps that lead to a difference, and the difference.
fn play(steps: &[Step], socket: &Path) -> io::Result<Option<(usize, String)>> {
    let mut pair = Pair::fresh(socket)?;
    for (at, step) in steps.iter().enumerate() {
        if let Err(seen) = pair.step(step) {
            return Ok(Some((at + 1, seen)));
        }
    }
    Ok(None)
}
