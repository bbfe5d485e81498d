//! TLS to a server whose authorities are in a file. A certificate in that file is also trusted as the server's own,
//! as in OpenSSL and redis-cli. Plain `openssl req -x509` creates one that is marked as an authority's, which rustls
//! refuses for a server. Its name, its validity and the server's key are checked as usual.
//!
//! This module also words the errors of TLS, for all kinds of connections.

use std::error::Error as _;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use redis::{ClientTlsConfig, RedisError, RedisResult, TlsCertificates};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::target::{Server, TlsFiles};

/// Connects by TLS with the authorities of a file.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Returns `None` if there is no file of authorities. The redis crate then uses those of the system.
    pub(super) fn new(files: &TlsCertificates) -> Result<Option<Self>, String> {
        let Some(given) = &files.root_cert else {
            return Ok(None);
        };
        let given = CertificateDer::pem_slice_iter(given).collect::<Result<Vec<_>, _>>();
        let given = given.map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            let added = roots.add(certificate.clone());
            added.map_err(|error| error.to_string())?;
        }
        Self::trusting(roots, given, files.client_tls.as_ref()).map(Some)
    }

    /// Trusts these authorities, and these certificates as the server's own.
    fn trusting(
        roots: RootCertStore,
        given: Vec<CertificateDer<'static>>,
        client: Option<&ClientTlsConfig>,
    ) -> Result<Self, String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let usual = WebPkiServerVerifier::builder(Arc::new(roots)).build();
        let usual = usual.map_err(|error| words(&error))?;
        let verifier = Arc::new(OrGiven { usual, given });
        let config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match client {
            None => config.with_no_client_auth(),
            Some(client) => {
                let chain = CertificateDer::pem_slice_iter(&client.client_cert);
                let chain = chain.collect::<Result<Vec<_>, _>>();
                let chain = chain.map_err(|error| words(&error))?;
                let key = PrivateKeyDer::from_pem_slice(&client.client_key);
                let key = key.map_err(|error| words(&error))?;
                let config = config.with_client_auth_cert(chain, key);
                config.map_err(|error| words(&error))?
            }
        };
        Ok(Self(Arc::new(config).into()))
    }

    /// Opens a connection without login.
    pub(super) async fn connect(&self, host: &str, port: u16) -> RedisResult<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let socket = TcpStream::connect((host, port)).await?;
        Server::prepare(&socket)?;
        Ok(self.0.connect(name, socket).await?)
    }
}

/// Opens a connection by TLS to a server that is no store, such as the API of a supervisor behind a proxy. Without a file of
/// authorities those of the system are trusted.
///
/// # Errors
/// A file cannot be read, or the connection fails.
pub async fn connect_by_tls(
    files: &TlsFiles,
    (host, port): (&str, u16),
) -> io::Result<TlsStream<TcpStream>> {
    let certificates = files.read().map_err(io::Error::other)?;
    let client = certificates.as_ref().and_then(|it| it.client_tls.as_ref());
    let own = certificates.as_ref().map_or(Ok(None), Tls::new);
    let tls = match own.map_err(io::Error::other)? {
        Some(tls) => tls,
        None => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Tls::trusting(roots, Vec::new(), client).map_err(io::Error::other)?
        }
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let socket = TcpStream::connect((host, port)).await?;
    tls.0.connect(name, socket).await
}

/// Verifies like rustls, but accepts an authority's certificate in the file as a server's.
#[derive(Debug)]
struct OrGiven {
    usual: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for OrGiven {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self
            .usual
            .verify_server_cert(certificate, between, name, ocsp, now);
        match verified {
            // rustls checks the validity period before this.
            Err(error) if is_of_authority(&error) && self.given.contains(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Returns whether a certificate is refused because it is an authority's.
fn is_of_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error
    else {
        return false;
    };
    let other = other.downcast_ref::<webpki::Error>();
    matches!(other, Some(webpki::Error::CaUsedAsEndEntity))
}

/// Returns the TLS error of a failed connection, if there is one.
fn of_tls(error: &RedisError) -> Option<&rustls::Error> {
    let cause = error
        .source()?
        .downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
}

/// Returns the reason of a failed handshake, with a remedy; `None` if the connection failed for another reason.
pub(super) fn reason(error: &RedisError) -> Option<String> {
    use CertificateError as C;
    let error = of_tls(error)?;
    let what_to_do = match error {
        rustls::Error::InvalidCertificate(why) => match why {
            C::UnknownIssuer => {
                "no known authority has signed the server's certificate: give the authority's with --tls-ca"
            }
            C::Expired | C::ExpiredContext { .. } => "renew the server's certificate",
            C::NotValidYet | C::NotValidYetContext { .. } => {
                "look at the clocks of this host and of the server"
            }
            C::NotValidForName | C::NotValidForNameContext { .. } => {
                "connect by a name that the certificate has, or make one with this name as a subjectAltName"
            }
            _ if is_of_authority(error) => {
                "the server's certificate is marked as an authority's (CA:TRUE): give that very certificate with \
                 --tls-ca, or make one with `-addext basicConstraints=critical,CA:FALSE`"
            }
            _ => "make another certificate for the server",
        },
        rustls::Error::AlertReceived(alert) if is_about_client(*alert) => {
            "the server wants a certificate of its clients: give one that it knows with --tls-cert and --tls-key"
        }
        rustls::Error::InvalidMessage(_) => {
            "the server speaks no TLS on this port: give its port for TLS, or the scheme redis:// instead of rediss://"
        }
        _ => return Some(error.to_string()),
    };
    Some(format!("{error}; {what_to_do}"))
}

/// Returns whether an alert means that the client's certificate is missing or refused.
fn is_about_client(alert: AlertDescription) -> bool {
    use AlertDescription as A;
    matches!(
        alert,
        A::CertificateRequired
            | A::NoCertificate
            | A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::AccessDenied
            | A::HandshakeFailure
    )
}
