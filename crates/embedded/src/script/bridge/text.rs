//! Functions of the table `string` that scan whole texts, as in Lua 5.1, with a pattern matcher whose steps are
//! bounded ([`crate::script::pattern`]). They use the C interface for arguments, callbacks and errors, so that
//! messages and lines of errors are Lua's own.

use std::{
    ffi::{CStr, c_char, c_int},
    mem::MaybeUninit,
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
};

use mlua::ffi::{self, lua_State, luaL_Buffer};

use super::{Host, raise_stopped};
use crate::script::pattern::{
    Budget, Capture, ESCAPE, Effort as _, Fault, Matcher, anchored, is_special, until_zero,
};

/// Bytes that are compared or copied in the time of one step.
const BYTES_PER_STEP: usize = 16;

/// The functions, by their names in the table `string`.
pub(super) const FUNCTIONS: [(&CStr, ffi::lua_CFunction); 8] = [
    (c"find", find),
    (c"match", match_),
    (c"gmatch", gmatch),
    (c"gsub", gsub),
    (c"rep", rep),
    (c"lower", lower),
    (c"upper", upper),
    (c"reverse", reverse),
];

/// Index of the upvalue with the host. In the iterator of `gmatch` it follows three others.
const HOST: c_int = 1;
const SOURCE: c_int = 2;
const PATTERN: c_int = 3;
const NEXT: c_int = 4;

unsafe fn host(state: *mut lua_State) -> *mut Host {
    unsafe { ffi::lua_touserdata(state, ffi::lua_upvalueindex(HOST)).cast() }
}

/// Returns the string at a position of the stack, or among the upvalues, valid as long as it is there.
unsafe fn bytes<'a>(text: *const c_char, len: usize) -> &'a [u8] {
    // SAFETY: Lua has just returned both.
    unsafe { slice::from_raw_parts(text.cast(), len) }
}

/// An argument that must be a string or a number.
unsafe fn argument<'a>(state: *mut lua_State, at: c_int) -> &'a [u8] {
    let mut len = 0;
    unsafe {
        let text = ffi::luaL_checklstring(state, at, &raw mut len);
        bytes(text, len)
    }
}

/// Counts bytes that are scanned. Raises the error if the time is over.
unsafe fn spend_on(state: *mut lua_State, bytes: usize) {
    unsafe {
        let host = &mut *host(state);
        if let Err(fault) = host.work.spend(bytes / BYTES_PER_STEP + 1) {
            raise(state, fault);
        }
    }
}

unsafe fn push(state: *mut lua_State, text: &[u8]) {
    unsafe { ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len()) };
}

/// Raises the error. The caller must have nothing to drop.
unsafe fn raise(state: *mut lua_State, fault: Fault) -> c_int {
    unsafe {
        match fault {
            Fault::Bad(text) => ffi::luaL_error(state, c"%s".as_ptr(), text.as_ptr()),
            Fault::Stopped => raise_stopped(state, host(state)),
        }
    }
}

/// Runs work that does not jump; a panic must not unwind into C.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or(Err(Fault::Bad(c"the pattern cannot be matched")))
}

/// Returns the first match that begins at one of these positions.
unsafe fn first(
    host: *mut Host,
    matcher: &mut Matcher<'_>,
    places: RangeInclusive<usize>,
    budget: &mut Budget,
) -> Result<Option<(usize, usize)>, Fault> {
    // SAFETY: the host lives as long as Lua, and is used by no other code meanwhile.
    let host = unsafe { &mut *host };
    let mut effort = budget.beside(&mut host.work);
    guarded(|| {
        for at in places {
            if let Some(end) = matcher.run(at, &mut host.tries, &mut effort)? {
                return Ok(Some((at, end)));
            }
        }
        Ok(None)
    })
}

unsafe extern "C-unwind" fn find(state: *mut lua_State) -> c_int {
    unsafe { search(state, true) }
}

unsafe extern "C-unwind" fn match_(state: *mut lua_State) -> c_int {
    unsafe { search(state, false) }
}

unsafe fn search(state: *mut lua_State, find: bool) -> c_int {
    unsafe {
        let (source, pattern) = (argument(state, 1), argument(state, 2));
        let from = start(ffi::luaL_optinteger(state, 3, 1), source.len());
        spend_on(state, pattern.len());
        if find && (ffi::lua_toboolean(state, 4) != 0 || !is_special(pattern)) {
            return plain(state, source, pattern, from);
        }
        let (text, anchor) = anchored(pattern);
        let mut matcher = Matcher::new(source, text);
        let last = if anchor { from } else { source.len() };
        let mut budget = Budget::of(source);
        match first(host(state), &mut matcher, from..=last, &mut budget) {
            Err(fault) => raise(state, fault),
            Ok(None) => {
                ffi::lua_pushnil(state);
                1
            }
            Ok(Some((at, end))) if find => {
                push_place(state, at + 1);
                push_place(state, end);
                push_captures(state, &matcher, None) + 2
            }
            Ok(Some((at, end))) => push_captures(state, &matcher, Some(&source[at..end])),
        }
    }
}

/// Returns the start of the search: an index from 1, or from the end if negative.
fn start(place: i64, len: usize) -> usize {
    let from = match usize::try_from(place) {
        Ok(place) => place.saturating_sub(1),
        Err(_) => len.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    from.min(len)
}

unsafe fn plain(state: *mut lua_State, source: &[u8], wanted: &[u8], from: usize) -> c_int {
    unsafe {
        spend_on(state, source.len() - from);
        match memchr::memmem::find(&source[from..], wanted) {
            None => {
                ffi::lua_pushnil(state);
                1
            }
            Some(at) => {
                push_place(state, from + at + 1);
                push_place(state, from + at + wanted.len());
                2
            }
        }
    }
}

unsafe fn push_place(state: *mut lua_State, place: usize) {
    // The length of a string fits into an integer.
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    unsafe { ffi::lua_pushinteger(state, place) };
}

/// Pushes all captures; `whole` if there are none and it is given. Returns their number.
unsafe fn push_captures(
    state: *mut lua_State,
    matcher: &Matcher<'_>,
    whole: Option<&[u8]>,
) -> c_int {
    let count = match (matcher.captures().len(), whole) {
        (0, Some(_)) => 1,
        (count, _) => count,
    };
    let slots = c_int::try_from(count).unwrap_or(c_int::MAX);
    unsafe {
        ffi::luaL_checkstack(state, slots, c"too many captures".as_ptr());
        for at in 0..count {
            push_capture(state, matcher, at, whole.unwrap_or_default());
        }
    }
    slots
}

unsafe fn push_capture(state: *mut lua_State, matcher: &Matcher<'_>, at: usize, whole: &[u8]) {
    unsafe {
        match matcher.captures().get(at) {
            None if at == 0 => push(state, whole),
            None => {
                ffi::luaL_error(state, c"invalid capture index".as_ptr());
            }
            Some(Capture::Open(_)) => {
                ffi::luaL_error(state, c"unfinished capture".as_ptr());
            }
            Some(Capture::Position(at)) => push_place(state, at + 1),
            Some(Capture::Closed(from, to)) => push(state, matcher.part(*from, *to)),
        }
    }
}

unsafe extern "C-unwind" fn gmatch(state: *mut lua_State) -> c_int {
    unsafe {
        argument(state, 1);
        argument(state, 2);
        ffi::lua_settop(state, 2);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(HOST));
        ffi::lua_insert(state, 1);
        ffi::lua_pushinteger(state, 0);
        ffi::lua_pushcclosure(state, next_match, NEXT);
    }
    1
}

unsafe extern "C-unwind" fn next_match(state: *mut lua_State) -> c_int {
    unsafe {
        let upvalue = |at| {
            let mut len = 0;
            let text = ffi::lua_tolstring(state, ffi::lua_upvalueindex(at), &raw mut len);
            bytes(text, len)
        };
        let (source, pattern) = (upvalue(SOURCE), until_zero(upvalue(PATTERN)));
        let next = ffi::lua_tointeger(state, ffi::lua_upvalueindex(NEXT));
        let next = usize::try_from(next).unwrap_or(usize::MAX);
        if next > source.len() {
            return 0;
        }
        spend_on(state, pattern.len());
        let mut matcher = Matcher::new(source, pattern);
        let mut budget = Budget::of(source);
        match first(host(state), &mut matcher, next..=source.len(), &mut budget) {
            Err(fault) => raise(state, fault),
            Ok(None) => 0,
            Ok(Some((at, end))) => {
                // After an empty match, the position still advances by one.
                push_place(state, end + usize::from(end == at));
                ffi::lua_replace(state, ffi::lua_upvalueindex(NEXT));
                push_captures(state, &matcher, Some(&source[at..end]))
            }
        }
    }
}

unsafe extern "C-unwind" fn gsub(state: *mut lua_State) -> c_int {
    unsafe {
        let (source, pattern) = (argument(state, 1), argument(state, 2));
        let kind = ffi::lua_type(state, 3);
        let all = i64::try_from(source.len() + 1).unwrap_or(i64::MAX);
        #[allow(clippy::cast_possible_truncation, reason = "as C does it")]
        let most = ffi::luaL_optinteger(state, 4, all) as c_int;
        let (text, anchor) = anchored(pattern);
        if ![
            ffi::LUA_TNUMBER,
            ffi::LUA_TSTRING,
            ffi::LUA_TFUNCTION,
            ffi::LUA_TTABLE,
        ]
        .contains(&kind)
        {
            return ffi::luaL_argerror(state, 3, c"string/function/table expected".as_ptr());
        }
        spend_on(state, pattern.len());
        let mut buffer = MaybeUninit::<luaL_Buffer>::uninit();
        let out = buffer.as_mut_ptr();
        ffi::luaL_buffinit(state, out);
        let (mut matcher, mut budget) = (Matcher::new(source, text), Budget::of(source));
        let (mut at, mut count) = (0, 0);
        while count < most {
            // One position at a time: a match must begin at the end of the last one.
            let end = match first(host(state), &mut matcher, at..=at, &mut budget) {
                Err(fault) => return raise(state, fault),
                Ok(found) => found.map(|(_, end)| end),
            };
            if let Some(end) = end {
                count += 1;
                add_value(state, out, &matcher, (kind, &source[at..end]));
            }
            match end {
                Some(end) if end > at => at = end,
                _ if at < source.len() => {
                    ffi::luaL_addchar(out, source[at].cast_signed());
                    at += 1;
                }
                _ => break,
            }
            if anchor {
                break;
            }
        }
        add(out, &source[at..]);
        ffi::luaL_pushresult(out);
        ffi::lua_pushinteger(state, count.into());
    }
    2
}

unsafe fn add(out: *mut luaL_Buffer, text: &[u8]) {
    unsafe { ffi::luaL_addlstring(out, text.as_ptr().cast(), text.len()) };
}

/// Adds the replacement of a match.
unsafe fn add_value(
    state: *mut lua_State,
    out: *mut luaL_Buffer,
    matcher: &Matcher<'_>,
    (kind, whole): (c_int, &[u8]),
) {
    unsafe {
        match kind {
            ffi::LUA_TFUNCTION => {
                ffi::lua_pushvalue(state, 3);
                let count = push_captures(state, matcher, Some(whole));
                ffi::lua_call(state, count, 1);
            }
            ffi::LUA_TTABLE => {
                push_capture(state, matcher, 0, whole);
                ffi::lua_gettable(state, 3);
            }
            _ => return add_text(state, out, matcher, whole),
        }
        if ffi::lua_toboolean(state, -1) == 0 {
            ffi::lua_pop(state, 1);
            push(state, whole);
        } else if ffi::lua_isstring(state, -1) == 0 {
            let name = ffi::lua_typename(state, ffi::lua_type(state, -1));
            ffi::luaL_error(state, c"invalid replacement value (a %s)".as_ptr(), name);
        }
        ffi::luaL_addvalue(out);
    }
}

/// Adds the replacement text, with captures for `%1`.
unsafe fn add_text(
    state: *mut lua_State,
    out: *mut luaL_Buffer,
    matcher: &Matcher<'_>,
    whole: &[u8],
) {
    unsafe {
        let mut len = 0;
        let text = ffi::lua_tolstring(state, 3, &raw mut len);
        let mut rest = bytes(text, len).iter().copied();
        while let Some(byte) = rest.next() {
            // As in C, a zero follows the end.
            let escaped = (byte == ESCAPE).then(|| rest.next().unwrap_or(0));
            match escaped {
                None => ffi::luaL_addchar(out, byte.cast_signed()),
                Some(b'0') => add(out, whole),
                Some(digit @ b'1'..=b'9') => {
                    push_capture(state, matcher, usize::from(digit - b'1'), whole);
                    ffi::luaL_addvalue(out);
                }
                Some(other) => ffi::luaL_addchar(out, other.cast_signed()),
            }
        }
    }
}

/// Replaces Lua's own, which adds one copy at a time, and counts to the end even for an empty text. This one doubles
/// the text.
unsafe extern "C-unwind" fn rep(state: *mut lua_State) -> c_int {
    unsafe {
        let len = argument(state, 1).len();
        #[allow(clippy::cast_possible_truncation, reason = "as C does it")]
        let times = ffi::luaL_checkinteger(state, 2) as c_int;
        let mut left = usize::try_from(times).unwrap_or(0);
        ffi::lua_settop(state, 1);
        push(state, b"");
        if len == 0 {
            return 1;
        }
        let mut doubled = len;
        while left > 0 {
            spend_on(state, doubled);
            if left % 2 == 1 {
                ffi::lua_pushvalue(state, 1);
                ffi::lua_concat(state, 2);
            }
            left /= 2;
            if left > 0 {
                ffi::lua_pushvalue(state, 1);
                ffi::lua_pushvalue(state, 1);
                ffi::lua_concat(state, 2);
                ffi::lua_replace(state, 1);
                doubled *= 2;
            }
        }
    }
    1
}

unsafe extern "C-unwind" fn lower(state: *mut lua_State) -> c_int {
    unsafe { bytes_by_bytes(state, |text| text.iter().map(u8::to_ascii_lowercase)) }
}

unsafe extern "C-unwind" fn upper(state: *mut lua_State) -> c_int {
    unsafe { bytes_by_bytes(state, |text| text.iter().map(u8::to_ascii_uppercase)) }
}

unsafe extern "C-unwind" fn reverse(state: *mut lua_State) -> c_int {
    unsafe { bytes_by_bytes(state, |text| text.iter().rev().copied()) }
}

/// Pushes the converted bytes of the first argument. Lua's own functions take as long for an existing result and
/// allocate no memory then, so that the clock would not be checked.
unsafe fn bytes_by_bytes<'a, I: Iterator<Item = u8>>(
    state: *mut lua_State,
    made: impl FnOnce(&'a [u8]) -> I,
) -> c_int {
    unsafe {
        let text = argument(state, 1);
        spend_on(state, text.len());
        let mut buffer = MaybeUninit::<luaL_Buffer>::uninit();
        let out = buffer.as_mut_ptr();
        ffi::luaL_buffinit(state, out);
        for byte in made(text) {
            ffi::luaL_addchar(out, byte.cast_signed());
        }
        ffi::luaL_pushresult(out);
    }
    1
}
