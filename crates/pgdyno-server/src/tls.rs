//! TLS: libpq's sslmode and files, as a configuration of rustls.
//!
//! Source: PostgreSQL documentation, "SSL Support" of libpq.

use pgdyno_host::given_bytes;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::time::Time;

/// How much a connection must be secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Disable,
    /// Where plain text is refused.
    Allow,
    /// Where the server has it, and does not refuse it.
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    pub(crate) fn named(word: &str) -> Option<Mode> {
        Some(match word {
            "disable" => Mode::Disable,
            "allow" => Mode::Allow,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }
}

/// The certificates that a server's signature is checked by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Roots {
    None,
    File(PathBuf),
    System,
}

/// The files of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) roots: Roots,
    /// The client's own certificate and key.
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
}

/// A configuration for this mode; the reason where it cannot be had.
pub(crate) fn client_config(mode: Mode, files: &Files) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        trusted: trusted(mode, files, &provider)?,
        with_name: mode == Mode::VerifyFull,
        provider: Arc::clone(&provider),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match &files.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            builder
                .with_client_auth_cert(chain, private_key(key)?)
                .map_err(|e| format!("{} and {}: {e}", certificate.display(), key.display()))?
        }
    };
    // Who shakes hands unasked (sslnegotiation=direct) must say for what; others may.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Arc::new(config))
}

fn trusted(mode: Mode, files: &Files, provider: &Arc<CryptoProvider>) -> Result<Option<Trusted>, String> {
    let certificates = match &files.roots {
        Roots::None if mode < Mode::VerifyCa => return Ok(None),
        Roots::None => {
            return Err(
                "the server's certificate is to be verified, and there is no sslrootcert (nor ~/.postgresql/root.crt); \
                 sslrootcert=system takes this machine's own"
                    .into(),
            );
        }
        Roots::File(path) => certificates(path)?,
        Roots::System => {
            let found = rustls_native_certs::load_native_certs();
            if found.certs.is_empty() {
                return Err(
                    "this machine has no trusted certificates of its own (sslrootcert=system)".into(),
                );
            }
            found.certs
        }
    };
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates.iter().cloned());
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|e| e.to_string())?;
    Ok(Some(Trusted { chain, certificates }))
}

/// All authorities that a distribution trusts take a quarter of a megabyte.
const PEM_BYTES_MAX: u64 = 16 << 20;

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |e: &dyn fmt::Display| format!("{} holds no certificate: {e}", path.display());
    let bytes = given_bytes(path, PEM_BYTES_MAX).map_err(|e| wrong(&e))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if all.is_empty() => Err(wrong(&"it is empty")),
        Ok(all) => Ok(all),
        Err(e) => Err(wrong(&e)),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let open_to_others = std::fs::metadata(path).is_ok_and(|meta| meta.mode() & 0o077 != 0);
    if open_to_others {
        return Err(format!(
            "the private key {} can be read by others; chmod 600 keeps them out",
            path.display()
        ));
    }
    let wrong = |e: &dyn fmt::Display| format!("{} holds no private key: {e}", path.display());
    let bytes = given_bytes(path, PEM_BYTES_MAX).map_err(|e| wrong(&e))?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|e| wrong(&e))
}

/// Whether a certificate's dates hold.
fn in_its_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed = Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let validity = &parsed.tbs_certificate.validity;
    let moment = |time: &Time| UnixTime::since_unix_epoch(time.to_unix_duration());
    let (not_before, not_after) = (moment(&validity.not_before), moment(&validity.not_after));
    if now.as_secs() < not_before.as_secs() {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            time: now,
            not_before,
        }));
    }
    // As OpenSSL, which counts the last second out.
    if now.as_secs() >= not_after.as_secs() {
        return Err(Error::InvalidCertificate(CertificateError::ExpiredContext {
            time: now,
            not_after,
        }));
    }
    Ok(())
}

#[derive(Debug)]
struct Trusted {
    chain: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

/// Verifies as much as the mode asks for.
#[derive(Debug)]
struct Verifier {
    /// `None`: any certificate will do, for secrecy without knowing from whom.
    trusted: Option<Trusted>,
    with_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        // A server that signed its own certificate is trusted by that very certificate, in its
        // time.
        if trusted.certificates.iter().any(|known| known == end_entity) {
            in_its_time(end_entity, now)?;
            if self.with_name {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let verified =
            trusted
                .chain
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The chain is checked before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.with_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
