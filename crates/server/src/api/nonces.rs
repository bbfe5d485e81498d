//! Nonces that clients sign to show that they have the key of an actor. Each is valid once, for five minutes, for one key.
//! A nonce proves itself that it was made here, so no flood of them takes the place of another one.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Time for which a nonce is valid, as in Hero.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(300);
/// Nonces of an address that its clients need not name; the oldest one gives way. A client that signs slowly, behind an address
/// with many logins, names its nonce.
const LATEST_PER_ADDRESS: usize = 64;
/// Greatest number of addresses with such nonces; the one that has made none for the longest time gives way.
const MOST_ADDRESSES: usize = 1024;
/// Logins of an actor whose nonces are remembered; further ones have to wait until five minutes are over.
const LOGINS: usize = 1000;

/// Makes nonces, and checks that each is used once.
pub(crate) struct Nonces {
    secret: [u8; 32],
    /// Times count from here: no clock that is set makes a nonce valid again.
    began: Instant,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Nonces that need not be named, by address, the oldest first.
    latest: HashMap<IpAddr, VecDeque<Latest>>,
    /// Nonces that were used, by the key of their actor, the oldest first.
    used: HashMap<String, VecDeque<(String, Instant)>>,
}

#[derive(Debug)]
struct Latest {
    key: String,
    nonce: String,
    at: Instant,
}

/// Why a nonce cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It was used before.
    Used,
    /// The actor has logged in too often.
    TooMany,
}

impl Nonces {
    pub(crate) fn new() -> Self {
        Self {
            secret: rand::random(),
            began: Instant::now(),
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of a nonce that proves that it was made here for a key.
    fn proof(&self, made: &str, key: &str) -> String {
        let inner = Sha256::digest(format!("{made} {}", key.to_ascii_lowercase()));
        let proof = Sha256::new().chain_update(self.secret).chain_update(inner);
        HEXLOWER.encode(&proof.finalize()[..16])
    }

    /// Makes a nonce for a public key, for a client at this address.
    pub(crate) fn make(&self, key: &str, client: IpAddr) -> String {
        let random = HEXLOWER.encode(&rand::random::<[u8; 12]>());
        let (unix, since) = (meshwork::host_ms() / 1000, self.began.elapsed().as_secs());
        let made = format!("nonce_{unix}_{since:08x}{random}");
        let nonce = format!("{made}{}", self.proof(&made, key));
        let (key, at) = (key.to_ascii_lowercase(), Instant::now());
        let mut table = self.table();
        if table.latest.len() >= MOST_ADDRESSES && !table.latest.contains_key(&client) {
            table.make_room();
        }
        let latest = table.latest.entry(client).or_default();
        if latest.len() >= LATEST_PER_ADDRESS {
            latest.pop_front();
        }
        latest.push_back(Latest {
            key,
            nonce: nonce.clone(),
            at,
        });
        nonce
    }

    /// Returns the nonce that a client at this address has signed: the one that it names, if it was made here for this key
    /// and is still valid, else the latest one of its address and key.
    pub(crate) fn find(&self, key: &str, named: Option<&str>, client: IpAddr) -> Option<String> {
        let key = key.to_ascii_lowercase();
        if let Some(nonce) = named {
            return self.is_own(nonce, &key).then(|| nonce.to_owned());
        }
        let table = self.table();
        let mut latest = table.latest.get(&client)?.iter().rev();
        let found = latest.find(|it| it.key == key && it.at.elapsed() < VALID_FOR)?;
        Some(found.nonce.clone())
    }

    fn is_own(&self, nonce: &str, key: &str) -> bool {
        let Some((made, proof)) = nonce.split_at_checked(nonce.len().saturating_sub(32)) else {
            return false;
        };
        let is_own: bool = self
            .proof(made, key)
            .as_bytes()
            .ct_eq(proof.as_bytes())
            .into();
        let since = || u64::from_str_radix(made.rsplit_once('_')?.1.get(..8)?, 16).ok();
        let now = self.began.elapsed().as_secs();
        is_own && since().is_some_and(|since| now.saturating_sub(since) < VALID_FOR.as_secs())
    }

    /// Uses a nonce up, which the actor with this key has signed.
    pub(crate) fn use_up(&self, key: &str, nonce: &str) -> Result<(), Unusable> {
        let mut table = self.table();
        for latest in table.latest.values_mut() {
            latest.retain(|it| it.nonce != nonce);
        }
        table.latest.retain(|_, latest| !latest.is_empty());
        // A nonce is remembered until it would be refused anyway.
        table.used.retain(|_, used| {
            used.retain(|(_, at)| at.elapsed() <= VALID_FOR);
            !used.is_empty()
        });
        let used = table.used.entry(key.to_ascii_lowercase()).or_default();
        if used.iter().any(|(known, _)| known == nonce) {
            return Err(Unusable::Used);
        }
        if used.len() >= LOGINS {
            return Err(Unusable::TooMany);
        }
        used.push_back((nonce.to_owned(), Instant::now()));
        Ok(())
    }

    /// Number of the latest nonces that have not been used.
    pub(crate) fn len(&self) -> usize {
        let table = self.table();
        let latest = table.latest.values().flatten();
        latest.filter(|it| it.at.elapsed() < VALID_FOR).count()
    }
}

impl fmt::Debug for Nonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nonces")
    }
}

impl Table {
    /// Forgets what is over, and else the address that has made no nonce for the longest time.
    fn make_room(&mut self) {
        self.latest.retain(|_, latest| {
            let last = latest.back();
            last.is_some_and(|it| it.at.elapsed() < VALID_FOR)
        });
        if self.latest.len() >= MOST_ADDRESSES {
            let oldest = self
                .latest
                .iter()
                .min_by_key(|(_, latest)| latest.back().map(|it| it.at));
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.latest.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

    #[test]
    fn a_nonce_is_valid_once_for_one_key() {
        let nonces = Nonces::new();
        let first = nonces.make("AB", HERE);
        let second = nonces.make("ab", HERE);
        assert_eq!(nonces.find("cd", Some(&first), HERE), None);
        // From any address, if it is named.
        assert_eq!(nonces.find("ab", Some(&first), THERE), Some(first.clone()));
        assert_eq!(nonces.find("ab", None, THERE), None);
        assert_eq!(nonces.find("AB", None, HERE), Some(second.clone()));
        assert_eq!(nonces.use_up("ab", &second), Ok(()));
        assert_eq!(nonces.use_up("AB", &second), Err(Unusable::Used));
        assert_eq!(nonces.find("ab", None, HERE), Some(first.clone()));
        assert_eq!(nonces.use_up("ab", &first), Ok(()));
        assert_eq!((nonces.find("ab", None, HERE), nonces.len()), (None, 0));
    }

    #[test]
    fn an_invented_or_changed_nonce_is_refused() {
        let nonces = Nonces::new();
        let good = nonces.make("ab", HERE);
        let later = good.replacen("nonce_1", "nonce_9", 1);
        let other = Nonces::new().make("ab", HERE);
        for bad in [
            &later,
            &other,
            &good[1..].to_owned(),
            &String::new(),
            &"é".repeat(40),
        ] {
            assert_eq!(nonces.find("ab", Some(bad), HERE), None, "{bad}");
        }
    }

    #[test]
    fn a_flood_takes_no_place_of_others() {
        let nonces = Nonces::new();
        let named = nonces.make("ab", HERE);
        let unnamed = nonces.make("ab", THERE);
        for number in 0..20_000 {
            let _ = nonces.make(&format!("{number:064}"), HERE);
        }
        assert_eq!(nonces.find("ab", Some(&named), HERE), Some(named));
        assert_eq!(nonces.find("ab", None, THERE), Some(unnamed));
        assert_eq!(nonces.len(), LATEST_PER_ADDRESS + 1);
        for number in 0..2 * u32::try_from(MOST_ADDRESSES).unwrap() {
            let _ = nonces.make("ab", IpAddr::from(number.to_be_bytes()));
        }
        assert_eq!(nonces.len(), MOST_ADDRESSES);
    }
}
