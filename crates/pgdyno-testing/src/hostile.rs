//! A server that begins as PostgreSQL does and then misbehaves: for tests, of the program too.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// How it misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It never answers the first packet.
    Mute,
    /// Notices without end before the session is open.
    StartupNotices,
    /// An error that goes on without end in place of a session.
    StartupError,
    /// It answers no question.
    Silent,
    /// It asks for COPY data.
    CopyIn,
    /// COPY data without end.
    CopyData,
    /// Errors without end.
    Errors,
    /// Notices without end.
    Notices,
    /// Rows without end.
    Rows,
    /// Rows of very many empty values.
    WideRows,
    /// A message that is announced with two gigabytes.
    Announced,
    /// A value that goes on up to the length that was announced, 512 MB.
    LongRow,
    /// A notice now and then, and never an answer.
    Trickle,
    /// What is not a message.
    Garbage,
}

/// All of them.
pub const MODES: [Mode; 14] = [
    Mode::Mute,
    Mode::StartupNotices,
    Mode::StartupError,
    Mode::Silent,
    Mode::CopyIn,
    Mode::CopyData,
    Mode::Errors,
    Mode::Notices,
    Mode::Rows,
    Mode::WideRows,
    Mode::Announced,
    Mode::LongRow,
    Mode::Trickle,
    Mode::Garbage,
];

/// Serves every connection so, answering so many questions well before; its port.
pub fn serve(mode: Mode, answers: u32) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || talk(stream, mode, answers));
        }
    });
    port
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

fn row(value: &str) -> Vec<u8> {
    let description = message(
        b'T',
        b"\0\x01v\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0",
    );
    let length = u32::try_from(value.len()).expect("a short value");
    let data = message(
        b'D',
        &[b"\0\x01", &length.to_be_bytes()[..], value.as_bytes()].concat(),
    );
    [
        description,
        data,
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ]
    .concat()
}

/// `None` once the client is gone.
fn talk(mut stream: TcpStream, mode: Mode, answers: u32) -> Option<()> {
    let mut packet = || -> Option<Vec<u8>> {
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).checked_sub(4)?.min(1 << 20)];
        stream.read_exact(&mut body).ok()?;
        // SSLRequest.
        if body.starts_with(&80_877_103_u32.to_be_bytes()) {
            stream.write_all(b"N").ok()?;
            body.clear();
        }
        Some(body)
    };
    while packet()?.is_empty() {}
    let notice = message(b'N', b"SNOTICE\0C00000\0Ma notice\0\0");
    match mode {
        Mode::Mute => return wait(stream),
        Mode::StartupNotices => return flood(stream, &message(b'R', &[0; 4]), &notice),
        Mode::StartupError => return flood(stream, b"E\x20\0\0\0SFATAL\0C28000\0M", &[b'x'; 4096]),
        _ => {}
    }
    let ready = message(b'Z', b"I");
    let parameters = message(b'S', b"server_version\x0018.0\0");
    let key = message(b'K', &[0; 8]);
    stream
        .write_all(&[message(b'R', &[0; 4]), parameters, key, ready].concat())
        .ok()?;
    let mut left = answers;
    loop {
        let mut tag = [0];
        stream.read_exact(&mut tag).ok()?;
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).checked_sub(4)?.min(1 << 20)];
        stream.read_exact(&mut body).ok()?;
        match tag[0] {
            b'X' => return None,
            b'Q' | b'S' if left == 0 => break,
            b'Q' => {
                left -= 1;
                stream.write_all(&row("180000")).ok()?;
            }
            _ => {}
        }
    }
    let nulls = |columns: u16| {
        let values = [0xff; 4].repeat(columns.into());
        message(b'D', &[&columns.to_be_bytes()[..], &values].concat())
    };
    match mode {
        Mode::CopyIn => {
            stream.write_all(&message(b'G', b"\0\0\0")).ok()?;
            wait(stream)
        }
        Mode::CopyData => flood(stream, &message(b'H', b"\0\0\0"), &message(b'd', &[b'x'; 1000])),
        Mode::Errors => flood(stream, b"", &message(b'E', b"SERROR\0CXX000\0Mno\0\0")),
        Mode::Notices => flood(stream, b"", &notice),
        Mode::Rows => flood(stream, b"", &message(b'D', b"\0\x01\0\0\0\x01x")),
        Mode::WideRows => flood(stream, b"", &nulls(u16::MAX)),
        Mode::Announced => flood(stream, b"D\x7f\xff\xff\xff", &[0; 4096]),
        Mode::LongRow => flood(stream, b"D\x20\0\0\0\0\x01\x1f\xff\xff\xf6", &[b'x'; 4096]),
        Mode::Garbage => flood(stream, b"", &[b'!'; 4096]),
        Mode::Trickle => loop {
            stream.write_all(&notice).ok()?;
            // The client ends this by closing the connection.
            let _ = stream.set_read_timeout(Some(std::time::Duration::from_millis(20)));
            if matches!(stream.read(&mut [0; 64]), Ok(0)) {
                return None;
            }
        },
        _ => wait(stream),
    }
}

/// Until the client gives the connection up.
fn wait(mut stream: TcpStream) -> Option<()> {
    while stream.read(&mut [0; 1024]).ok()? > 0 {}
    None
}

fn flood(mut stream: TcpStream, first: &[u8], rest: &[u8]) -> Option<()> {
    stream.write_all(first).ok()?;
    let many = rest.repeat(65_536_usize.div_ceil(rest.len()));
    loop {
        stream.write_all(&many).ok()?;
    }
}
