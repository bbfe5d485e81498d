//! Panic guard of message readers: a panic becomes an error of that message alone.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Error text of a message whose reader panicked.
pub(super) const PANICKED: &str = "reading it panicked; see the log";

/// Reads a message. A panic becomes an error, since it would repeat on every service.
pub(super) fn reading<T, E: ToString>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    // Partial state is dropped with the panic.
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err(PANICKED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_what_is_read() {
        assert_eq!(reading(|| Ok::<_, String>(1)), Ok(1));
        assert_eq!(reading(|| Err::<(), _>("why")), Err("why".to_owned()));
        let panics = || -> Result<(), String> { panic!("an unexpected message") };
        assert_eq!(reading(panics), Err(PANICKED.to_owned()));
    }
}
