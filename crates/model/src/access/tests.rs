//! The matrix of roles, objects and operations against the rules in words, and the document.

use super::*;

const DOCUMENT: &str = include_str!("../../../../docs/permissions.md");

fn only(role: Role) -> Roles {
    Roles::NONE.and(Role::Actor).and(role)
}

/// Rights of one role of a context beyond those of any actor.
fn beyond(role: Role) -> Vec<(Object, Operation)> {
    let all = Object::ALL.into_iter();
    let all = all.flat_map(|object| Operation::ALL.map(|operation| (object, operation)));
    all.filter(|(object, operation)| {
        let any = permits(Roles::NONE.and(Role::Actor), *object, *operation);
        permits(only(role), *object, *operation) && !any
    })
    .collect()
}

#[test]
fn readers_read_and_talk() {
    for (object, operation) in beyond(Role::Reader) {
        let talks = (object, operation) == (Object::Chat, Operation::Create);
        let answers = (object, operation) == (Object::OwnApproval, Operation::Answer);
        assert!(
            operation == Operation::Read || talks || answers,
            "{object:?} {operation:?}"
        );
    }
    for object in Object::ALL {
        assert!(
            permits(only(Role::Reader), object, Operation::Read),
            "{object:?}"
        );
    }
}

#[test]
fn executors_report_pop_and_answer() {
    use Object as O;
    use Operation as Op;
    let written: Vec<_> = beyond(Role::Executor)
        .into_iter()
        .filter(|(_, operation)| *operation != Op::Read)
        .collect();
    assert_eq!(
        written,
        [
            (O::OwnApproval, Op::Answer),
            (O::Job, Op::Report),
            (O::Stored, Op::Create),
            (O::Stored, Op::Delete),
            (O::Queue, Op::Pop),
            (O::Chat, Op::Create),
            (O::OwnResult, Op::Create),
        ]
    );
    for secret in [O::JobMessage, O::Chat, O::OwnResult, O::Inbox, O::Audit] {
        assert!(
            !permits(only(Role::Executor), secret, Op::Read),
            "{secret:?}"
        );
    }
}

#[test]
fn only_admins_create_and_delete() {
    use Object as O;
    use Operation as Op;
    for object in [O::Flow, O::Job, O::Runner, O::JobMessage, O::OtherResult] {
        for operation in [Op::Create, Op::Delete] {
            for role in Role::ALL {
                let may = permits(only(role), object, operation);
                assert_eq!(
                    may,
                    role == Role::Admin,
                    "{role:?} {object:?} {operation:?}"
                );
            }
        }
    }
    // An actor that runs jobs must be an executor.
    assert!(!permits(only(Role::Admin), O::Queue, Op::Pop));
    assert!(!permits(only(Role::Admin), O::Job, Op::Report));
}

#[test]
fn the_node_is_its_owners_and_contexts_are_anybodys_to_make() {
    use Operation as Op;
    for operation in [Op::Create, Op::Update, Op::Delete] {
        for role in Role::ALL {
            let may = permits(only(role), Object::Actor, operation);
            assert_eq!(may, role == Role::Owner);
        }
    }
    let actor = Roles::NONE.and(Role::Actor);
    assert!(permits(actor, Object::Context, Op::Create));
    assert!(!permits(actor, Object::Context, Op::Read));
}

#[test]
fn strangers_do_nothing() {
    for object in Object::ALL {
        for operation in Operation::ALL {
            assert!(!permits(Roles::NONE, object, operation));
        }
    }
}

#[test]
fn roles_are_those_of_the_lists() {
    let context = ContextId::new(7).unwrap();
    let mut record = Context::new(context, ActorId(1), 0);
    record.readers = vec![ActorId(2), ActorId(1)];
    record.executors = vec![ActorId(3)];
    let held = |actor| {
        let roles = Roles::of(ActorId(actor), &record);
        Role::ALL
            .into_iter()
            .filter(|role| roles.has(*role))
            .collect::<Vec<_>>()
    };
    assert_eq!(held(1), [Role::Admin, Role::Reader, Role::Actor]);
    assert_eq!(held(3), [Role::Executor, Role::Actor]);
    assert_eq!(held(4), [Role::Actor]);
}

#[test]
fn a_refusal_says_who_what_and_where() {
    let place = Scope::Context(ContextId::new(7).unwrap());
    let who = Who::Actor(ActorId(13));
    let reader = only(Role::Reader);
    let denied = check(who, reader, Object::Job, Operation::Create, place).unwrap_err();
    assert_eq!(
        denied.to_string(),
        "actor 13 may not create the job in context 7: it takes the role admin"
    );
    let denied = check(
        Who::Stranger,
        Roles::NONE,
        Object::Audit,
        Operation::Delete,
        Scope::Node,
    );
    assert_eq!(
        denied.unwrap_err().to_string(),
        "somebody without a trusted key may not delete the audit trail on this node: nobody may"
    );
    let read = check(who, reader, Object::Job, Operation::Read, place);
    assert_eq!(read, Ok(()));
}

#[test]
fn the_document_has_the_table() {
    let table = markdown();
    assert!(
        DOCUMENT.contains(&table),
        "docs/permissions.md has another table; the one of the code is:\n{table}"
    );
}
