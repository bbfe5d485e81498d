//! `meshwork action gateway` under attack: web pages of other hosts, idle and slow connections, big bodies, invented names.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use crate::common::http::{Came, JSON, came, connect, gateway, get, post, service, text};
use crate::common::{BOUND, Ground, on_all_data};
use rustix::net::{AddressFamily, SocketType};

const TOKEN: &str = "authorization: Bearer sesame\r\n";
const COUNT: &str = "/actions/demo/batch/count";
const ITEMS: &str = "{\"items\":[]}";
/// Connections that an address may have.
const A_PEER: usize = 64;

/// An answer on a connection that goes on.
fn answer(stream: &mut TcpStream) -> Came {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        let read = stream.read(&mut byte).unwrap();
        assert_eq!(read, 1, "closed after {:?}", String::from_utf8_lossy(&head));
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut came = Came {
        status,
        head,
        body: String::new(),
    };
    if let Some(length) = came.header("content-length") {
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        came.body = String::from_utf8(body).unwrap();
    }
    came
}

/// The same request for an action, but its connection goes on.
fn kept(address: &str, headers: &str) -> String {
    let request = text(address, COUNT, &format!("{JSON}{headers}"), ITEMS);
    request.replace("connection: close\r\n", "")
}

/// A connection from another address of this machine.
fn from(source: [u8; 4], address: &str, request: &str) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    rustix::net::connect(&socket, &address.parse::<SocketAddr>().unwrap()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(BOUND)).unwrap();
    stream.write_all(request.as_bytes()).ok();
    stream
}

on_all_data! {
    fn a_page_of_another_host_is_refused(ground: &Ground) {
        let service = service(ground, "streams");
        let words = ["--allow-host", "api.example", "--allow-origin", "https://app.example"];
        let (gateway, address) = gateway(ground, &words, None);
        let port = address.rsplit_once(':').unwrap().1;
        let post = |target: &str, version: &str, headers: &str| {
            let length = ITEMS.len();
            let text = format!("POST {target} HTTP/{version}\r\nconnection: close\r\n{JSON}{headers}content-length: {length}\r\n\r\n{ITEMS}");
            came(connect(&address, &text))
        };
        let host = format!("host: {address}\r\n");
        for headers in [
            host.clone(),
            format!("host: LocalHost:{port}\r\n"),
            format!("host: localhost.:{port}\r\n"),
            format!("host: [::1]:{port}\r\n"),
            "host: api.example\r\norigin: https://api.example\r\n".to_owned(),
            "host: API.example.:8443\r\n".to_owned(),
            format!("{host}origin: http://{address}\r\n"),
            format!("{host}origin: https://app.example\r\n"),
            format!("{host}origin: HTTPS://App.Example:443\r\n"),
        ] {
            let came = post(COUNT, "1.1", &headers);
            assert_eq!((came.status, came.body.as_str()), (200, "{\"count\":0}"), "{headers}");
        }
        for (headers, status, code) in [
            (format!("host: evil.example:{port}\r\n"), 403, "HOST_NOT_ALLOWED"),
            (format!("host: localhost.evil.example:{port}\r\n"), 403, "HOST_NOT_ALLOWED"),
            ("host: localhost:1\r\n".to_owned(), 403, "HOST_NOT_ALLOWED"),
            ("host: localhost\r\n".to_owned(), 403, "HOST_NOT_ALLOWED"),
            (format!("host: [::2]:{port}\r\n"), 403, "HOST_NOT_ALLOWED"),
            (format!("host: localhost:{port}@evil.example\r\n"), 400, "BAD_HOST"),
            (format!("host: {address}\r\nhost: evil.example\r\n"), 400, "BAD_HOST"),
            ("host: \r\n".to_owned(), 400, "BAD_HOST"),
            (String::new(), 400, "BAD_HOST"),
            (format!("{host}origin: http://evil.example\r\n"), 403, "ORIGIN_NOT_ALLOWED"),
            (format!("{host}origin: http://localhost:{port}\r\n"), 403, "ORIGIN_NOT_ALLOWED"),
            (format!("{host}origin: null\r\n"), 403, "ORIGIN_NOT_ALLOWED"),
            (format!("{host}origin: http://{address}\r\norigin: http://evil.example\r\n"), 403, "ORIGIN_NOT_ALLOWED"),
            (format!("{host}origin: http://app.example\r\n"), 403, "ORIGIN_NOT_ALLOWED"),
        ] {
            let came = post(COUNT, "1.1", &headers);
            assert_eq!((came.status, came.code().as_str()), (status, code), "{headers}: {}", came.body);
        }
        // The target in its absolute form says the host too.
        let absolute = |host: &str| format!("http://{host}{COUNT}");
        assert_eq!(post(&absolute(&address), "1.1", &host).status, 200);
        let refused = post(&absolute("evil.example"), "1.1", &host);
        assert_eq!((refused.status, refused.code().as_str()), (403, "HOST_NOT_ALLOWED"));
        let refused = post(&absolute(&address), "1.1", "host: evil.example\r\n");
        assert_eq!((refused.status, refused.code().as_str()), (403, "HOST_NOT_ALLOWED"));
        // No browser says HTTP/1.0; a load balancer does, and gives no host.
        assert_eq!(post(COUNT, "1.0", "").code(), "BAD_HOST");
        assert_eq!(came(connect(&address, "GET /healthz HTTP/1.0\r\n\r\n")).status, 200);
        let probe = came(connect(&address, "GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"));
        assert_eq!(probe.code(), "HOST_NOT_ALLOWED");
        gateway.stop();
        service.stop();
    }

    /// A page whose origin is allowed may ask what it may send, and may read the answer.
    fn an_allowed_origin_reads_the_answer(ground: &Ground) {
        let (gateway, address) = gateway(ground, &["--allow-origin", "https://app.example"], Some("sesame"));
        let ask = |origin: &str| {
            let text = format!("OPTIONS {COUNT} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\norigin: {origin}\r\naccess-control-request-method: POST\r\n\r\n");
            came(connect(&address, &text))
        };
        let response = ask("https://app.example");
        assert_eq!((response.status, response.header("access-control-allow-origin")), (204, Some("https://app.example")));
        assert!(response.header("access-control-allow-headers").unwrap().contains("authorization"));
        assert_eq!(ask("https://evil.example").status, 403);
        let refused = post(&address, COUNT, &format!("{JSON}origin: https://app.example\r\n"), ITEMS);
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some("https://app.example")));
        gateway.stop();
    }

    /// Connections that say nothing and such that never end their head, from the address of all others.
    fn idle_and_slow_connections_shut_nobody_out(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--concurrency", "8"], Some("sesame"));
        let mut client = connect(&address, &kept(&address, TOKEN));
        assert_eq!(answer(&mut client).status, 200);
        for number in [72, 500] {
            let crowd: Vec<_> = (0..number)
                .map(|at| connect(&address, ["", "GET /healthz HTTP/1.1\r\nho"][at % 2]))
                .collect();
            client.write_all(kept(&address, TOKEN).as_bytes()).unwrap();
            assert_eq!(answer(&mut client).status, 200, "beside {number}");
            assert_eq!(post(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS).status, 200, "beside {number}");
            for path in ["/healthz", "/readyz"] {
                assert_eq!(get(&address, path).status, 200, "beside {number}");
                assert_eq!(came(from([127, 0, 0, 2], &address, &format!("GET {path} HTTP/1.0\r\n\r\n"))).status, 200);
            }
            drop(crowd);
        }
        gateway.stop();
        service.stop();
    }

    /// Without a required token, neither idle connections nor slow bodies block a new connection.
    fn an_open_gateway_is_not_shut_either(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--concurrency", "8"], None);
        let whole = text(&address, COUNT, JSON, ITEMS);
        let slow = &whole[..whole.len() - 1];
        let _crowd: Vec<_> = (0..144).map(|at| connect(&address, ["", slow][at % 2])).collect();
        for path in ["/healthz", "/readyz"] {
            assert_eq!(get(&address, path).status, 200);
        }
        assert_eq!(post(&address, COUNT, JSON, ITEMS).status, 200);
        gateway.stop();
        service.stop();
    }

    /// A burst of clients with the token is no attack: each one is answered.
    fn many_clients_at_once_are_served(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &[], Some("sesame"));
        let request = text(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS);
        let all: Vec<_> = (0..50).map(|_| connect(&address, &request)).collect();
        for stream in all {
            assert_eq!(came(stream).status, 200);
        }
        gateway.stop();
        service.stop();
    }

    /// A client with a token is refused beyond its limit of connections; other clients and probes are answered.
    fn an_address_has_so_many_connections(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &[], Some("sesame"));
        let mut all: Vec<_> = (0..A_PEER).map(|_| connect(&address, &kept(&address, TOKEN))).collect();
        for stream in &mut all {
            assert_eq!(answer(stream).status, 200);
        }
        let request = text(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS);
        let refused = came(connect(&address, &request));
        assert_eq!((refused.status, refused.code().as_str(), refused.header("retry-after")), (503, "TOO_MANY_CONNECTIONS", Some("1")));
        assert_eq!(get(&address, "/healthz").status, 200);
        assert_eq!(get(&address, "/readyz").status, 200);
        assert_eq!(came(from([127, 0, 0, 2], &address, &request)).status, 200);
        drop(all.pop());
        crate::common::eventually("there is room", || (came(connect(&address, &request)).status == 200).then_some(()));
        gateway.stop();
        service.stop();
    }

    /// Every byte comes in its time, and the head does not.
    fn a_head_has_to_come_in_time_as_a_whole(ground: &Ground) {
        let (gateway, address) = gateway(ground, &["--read-timeout", "0.5"], Some("sesame"));
        let mut slow = connect(&address, "GET /healthz HTTP/1.1\r\nx: ");
        slow.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let cut = (0..2_000).any(|_| {
            slow.write_all(b"x").is_err() || !matches!(slow.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        });
        assert!(cut, "it may go on for 40 s");
        // So does one that goes on.
        let mut kept = connect(&address, &format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n"));
        assert_eq!(answer(&mut kept).status, 200);
        assert_eq!(kept.read(&mut [0]).unwrap(), 0);
        gateway.stop();
    }

    fn a_slow_body_holds_no_slot(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--concurrency", "1"], None);
        let whole = text(&address, COUNT, &format!("{JSON}expect: 100-continue\r\n"), ITEMS);
        let mut slow = connect(&address, &whole[..whole.len() - ITEMS.len()]);
        // The refusal comes when the body is read.
        assert_eq!(answer(&mut slow).status, 100);
        slow.write_all(&ITEMS.as_bytes()[..1]).unwrap();
        let other = post(&address, COUNT, JSON, ITEMS);
        assert_eq!(other.status, 200, "{}", other.body);
        slow.write_all(&ITEMS.as_bytes()[1..]).unwrap();
        assert_eq!(answer(&mut slow).status, 200);
        gateway.stop();
        service.stop();
    }

    fn bodies_are_bounded_together(ground: &Ground) {
        const MIB: usize = 1024 * 1024;
        let (gateway, address) = gateway(ground, &["--max-body", "67108864", "--service", "demo"], None);
        let head = |length: usize| format!("POST {COUNT} HTTP/1.1\r\nhost: {address}\r\n{JSON}content-length: {length}\r\nconnection: close\r\n\r\n");
        let mut first = connect(&address, &head(40 * MIB));
        first.write_all(&vec![b' '; 40 * MIB - 1]).unwrap();
        crate::common::eventually("there is no room for both", || {
            let mut second = connect(&address, &head(30 * MIB));
            // It is refused before all of it is there.
            second.write_all(&vec![b' '; 30 * MIB]).ok();
            let came = came(second);
            (came.status == 503 && came.code() == "TOO_MANY_BODIES").then_some(())
        });
        first.write_all(b"x").unwrap();
        assert_eq!(came(first).code(), "BAD_BODY");
        let mut third = connect(&address, &head(30 * MIB));
        third.write_all(&vec![b' '; 30 * MIB]).unwrap();
        assert_eq!(came(third).code(), "BAD_BODY");
        gateway.stop();
    }

    fn an_invented_service_leaves_no_key(ground: &Ground) {
        for dialect in ["streams", "lists"] {
            // The embedded engine is in the process that starts first.
            let (gateway, address) = gateway(ground, &["--dialect", dialect], Some("sesame"));
            let service = service(ground, dialect);
            // The keys of the gateway itself are there, and nobody else makes some.
            assert_eq!(post(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS).status, 200);
            service.stop();
            let before = ground.keys();
            thread::scope(|scope| {
                for part in 0..8 {
                    let address = &address;
                    scope.spawn(move || {
                        for number in (0..1_000).filter(|it| it % 8 == part) {
                            let path = format!("/actions/invented-{number}/run");
                            let came = post(address, &path, &format!("{JSON}{TOKEN}"), "{}");
                            assert_eq!((came.status, came.code().as_str()), (404, "UNKNOWN_SERVICE"), "{path}");
                        }
                    });
                }
            });
            let new: Vec<_> = ground.keys().into_iter().filter(|key| !before.contains(key)).collect();
            let first = new.first().map(|key| String::from_utf8_lossy(key));
            assert!(new.is_empty(), "{} keys before, {} new ones, such as {first:?}", before.len(), new.len());
            gateway.stop();
        }
    }

    fn a_token_or_the_word_is_needed_to_start(ground: &Ground) {
        let said = ground.run(&["action", "gateway", "--addr", "127.0.0.1:0"]).exits(2).stderr;
        for word in ["MESHWORK_GATEWAY_TOKEN", "--token-file", "--insecure-no-auth"] {
            assert!(said.contains(word), "{said}");
        }
        ground.file("token", "sesame\n");
        ground.file("empty", "\n");
        ground.file("two", "open sesame\n");
        for words in [
            &["--token-file", "empty"][..],
            &["--token-file", "two"],
            &["--token-file", "absent"],
            &["--token-file", "token", "--insecure-no-auth"],
        ] {
            let args = [&["action", "gateway", "--addr", "127.0.0.1:0"], words].concat();
            let said = ground.run(&args).exits(2).stderr;
            assert!(!said.contains("sesame"), "{said}");
        }
        let both = ["action", "gateway", "--addr", "127.0.0.1:0", "--insecure-no-auth"];
        let mut both = ground.command(&both);
        both.env("MESHWORK_GATEWAY_TOKEN", "sesame");
        crate::common::Running::start(both).ended().exits(2);
    }

    fn a_token_comes_from_a_file(ground: &Ground) {
        ground.file("token", "sesame\n");
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &["--token-file", "token"], Some(""));
        assert_eq!(post(&address, COUNT, JSON, ITEMS).status, 401);
        assert_eq!(post(&address, COUNT, &format!("{JSON}{TOKEN}"), ITEMS).status, 200);
        gateway.stop();
        service.stop();
    }
}

on_all_data! {
    fn a_request_with_two_lengths_is_refused(ground: &Ground) {
        let service = service(ground, "streams");
        let (gateway, address) = gateway(ground, &[], None);
        let chunked = format!("{:x}\r\n{ITEMS}\r\n0\r\n\r\n", ITEMS.len());
        let head = format!("POST {COUNT} HTTP/1.1\r\nhost: {address}\r\n{JSON}");
        let length = format!("content-length: {}\r\n", chunked.len());
        let coded = "transfer-encoding: chunked\r\n";
        for lengths in [format!("{length}{coded}"), format!("{coded}{length}")] {
            let came = came(connect(&address, &format!("{head}{lengths}\r\n{chunked}")));
            assert_eq!(came.status, 400, "{}", came.body);
            assert!(came.body.contains("TWO_LENGTHS"), "{}", came.body);
            assert_eq!(came.header("connection"), Some("close"));
        }
        // A request that is hidden behind a body is never seen.
        let hidden = format!("{head}{coded}\r\n{chunked}GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let mut stream = connect(&address, &hidden);
        let mut answers = String::new();
        stream.read_to_string(&mut answers).ok();
        assert_eq!(answers.matches("HTTP/1.1").count(), 1, "{answers}");
        assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
        gateway.stop();
        service.stop();
    }
}
