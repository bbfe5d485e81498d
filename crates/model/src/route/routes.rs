//! Routes: the routing keys of a worker, in strict order or by weight. The modules of keys map them to lists.

use std::fmt;
use std::str::FromStr;

use crate::name::{NameError, RoutingKey};

/// Greatest number of routes of a worker. Each needs several lists to wait on.
pub const MAX_ROUTES: usize = 32;
/// Greatest weight.
pub const MAX_WEIGHT: u16 = 100;

/// Routes of a worker. `gpu,default`: all jobs of `gpu` come before those of `default`. `gpu=3,default`: of four
/// claims that find jobs, three try `gpu` first, so that neither starves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    keys: Vec<RoutingKey>,
    /// Index of the first route of each claim, in a cycle. Strict order has the single entry 0.
    turns: Vec<usize>,
}

/// The reason why routes were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRoutes {
    /// There are no routes.
    #[error("a worker needs a route: name one, as `default`")]
    None,
    /// There are too many routes.
    #[error("{0} routes are too many for one worker: at most {MAX_ROUTES} are allowed")]
    TooMany(usize),
    /// A route is given twice.
    #[error("the route `{0}` is listed twice: name it once")]
    Twice(RoutingKey),
    /// A weight is not valid.
    #[error("`{text}` is no weight for the route `{route}`: give a number from 1 to {MAX_WEIGHT}")]
    Weight {
        /// Route of the weight.
        route: RoutingKey,
        /// The text.
        text: String,
    },
    /// A name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl Routes {
    /// Returns routes in strict order.
    ///
    /// # Errors
    /// There are none, more than [`MAX_ROUTES`], or duplicates.
    pub fn strict(keys: impl IntoIterator<Item = RoutingKey>) -> Result<Self, InvalidRoutes> {
        let keys = checked(keys.into_iter().collect())?;
        let turns = vec![0];
        Ok(Self { keys, turns })
    }

    /// Returns routes by weight. In as many claims as the sum of all weights, each route comes first as often as its
    /// weight.
    ///
    /// # Errors
    /// As [`Self::strict`], and if a weight is not from 1 to [`MAX_WEIGHT`].
    pub fn weighted(
        routes: impl IntoIterator<Item = (RoutingKey, u16)>,
    ) -> Result<Self, InvalidRoutes> {
        let (keys, weights): (Vec<_>, Vec<_>) = routes.into_iter().unzip();
        for (route, weight) in keys.iter().zip(&weights) {
            if !(1..=MAX_WEIGHT).contains(weight) {
                return Err(InvalidRoutes::Weight {
                    route: route.clone(),
                    text: weight.to_string(),
                });
            }
        }
        let (keys, turns) = (checked(keys)?, spread(&weights));
        Ok(Self { keys, turns })
    }

    /// Returns all routes, in order.
    #[must_use]
    pub fn keys(&self) -> &[RoutingKey] {
        &self.keys
    }

    /// Returns whether the routes have weights, rather than a strict order.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        self.turns.len() > 1
    }

    /// Returns all routes in the order of the next claim, after `claims` claims that found jobs.
    #[must_use]
    pub fn in_turn(&self, claims: usize) -> Vec<RoutingKey> {
        let mut keys = self.keys.clone();
        keys[..=self.first(claims)].rotate_right(1);
        keys
    }

    /// Returns the index of the first route of the next claim, after `claims` claims that found jobs. The others
    /// follow in their order.
    #[must_use]
    pub fn first(&self, claims: usize) -> usize {
        self.turns[claims % self.turns.len()]
    }
}

fn checked(keys: Vec<RoutingKey>) -> Result<Vec<RoutingKey>, InvalidRoutes> {
    if keys.is_empty() {
        return Err(InvalidRoutes::None);
    }
    if keys.len() > MAX_ROUTES {
        return Err(InvalidRoutes::TooMany(keys.len()));
    }
    let twice = (1..keys.len()).find(|at| keys[..*at].contains(&keys[*at]));
    match twice {
        Some(at) => Err(InvalidRoutes::Twice(keys[at].clone())),
        None => Ok(keys),
    }
}

/// Spreads the indexes evenly by weight (smooth weighted round robin): a a b a, not a a a b.
fn spread(weights: &[u16]) -> Vec<usize> {
    let all: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
    let mut due = vec![0; weights.len()];
    let mut turn = |_| {
        for (due, weight) in due.iter_mut().zip(weights) {
            *due += i64::from(*weight);
        }
        let most = due.iter().copied().max().unwrap_or_default();
        let first = due.iter().position(|due| *due == most).unwrap_or_default();
        due[first] -= all;
        first
    };
    (0..all).map(&mut turn).collect()
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            keys: vec![RoutingKey::default()],
            turns: vec![0],
        }
    }
}

impl FromStr for Routes {
    type Err = InvalidRoutes;

    /// Parses `gpu,default`, or `gpu=3,default=1`; the default weight is 1.
    fn from_str(text: &str) -> Result<Self, InvalidRoutes> {
        let mut routes = Vec::new();
        let mut is_weighted = false;
        for part in text.split(',').map(str::trim) {
            let Some((key, weight)) = part.split_once('=') else {
                routes.push((part.parse()?, 1));
                continue;
            };
            let route: RoutingKey = key.trim().parse()?;
            let weight = weight.trim().parse().map_err(|_| InvalidRoutes::Weight {
                route: route.clone(),
                text: weight.trim().to_owned(),
            })?;
            is_weighted = true;
            routes.push((route, weight));
        }
        if is_weighted {
            Self::weighted(routes)
        } else {
            Self::strict(routes.into_iter().map(|(key, _)| key))
        }
    }
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, key) in self.keys.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{key}")?;
            if self.is_weighted() {
                let weight = self.turns.iter().filter(|first| **first == at).count();
                write!(f, "={weight}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firsts(text: &str, claims: usize) -> Vec<usize> {
        let routes: Routes = text.parse().unwrap();
        (0..claims).map(|claim| routes.first(claim)).collect()
    }

    #[test]
    fn without_weights_the_first_is_always_first() {
        assert_eq!(firsts("gpu,default", 5), [0; 5]);
        assert_eq!(firsts("default", 2), [0; 2]);
    }

    #[test]
    fn by_weight_they_take_turns_that_are_spread_out() {
        assert_eq!(firsts("a=3,b", 8), [0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(firsts("a=1,b=1,c=2", 4), [2, 0, 1, 2]);
        let routes: Routes = "a=1,b=1,c=2".parse().unwrap();
        let in_turn = |claims| {
            routes
                .in_turn(claims)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(in_turn(0), ["c", "a", "b"]);
        assert_eq!(in_turn(1), ["a", "b", "c"]);
        assert_eq!(in_turn(2), ["b", "a", "c"]);
        for (weights, at, times) in [("a=100,b=1", 1, 1), ("a=7,b=5,c=4", 2, 4)] {
            let all = weights.parse::<Routes>().unwrap().turns.len();
            let firsts = firsts(weights, all);
            let found = firsts.iter().filter(|first| **first == at).count();
            assert_eq!(found, times, "{weights}");
        }
    }

    #[test]
    fn they_are_written_as_they_are_read() {
        for text in ["gpu,default", "gpu=3,default=1", "default"] {
            assert_eq!(text.parse::<Routes>().unwrap().to_string(), text);
        }
        assert_eq!(
            " gpu , eu = 2 ".parse::<Routes>().unwrap().to_string(),
            "gpu=1,eu=2"
        );
        assert_eq!(Routes::default(), "default".parse().unwrap());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("", "empty"),
            ("gpu,", "empty"),
            ("a:b", "routing key"),
            ("gpu,gpu", "`gpu` is listed twice"),
            ("gpu=0", "`0` is no weight"),
            ("gpu=101", "1 to 100"),
            ("gpu=-1", "`-1`"),
            ("gpu=x,eu", "`x`"),
            ("gpu=", "`` is no weight for the route `gpu`"),
        ] {
            let said = text.parse::<Routes>().unwrap_err().to_string();
            assert!(said.contains(word), "{text}: {said}");
        }
        assert_eq!(Routes::strict([]), Err(InvalidRoutes::None));
        let many = (0..33).map(|at| format!("r{at}").parse().unwrap());
        assert_eq!(Routes::strict(many), Err(InvalidRoutes::TooMany(33)));
    }
}
