//! Missing rights: for each verb, the server's ACL takes away each right of the documented rule. A verb that needs it is
//! refused, names it and changes nothing; rights that it does not need change nothing.

mod bananas;
mod contexts;
mod verbs;

use std::collections::BTreeSet;

use meshwork_broker::doctor::rights;
use meshwork_broker::{Broker, Error};
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::servers::RealServer;

use self::verbs::{Store, VERBS};
use crate::common::connect;

const USER: &str = "mw";

/// Each verb is refused for want of at least the right to call its script and those to read and write its keys.
const LEAST_REFUSED: usize = 4 * VERBS.len();

/// A server with a user whose rights change.
struct Server {
    real: RealServer,
    /// Names of all documented rights.
    all: BTreeSet<String>,
    user: Broker,
}

impl Server {
    async fn start() -> Option<Self> {
        let real = RealServer::redis().start()?;
        let rule = rights(&"r".parse().unwrap());
        let words = rule.split(' ').filter_map(|word| word.strip_prefix('+'));
        let all: BTreeSet<_> = words.map(str::to_owned).collect();
        let rule = format!("on >{USER} {rule} ~r*");
        let words = ["ACL", "SETUSER", USER].into_iter().chain(rule.split(' '));
        real.say::<()>(&words.collect::<Vec<_>>()).unwrap();
        let login = real.url().replacen("://", &format!("://{USER}:{USER}@"), 1);
        let user = connect(&login, JobKeys::new("r".parse().unwrap()));
        let user = user.await.unwrap();
        Some(Self { real, all, user })
    }

    /// Returns a store in which the verb has something to do.
    async fn store(&self, namespace: &str, verb: &str) -> Store {
        let store = Store::fill(&self.real.url(), namespace).await;
        store.prepare(verb).await;
        store
    }

    /// Calls the verb as a user with these rights alone. Without the right to load scripts, the server has none of them.
    async fn call(
        &self,
        store: &Store,
        verb: &str,
        rights: &BTreeSet<String>,
    ) -> Result<(), Error> {
        if !rights.contains("script|load") {
            store.raw(&["SCRIPT", "FLUSH"]).await;
        }
        let rights: Vec<_> = rights.iter().map(|right| format!("+{right}")).collect();
        let mut words = vec!["ACL", "SETUSER", USER, "-@all"];
        words.extend(rights.iter().map(String::as_str));
        store.raw(&words).await;
        store.act(verb, &store.over(&self.user)).await
    }
}

/// Returns the rights that an error names.
fn named(error: &Error) -> BTreeSet<String> {
    let source = match error {
        Error::Denied { lacks, .. } if !lacks.is_empty() => {
            return lacks.iter().map(|right| (*right).to_owned()).collect();
        }
        Error::Denied { source, .. } | Error::Call { source, .. } => source,
        _ => return BTreeSet::new(),
    };
    let detail = source.detail().unwrap_or_default();
    let quoted = detail.split('\'').nth(1);
    quoted.map(str::to_owned).into_iter().collect()
}

/// Returns the lines of one text that are not in the other.
fn differences(one: &str, other: &str) -> String {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (one, other) = (lines(one), lines(other));
    let gone = one.difference(&other).map(|line| format!("- {line}\n"));
    let new = other.difference(&one).map(|line| format!("+ {line}\n"));
    gone.chain(new).collect()
}

/// Content of a store: before a call, after it, and after the same call with all rights.
struct Contents<'a> {
    before: &'a str,
    now: &'a str,
    complete: &'a str,
}

/// Checks that a call was refused and changed nothing, or did all. Returns the rights that a refusal names.
fn judged(
    answer: Result<(), Error>,
    contents: &Contents<'_>,
) -> Result<Option<BTreeSet<String>>, String> {
    let Contents {
        before,
        now,
        complete,
    } = contents;
    match answer {
        Ok(()) if now == complete => Ok(None),
        Ok(()) => Err(format!("other changes:\n{}", differences(complete, now))),
        Err(error) if error.is_denied() && now == before => Ok(Some(named(&error))),
        Err(error) => Err(format!("{error}\n{}", differences(before, now))),
    }
}

/// Finds the rights that the verb needs, by the rights that its refusals name, and checks that it needs no others.
async fn needed(
    server: &Server,
    (verb, namespace): (&str, &str),
    complete: &str,
) -> Result<BTreeSet<String>, String> {
    let store = server.store(namespace, verb).await;
    let before = store.content().await;
    let mut needed = BTreeSet::new();
    for _ in &server.all {
        let answer = server.call(&store, verb, &needed).await;
        let text = format!("{answer:?}");
        let contents = Contents {
            before: &before,
            now: &store.content().await,
            complete,
        };
        let named = judged(answer, &contents);
        let named = named.map_err(|fault| format!("{verb} with {needed:?} alone: {fault}"))?;
        let Some(named) = named else {
            return Ok(needed);
        };
        let known = needed.len();
        needed.extend(named);
        if needed.len() == known || !needed.is_subset(&server.all) {
            return Err(format!("{verb} with {needed:?} alone: {text}"));
        }
    }
    Err(format!("{verb} needs more than all rights"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_leaves_nothing_half_done() {
    let Some(server) = Server::start().await else {
        return;
    };
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for (v, verb) in VERBS.into_iter().enumerate() {
        let reference = server.store(&format!("rv{v}"), verb).await;
        let answer = server.call(&reference, verb, &server.all).await;
        assert!(answer.is_ok(), "{verb}: {answer:?}");
        let complete = reference.content().await;
        let needed = match needed(&server, (verb, &format!("rv{v}n")), &complete).await {
            Ok(needed) => needed,
            Err(fault) => {
                wrong.push(fault);
                continue;
            }
        };
        let store = server.store(&format!("rv{v}o"), verb).await;
        let before = store.content().await;
        for right in needed {
            let mut others = server.all.clone();
            others.remove(&right);
            let answer = server.call(&store, verb, &others).await;
            let contents = Contents {
                before: &before,
                now: &store.content().await,
                complete: &complete,
            };
            match judged(answer, &contents) {
                Ok(Some(named)) if named.contains(&right) => refused += 1,
                other => wrong.push(format!("{verb} without {right}: {other:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        refused >= LEAST_REFUSED,
        "only {refused} calls were refused"
    );
}
