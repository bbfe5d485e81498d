//! The scripts fit together: each finds its own, knows all names that it uses, and says what it takes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use meshwork_model::keys::nooble::Dialect;
use meshwork_model::name::Namespace;

use super::expand::Expander;
use super::*;

fn names() -> QueueManager {
    QueueManager::new(Namespace::nooble(), None, Dialect::default())
}

#[test]
fn each_verb_finds_its_own_script() {
    let scripts = Scripts::altered(|verb, _| verb.name().to_owned());
    let hero = scripts.named(&Hero::default());
    let bananas = scripts.named_bananas(&Bananas::default());
    let nooble = scripts.named_nooble(&names());
    for (at, verb) in Verb::ALL.into_iter().enumerate() {
        assert_eq!(verb as usize, at, "{verb:?}");
        let text = format!("{}{}\n", verb.flags(), verb.name());
        let named = match verb.schema() {
            Schema::Hero => &hero,
            Schema::Bananas => &bananas,
            Schema::Nooble => &nooble,
        };
        assert_eq!(
            named.get(verb).get_hash(),
            Script::new(&text).get_hash(),
            "{verb:?}"
        );
    }
}

#[test]
fn each_script_states_its_contract() {
    for verb in Verb::ALL {
        let file = verb.file();
        let text = text(&file).unwrap_or_default();
        for part in ["-- KEYS", "-- ARGV", "-- Returns"] {
            assert!(text.contains(part), "{file} says nothing of `{part}`");
        }
    }
}

#[test]
fn each_script_is_made_of_files_that_fit_together() {
    let hero = constants(Hero::default().script_names());
    let bananas = constants(Bananas::default().script_names());
    let nooble = constants(names().script_names());
    let mut wrong = Vec::new();
    for verb in Verb::ALL {
        let known = match verb.schema() {
            Schema::Hero => &hero,
            Schema::Bananas => &bananas,
            Schema::Nooble => &nooble,
        };
        match expand(&verb.file()) {
            Err(fault) => wrong.push(fault.to_string()),
            Ok(script) => {
                let mut free = names::free(&script);
                for name in known.names() {
                    free.remove(name);
                }
                if !free.is_empty() {
                    wrong.push(format!("{verb:?}: nothing provides {free:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_file_is_part_of_a_script() {
    let used = RefCell::new(BTreeSet::new());
    let noted = |path: &str| {
        let path = files::BUILT_IN.iter().find(|it| **it == path)?;
        used.borrow_mut().insert(*path);
        text(path)
    };
    for verb in Verb::ALL {
        let made = Expander::new(noted).expand(&verb.file());
        assert!(made.is_ok(), "{made:?}");
    }
    let all: BTreeSet<_> = files::BUILT_IN.iter().copied().collect();
    assert_eq!(all.len(), files::BUILT_IN.len(), "a file is built in twice");
    assert_eq!(used.take(), all, "no script is made of some");
    #[cfg(all(feature = "scripts-from-files", debug_assertions))]
    assert_eq!(all, files::all().collect(), "built in, and in the folder");
}
