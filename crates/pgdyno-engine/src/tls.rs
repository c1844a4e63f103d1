//! TLS of a client: plain bytes in, sealed bytes out, and the other way round. It moves nothing
//! itself.

use rustls::ClientConnection;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io::{self, Read, Write};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::ObjectIdentifier;

/// What sealing adds to a record: header, tag and type, and an answer to a change of keys now and
/// then.
const OVERHEAD_BYTES: usize = 512;
/// No record carries more (RFC 8446, section 5.1).
const RECORD_BYTES: usize = 1 << 14;
/// Opened bytes are passed on in pieces of this size.
const PIECE_BYTES: usize = 4096;

/// At most so long is a request of `plain` bytes when it is sealed.
pub(crate) fn sealed_bytes_max(plain: usize) -> usize {
    plain + (plain / RECORD_BYTES + 1) * OVERHEAD_BYTES
}

/// A connection with TLS established.
#[derive(Debug)]
pub(crate) struct Tls(Box<ClientConnection>);

impl Tls {
    pub(crate) fn new(connection: ClientConnection) -> Tls {
        Tls(Box::new(connection))
    }

    /// Opens what arrived and passes it on in pieces.
    pub(crate) fn open<E: From<io::Error>>(
        &mut self,
        mut sealed: &[u8],
        mut pass_on: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut piece = [0; PIECE_BYTES];
        while !sealed.is_empty() {
            self.0.read_tls(&mut sealed)?;
            self.0.process_new_packets().map_err(io::Error::other)?;
            loop {
                match self.0.reader().read(&mut piece) {
                    Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                    Ok(length) => pass_on(&piece[..length])?,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e.into()),
                }
            }
        }
        Ok(())
    }

    /// Seals `plain` into `out`, in place of what was there.
    pub(crate) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) {
        out.clear();
        // Into memory, neither of the two can fail; more than a record at once would fill the
        // connection's own buffer.
        for record in plain.chunks(RECORD_BYTES) {
            let _ = self.0.writer().write_all(record);
            while self.0.wants_write() && self.0.write_tls(out).is_ok() {}
        }
    }
}

/// What a server's certificate is to SCRAM: its hash by the algorithm of its signature, SHA-256 in
/// place of weaker ones. `None` for algorithms without a hash of their own.
///
/// Source: RFC 5929, section 4.1 (tls-server-end-point).
pub(crate) fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1");
    const ECDSA_SHA2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3");
    let algorithm = Certificate::from_der(certificate).ok()?.signature_algorithm.oid;
    let last = algorithm.arcs().last()?;
    let bits = match (algorithm.parent()?, last) {
        // md5, sha1, sha224 and sha256 with RSA; sha384; sha512.
        (RSA, 4 | 5 | 11 | 14) | (ECDSA_SHA2, 1 | 2) => 256,
        (RSA, 12) | (ECDSA_SHA2, 3) => 384,
        (RSA, 13) | (ECDSA_SHA2, 4) => 512,
        _ => return None,
    };
    Some(match bits {
        384 => Sha384::digest(certificate).to_vec(),
        512 => Sha512::digest(certificate).to_vec(),
        _ => Sha256::digest(certificate).to_vec(),
    })
}
