//! Consistency of the scripts: each verb finds its own, all names are defined, and headers list the arguments.

use std::cell::RefCell;
use std::collections::BTreeSet;

use meshwork_model::keys::context::{ContextId, ContextKeys, ContextLayout};
use meshwork_model::keys::nooble::Dialect;
use meshwork_model::name::Namespace;

use super::expand::{Expander, text_in};
use super::*;

fn names() -> NoobleKeys {
    NoobleKeys::new(Namespace::nooble(), None, Dialect::default())
}

/// No file replaces another one unseen.
#[test]
fn a_file_in_which_layouts_differ_is_in_both_folders() {
    let names = |folder| -> BTreeSet<_> {
        let files = files::BUILT_IN.iter();
        files.filter_map(|file| file.strip_prefix(folder)).collect()
    };
    let hero = names("lib/layout_hero/");
    assert_eq!(hero, names("lib/layout_context/"));
    assert!(hero.is_disjoint(&names("lib/")));
}

#[test]
fn each_verb_finds_its_own_script() {
    let scripts = Scripts::altered(|verb, _| verb.name().to_owned());
    let hero = scripts.named(&JobKeys::default());
    let bananas = scripts.named_bananas(&BananasKeys::default());
    let nooble = scripts.named_nooble(&names());
    let context = scripts.named_context();
    for (at, verb) in Verb::ALL.into_iter().enumerate() {
        assert_eq!(verb as usize, at, "{verb:?}");
        let text = format!("{}{}\n", verb.flags(), verb.name());
        let named = match verb.protocol() {
            Protocol::Hero => &hero,
            Protocol::Bananas => &bananas,
            Protocol::Nooble => &nooble,
            Protocol::Context => &context,
        };
        assert_eq!(
            named.get(verb).script.get_hash(),
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
    let of_context = |layout| {
        let keys = ContextKeys::new(ContextId::new(7).unwrap(), layout);
        JobKeys::of_context(keys).script_names()
    };
    let hero = (
        Protocol::Hero,
        Layout::Hero,
        JobKeys::default().script_names(),
    );
    let all = [
        hero,
        (
            Protocol::Hero,
            Layout::Context,
            of_context(ContextLayout::Db),
        ),
        (
            Protocol::Bananas,
            Layout::Hero,
            BananasKeys::default().script_names(),
        ),
        (Protocol::Nooble, Layout::Hero, names().script_names()),
        (Protocol::Context, Layout::Hero, NodeKeys::script_names()),
    ];
    let mut wrong = Vec::new();
    for (schema, layout, names) in all {
        let known = constants(names, layout);
        let verbs = Verb::ALL
            .into_iter()
            .filter(|verb| verb.protocol() == schema);
        for verb in verbs.filter(|verb| layout.has(*verb)) {
            match expand(&verb.file(), layout) {
                Err(fault) => wrong.push(fault.to_string()),
                Ok(script) => {
                    let mut free = names::free(&script);
                    for name in known.names() {
                        free.remove(name);
                    }
                    if !free.is_empty() {
                        wrong.push(format!("{verb:?} of {layout:?}: nothing provides {free:?}"));
                    }
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
    for layout in Layout::ALL {
        for verb in Verb::ALL {
            let made =
                Expander::new(|path: &str| text_in(layout, path, noted)).expand(&verb.file());
            assert!(made.is_ok(), "{made:?}");
        }
    }
    let all: BTreeSet<_> = files::BUILT_IN.iter().copied().collect();
    assert_eq!(all.len(), files::BUILT_IN.len(), "a file is built in twice");
    assert_eq!(used.take(), all, "no script is made of some");
    #[cfg(all(feature = "scripts-from-files", debug_assertions))]
    assert_eq!(all, files::all().collect(), "built in, and in the folder");
}
