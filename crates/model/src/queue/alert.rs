//! Alerts of a queue: a job for each series of failures, and one for its end.

use super::InvalidSetting;
use crate::job::NewJob;

/// Greatest number of failures in a row before an alert.
pub const MAX_ALERT_AFTER: u32 = 1000;

/// Checks the number of failures, and the job of an alert.
///
/// # Errors
/// The number is not from 1 to [`MAX_ALERT_AFTER`], or the job has an option that alert jobs do not have.
pub fn check_alert(after: u32, job: &NewJob) -> Result<(), InvalidSetting> {
    if !(1..=MAX_ALERT_AFTER).contains(&after) {
        let fault =
            format!("an alert cannot come after {after} failures: give 1 to {MAX_ALERT_AFTER}");
        return Err(InvalidSetting(fault));
    }
    let options = [
        (
            "an input: its input says what happened",
            job.input.is_some(),
        ),
        ("a time or a delay", job.when.is_some()),
        ("prerequisites", !job.depends_on.is_empty()),
        ("a unique name", job.unique.is_some()),
        ("a batch", job.batch.is_some()),
        ("a concurrency key", job.key.is_some()),
        ("a start timeout", job.start_timeout_ms.is_some()),
        ("a fallback", job.fallback.is_some()),
    ];
    match options.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(InvalidSetting(format!(
            "the job of an alert cannot have {option}"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Route;

    #[test]
    fn what_no_alert_can_have_is_refused_by_name() {
        let route = Route::to("osis".parse().unwrap());
        let mut job = NewJob::new("alert-1".parse().unwrap(), route, "1");
        assert_eq!(check_alert(1, &job), Ok(()));
        assert_eq!(check_alert(MAX_ALERT_AFTER, &job), Ok(()));
        for after in [0, MAX_ALERT_AFTER + 1] {
            let error = check_alert(after, &job).unwrap_err().to_string();
            assert!(error.contains("give 1 to 1000"), "{error}");
        }
        job.input = Some(Vec::new());
        let error = check_alert(1, &job).unwrap_err().to_string();
        assert!(error.contains("says what happened"), "{error}");
        job.input = None;
        job.key = Some("k".to_owned());
        let error = check_alert(1, &job).unwrap_err().to_string();
        assert!(error.contains("a concurrency key"), "{error}");
    }
}
