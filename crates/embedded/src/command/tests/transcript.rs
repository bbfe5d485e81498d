//! Recorded conversations with a real server, replayed: texts, types of reply, and the order of checks.

use super::Bench;
use crate::Protocol;

#[test]
fn answers_are_those_of_redis() {
    replay(include_str!("redis-7.0.txt"));
}

#[test]
fn answers_about_streams_are_those_of_redis() {
    replay(include_str!("redis-7.0-streams.txt"));
}

fn replay(conversation: &str) {
    let mut bench = Bench::new();
    let mut wrong = Vec::new();
    for line in conversation.lines().filter(|line| !line.starts_with('#')) {
        let (command, answer) = line.split_once(" => ").unwrap();
        if command == "HELLO 3" {
            bench.protocol = Protocol::Resp3;
            continue;
        }
        let reply = bench.reply(command);
        if reply != answer {
            wrong.push(format!("{command}\n  Redis:  {answer}\n  engine: {reply}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
