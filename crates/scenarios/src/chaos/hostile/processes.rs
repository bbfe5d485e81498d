//! Finds those processes that scripts recorded and that still run.

use std::fs;
use std::time::Duration;

use super::starts::Noted;

/// Error of a process' start time: the kernel counts in hundredths of a second.
const TICK: Duration = Duration::from_millis(20);

/// Returns a line for each process that still runs.
pub(super) fn alive(noted: &[Noted]) -> Vec<String> {
    let lives = |noted: &&Noted| lives(noted);
    let words = |noted: &Noted| format!("{}: process {} lives on", noted.job, noted.process);
    noted.iter().filter(lives).map(words).collect()
}

/// Returns true if the process still runs, and its id does not belong to a newer process.
fn lives(noted: &Noted) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", noted.process)) else {
        return false;
    };
    // The second field is the program's name in brackets, and may contain any text.
    let Some((_, fields)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = fields.split(' ');
    let dead = fields
        .next()
        .is_some_and(|state| matches!(state, "Z" | "X"));
    let begun = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    let begun = begun.map(|ticks: u64| {
        let second = rustix::param::clock_ticks_per_second();
        Duration::from_millis(ticks.saturating_mul(1000) / second.max(1))
    });
    !dead && begun.is_some_and(|begun| begun <= noted.at + TICK)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::chaos::fleet::troubles::now;
    use meshwork_test_servers::Kept;

    #[test]
    fn a_left_process_is_found_until_it_is_gone() {
        let child = Kept(Command::new("sleep").arg("600").spawn().unwrap());
        let noted = Noted {
            job: "a".to_owned(),
            process: child.0.id(),
            at: now(),
        };
        let left = alive(std::slice::from_ref(&noted));
        assert_eq!(left, [format!("a: process {} lives on", child.0.id())]);
        let before = Noted {
            at: noted.at.checked_sub(Duration::from_secs(1)).unwrap(),
            ..noted.clone()
        };
        assert_eq!(
            alive(&[before]),
            Vec::<String>::new(),
            "it is another's number"
        );
        drop(child);
        assert_eq!(alive(&[noted]), Vec::<String>::new());
    }
}
