//! Certificates for tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Certificates made by openssl: an authority, a server's for localhost, a client's, and an
/// authority of strangers.
pub struct Certificates(PathBuf);

impl Certificates {
    /// Makes them, in a directory of their own.
    pub fn make(directory: PathBuf) -> Certificates {
        fs::create_dir_all(&directory).expect("made");
        let made = Certificates(directory);
        let authority = |name: &str| {
            made.openssl(&[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                &format!("/CN={name}"),
                "-keyout",
                &made.path(&format!("{name}.key")),
                "-out",
                &made.path(&format!("{name}.crt")),
            ]);
        };
        authority("authority");
        authority("strangers");
        made.signed("server", "localhost", "subjectAltName=DNS:localhost");
        made.signed("client", "certified", "extendedKeyUsage=clientAuth");
        made
    }

    /// A key and a certificate of the authority's, `file`.key and .crt, for a name and with an
    /// extension.
    pub fn signed(&self, file: &str, name: &str, extension: &str) {
        let extensions = self.0.join("extensions");
        fs::write(&extensions, extension).expect("written");
        let (key, request) = (
            self.path(&format!("{file}.key")),
            self.path(&format!("{file}.csr")),
        );
        self.openssl(&[
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            &format!("/CN={name}"),
            "-keyout",
            &key,
            "-out",
            &request,
        ]);
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-days",
            "2",
            "-CA",
            &self.path("authority.crt"),
            "-CAkey",
            &self.path("authority.key"),
            "-CAcreateserial",
            "-extfile",
            &extensions.to_string_lossy(),
            "-out",
            &self.path(&format!("{file}.crt")),
        ]);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("changed");
    }

    /// Runs openssl.
    pub fn openssl(&self, arguments: &[&str]) {
        let output = Command::new("openssl")
            .args(arguments)
            .output()
            .expect("openssl runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The path of one of their files.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}
