//! All content of a namespace as text, which tests compare to see that nothing else changed. It judges nothing.

use std::fmt::Write as _;

use meshwork_broker::conn::Conn;
use redis::{RedisResult, Value};

/// Number of keys that one step of the scan reads.
const SCAN_COUNT: usize = 1000;

/// Returns every key of `namespace`, sorted, with its type, its time to live in minutes (rounded up), and its whole
/// value. The namespace itself is written as `~`, so that the texts of two namespaces can be compared. Bytes that are
/// not printable are escaped.
///
/// # Errors
/// The server refuses a command.
pub async fn snapshot(conn: &Conn, namespace: &str) -> RedisResult<String> {
    let keys = keys(conn, namespace).await?;
    if keys.is_empty() {
        return Ok(String::new());
    }
    let mut about = redis::pipe();
    for key in &keys {
        about.cmd("TYPE").arg(key).cmd("PTTL").arg(key);
    }
    let about: Vec<(String, i64)> = about.query_async(&mut conn.clone()).await?;
    let mut values = redis::pipe();
    for (key, (kind, _)) in keys.iter().zip(&about) {
        read(&mut values, kind, key);
    }
    let values: Vec<Value> = values.query_async(&mut conn.clone()).await?;
    let mut text = String::new();
    for ((key, (kind, ttl)), value) in keys.iter().zip(&about).zip(values) {
        let name = key.escape_ascii();
        let _ = write!(text, "{name} {kind}");
        if *ttl >= 0 {
            let _ = write!(text, " for {} min", (ttl + 59_999) / 60_000);
        }
        text.push('\n');
        for line in lines(kind, value)? {
            let _ = writeln!(text, "  {line}");
        }
    }
    Ok(text.replace(namespace, "~"))
}

/// Returns the keys of `namespace`, sorted.
///
/// # Errors
/// The server refuses a command.
pub async fn keys(conn: &Conn, namespace: &str) -> RedisResult<Vec<Vec<u8>>> {
    scan(conn, &format!("{namespace}:*")).await
}

/// Returns the keys that are in none of `namespaces`, sorted. A single scan finds them, since keys may expire between
/// two.
///
/// # Errors
/// The server refuses a command.
pub async fn keys_outside(conn: &Conn, namespaces: &[&str]) -> RedisResult<Vec<Vec<u8>>> {
    let inside: Vec<_> = namespaces.iter().map(|name| format!("{name}:")).collect();
    let mut keys = scan(conn, "*").await?;
    keys.retain(|key| {
        !inside
            .iter()
            .any(|prefix| key.starts_with(prefix.as_bytes()))
    });
    Ok(keys)
}

/// Returns the keys that match `pattern`, sorted.
///
/// # Errors
/// The server refuses a command.
pub async fn scan(conn: &Conn, pattern: &str) -> RedisResult<Vec<Vec<u8>>> {
    let mut keys = Vec::new();
    let mut from = 0_u64;
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(pattern);
        scan.arg("COUNT").arg(SCAN_COUNT);
        let (next, found): (u64, Vec<Vec<u8>>) = scan.query_async(&mut conn.clone()).await?;
        keys.extend(found);
        from = next;
        if from == 0 {
            break;
        }
    }
    keys.sort();
    // A scan may return a key twice.
    keys.dedup();
    Ok(keys)
}

fn read(pipe: &mut redis::Pipeline, kind: &str, key: &[u8]) {
    match kind {
        "hash" => pipe.cmd("HGETALL").arg(key),
        "list" => pipe.cmd("LRANGE").arg(key).arg(0).arg(-1),
        "zset" => pipe.cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"),
        "set" => pipe.cmd("SMEMBERS").arg(key),
        "stream" => pipe.cmd("XRANGE").arg(key).arg("-").arg("+"),
        _ => pipe.cmd("GET").arg(key),
    };
}

fn lines(kind: &str, value: Value) -> RedisResult<Vec<String>> {
    let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
    if kind == "hash" {
        let fields: Vec<(Vec<u8>, Vec<u8>)> = redis::from_redis_value(value)?;
        let line = |(name, value): &(Vec<u8>, Vec<u8>)| {
            let line = format!("{} = {}", shown(name), shown(value));
            line.trim_end().to_owned()
        };
        let mut lines: Vec<_> = fields.iter().map(line).collect();
        lines.sort();
        return Ok(lines);
    }
    if kind == "zset" {
        // A score is a number for a client with RESP3, and text for others.
        let scores: Vec<(Vec<u8>, f64)> = redis::from_redis_value(value)?;
        let line = |(member, score): &(Vec<u8>, f64)| format!("{} = {score}", shown(member));
        return Ok(scores.iter().map(line).collect());
    }
    if kind == "string" {
        let value: Vec<u8> = redis::from_redis_value(value)?;
        return Ok(vec![shown(&value)]);
    }
    if kind == "stream" {
        // The ids depend on the server's time.
        let entries: Vec<(Vec<u8>, Vec<Vec<u8>>)> = redis::from_redis_value(value)?;
        let line = |(_, words): &(Vec<u8>, Vec<Vec<u8>>)| {
            let words: Vec<_> = words.iter().map(|word| shown(word)).collect();
            words.join(" ").trim_end().to_owned()
        };
        return Ok(entries.iter().map(line).collect());
    }
    let items: Vec<Vec<u8>> = redis::from_redis_value(value)?;
    let mut lines: Vec<_> = items.iter().map(|item| shown(item)).collect();
    if kind == "set" {
        lines.sort();
    }
    Ok(lines)
}
