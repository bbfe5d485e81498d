//! Methods of dead letters.

use meshwork_model::api_key::Scope;
use meshwork_ops::change::Action;
use meshwork_ops::{dead, job};

use crate::api::method::{HttpVerb, Method};

/// The methods.
pub(in crate::api) fn methods() -> Vec<Method> {
    use Action::{DeleteLetter, RetryLetter};
    use HttpVerb::{Delete, Get, Post};
    use Scope::{Admin, User, Viewer};
    vec![
        Method::of(
            ("dead.list", Viewer),
            (Get, "/v1/dead"),
            "List dead letters, the newest first",
            dead::list,
        ),
        Method::of(
            ("dead.get", Viewer),
            (Get, "/v1/dead/{id}"),
            "Read a dead letter",
            dead::get,
        ),
        Method::of(
            ("dead.retry", User),
            (Post, "/v1/dead/{id}/retry"),
            "Run the job of a dead letter again",
            |store, params| job::change(store, params, RetryLetter),
        ),
        Method::of(
            ("dead.delete", Admin),
            (Delete, "/v1/dead/{id}"),
            "Delete a dead letter with its job",
            |store, params| job::change(store, params, DeleteLetter),
        ),
        Method::of(
            ("dead.groups", Viewer),
            (Get, "/v1/dead_groups"),
            "Group the next 1,000 dead letters by their failures, the newest first",
            dead::groups,
        ),
        Method::of(
            ("dead.retry_many", User),
            (Post, "/v1/dead/retry"),
            "Run the jobs of a page of dead letters again",
            |store, params| dead::change_many(store, params, RetryLetter),
        ),
        Method::of(
            ("dead.delete_many", Admin),
            (Post, "/v1/dead/delete"),
            "Delete a page of dead letters with their jobs",
            |store, params| dead::change_many(store, params, DeleteLetter),
        ),
    ]
}
