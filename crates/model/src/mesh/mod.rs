//! Messages between nodes over the overlay network Mycelium: what a node says of itself ([`Card`]), and what two nodes
//! send each other ([`Frame`]). Both are signed by the key of the node, which is neither that of an actor nor that of the
//! daemon.

mod card;
mod exchange;
mod frame;
mod limits;
mod line;
mod link;
mod outbox;
mod result;

pub use crate::peer::{InvalidPeerName, InvalidTarget, MessageTarget, PeerName};
pub use card::{Card, CardFault, MAX_CARD, MAX_CARD_LIFE};
pub use exchange::{Answer, CANCELLED_FOR_MS, Received, Sent, Step, answer, next_step};
pub use frame::{
    Frame, FrameFault, Item, MAX_FRAME, MAX_ITEMS, MAX_REASON, MAX_RESULT, MAX_VERSION, PeerState,
    SentFrom, padded_length,
};
pub use limits::{Held, MAX_HELD_BYTES, MAX_HELD_MESSAGES, REFUSE_AGAIN_MS, Refusals};
pub use line::{Draft, LOOK_AGAIN_MS, Line};
pub use link::{ABSENT_AFTER, FRAME_GAP_MS, Link, MAX_FRAMES_A_SECOND, PING_MS, Rate};
pub use outbox::{Entry, FIRST_RESEND_MS, HeldEntry, InvalidEntry, LAST_RESEND_MS, resend_at};
pub use result::{InvalidResult, read_result, write_result};
