//! Messages between nodes over the overlay network Mycelium: what a node says of itself ([`Card`]), and what two nodes
//! send each other ([`Frame`]). Both are signed by the key of the node, which is neither that of an actor nor that of the
//! daemon.

mod card;
mod frame;

pub use card::{Card, CardFault, MAX_CARD, MAX_CARD_LIFE};
pub use frame::{
    Frame, FrameFault, Item, MAX_FRAME, MAX_ITEMS, MAX_REASON, MAX_RESULT, PeerState, SentFrom,
    padded_length,
};
