//! Nonces that clients sign to show that they have the key of an actor. Each is valid once, for five minutes, for one key.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;

/// Time for which a nonce is valid, as in Hero.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(300);
/// Greatest number of nonces that have not been used.
const MOST: usize = 10_000;

/// Nonces that have not been used, with their keys.
#[derive(Debug, Default)]
pub(crate) struct Nonces(Mutex<HashMap<String, (String, Instant)>>);

impl Nonces {
    fn open(&self) -> MutexGuard<'_, HashMap<String, (String, Instant)>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, (_, at)| at.elapsed() < VALID_FOR);
        open
    }

    /// Makes a nonce for a public key; `None` if there are too many.
    pub(crate) fn make(&self, key: &str) -> Option<String> {
        let mut open = self.open();
        if open.len() >= MOST {
            return None;
        }
        let random = HEXLOWER.encode(&rand::random::<[u8; 16]>());
        let nonce = format!("nonce_{}_{random}", meshwork::host_ms() / 1000);
        open.insert(nonce.clone(), (key.to_ascii_lowercase(), Instant::now()));
        Some(nonce)
    }

    /// Takes a nonce of a public key, the latest one if none is named.
    pub(crate) fn take(&self, key: &str, nonce: Option<&str>) -> Option<String> {
        let mut open = self.open();
        let key = key.to_ascii_lowercase();
        let of_key = open.iter().filter(|(_, (of, _))| *of == key);
        let found = match nonce {
            Some(nonce) => of_key
                .filter(|(text, _)| *text == nonce)
                .map(|(text, _)| text.clone())
                .next(),
            None => of_key
                .max_by_key(|(_, (_, at))| *at)
                .map(|(text, _)| text.clone()),
        };
        let found = found?;
        open.remove(&found);
        Some(found)
    }

    /// Number of nonces that have not been used.
    pub(crate) fn len(&self) -> usize {
        self.open().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_valid_once_for_one_key() {
        let nonces = Nonces::default();
        let first = nonces.make("AB").unwrap();
        let second = nonces.make("ab").unwrap();
        assert_eq!(nonces.take("cd", Some(&first)), None);
        assert_eq!(nonces.take("ab", Some(&first)), Some(first.clone()));
        assert_eq!(nonces.take("ab", Some(&first)), None);
        assert_eq!(nonces.take("ab", None), Some(second));
        assert_eq!((nonces.take("ab", None), nonces.len()), (None, 0));
    }
}
