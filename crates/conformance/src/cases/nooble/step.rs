//! step and store_reply: each call of a task is made once, and its answer is found again.

use std::time::Duration;

use super::{Got, Outcome, Side, W1, WAITS, World, cases, check, same, to};
use meshwork_broker::nooble::{CycleLimits, SagaStep, StepResult, StoredReply};

cases![
    a_step_is_asked_once,
    what_was_asked_long_ago_is_asked_again,
    what_is_asked_again_is_young,
    an_answer_is_found_again,
    the_first_answer_counts,
    a_late_look_asks_nothing_that_is_answered,
    steps_have_room,
    answers_have_room,
    an_answer_to_nothing_stays,
    steps_are_kept_for_a_time,
    a_cycle_that_ended_is_kept_for_less,
    an_answer_stays_where_it_came,
    who_waits_for_an_answer_leaves_it,
    what_is_no_answer_is_dropped,
];

const LIMITS: CycleLimits = CycleLimits {
    stays: Duration::from_secs(1_000),
    steps: 2,
    bytes: 10,
};
const WAIT: Duration = Duration::from_secs(5);

impl Side<'_> {
    fn cycle(&self) -> String {
        self.verbs.names().cycle("agent", self.dialect.as_str())
    }

    async fn step(&self, name: &str, message: &str, again: Option<Duration>) -> Got<StepResult> {
        self.verbs.prepare(&self.source).await?;
        let cycle = &self.cycle();
        let step = SagaStep { cycle, name };
        let sends = (self.queue(), message);
        Ok(self.verbs.saga_step(step, sends, again, LIMITS).await?)
    }

    async fn keep(&self, name: &str, answer: &str) -> Got<StoredReply> {
        let cycle = &self.cycle();
        let step = SagaStep { cycle, name };
        let came = (&*self.replies(), answer);
        Ok(self.verbs.store_reply(step, came, LIMITS).await?)
    }

    async fn answered(&self, answer: &str) -> Outcome {
        self.world.raw(&["LPUSH", &self.replies(), answer]).await
    }
}

fn waits(message: &str, ms: u64) -> StepResult {
    StepResult::Pending {
        message: message.to_owned(),
        since: Duration::from_millis(ms),
    }
}

fn answered(message: &str, answer: &str) -> StepResult {
    StepResult::Answered {
        message: message.to_owned(),
        answer: answer.to_owned(),
    }
}

fn kept(answer: &str) -> StoredReply {
    StoredReply::Stored(answer.to_owned())
}

async fn a_step_is_asked_once(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m0"]).await?;
        same!(side.step("a", "m1", None).await?, StepResult::Sent);
        world.pass(700);
        same!(side.step("a", "other", None).await?, waits("m1", 700));
        same!(side.step("b", "m2", None).await?, StepResult::Sent);
        same!(side.waiting().await?, ["m0", "m1", "m2"]);
        world.pass(100);
        same!(side.step("a", "m1", Some(WAIT)).await?, waits("m1", 800));
    }
    Ok(())
}

async fn what_was_asked_long_ago_is_asked_again(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "m1", None).await?;
        world.pass(4_999);
        same!(side.step("a", "x", Some(WAIT)).await?, waits("m1", 4_999));
        same!(side.waiting().await?.len(), 1);
        world.pass(1);
        let message = "m1".to_owned();
        same!(
            side.step("a", "x", Some(WAIT)).await?,
            StepResult::SentAgain { message }
        );
        same!(side.waiting().await?, ["m1", "m1"]);
    }
    Ok(())
}

async fn what_is_asked_again_is_young(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "m1", None).await?;
        world.pass(5_000);
        side.step("a", "m1", Some(WAIT)).await?;
        world.pass(10);
        same!(side.step("a", "m1", Some(WAIT)).await?, waits("m1", 10));
    }
    Ok(())
}

async fn an_answer_is_found_again(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "m1", None).await?;
        side.step("b", "m2", None).await?;
        side.answered("r1").await?;
        same!(side.keep("a", "r1").await?, kept("r1"));
        check!(!side.exists(&side.replies()).await?);
        same!(side.step("a", "x", None).await?, answered("m1", "r1"));
        same!(side.step("b", "m2", None).await?, waits("m2", 0));
        same!(side.waiting().await?.len(), 2);
    }
    Ok(())
}

async fn the_first_answer_counts(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "m1", None).await?;
        side.keep("a", "r1").await?;
        side.answered("r2").await?;
        same!(side.keep("a", "r2").await?, kept("r1"));
        check!(!side.exists(&side.replies()).await?);
        same!(side.step("a", "m1", None).await?, answered("m1", "r1"));
    }
    Ok(())
}

async fn a_late_look_asks_nothing_that_is_answered(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "m1", None).await?;
        side.keep("a", "r1").await?;
        world.pass(60_000);
        let outcome = side.step("a", "m1", Some(WAIT)).await?;
        same!(outcome, answered("m1", "r1"));
        same!(side.waiting().await?, ["m1"]);
    }
    Ok(())
}

async fn steps_have_room(world: &World) -> Outcome {
    for side in Side::both(world)? {
        same!(side.step("a", "12345678901", None).await?, StepResult::Full);
        check!(!side.exists(&side.cycle()).await?);
        same!(side.step("a", "12345", None).await?, StepResult::Sent);
        same!(side.step("b", "123456", None).await?, StepResult::Full);
        same!(side.step("b", "12345", None).await?, StepResult::Sent);
        same!(side.step("c", "", None).await?, StepResult::Full);
        same!(side.waiting().await?, ["12345", "12345"]);
        same!(side.step("a", "12345", None).await?, waits("12345", 0));
    }
    Ok(())
}

async fn answers_have_room(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "12345", None).await?;
        side.answered("123456").await?;
        same!(side.keep("a", "123456").await?, StoredReply::Full);
        check!(side.exists(&side.replies()).await?);
        same!(side.step("a", "12345", None).await?, waits("12345", 0));
        same!(side.keep("a", "12345").await?, kept("12345"));
        // The key exists already.
        same!(side.keep("a", "123456").await?, kept("12345"));
        same!(side.step("b", "1", None).await?, StepResult::Full);
    }
    Ok(())
}

async fn an_answer_to_nothing_stays(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.answered("r1").await?;
        same!(side.keep("a", "r1").await?, StoredReply::Gone);
        check!(side.exists(&side.replies()).await?);
        check!(!side.exists(&side.cycle()).await?);
    }
    Ok(())
}

/// The key expires by the server's own clock.
async fn steps_are_kept_for_a_time(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let shorten = async || {
            let cycle = side.cycle();
            world.raw::<()>(&["PEXPIRE", &cycle, "500000"]).await
        };
        side.step("a", "m1", None).await?;
        same!(side.ttl(&side.cycle()).await?, 1_000);
        shorten().await?;
        side.keep("a", "r1").await?;
        same!(side.ttl(&side.cycle()).await?, 1_000);
        shorten().await?;
        side.step("b", "m2", None).await?;
        same!(side.ttl(&side.cycle()).await?, 1_000);
        shorten().await?;
        world.pass(5_000);
        side.step("b", "m2", Some(WAIT)).await?;
        same!(side.ttl(&side.cycle()).await?, 1_000);
    }
    Ok(())
}

async fn a_cycle_that_ended_is_kept_for_less(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.step("a", "m1", None).await?;
        side.verbs.end_cycle(&side.cycle(), WAITS).await?;
        same!(side.ttl(&side.cycle()).await?, 600);
        same!(side.step("a", "m1", None).await?, waits("m1", 0));
    }
    Ok(())
}

async fn an_answer_stays_where_it_came(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let list = side.replies();
        same!(side.verbs.peek(&list, None).await?, None);
        let taken = side.started("m1").await?;
        side.verbs.complete(W1, &taken, to(&list, "r1")).await?;
        // An answer that came twice.
        side.answered("r2").await?;
        let before = world.list(&list).await?;
        let blocking = side.verbs.blocking_conn().await?;
        for parked in [None, Some((&blocking, WAIT))] {
            let came = side.verbs.peek(&list, parked).await?;
            same!(came.as_deref(), Some(&b"r1"[..]));
        }
        same!(world.list(&list).await?, before);
        same!(side.ttl(&list).await?, 600);
    }
    Ok(())
}

async fn who_waits_for_an_answer_leaves_it(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let list = side.replies();
        let taken = side.started("m1").await?;
        let waiters = [
            side.verbs.blocking_conn().await?,
            side.verbs.blocking_conn().await?,
        ];
        let nothing = (&waiters[0], Duration::from_millis(1));
        same!(side.verbs.peek(&list, Some(nothing)).await?, None);
        let wait = async |at: usize| {
            let parked = Some((&waiters[at], Duration::from_secs(60)));
            side.verbs.peek(&list, parked).await
        };
        let answer = async || {
            let end = to(&list, "r1");
            side.verbs.complete(W1, &taken, end).await
        };
        let (first, second, outcome) = tokio::join!(wait(0), wait(1), answer());
        outcome?;
        same!(first?.as_deref(), Some(&b"r1"[..]));
        same!(second?.as_deref(), Some(&b"r1"[..]));
        same!(world.list(&list).await?, ["r1"]);
        same!(side.ttl(&list).await?, 600);
    }
    Ok(())
}

async fn what_is_no_answer_is_dropped(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.answered("{").await?;
        side.answered("r1").await?;
        let list = side.replies();
        same!(
            side.verbs.peek(&list, None).await?.as_deref(),
            Some(&b"{"[..])
        );
        side.verbs.drop_reply(&list, b"{").await?;
        same!(world.list(&list).await?, ["r1"]);
    }
    Ok(())
}
