//! Certificates for a `rediss` connection, read from their files.

use std::path::{Path, PathBuf};

use redis::{ClientTlsConfig, TlsCertificates};

use super::TargetError;

/// PEM files for a `rediss` connection, as redis-cli's `--cacert`, `--cert` and `--key`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate authorities for the server. Default: those of the system.
    pub ca: Option<PathBuf>,
    /// The client's certificate.
    pub cert: Option<PathBuf>,
    /// The key of the client's certificate.
    pub key: Option<PathBuf>,
}

impl TlsFiles {
    /// Reads the files; `None` if there are none.
    pub(crate) fn read(&self) -> Result<Option<TlsCertificates>, TargetError> {
        if *self == Self::default() {
            return Ok(None);
        }
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: pem("client certificate", cert)?,
                client_key: pem("client key", key)?,
            }),
            (None, None) => None,
            (Some(_), None) => return Err(TargetError::HalfCertificate("key")),
            (None, Some(_)) => return Err(TargetError::HalfCertificate("certificate")),
        };
        let ca = self.ca.as_ref();
        let root_cert = ca.map(|path| pem("CA certificate", path)).transpose()?;
        Ok(Some(TlsCertificates {
            client_tls,
            root_cert,
        }))
    }
}

fn pem(what: &'static str, path: &Path) -> Result<Vec<u8>, TargetError> {
    std::fs::read(path).map_err(|e| TargetError::Pem {
        what,
        path: path.to_owned(),
        reason: e.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_is_whole() {
        let half = TlsFiles {
            cert: Some("c.pem".into()),
            ..TlsFiles::default()
        };
        assert_eq!(
            half.read().unwrap_err(),
            TargetError::HalfCertificate("key")
        );
        assert!(TlsFiles::default().read().unwrap().is_none());
    }
}
