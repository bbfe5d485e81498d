//! Scripts broken on purpose, one line at a time. The conformance suite must notice each: a change of a
//! script that no case notices is one that nobody would notice when it is made by mistake.

pub mod noticed;
mod read;
pub mod touched;

use std::time::Duration;

use meshwork_broker::script::{Layout, Schema, Scripts, Verb};

use crate::cases::{Bounds, Case, Engine, Failure, GROUPS, Group};

/// A case that a broken script keeps busy for longer has noticed it; none of those that are asked takes a tenth of it.
const PATIENCE: Bounds = Bounds {
    time: Duration::from_secs(60),
    work: Duration::from_secs(60),
};

/// One way to break one script.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// Whose script.
    pub verb: Verb,
    /// What is wrong with it then.
    pub what: String,
    /// The text that occurs once in the script, and what stands there instead.
    find: String,
    replace: String,
    /// The files whose cases are tried first.
    near: Vec<&'static str>,
    /// Where it stands.
    file: String,
    line: usize,
}

/// Which case noticed, and what it said.
#[derive(Debug)]
pub struct Caught {
    /// The case, as `claim::pops_the_id`.
    pub case: String,
    /// What it found wrong.
    pub failure: Failure,
}

/// All mutations, in the order of a job's life.
///
/// # Errors
/// When a file of `mutations/` cannot be read, with the line.
pub fn all() -> Result<Vec<Mutation>, Failure> {
    read::all()
}

impl Mutation {
    /// As `claim::lease_not_written`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}::{}", self.verb.name(), self.what)
    }

    /// How often the text stands in the script: in that of the layout where it stands most often.
    fn times(&self) -> usize {
        let times = Layout::ALL.map(|layout| self.verb.source(layout).matches(&self.find).count());
        times.into_iter().max().unwrap_or_default()
    }

    /// The scripts with this one broken.
    ///
    /// # Errors
    /// When the text to be replaced does not occur exactly once: the script has changed, and the
    /// mutation is to change with it.
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

    /// Runs the suite with the broken script until a case notices, the case called `first` before all others.
    /// `None`: none did.
    ///
    /// # Errors
    /// When the script cannot be broken, or the engine is not there.
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

    /// The cases that are not heavy, the likeliest to notice first: those that are said to, those of the broken
    /// verb, then those that go across verbs.
    fn cases(&self) -> impl Iterator<Item = (&'static Group, &'static Case)> {
        let (own, near) = (self.verb.name(), &*self.near);
        let of_a_verb = |group: &Group| Verb::ALL.iter().any(|verb| verb.name() == group.name);
        // What is about one wire only those cases notice that are about it too.
        let kin = move |group: &Group| {
            let of = |beginning| group.name.starts_with(beginning);
            let schema = match () {
                () if of("bananas_") => Schema::Bananas,
                () if of("nooble_") => Schema::Nooble,
                () if of("context_") => Schema::Context,
                () => Schema::Hero,
            };
            schema == self.verb.schema()
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

    /// A script that has changed under its mutation, or two that share a name, are told in a second.
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
            "these stand in mutations/noticed.txt only: {gone:?}"
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
