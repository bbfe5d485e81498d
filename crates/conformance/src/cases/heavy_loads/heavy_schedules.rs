//! 10,000 schedules that are due at one moment: each call stays short, and repeated calls decide all slots.

use std::collections::BTreeMap;

use meshwork_model::schedule::policy::CatchUp;

use crate::cases::heavy_loads::heavy::short;
use crate::cases::schedules::put_schedule::{SLOT, every, put};
use crate::cases::{Outcome, World, cases, check, same};

cases![ten_thousand_at_one_moment];

const MANY: usize = 10_000;

/// Each call decides 250 slots, each once.
async fn ten_thousand_at_one_moment(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    schedule.catch_up = CatchUp::One;
    put(world, &schedule).await?;
    let (key, names) = (
        world.keys().schedule(&"s".parse()?),
        world.keys().schedules(),
    );
    // The other schedules are copies; only their number matters.
    let fields: BTreeMap<String, String> = world.raw(&["HGETALL", &key]).await?;
    let fields: Vec<_> = fields.into_iter().flat_map(|(k, v)| [k, v]).collect();
    for from in (0..MANY).step_by(500) {
        let mut pipe = redis::pipe();
        for n in from..from + 500 {
            let name = format!("s{n}");
            pipe.cmd("HSET")
                .arg(format!("{}{name}", world.keys().schedule_prefix()))
                .arg(&fields)
                .ignore();
            pipe.cmd("ZADD").arg(&names).arg(SLOT).arg(name).ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    world.at(SLOT);
    let (mut stored, mut calls) = (0, 0);
    loop {
        let ticked = short(world.broker.fire_schedules()).await?;
        check!(ticked.due <= 250 && ticked.troubles.is_empty());
        (stored, calls) = (stored + ticked.stored, calls + 1);
        if ticked.next.is_none_or(|next| !next.is_zero()) {
            break;
        }
    }
    same!((stored, calls), (MANY + 1, 41));
    let waiting = world.waiting().await?;
    same!(waiting.len(), MANY + 1);
    same!(
        waiting
            .into_iter()
            .collect::<std::collections::HashSet<_>>()
            .len(),
        MANY + 1
    );
    Ok(())
}
