//! W3C trace context: the trace of a job and the span of its submission (<https://www.w3.org/TR/trace-context/>). It
//! is checked and passed on; no spans are created here.

use std::collections::HashSet;
use std::fmt;

/// Greatest length of a `tracestate`, in bytes. The specification requires at least 512.
pub const MAX_STATE: usize = 4096;
/// Greatest number of members of a `tracestate`, from the specification.
pub const MAX_MEMBERS: usize = 32;
/// Known flags: sampled, and random trace id. Others are not passed on.
const KNOWN_FLAGS: u8 = 0b11;
/// Length of a `traceparent` of version 00.
const PARENT_LENGTH: usize = 55;

/// The trace of a job, and the span of its submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: String,
    parent_id: String,
    flags: u8,
    state: Option<String>,
}

/// The reason why a text is not a trace context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTrace {
    /// The `traceparent` is not valid.
    #[error(
        "{text:?} is no traceparent: {why} (it looks like \
         00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01)"
    )]
    Parent {
        /// The text.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// The `tracestate` is not valid. The error does not show its text, which may be confidential.
    #[error("the tracestate is not valid: {why}")]
    State {
        /// The fault.
        why: &'static str,
    },
}

impl TraceContext {
    /// Parses both texts.
    ///
    /// # Errors
    /// The first fault.
    pub fn parse(parent: &str, state: Option<&str>) -> Result<Self, InvalidTrace> {
        let mut context = read_parent(parent).map_err(|why| InvalidTrace::Parent {
            text: parent.chars().take(2 * PARENT_LENGTH).collect(),
            why,
        })?;
        if let Some(state) = state {
            let state = check_state(state).map_err(|why| InvalidTrace::State { why })?;
            context.state = Some(state).filter(|state| !state.is_empty());
        }
        Ok(context)
    }

    /// Parses texts of other programs, as the specification requires. Without a valid `traceparent` there is no
    /// context, and a `tracestate` that is not valid is omitted. The second value is the fault of the omitted part.
    #[must_use]
    pub fn lenient(parent: &str, state: Option<&str>) -> (Option<Self>, Option<InvalidTrace>) {
        match Self::parse(parent, state) {
            Ok(context) => (Some(context), None),
            Err(fault) => (Self::parse(parent, None).ok(), Some(fault)),
        }
    }

    /// Returns the context of a span: 16 bytes of the trace, 8 of the span, and whether it is sampled. `None` if
    /// either id is zero, which is not valid.
    #[must_use]
    pub fn of_span(trace_id: u128, span_id: u64, sampled: bool) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then(|| Self {
            trace_id: format!("{trace_id:032x}"),
            parent_id: format!("{span_id:016x}"),
            flags: u8::from(sampled),
            state: None,
        })
    }

    /// Returns the same context with a `tracestate`; unchanged if the text is not valid.
    #[must_use]
    pub fn with_state(mut self, state: &str) -> Self {
        if let Ok(state) = check_state(state) {
            self.state = Some(state).filter(|state| !state.is_empty());
        }
        self
    }

    /// Returns the `traceparent`, in version 00.
    #[must_use]
    pub fn parent(&self) -> String {
        self.to_string()
    }

    /// Returns the `tracestate`, if there is one.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the trace's id: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// Returns the id of the submitting span: 16 hexadecimal digits.
    #[must_use]
    pub fn parent_id(&self) -> &str {
        &self.parent_id
    }

    /// Returns whether the caller may have recorded its part.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-{:02x}",
            self.trace_id, self.parent_id, self.flags
        )
    }
}

/// Parses a `traceparent` of version 00, or of a later version, which must begin in the same way.
fn read_parent(text: &str) -> Result<TraceContext, &'static str> {
    let text = text.trim_matches([' ', '\t']);
    if !text.is_ascii() {
        return Err("it holds other characters than digits, a to f, and dashes");
    }
    if text.len() < PARENT_LENGTH {
        return Err("it is too short");
    }
    let (head, tail) = text.split_at(PARENT_LENGTH);
    let parts: Vec<_> = head.split('-').collect();
    let [version, trace_id, parent_id, flags] = parts[..] else {
        return Err("it does not have four parts between dashes");
    };
    if [version.len(), trace_id.len(), parent_id.len(), flags.len()] != [2, 32, 16, 2] {
        return Err("its parts are not of 2, 32, 16 and 2 digits");
    }
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let all = [version, trace_id, parent_id, flags];
    if !all.iter().all(|part| part.chars().all(hex)) {
        return Err("its digits are not all 0 to 9 and a to f");
    }
    match version {
        "ff" => return Err("there is no version ff"),
        "00" if !tail.is_empty() => return Err("it is too long for the version 00"),
        _ if !tail.is_empty() && !tail.starts_with('-') => {
            return Err("its fourth part is too long");
        }
        _ => {}
    }
    let is_id = |id: &str| id.chars().any(|c| c != '0');
    if !is_id(trace_id) || !is_id(parent_id) {
        return Err("an id of zeros is none");
    }
    let flags = u8::from_str_radix(flags, 16).map_err(|_| "its flags are no number")?;
    Ok(TraceContext {
        trace_id: trace_id.to_owned(),
        parent_id: parent_id.to_owned(),
        flags: flags & KNOWN_FLAGS,
        state: None,
    })
}

/// Returns the members of a `tracestate` without blanks around them.
fn check_state(text: &str) -> Result<String, &'static str> {
    if text.len() > MAX_STATE {
        return Err("it is longer than 4,096 bytes");
    }
    let (mut keys, mut members) = (HashSet::new(), Vec::new());
    for member in text.split(',') {
        let member = member.trim_matches([' ', '\t']);
        if member.is_empty() {
            continue; // allowed, and means nothing
        }
        let (key, value) = member.split_once('=').ok_or("a member has no `=`")?;
        if !is_state_key(key) {
            return Err("a key in it cannot be one");
        }
        let printable = |c: char| (' '..='~').contains(&c) && c != '=';
        if value.is_empty() || value.len() > 256 || !value.chars().all(printable) {
            return Err("a value in it cannot be one");
        }
        if !keys.insert(key) {
            return Err("a key is in it twice");
        }
        members.push(member);
    }
    if members.len() > MAX_MEMBERS {
        return Err("it has more than 32 members");
    }
    Ok(members.join(","))
}

fn is_state_key(key: &str) -> bool {
    let lower = |c: char| c.is_ascii_lowercase();
    let in_key = |c: char| lower(c) || c.is_ascii_digit() || "_-*/".contains(c);
    match key.split_once('@') {
        None => key.len() <= 256 && key.starts_with(lower) && key.chars().all(in_key),
        Some((tenant, system)) => {
            let first = |c: char| lower(c) || c.is_ascii_digit();
            (1..=241).contains(&tenant.len())
                && tenant.starts_with(first)
                && tenant.chars().all(in_key)
                && (1..=14).contains(&system.len())
                && system.starts_with(lower)
                && system.chars().all(in_key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn parent(version: &str, flags: &str) -> String {
        format!("{version}-{TRACE}-{SPAN}-{flags}")
    }

    #[test]
    fn a_context_is_read_and_written() {
        let text = parent("00", "01");
        let context = TraceContext::parse(&text, Some(" a=1 ,, b@c=x y\t")).unwrap();
        assert_eq!(context.parent(), text);
        assert_eq!((context.trace_id(), context.parent_id()), (TRACE, SPAN));
        assert_eq!(context.state(), Some("a=1,b@c=x y"));
        assert!(context.is_sampled());
        let made = TraceContext::of_span(
            0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            0xb7ad_6b71_6920_3331,
            true,
        );
        assert_eq!(made.unwrap().parent(), text);
        assert_eq!(TraceContext::of_span(0, 1, true), None);
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        for text in [parent("01", "ff"), parent("cc", "03") + "-what-comes"] {
            let context = TraceContext::parse(&text, None).unwrap();
            assert_eq!(context.parent(), parent("00", "03"), "{text}");
        }
        assert!(
            !TraceContext::parse(&parent("00", "00"), None)
                .unwrap()
                .is_sampled()
        );
    }

    #[test]
    fn what_is_no_context_is_refused() {
        for text in [
            String::new(),
            parent("ff", "01"),
            parent("00", "01") + "-x",
            parent("01", "01") + "x",
            parent("00", "1"),
            parent("00", "0g"),
            parent("00", "01").to_uppercase(),
            parent("00", "01").replace('-', "_"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}{SPAN}-01-000000"),
            format!("00-{TRACE}-{SPAN}-0\u{e9}"),
        ] {
            let fault = TraceContext::parse(&text, None).unwrap_err();
            assert!(
                matches!(fault, InvalidTrace::Parent { .. }),
                "{text}: {fault}"
            );
            assert_eq!(TraceContext::lenient(&text, Some("a=1")).0, None, "{text}");
        }
    }

    #[test]
    fn a_state_that_is_not_valid_is_left_out() {
        let many: Vec<_> = (0..=MAX_MEMBERS).map(|n| format!("k{n}=1")).collect();
        for state in [
            "a",
            "=1",
            "a=",
            "A=1",
            "a=1=2",
            "a=1,a=2",
            "a b=1",
            "a=\u{e9}",
            "1a=1",
            "a@=1",
            "a@B=1",
            &many.join(","),
            &format!("a={}", "x".repeat(257)),
            &format!("{}=1", "k".repeat(257)),
            &" ".repeat(MAX_STATE + 1),
        ] {
            let text = parent("00", "01");
            let fault = TraceContext::parse(&text, Some(state)).unwrap_err();
            assert!(matches!(fault, InvalidTrace::State { .. }), "{state}");
            let (context, fault) = TraceContext::lenient(&text, Some(state));
            assert_eq!(context.unwrap().state(), None, "{state}");
            assert!(fault.is_some(), "{state}");
        }
        let most = many[..MAX_MEMBERS].join(",");
        let context = TraceContext::parse(&parent("00", "01"), Some(&most)).unwrap();
        assert_eq!(context.state(), Some(&*most));
    }
}
