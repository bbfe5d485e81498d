//! Certificates for one server and its clients, signed by a fresh authority.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};

/// Files in PEM for a server on 127.0.0.1 and its clients.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the authority that signed the others.
    pub ca: PathBuf,
    /// The client's certificate.
    pub client_cert: PathBuf,
    /// The client's key.
    pub client_key: PathBuf,
    pub(super) server_cert: PathBuf,
    pub(super) server_key: PathBuf,
}

/// A certificate like that of plain `openssl req -x509`: self-signed, and that of an authority (CA:TRUE).
#[derive(Clone, Debug)]
pub struct SelfSigned {
    /// Its hosts: names or addresses.
    pub names: Vec<String>,
    /// True if it has expired.
    pub expired: bool,
}

impl TlsFiles {
    /// Creates such a certificate, which serves as the server's, the authority's and the client's.
    ///
    /// # Panics
    /// The directory cannot be written, or a name is not valid.
    #[must_use]
    pub fn self_signed(dir: &Path, of: &SelfSigned) -> Self {
        let mut params = CertificateParams::new(of.names.clone()).expect("the names are valid");
        params.distinguished_name = named("itself");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        if of.expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 1, 2);
        }
        let key = new_key();
        let cert = params.self_signed(&key).expect("it can sign itself");
        let cert = write(dir, "self.crt", &cert.pem());
        let key = write(dir, "self.key", &key.serialize_pem());
        Self {
            ca: cert.clone(),
            client_cert: cert.clone(),
            client_key: key.clone(),
            server_cert: cert,
            server_key: key,
        }
    }

    /// Creates an authority, and certificates of it for a server on 127.0.0.1 and for a client.
    ///
    /// # Panics
    /// The directory cannot be written.
    #[must_use]
    pub fn make(dir: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority =
            CertifiedIssuer::self_signed(params, new_key()).expect("an authority can be made");
        let ca = write(dir, "ca.crt", &authority.pem());
        let (server_cert, server_key) = signed(dir, "server", &authority);
        let (client_cert, client_key) = signed(dir, "client", &authority);
        Self {
            ca,
            client_cert,
            client_key,
            server_cert,
            server_key,
        }
    }
}

/// Returns a name, which must be unique for each certificate: one with the name of its issuer counts as self-signed.
fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key can be made")
}

fn signed(dir: &Path, name: &str, authority: &CertifiedIssuer<'_, KeyPair>) -> (PathBuf, PathBuf) {
    let key = new_key();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut params = CertificateParams::new(names).expect("the names are valid");
    params.distinguished_name = named(name);
    let cert = params
        .signed_by(&key, authority)
        .expect("a certificate can be signed");
    (
        write(dir, &format!("{name}.crt"), &cert.pem()),
        write(dir, &format!("{name}.key"), &key.serialize_pem()),
    )
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("the server's directory can be written");
    path
}
