//! Tests of frames: their form, their lengths, and that no other bytes are accepted.

use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_800_000_000_000;
const ME: NodeId = NodeId([1; 32]);
const PEER: NodeId = NodeId([2; 32]);

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_seed(&[seed; 32])
}

fn from() -> SentFrom {
    SentFrom {
        context: ContextId::new(7).unwrap(),
        message: MessageKey {
            caller: ActorId(12),
            id: 101,
        },
        nonce: Nonce([3; 16]),
    }
}

fn frame(items: Vec<Item>) -> Frame {
    Frame {
        dst: ME,
        src: PEER,
        sent_ms: NOW,
        items,
    }
}

fn result(json: Vec<u8>) -> Item {
    Item::Result {
        re: from(),
        from: from(),
        json,
    }
}

fn state(state: PeerState, reason: Option<Reason>) -> Item {
    Item::State {
        of: from(),
        at: from().context,
        state,
        reason,
    }
}

fn all_kinds() -> Frame {
    frame(vec![
        Item::Message(b"{}".to_vec()),
        result(b"[1]".to_vec()),
        state(PeerState::Busy, None),
        state(
            PeerState::Refused,
            Some(Reason::new("forbidden", "no right")),
        ),
        Item::Ask {
            of: from(),
            at: from().context,
        },
        Item::Cancel {
            of: from(),
            at: from().context,
        },
        Item::Ping { id: 5 },
        Item::Pong {
            id: 5,
            version: "1.2.3".to_owned(),
        },
    ])
}

fn open(bytes: &[u8]) -> Result<Frame, FrameFault> {
    Frame::open(bytes, ME, NOW, |node| {
        (node == PEER).then(|| secret(5).public())
    })
}

#[test]
fn the_length_of_an_item_is_known_before_it_is_written() {
    for item in all_kinds().items {
        let alone = frame(vec![item.clone()]).seal(&secret(5)).unwrap();
        let length = Frame::AROUND + item.length();
        assert_eq!(alone.len(), padded_length(length), "{item:?}");
    }
}

#[test]
fn a_frame_is_read_as_it_was_written() {
    for frame in [all_kinds(), frame(Vec::new())] {
        assert_eq!(open(&frame.seal(&secret(5)).unwrap()), Ok(frame));
    }
    let large = frame(vec![Item::Message(vec![b' '; MAX_ENVELOPE])]);
    assert_eq!(open(&large.seal(&secret(5)).unwrap()), Ok(large));
}

#[test]
fn the_items_of_a_frame_are_read_from_its_bytes() {
    let count = u16::try_from(all_kinds().items.len()).unwrap();
    assert_eq!(open(&signed(count, &items())), Ok(all_kinds()));
}

#[test]
fn no_flipped_bit_is_accepted() {
    let bytes = all_kinds().seal(&secret(5)).unwrap();
    let padded = frame(vec![Item::Message(vec![b' '; 1200])])
        .seal(&secret(5))
        .unwrap();
    assert!(padded.ends_with(&[0; 64]), "it has zeros at its end");
    for bytes in [bytes, padded] {
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(open(&changed).is_err(), "bit {at}");
        }
        for length in 0..bytes.len() {
            assert!(open(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(open(&[&bytes[..], &[0]].concat()).is_err());
    }
}

#[test]
fn sender_destination_and_time_are_checked() {
    let sealed = |frame: &Frame| frame.seal(&secret(5)).unwrap();
    let with = |change: fn(&mut Frame)| {
        let mut frame = all_kinds();
        change(&mut frame);
        open(&sealed(&frame))
    };
    assert_eq!(
        with(|frame| frame.src = NodeId([9; 32])),
        Err(FrameFault::UnknownNode)
    );
    assert_eq!(
        with(|frame| frame.dst = NodeId([9; 32])),
        Err(FrameFault::WrongNode)
    );
    assert_eq!(
        with(|frame| frame.sent_ms += SKEW * 1000 + 1),
        Err(FrameFault::WrongTime)
    );
    assert_eq!(
        with(|frame| frame.sent_ms -= SKEW * 1000 + 1),
        Err(FrameFault::WrongTime)
    );
    assert!(with(|frame| frame.sent_ms += SKEW * 1000).is_ok());
    let other = all_kinds().seal(&secret(6)).unwrap();
    assert_eq!(open(&other), Err(FrameFault::Tampered));
}

#[test]
fn limits_hold() {
    let oversized = Err(FrameFault::Oversized);
    let seal = |items| frame(items).seal(&secret(5));
    assert_eq!(seal(vec![Item::Ping { id: 0 }; MAX_ITEMS + 1]), oversized);
    assert_eq!(seal(vec![result(vec![0; MAX_RESULT + 1])]), oversized);
    let half = Item::Message(vec![0; MAX_FRAME / 2]);
    assert_eq!(seal(vec![half.clone(), half]), oversized);
    let long = Reason::new("damaged", "x".repeat(MAX_REASON + 1));
    let cut = seal(vec![state(PeerState::Failed, Some(long))]).unwrap();
    let items = open(&cut).unwrap().items;
    let short = Reason::new("damaged", "x".repeat(MAX_REASON));
    assert_eq!(items, [state(PeerState::Failed, Some(short))]);
}

#[test]
fn no_frame_has_a_length_that_never_arrives() {
    for length in 0..20_000 {
        let padded = padded_length(length);
        let last = padded % 1300;
        assert!(
            padded <= 1300 || last == 0 || last >= 250,
            "{length}: {padded}"
        );
        assert!(padded >= length && padded < length + 250);
    }
}

/// A frame whose items are these bytes, signed by a node that is trusted.
fn signed(count: u16, items: &[u8]) -> Vec<u8> {
    let mut body = [ME.0.as_slice(), &PEER.0].concat();
    body.extend(NOW.to_be_bytes());
    body.extend(count.to_be_bytes());
    body.extend(items);
    let signature = secret(5).sign(&pae(TYPE, &body));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut bytes = [MAGIC.as_slice(), &length, &body, &signature].concat();
    bytes.resize(padded_length(bytes.len()), 0);
    bytes
}

/// The items of a valid frame as bytes.
fn items() -> Vec<u8> {
    let bytes = all_kinds().seal(&secret(5)).unwrap();
    bytes[HEAD + 74..Frame::AROUND - SIGNATURE_BYTES + length_of(&all_kinds().items)].to_vec()
}

fn length_of(items: &[Item]) -> usize {
    items.iter().map(Item::length).sum()
}

proptest! {
    /// A trusted node may sign anything. What is accepted is exactly what a node would have written.
    #[test]
    fn signed_bytes_are_refused_or_mean_one_frame(
        count in 0_u16..10,
        noise in proptest::collection::vec(any::<u8>(), 0..60),
        at in 0_usize..400,
        length in 0_usize..8,
    ) {
        let mut bytes = items();
        let at = at.min(bytes.len());
        bytes.splice(at..(at + length).min(bytes.len()), noise);
        let bytes = signed(count, &bytes);
        if let Ok(frame) = open(&bytes) {
            prop_assert!(length_of(&frame.items) <= bytes.len());
            prop_assert_eq!(frame.seal(&secret(5)), Ok(bytes));
        }
    }

    #[test]
    fn random_bytes_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0_usize..300) {
        prop_assert!(open(&bytes).is_err());
        let real = all_kinds().seal(&secret(5)).unwrap();
        bytes.splice(0..0, real[..cut.min(real.len() - 1)].iter().copied());
        prop_assert!(open(&bytes).is_err());
    }
}
