//! The mutations and cases that depend on a changed script file, for fast checks.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;

use super::{all, noticed, read};
use crate::cases::Failure;

/// Variable with the changed files, such as `crates/broker/src/lua/lib/dependencies/dependencies.lua,…`, relative to the root of
/// the workspace. If it is set, only dependent mutations and cases run.
pub const CHANGED: &str = "MESHWORK_CHANGED_SCRIPTS";

/// Mutations and cases that depend on changed scripts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Mutations of these files, such as `claim::lease_not_written`; and those whose text is in no script any more.
    pub mutations: BTreeSet<String>,
    /// Cases that notice them, such as `claim::pops_the_id`.
    pub cases: BTreeSet<String>,
}

impl Touched {
    /// Returns the mutations and cases of the files in [`CHANGED`]; `None` if it is not set.
    ///
    /// # Errors
    /// A named file, or a file of mutations, cannot be read.
    pub fn from_environment() -> Result<Option<Self>, Failure> {
        let Some(changed) = env::var(CHANGED).ok().filter(|files| !files.is_empty()) else {
            return Ok(None);
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let texts = changed.split(',').map(|file| read::read(&root.join(file)));
        Ok(Some(Self::by(&texts.collect::<Result<Vec<_>, _>>()?)?))
    }

    fn by(texts: &[String]) -> Result<Self, Failure> {
        let noticed = noticed::recorded()?;
        let mut touched = Self::default();
        for mutation in all()? {
            let here = texts.iter().any(|text| text.contains(&mutation.find));
            if here || mutation.times() == 0 {
                let name = mutation.name();
                touched.cases.extend(noticed.get(&name).cloned());
                touched.mutations.insert(name);
            }
        }
        Ok(touched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_touches_its_own_mutations_and_the_cases_that_notice_them() {
        let waits = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../broker/src/lua/lib/dependencies/dependencies.lua");
        let touched = Touched::by(&[read::read(&waits).unwrap()]).unwrap();
        assert!(
            touched
                .mutations
                .contains("check_orphans::note_not_made_again")
        );
        assert!(
            touched
                .cases
                .contains("foreign_prerequisites::a_note_of_who_waits_may_be_gone")
        );
        assert!(
            touched.mutations.len() < all().unwrap().len() / 4,
            "{}",
            touched.mutations.len()
        );
        assert_eq!(
            Touched::by(&[]).unwrap(),
            Touched::default(),
            "each occurs in its script"
        );
    }
}
