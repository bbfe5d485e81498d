//! The table of permissions, as data, and as Markdown.

use super::{Object, Operation, Role};

/// An operation, and the roles that may do it.
type Row = (Operation, &'static [Role]);

/// Permitted operations by object and role. Operations that are not listed are permitted to nobody.
const TABLE: &[(Object, &[Row])] = {
    use Object as O;
    use Operation::{Answer, Cancel, Create, Delete, Pop, Read, Report, Update};
    use Role::{Actor, Admin, Executor, Owner, Reader};
    // Executors read what they need to run a job.
    const TO_RUN: &[Role] = &[Admin, Reader, Executor];
    const TO_SEE: &[Role] = &[Admin, Reader];
    &[
        (
            O::Actor,
            &[
                (Create, &[Owner]),
                (Read, &[Owner, Admin, Reader, Executor]),
                (Update, &[Owner]),
                (Delete, &[Owner]),
            ],
        ),
        (
            O::Context,
            &[
                (Create, &[Actor]),
                (Read, TO_RUN),
                (Update, &[Admin]),
                (Delete, &[Admin]),
            ],
        ),
        (
            O::Flow,
            &[
                (Create, &[Admin]),
                (Read, TO_RUN),
                (Update, &[Admin]),
                (Delete, &[Admin]),
                (Cancel, &[Admin]),
            ],
        ),
        (O::Approval, &[(Read, TO_RUN), (Answer, &[Admin])]),
        (O::OwnApproval, &[(Read, TO_RUN), (Answer, TO_RUN)]),
        (
            O::Job,
            &[
                (Create, &[Admin]),
                (Read, TO_RUN),
                (Update, &[Admin]),
                (Delete, &[Admin]),
                (Cancel, &[Admin]),
                (Report, &[Executor]),
            ],
        ),
        (
            O::Stored,
            &[
                (Create, &[Admin, Executor]),
                (Read, TO_RUN),
                (Delete, &[Admin, Executor]),
            ],
        ),
        (
            O::Runner,
            &[
                (Create, &[Admin]),
                (Read, TO_RUN),
                (Update, &[Admin]),
                (Delete, &[Admin]),
            ],
        ),
        (
            O::Queue,
            &[
                (Read, TO_RUN),
                (Update, &[Admin]),
                (Delete, &[Admin]),
                (Pop, &[Executor]),
            ],
        ),
        (
            O::JobMessage,
            &[
                (Create, &[Admin]),
                (Read, TO_SEE),
                (Delete, &[Admin]),
                (Cancel, &[Admin]),
            ],
        ),
        (
            O::Chat,
            &[
                (Create, TO_RUN),
                (Read, TO_SEE),
                (Delete, &[Admin]),
                (Cancel, &[Admin]),
            ],
        ),
        (
            O::OwnResult,
            &[
                (Create, &[Admin, Executor]),
                (Read, TO_SEE),
                (Delete, &[Admin]),
            ],
        ),
        (
            O::OtherResult,
            &[(Create, &[Admin]), (Read, TO_SEE), (Delete, &[Admin])],
        ),
        (O::Inbox, &[(Read, TO_SEE), (Pop, &[Admin])]),
        (O::Audit, &[(Read, TO_SEE)]),
    ]
};

/// Returns the roles that may do this: none where the table has no row.
pub(super) fn roles_for(object: Object, operation: Operation) -> &'static [Role] {
    let rows = TABLE.iter().find(|(of, _)| *of == object);
    let rows = rows.map_or(&[][..], |(_, rows)| *rows);
    let row = rows.iter().find(|(of, _)| *of == operation);
    row.map_or(&[], |(_, roles)| *roles)
}

/// The whole table in Markdown: a line for each object, a column for each role.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from("| object |");
    for role in Role::ALL {
        text += &format!(" {} |", role.as_str());
    }
    text += "\n|---|";
    text += &"---|".repeat(Role::ALL.len());
    for object in Object::ALL {
        text += &format!("\n| {} |", object.as_str());
        for role in Role::ALL {
            let may = |operation: &Operation| roles_for(object, *operation).contains(&role);
            let operations = Operation::ALL.into_iter().filter(may);
            let operations: Vec<_> = operations.map(Operation::as_str).collect();
            text += &match operations.is_empty() {
                true => " – |".to_owned(),
                false => format!(" {} |", operations.join(", ")),
            };
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_and_operation_stands_once() {
        for (at, (object, rows)) in TABLE.iter().enumerate() {
            assert!(TABLE[at + 1..].iter().all(|(other, _)| other != object));
            for (at, (operation, roles)) in rows.iter().enumerate() {
                assert!(rows[at + 1..].iter().all(|(other, _)| other != operation));
                assert!(!roles.is_empty(), "{object:?} {operation:?}");
            }
        }
        assert_eq!(TABLE.len(), Object::ALL.len());
    }
}
