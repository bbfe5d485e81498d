"""Bounds the random calls of Schemathesis: none waits, follows a log, or replaces the key of the test itself."""

import schemathesis


@schemathesis.hook
def filter_path_parameters(ctx, path_parameters):
    return (path_parameters or {}).get("name") != "examiner"


@schemathesis.hook
def before_call(ctx, case, kwargs):
    for part in (case.query, case.body):
        if isinstance(part, dict) and part.get("wait") is not None:
            part["wait"] = 0.01
    if isinstance(case.query, dict):
        case.query.pop("follow", None)
