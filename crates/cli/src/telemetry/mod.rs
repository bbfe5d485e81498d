//! Log output, and traces by OTLP.

pub(crate) mod logging;
#[cfg(feature = "otlp")]
pub(crate) mod otlp;
