//! Frames with flipped bytes, and random ones: a node stores nothing of them, and needs no memory for them.

use meshwork_model::context::Reason;
use meshwork_model::envelope::Nonce;
use meshwork_model::keys::context::MessageKey;
use meshwork_model::mesh::{Item, PeerState, SentFrom};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::node_refusals::{Siege, context};

/// Frames of a node in a second, at most.
const RATE: usize = 100;

/// Twenty valid frames, of all kinds of items.
fn frames(siege: &mut Siege) -> Vec<Vec<Item>> {
    let of = SentFrom {
        context: context(7),
        message: MessageKey::new(1, 1),
        nonce: Nonce([5; 16]),
    };
    let at = context(8);
    let mut frames: Vec<_> = (0..4)
        .map(|_| vec![Item::Message(siege.envelope(|_| {}).into_bytes())])
        .collect();
    let states = [
        PeerState::Stored,
        PeerState::Acknowledged,
        PeerState::Processed,
        PeerState::Failed,
        PeerState::Refused,
        PeerState::Busy,
        PeerState::Unknown,
    ];
    for state in states {
        for reason in [None, Some(Reason::new("forbidden", "no right"))] {
            frames.push(vec![Item::State {
                of,
                at,
                state,
                reason,
            }]);
        }
    }
    let (ask, json) = (
        Item::Ask { of, at },
        b"{\"status\":\"processed\",\"job\":[]}",
    );
    let result = Item::Result {
        re: of,
        from: SentFrom { context: at, ..of },
        json: json.to_vec(),
    };
    frames.push(vec![Item::Ping { id: 1 }, ask]);
    frames.push(vec![result]);
    frames
}

#[tokio::test]
async fn no_frame_with_a_flipped_byte_is_accepted() {
    let mut siege = Siege::new().await;
    let (daemon, key) = (siege.pair.here.daemon, siege.pair.here.key.clone());
    let all = frames(&mut siege);
    assert_eq!(all.len(), 20);
    let mut tried = 0;
    for items in all {
        let bytes = siege.frame(items).seal(&key).unwrap();
        for at in 0..bytes.len() {
            if tried % RATE == 0 {
                siege.pair.mono += 1_000;
            }
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let mono = siege.pair.mono;
            let taken = siege.pair.there.exchange.receive(daemon, &changed, mono);
            taken.await.unwrap();
            tried += 1;
            assert_eq!(siege.refused(), tried as u64, "byte {at}");
        }
    }
    assert!(!siege.pair.there.exchange.refused().contains_key("busy"));
    siege.has_refused("tampered").await;
}

/// Random bytes, changed frames, and frames that a trusted node has signed over random items.
fn random_frame(siege: &Siege, random: &mut StdRng, valid: &[Vec<u8>]) -> Vec<u8> {
    let noise = |random: &mut StdRng, most: usize| {
        let mut noise = vec![0; random.random_range(0..most)];
        random.fill(&mut noise[..]);
        noise
    };
    let of = SentFrom {
        context: context(random.random_range(1..10)),
        message: MessageKey::new(random.random_range(1..4), random.random_range(1..4)),
        nonce: Nonce(random.random()),
    };
    let items = match random.random_range(0..6) {
        0 => return noise(random, 2_000),
        1 => {
            let mut frame = valid[random.random_range(0..valid.len())].clone();
            let at = random.random_range(0..frame.len());
            let end = (at + random.random_range(0..4)).min(frame.len());
            frame.splice(at..end, noise(random, 8));
            if valid.contains(&frame) {
                frame.push(1);
            }
            return frame;
        }
        2 => vec![Item::Message(noise(random, 500))],
        3 => {
            let id = random.random();
            vec![Item::Ping { id }, Item::Ask { of, at: context(8) }]
        }
        4 => vec![Item::Result {
            re: of,
            from: of,
            json: noise(random, 500),
        }],
        _ => vec![Item::State {
            of,
            at: context(8),
            state: PeerState::Failed,
            reason: Some(Reason::new("x", "y".repeat(random.random_range(0..1_000)))),
        }],
    };
    siege.frame(items).seal(&siege.pair.here.key).unwrap()
}

/// Memory of this process, in KiB.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.unwrap().split_whitespace().next();
    words.unwrap().parse().unwrap()
}

#[tokio::test]
async fn random_frames_store_nothing_and_take_no_memory() {
    let frames_to_try = std::env::var("MESHWORK_FRAMES").ok();
    let many: usize = frames_to_try.map_or(3_000, |many| many.parse().unwrap());
    let mut siege = Siege::new().await;
    let (daemon, key) = (siege.pair.here.daemon, siege.pair.here.key.clone());
    let mut random = StdRng::seed_from_u64(7);
    let valid = frames(&mut siege).into_iter();
    let valid: Vec<_> = valid
        .map(|items| siege.frame(items).seal(&key).unwrap())
        .collect();
    let mut before = 0;
    for number in 0..many {
        if number % RATE == 0 {
            siege.pair.mono += 1_000;
        }
        if number == many / 10 {
            before = memory();
        }
        let frame = random_frame(&siege, &mut random, &valid);
        let mono = siege.pair.mono;
        let taken = siege.pair.there.exchange.receive(daemon, &frame, mono);
        taken.await.unwrap();
    }
    let grown = memory().saturating_sub(before);
    println!("{many} frames: {grown} KiB more");
    assert!(grown < 50 * 1024, "{grown} KiB more");
    let codes = siege.pair.there.exchange.refused().len();
    assert!(codes < 20, "{codes} codes");
    siege.has_refused("malformed").await;
}
