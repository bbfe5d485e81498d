//! Finds fewer steps that still show a difference, by leaving out more and more of them.

use std::{io, path::Path};

use super::{pair::Pair, step::Step};

/// Runs of both sides spent on it: a few seconds.
const TRIES: usize = 600;

/// Fewer steps that lead to a difference, and what is seen after the last of them.
pub(super) fn shrink(
    mut steps: Vec<Step>,
    mut seen: String,
    socket: &Path,
) -> io::Result<(Vec<Step>, String)> {
    let mut tries = 0;
    let mut width = steps.len() / 2;
    while width > 0 {
        let mut at = 0;
        while at < steps.len() && tries < TRIES {
            tries += 1;
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

/// How many of the steps lead to a difference, and what is seen then.
fn play(steps: &[Step], socket: &Path) -> io::Result<Option<(usize, String)>> {
    let mut pair = Pair::fresh(socket)?;
    for (at, step) in steps.iter().enumerate() {
        if let Err(seen) = pair.step(step) {
            return Ok(Some((at + 1, seen)));
        }
    }
    Ok(None)
}
