//! The scripts fit together: each finds its own, knows all names that it uses, and says what it takes.

use meshwork_model::keys::nooble::Dialect;
use meshwork_model::name::Namespace;

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
fn each_script_uses_no_name_that_it_is_not_given() {
    let hero = constants(Hero::default().script_names());
    let bananas = constants(Bananas::default().script_names());
    let nooble = constants(names().script_names());
    for verb in Verb::ALL {
        let known = match verb.schema() {
            Schema::Hero => &hero,
            Schema::Bananas => &bananas,
            Schema::Nooble => &nooble,
        };
        let known = known.names();
        let source = verb.source();
        let code = source
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default());
        for word in code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')) {
            let constant = word.len() > 2 && word.chars().all(|c| c.is_uppercase() || c == '_');
            let own = source.contains(&format!("local {word}")) || word == "KEYS" || word == "ARGV";
            // Commands and their options are in quotes, keys never.
            let quoted = source.contains(&format!("'{word}'"));
            assert!(
                !constant || own || quoted || known.contains(&word),
                "{verb:?}: {word}"
            );
        }
    }
}

#[test]
fn each_script_states_its_contract() {
    for verb in Verb::ALL {
        let (name, text) = verb.parts();
        for part in ["-- KEYS", "-- ARGV", "-- Returns"] {
            assert!(text.contains(part), "{name}.lua says nothing of `{part}`");
        }
    }
}
