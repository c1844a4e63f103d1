//! A running `pgdyno serve`, and the least of a browser: requests over a socket, answers in their
//! parts.

use super::Home;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// What is awaited for longer does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `pgdyno serve`, killed with it.
pub struct Web {
    child: Option<Child>,
    /// As in the Host header.
    pub address: String,
    /// What lets a request in.
    pub token: String,
}

/// An answer.
pub struct Reply {
    /// Of HTTP.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Without its chunks.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header, empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, which its type must say that it is.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json", "{}", self.text());
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// Asserts that it is a problem of the right form, with these texts in it.
    #[track_caller]
    pub fn is_problem(&self, status: u16, texts: &[&str]) {
        let text = self.text();
        assert_eq!(self.status, status, "{text}");
        let problem = self.json();
        assert!(
            problem["error"].is_string() && problem.get("what_to_do").is_some(),
            "{text}"
        );
        for expected in texts {
            assert!(text.contains(expected), "\"{expected}\" is not in {text}");
        }
    }
}

impl Web {
    /// Starts on a free port with the usual store of that home.
    #[track_caller]
    pub fn start(home: &Home, more: &[&str]) -> Web {
        let mut child = home.spawn(&[&["serve", "--listen", "127.0.0.1:0"], more].concat());
        let mut link = String::new();
        let printed = child.stdout.take().expect("a pipe");
        BufReader::new(printed).read_line(&mut link).expect("a line");
        let parts = link
            .trim()
            .strip_prefix("http://")
            .and_then(|link| link.split_once("/?token="));
        let Some((address, token)) = parts else {
            panic!("no link: {link}\n{}", errors_of(&mut child));
        };
        Web {
            child: Some(child),
            address: address.to_owned(),
            token: token.to_owned(),
        }
    }

    /// One that has not said yet where it is: it can be stopped.
    pub fn of(child: Child) -> Web {
        Web {
            child: Some(child),
            address: String::new(),
            token: String::new(),
        }
    }

    /// Sends a request as it is given, with nothing added but `Connection: close`.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        text += body;
        stream.write_all(text.as_bytes()).expect("sent");
        stream
    }

    /// The answer to a request as it is given.
    #[track_caller]
    pub fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        reply(BufReader::new(self.send(method, path, headers, body)))
    }

    #[track_caller]
    fn send_with_token(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> TcpStream {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Host", self.address.as_str()), ("Authorization", &bearer)];
        self.send(method, path, &[&headers, more].concat(), body)
    }

    /// The same with this server's host and the token.
    #[track_caller]
    pub fn ask(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Reply {
        reply(BufReader::new(self.send_with_token(method, path, more, body)))
    }

    /// Asks for a path with the token.
    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], "")
    }

    /// The JSON of an answer that went well.
    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// The events of an experiment as they come.
    #[track_caller]
    pub fn events(&self, path: &str, more: &[(&str, &str)]) -> Events {
        let mut stream = BufReader::new(self.send_with_token("GET", path, more, ""));
        let (status, headers) = head(&mut stream);
        assert_eq!(status, 200);
        assert!(
            headers.contains(&("content-type".into(), "text/event-stream".into())),
            "{headers:?}"
        );
        Events {
            stream,
            text: Vec::new(),
            id: String::new(),
        }
    }

    /// Process id of the server.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Waits for its end; how it ended, and what it has said.
    pub fn ended(mut self) -> (ExitStatus, String) {
        let mut child = self.child.take().expect("it runs");
        let said = errors_of(&mut child);
        (child.wait().expect("it ends"), said)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Server-sent events.
pub struct Events {
    stream: BufReader<TcpStream>,
    text: Vec<u8>,
    /// Of the last event that had one.
    pub id: String,
}

impl Events {
    /// The next event: name and data; `None` at the end.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "it panics at the caller")]
    pub fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let whole = self.text.windows(2).position(|two| two == b"\n\n");
            if let Some(end) = whole {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                let event = String::from_utf8(event).expect("text");
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                if let Some(id) = field("id: ") {
                    id.clone_into(&mut self.id);
                }
                let data = field("data: ").expect("data");
                let name = field("event: ").expect("a name").to_owned();
                return Some((name, serde_json::from_str(data).expect("JSON")));
            }
            if !chunk(&mut self.stream, &mut self.text) {
                return None;
            }
        }
    }

    /// The data of the next event of this name; others before it are passed over.
    #[track_caller]
    pub fn until(&mut self, name: &str) -> Value {
        loop {
            let (found, data) = self.next().unwrap_or_else(|| panic!("no event {name}"));
            if found == name {
                return data;
            }
        }
    }
}

/// All that a process says until it ends.
fn errors_of(child: &mut Child) -> String {
    let mut said = String::new();
    let mut pipe = child.stderr.take().expect("a pipe");
    pipe.read_to_string(&mut said).expect("text");
    said
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).expect("a line");
    line.trim_end().to_owned()
}

fn head(stream: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let status = line(stream);
    let status = status
        .split(' ')
        .nth(1)
        .expect("a status")
        .parse()
        .expect("a number");
    let mut headers = Vec::new();
    loop {
        let line = line(stream);
        match line.split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => return (status, headers),
        }
    }
}

/// The whole answer.
fn reply(mut stream: BufReader<TcpStream>) -> Reply {
    let (status, headers) = head(&mut stream);
    let mut body = Vec::new();
    let is_chunked = headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    match is_chunked {
        true => while chunk(&mut stream, &mut body) {},
        false => {
            stream.read_to_end(&mut body).expect("a body");
        }
    }
    Reply {
        status,
        headers,
        body,
    }
}

/// One chunk of a body; false at its end.
fn chunk(stream: &mut BufReader<TcpStream>, into: &mut Vec<u8>) -> bool {
    let length = line(stream);
    let Ok(length) = usize::from_str_radix(&length, 16) else {
        return false;
    };
    let mut bytes = vec![0; length + 2];
    stream.read_exact(&mut bytes).expect("a chunk");
    into.extend(&bytes[..length]);
    length > 0
}
