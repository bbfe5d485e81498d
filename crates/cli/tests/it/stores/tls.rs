//! Connections over TLS: certificates that sign themselves, and errors that name the reason.

use std::path::Path;

use crate::common::Ground;
use meshwork_test_servers::servers::{RealServer, SelfSigned, TlsFiles};

/// The command with this file of authorities has no connection, and says why in these words.
fn refused(url: &str, ca: Option<&Path>, words: &[&str]) {
    let ground = Ground::url(url);
    let mut args = vec!["job", "list"];
    if let Some(ca) = ca {
        args.extend(["--tls-ca", ca.to_str().unwrap()]);
    }
    let done = ground.run(&args).exits(3);
    for word in words {
        assert!(
            done.stderr.contains(word),
            "{word} is not in {}",
            done.stderr
        );
    }
    assert!(
        !done.stderr.contains("is the server running"),
        "{}",
        done.stderr
    );
}

fn itself(names: &[&str], expired: bool) -> SelfSigned {
    let names = names.iter().map(ToString::to_string).collect();
    SelfSigned { names, expired }
}

/// As `openssl req -x509` makes it: an authority that is the server's own certificate too.
#[test]
fn a_certificate_that_is_its_own_authority_is_taken() {
    let server = RealServer::redis().self_signed(itself(&["127.0.0.1"], false));
    let Some(server) = server.start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.file("a.rhai", "6 * 7");
    let ca = server.tls_files().unwrap().ca.clone();
    let done = ground
        .run(&["run", "a.rhai", "--tls-ca", ca.to_str().unwrap()])
        .ok();
    assert_eq!(done.stdout, "42\n");
    // It is trusted since it was given, and no other one is.
    let folder = tempfile::tempdir().unwrap();
    let other = TlsFiles::self_signed(folder.path(), &itself(&["127.0.0.1"], false));
    refused(&server.url(), Some(&other.ca), &["certificate", "--tls-ca"]);
    refused(&server.url(), None, &["certificate", "--tls-ca"]);
}

/// Being given does not make it one for another host.
#[test]
fn its_name_is_checked_all_the_same() {
    let server = RealServer::redis().self_signed(itself(&["db.example"], false));
    let Some(server) = server.start() else {
        return;
    };
    let ca = &server.tls_files().unwrap().ca;
    refused(&server.url(), Some(ca), &["127.0.0.1", "db.example"]);
}

#[test]
fn its_time_is_checked_all_the_same() {
    let server = RealServer::redis().self_signed(itself(&["127.0.0.1"], true));
    let Some(server) = server.start() else {
        return;
    };
    let ca = &server.tls_files().unwrap().ca;
    refused(&server.url(), Some(ca), &["expired"]);
}

#[test]
fn the_reason_is_named() {
    let (Some(server), Some(plain)) = (
        RealServer::redis().tls().start(),
        RealServer::redis().start(),
    ) else {
        return;
    };
    let files = server.tls_files().unwrap();
    refused(&server.url(), None, &["authority", "--tls-ca"]);
    refused(&server.url(), Some(&files.ca), &["--tls-cert", "--tls-key"]);
    // It waits for the end of a command, and answers nothing.
    let ground = Ground::url(plain.url().replace("redis://", "rediss://"));
    let said = ground.run(&["job", "list"]).exits(3).stderr;
    assert!(said.contains("has no TLS on this port"), "{said}");
}
