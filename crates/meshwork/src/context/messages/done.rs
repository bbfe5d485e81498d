//! The outcome of a part of a coordinator's step: handled elements, and failures of single ones.

use meshwork_model::keys::context::ContextId;

use crate::context::ContextError;

/// Outcome of a part of a step.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Number of handled elements.
    pub(crate) count: usize,
    /// True if there may be more to do at once.
    pub(crate) more: bool,
    /// The first element that failed, after which the others went on, and its error.
    pub(crate) failed: Option<(String, ContextError)>,
}

impl Done {
    /// Records the outcome of one element. A failed element is handled again later.
    ///
    /// # Errors
    /// The server is unreachable, which ends the part.
    pub(crate) fn note(
        &mut self,
        context: ContextId,
        element: &[u8],
        outcome: Result<usize, ContextError>,
    ) -> Result<(), ContextError> {
        let error = match outcome {
            Ok(count) => {
                self.count += count;
                return Ok(());
            }
            Err(error) if error.is_outage() => return Err(error),
            Err(error) => error,
        };
        let element = String::from_utf8_lossy(element).into_owned();
        tracing::debug!(%context, %element, %error, "message not handled; retrying");
        self.failed.get_or_insert((element, error));
        Ok(())
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.more |= other.more;
        self.failed = self.failed.take().or(other.failed);
    }
}
