//! Tests of schedules: days with a clock change (`clocks`), a slow oracle (`oracle`), decided slots (`plan`), the
//! stored form (`kept`), and times and recurrences in words (`words`).

mod clocks;
mod kept;
mod oracle;
mod plan;
mod words;

use super::Schedule;
use super::timing::Timing;
use crate::job::NewJob;
use crate::route::Route;
use crate::time::{iso, parse_iso};

fn ms(text: &str) -> u64 {
    parse_iso(text).unwrap_or_else(|| panic!("{text} is no time"))
}

fn timing(rhythm: &str, zone: &str) -> Timing {
    let mut timing = Timing::new(rhythm.parse().unwrap());
    timing.zone = zone.parse().unwrap();
    timing
}

fn schedule(timing: Timing) -> Schedule {
    let route = Route::to("osis".parse().unwrap());
    let job = NewJob::new("any".parse().unwrap(), route, "1");
    Schedule::new("nightly".parse().unwrap(), timing, job)
}

/// The slots after one moment and before another, in UTC to the minute.
fn slots(timing: &Timing, after: &str, before: &str) -> Vec<String> {
    let before = ms(before);
    let slots = timing.upcoming(ms(after));
    let slots = slots.take_while(|slot| *slot < before);
    slots.map(|slot| iso(slot)[..16].to_owned()).collect()
}
