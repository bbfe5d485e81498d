//! Reading lists.

use bytes::Bytes;

use crate::{
    Reply,
    command::{
        Ctx, Outcome, Stop,
        args::{at_least, int, is_word, place, places, refuse, syntax_error},
    },
    store::List,
};

pub(in crate::command) fn llen(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        ctx.get::<List>(&args[1])?.map_or(0, List::len),
    ))
}

pub(in crate::command) fn lindex(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let Some(list) = ctx.get::<List>(&args[1])? else {
        return Ok(Reply::Nil);
    };
    let element = place(int(&args[2])?, list.len()).and_then(|place| list.get(place));
    Ok(element.cloned().map_or(Reply::Nil, Reply::Bulk))
}

pub(in crate::command) fn lrange(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let (start, stop) = (int(&args[2])?, int(&args[3])?);
    let list = ctx.get::<List>(&args[1])?;
    let range = list.and_then(|list| Some(list.range(places(start, stop, list.len())?)));
    Ok(Reply::Array(
        range
            .into_iter()
            .flatten()
            .cloned()
            .map(Reply::Bulk)
            .collect(),
    ))
}

/// Arguments of LPOS.
struct Search {
    /// Number of the first match that counts.
    rank: u64,
    from_right: bool,
    /// Number of matches; 0 means all.
    count: Option<u64>,
    /// Number of elements to compare; 0 means all.
    look_at: u64,
}

impl Search {
    fn parse(args: &[Bytes]) -> Result<Self, Stop> {
        let mut search = Self {
            rank: 1,
            from_right: false,
            count: None,
            look_at: 0,
        };
        let positive = |arg, text| at_least(arg, 0, text).map(i64::unsigned_abs);
        let mut rank = 1;
        let mut rest = args;
        while let [option, value, tail @ ..] = rest {
            rest = tail;
            if is_word(option, "RANK") {
                rank = int(value)?;
                if rank == 0 {
                    return Err(refuse(
                        "RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list",
                    ));
                }
            } else if is_word(option, "COUNT") {
                search.count = Some(positive(value, "COUNT can't be negative")?);
            } else if is_word(option, "MAXLEN") {
                search.look_at = positive(value, "MAXLEN can't be negative")?;
            } else {
                return Err(syntax_error());
            }
        }
        if !rest.is_empty() {
            return Err(syntax_error());
        }
        search.from_right = rank < 0;
        search.rank = rank.unsigned_abs();
        if rank == i64::MIN {
            // Redis cannot negate this number, which therefore stays below every count of matches.
            search.rank = 1;
            search.count = search.count.map(|_| 0);
        }
        Ok(search)
    }

    fn run(&self, list: &List, element: &Bytes) -> Vec<i64> {
        let unless_zero = |limit: u64| match usize::try_from(limit) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(limit) => limit,
        };
        let skip = usize::try_from(self.rank - 1).unwrap_or(usize::MAX);
        let take = self.count.map_or(1, unless_zero);
        let places: &mut dyn Iterator<Item = (usize, &Bytes)> = if self.from_right {
            &mut list.iter().enumerate().rev()
        } else {
            &mut list.iter().enumerate()
        };
        places
            .take(unless_zero(self.look_at))
            .filter(|(_, other)| *other == element)
            .skip(skip)
            .take(take)
            .map(|(place, _)| i64::try_from(place).unwrap_or(i64::MAX))
            .collect()
    }
}

pub(in crate::command) fn lpos(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Outcome {
    let search = Search::parse(&args[3..])?;
    let found = match ctx.get::<List>(&args[1])? {
        Some(list) => search.run(list, &args[2]),
        None => Vec::new(),
    };
    Ok(match search.count {
        Some(_) => Reply::Array(found.into_iter().map(Reply::Int).collect()),
        None => found.first().map_or(Reply::Nil, |place| Reply::Int(*place)),
    })
}
