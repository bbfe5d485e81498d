//! Commands on sorted sets.

mod add;
mod bounds;
mod count;
mod pop;
mod range;
mod read;
mod remove;

pub(super) use add::{zadd, zincrby};
pub(super) use count::{zcount, zlexcount};
pub(super) use pop::{zpopmax, zpopmin};
pub(super) use range::{
    zrange, zrangebylex, zrangebyscore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
pub(super) use read::{zcard, zmscore, zrank, zrevrank, zscan, zscore};
pub(super) use remove::{zrem, zremrangebylex, zremrangebyrank, zremrangebyscore};

use crate::{Reply, store::Ranked};

/// Returns members in order, with or without their scores. Pairs are nested in RESP3 and flat in RESP2.
fn scored<'a>(
    members: impl IntoIterator<Item = &'a Ranked>,
    with_scores: bool,
    nested: bool,
) -> Reply {
    let members = members.into_iter();
    let member = |ranked: &Ranked| Reply::Bulk(ranked.member.clone());
    let pair = |ranked: &Ranked| [member(ranked), Reply::Double(ranked.score)];
    Reply::Array(if !with_scores {
        members.map(member).collect()
    } else if nested {
        members
            .map(|ranked| Reply::Array(pair(ranked).into()))
            .collect()
    } else {
        members.flat_map(pair).collect()
    })
}
