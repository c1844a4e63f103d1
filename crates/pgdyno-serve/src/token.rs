//! The token that a request must carry: how it is drawn, kept, sent and compared.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use pgdyno_record::ErrorClass;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use subtle::ConstantTimeEq;

/// 128 bits: nobody guesses them.
const DRAWN_BYTES: usize = 16;
const LENGTH_MIN: usize = 16;
const LENGTH_MAX: usize = 200;
/// Permissions of everybody, who could else read the token or put another one in its place.
const OF_OTHERS: u32 = 0o007;
/// Permission of the group to write.
const GROUP_WRITES: u32 = 0o020;

/// Why a token could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The kernel gives no randomness.
    #[error("no token can be drawn")]
    Draw(#[source] Option<io::Error>),
    /// A file of a token cannot be made, written or read.
    #[error("the token file {path} cannot be {done}")]
    File {
        /// Path of the file.
        path: String,
        /// What was tried, as a participle: "made", "written", "read".
        done: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// What the file is or holds is not a token.
    #[error("{0}")]
    Unfit(String),
    /// Others could read or change the file.
    #[error("{0}")]
    Exposed(String),
}

impl TokenError {
    /// A file that is not a token is a wrong argument; one that others can read is refused.
    pub fn class(&self) -> ErrorClass {
        match self {
            TokenError::Unfit(_) => ErrorClass::Usage,
            TokenError::Exposed(_) => ErrorClass::Refused,
            TokenError::Draw(_) | TokenError::File { .. } => ErrorClass::Failed,
        }
    }
}

/// A token; it is never shown but by [`Token::text`].
pub(super) struct Token(String);

impl Token {
    /// A new one by the kernel's randomness.
    pub(super) fn draw() -> Result<Token, TokenError> {
        let mut bytes = [0_u8; DRAWN_BYTES];
        let drawn = getrandom(&mut bytes[..], GetRandomFlags::empty())
            .map_err(|error| TokenError::Draw(Some(error.into())))?;
        if drawn != DRAWN_BYTES {
            return Err(TokenError::Draw(None));
        }
        let mut text = String::with_capacity(DRAWN_BYTES * 2);
        for byte in bytes {
            // Into a String, which takes everything.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Token(text))
    }

    /// The one that a file holds; where there is no file, a new one, written there for its owner
    /// alone.
    pub(super) fn of_file(path: &Path) -> Result<Token, TokenError> {
        let failed = |done, source| TokenError::File {
            path: path.display().to_string(),
            done,
            source,
        };
        let new = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        match new {
            Ok(mut file) => {
                let token = Token::draw()?;
                writeln!(file, "{}", token.0).map_err(|error| failed("written", error))?;
                Ok(token)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Token::read(path),
            Err(error) => Err(failed("made", error)),
        }
    }

    fn read(path: &Path) -> Result<Token, TokenError> {
        let place = path.display();
        let unreadable = |source| TokenError::File {
            path: place.to_string(),
            done: "read",
            source,
        };
        // A pipe is not waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(
            rustix::fs::open(path, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?,
        );
        let about = file.metadata().map_err(unreadable)?;
        if !about.is_file() {
            return Err(TokenError::Unfit(format!(
                "the token file {place} is not a plain file; name another one"
            )));
        }
        if ![geteuid().as_raw(), 0].contains(&about.uid()) {
            return Err(TokenError::Exposed(format!(
                "the token file {place} belongs to another user, who may change it; name one of your own"
            )));
        }
        if about.mode() & (OF_OTHERS | GROUP_WRITES) != 0 {
            return Err(TokenError::Exposed(format!(
                "others may read or change the token file {place}; `chmod 600 {place}` closes it (640 lets its group read)"
            )));
        }
        let mut text = String::new();
        file.take(LENGTH_MAX as u64 * 2)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        let text = text.trim();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&text.len()) || !text.chars().all(fits) {
            return Err(TokenError::Unfit(format!(
                "the token file {place} holds no token: expected {LENGTH_MIN} to {LENGTH_MAX} characters of A-Z, a-z, 0-9, -, \
                 _, . and ~; remove it and one is made"
            )));
        }
        Ok(Token(text.to_owned()))
    }

    /// For the printed link, and for nothing else.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Whether this is it; how long that takes shows nothing of where it differs.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// Whether a request carries it: as `Authorization: Bearer`, or in the cookie of that name.
    pub(super) fn is_in(&self, headers: &HeaderMap, cookie: &str) -> bool {
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.split_once(' '));
        if let Some((_, token)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
            return self.is(token.trim());
        }
        let cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == cookie && self.is(value))
    }

    /// The cookie that keeps it in a browser: out of reach for scripts, and not sent with what
    /// other sites ask for.
    pub(super) fn cookie(&self, name: &str, is_encrypted: bool) -> Option<HeaderValue> {
        let secure = if is_encrypted { "; Secure" } else { "" };
        let text = format!("{name}={}; HttpOnly; SameSite=Strict; Path=/{secure}", self.0);
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_request_carries_the_token_or_not() {
        let token = Token("0123456789abcdef".into());
        let check = |name: &'static str, value: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(token.is_in(&headers, "pgdyno-1"), expected, "{name}: {value}");
        };
        check("authorization", "Bearer 0123456789abcdef", true);
        check("authorization", "bearer  0123456789abcdef ", true);
        check("authorization", "Basic 0123456789abcdef", false);
        check("authorization", "Bearer 0123456789abcdeF", false);
        check("authorization", "Bearer 0123456789abcde", false);
        check("authorization", "Bearer ", false);
        check("authorization", "0123456789abcdef", false);
        check("cookie", "pgdyno-1=0123456789abcdef", true);
        check("cookie", "a=b; pgdyno-1=0123456789abcdef; c", true);
        check("cookie", "pgdyno-2=0123456789abcdef", false);
        check("cookie", "pgdyno-1=", false);
        assert!(!token.is_in(&HeaderMap::new(), "pgdyno-1"));
    }

    #[test]
    fn a_drawn_token_is_kept_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let first = Token::of_file(&path).unwrap();
        assert_eq!(first.text().len(), 32);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Token::of_file(&path).unwrap().is(first.text()));
        assert!(!Token::draw().unwrap().is(first.text()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Token::of_file(&path).is_ok());
        for mode in [0o604, 0o602, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Token::of_file(&path).err().unwrap();
            assert!(matches!(error, TokenError::Exposed(_)), "{mode:o}: {error}");
            assert!(!error.to_string().contains(first.text()));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for bad in ["", "short", "with a blank in the middle", "ümlaute-und-anderes"] {
            fs::write(&path, bad).unwrap();
            let error = Token::of_file(&path).err().unwrap();
            assert!(matches!(error, TokenError::Unfit(_)), "{bad}");
        }
    }
}
