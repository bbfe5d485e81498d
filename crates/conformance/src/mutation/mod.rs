//! Scripts that are broken on purpose, one line at a time. The conformance suite must notice each: otherwise a change
//! by mistake would not be noticed either.

pub mod noticed;
mod read;
pub mod touched;

use std::time::Duration;

use meshwork_broker::script::{Layout, Protocol, Scripts, Verb};

use crate::cases::{Bounds, Case, Engine, Failure, GROUPS, Group};

/// Limits of a case with a broken script: a longer one has noticed it. No case takes a tenth of this otherwise.
const PATIENCE: Bounds = Bounds {
    time: Duration::from_secs(60),
    work: Duration::from_secs(60),
};

/// A change that breaks one script.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// Verb of the script.
    pub verb: Verb,
    /// Description of the error.
    pub what: String,
    /// The text, which occurs once in the script, and its replacement.
    find: String,
    replace: String,
    /// Files whose cases are tried first.
    near: Vec<&'static str>,
    /// Position of the mutation.
    file: String,
    line: usize,
}

/// The case that noticed, and its failure.
#[derive(Debug)]
pub struct Caught {
    /// Name of the case, such as `claim::pops_the_id`.
    pub case: String,
    /// Violation that the case found.
    pub failure: Failure,
}

/// Returns all mutations, in the order of a job's life.
///
/// # Errors
/// A file of `mutations/` cannot be read; the error has the line.
pub fn all() -> Result<Vec<Mutation>, Failure> {
    read::all()
}

impl Mutation {
    /// Returns a name such as `claim::lease_not_written`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}::{}", self.verb.name(), self.what)
    }

    /// Returns the number of occurrences of the text in the script, for the layout with the most.
    fn times(&self) -> usize {
        let times = Layout::ALL.map(|layout| self.verb.source(layout).matches(&self.find).count());
        times.into_iter().max().unwrap_or_default()
    }

    /// Returns the scripts with this one broken.
    ///
    /// # Errors
    /// The text does not occur exactly once: the script has changed, and the mutation must change with it.
    pub fn scripts(&self) -> Result<Scripts, Failure> {
        let times = self.times();
        if times != 1 {
            let (what, verb, find) = (&self.what, self.verb.name(), &self.find);
            let what = format!(
                "{what}: `{find}` occurs {times} times in {verb} and what it includes, not once"
            );
            return Err(Failure::at(&self.file, self.line, what));
        }
        Ok(Scripts::altered(|verb, source| {
            if verb == self.verb {
                source.replace(&self.find, &self.replace)
            } else {
                source.to_owned()
            }
        }))
    }

    /// Runs the suite with the broken script until a case notices; the case `first` runs first. Returns `None` if no
    /// case does.
    ///
    /// # Errors
    /// The script cannot be broken, or the engine does not exist.
    pub async fn run_on(
        &self,
        engine: Engine,
        first: Option<&str>,
    ) -> Result<Option<Caught>, Failure> {
        let scripts = self.scripts()?;
        let mut cases: Vec<_> = self.cases().collect();
        cases.sort_by_key(|(group, case)| Some(case_name(group, case).as_str()) != first);
        for (group, case) in cases {
            let place = engine.place(&self.what).await?;
            let place = place.ok_or_else(|| Failure::new(format!("no {}", engine.program())))?;
            if let Err(failure) = case.run_on(&place, scripts.clone(), PATIENCE).await {
                return Ok(Some(Caught {
                    case: case_name(group, case),
                    failure,
                }));
            }
        }
        Ok(None)
    }

    /// Returns the cases that are not heavy, the likeliest to notice first: the configured ones, those of the broken
    /// verb, then those across verbs.
    fn cases(&self) -> impl Iterator<Item = (&'static Group, &'static Case)> {
        let (own, near) = (self.verb.name(), &*self.near);
        let of_a_verb = |group: &Group| Verb::ALL.iter().any(|verb| verb.name() == group.name);
        // Only cases of the same wire format notice a mutation of that format.
        let kin = move |group: &Group| {
            let of = |beginning| group.name.starts_with(beginning);
            let schema = match () {
                () if of("bananas_") => Protocol::Bananas,
                () if of("nooble_") => Protocol::Nooble,
                () if of("context_") => Protocol::Context,
                () => Protocol::Hero,
            };
            schema == self.verb.protocol()
        };
        let rank = move |group: &&Group| match near.iter().position(|name| *name == group.name) {
            Some(at) => at,
            None if !kin(group) => near.len() + 3,
            None if group.name == own => near.len(),
            None if !of_a_verb(group) => near.len() + 1,
            None => near.len() + 2,
        };
        let mut light: Vec<_> = GROUPS.iter().filter(|group| !group.heavy).collect();
        light.sort_by_key(rank);
        light
            .into_iter()
            .flat_map(|group| group.cases.iter().map(move |case| (group, case)))
    }
}

fn case_name(group: &Group, case: &Case) -> String {
    format!("{}::{}", group.name, case.name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Detects a script that has changed under its mutation, and two mutations with the same name, within a second.
    #[test]
    fn what_is_recorded_is_there() {
        let names: BTreeSet<_> = all().unwrap().iter().map(Mutation::name).collect();
        let gone = noticed::recorded()
            .unwrap()
            .into_keys()
            .filter(|mutation| !names.contains(mutation))
            .collect::<Vec<_>>();
        assert!(
            gone.is_empty(),
            "these stand in mutations/killed_by.txt only: {gone:?}"
        );
    }

    #[test]
    fn each_has_a_text_to_break() {
        let wrong: Vec<_> = all()
            .unwrap()
            .iter()
            .filter_map(|one| Some(one.scripts().err()?.to_string()))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
