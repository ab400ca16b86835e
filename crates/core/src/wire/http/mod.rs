//! HTTP/1.x without sockets: heads, body framing, chunks. Both sides may be hostile, so only one
//! reading of any byte is accepted: what two programs could read differently is refused.

pub mod headers;
pub mod path;
pub mod sse;

use super::calls::RefusalReason;

pub const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// A chunk's size line with its extensions, and all trailers together.
const MAX_CHUNK_LINE: usize = 1024;
const MAX_TRAILERS: usize = 8 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    Http10,
    Http11,
}

/// Names in lower case, in order, values without space around them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Headers of our own making.
    pub fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
        )
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.iter()
            .filter(move |(n, _)| *n == name)
            .map(|(_, value)| value)
    }

    /// The value of a header that occurs exactly once.
    pub fn one(&self, name: &str) -> Option<&str> {
        let mut all = self.all(name);
        all.next().filter(|_| all.next().is_none())
    }

    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Does a list such as `Connection` hold this word?
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(','))
            .any(|item| item.trim().eq_ignore_ascii_case(word))
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestHead {
    pub method: String,
    pub target: String,
    pub version: Version,
    pub headers: Headers,
    pub body: Framing,
}

impl RequestHead {
    /// May another request follow on this connection?
    pub fn keeps_alive(&self) -> bool {
        match self.version {
            Version::Http11 => !self.headers.lists("connection", "close"),
            Version::Http10 => false,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResponseHead {
    pub status: u16,
    pub version: Version,
    pub headers: Headers,
    pub body: Framing,
}

impl ResponseHead {
    pub fn keeps_alive(&self) -> bool {
        self.version == Version::Http11
            && !self.headers.lists("connection", "close")
            && self.body != Framing::UntilClose
    }

    pub fn is_event_stream(&self) -> bool {
        let kind = self.headers.one("content-type").unwrap_or_default();
        kind.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case("text/event-stream")
    }
}

/// How the end of a body is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeadError {
    #[error("the head is too long")]
    TooLong,
    #[error("the head is not well-formed")]
    Malformed,
}

impl HeadError {
    pub fn refusal_reason(self) -> RefusalReason {
        match self {
            Self::TooLong => RefusalReason::HeadTooLong,
            Self::Malformed => RefusalReason::BadHttp,
        }
    }
}

/// A head and how many bytes it took; `None` while it is incomplete.
type Parsed<T> = Result<Option<(T, usize)>, HeadError>;

pub fn request_head(bytes: &[u8]) -> Parsed<RequestHead> {
    let Some((first, headers, used)) = lines_of(bytes)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(HeadError::Malformed);
    };
    let version = version_of(version)?;
    let well_formed = !method.is_empty()
        && method.bytes().all(is_token)
        && target.bytes().all(|b| b.is_ascii_graphic());
    // Without exactly one host, two servers in a row may not agree whose request it is.
    let hosts = headers.all("host").count();
    if !well_formed || target.is_empty() || hosts > 1 || (version == Version::Http11 && hosts == 0)
    {
        return Err(HeadError::Malformed);
    }
    let body = framing_of(&headers, version)?.unwrap_or(Framing::Empty);
    Ok(Some((
        RequestHead {
            method: method.into(),
            target: target.into(),
            version,
            headers,
            body,
        },
        used,
    )))
}

pub fn response_head(bytes: &[u8]) -> Parsed<ResponseHead> {
    let Some((first, headers, used)) = lines_of(bytes)? else {
        return Ok(None);
    };
    let mut words = first.splitn(3, ' ');
    let (Some(version), Some(code)) = (words.next(), words.next()) else {
        return Err(HeadError::Malformed);
    };
    let version = version_of(version)?;
    let digits = code.len() == 3 && code.bytes().all(|b| b.is_ascii_digit());
    let status = code
        .parse::<u16>()
        .ok()
        .filter(|status| digits && (100..600).contains(status))
        .ok_or(HeadError::Malformed)?;
    let body = match framing_of(&headers, version)? {
        _ if status < 200 || status == 204 || status == 304 => Framing::Empty,
        Some(framing) => framing,
        None => Framing::UntilClose,
    };
    Ok(Some((
        ResponseHead {
            status,
            version,
            headers,
            body,
        },
        used,
    )))
}

/// The first line and the headers, once the empty line has come.
fn lines_of(bytes: &[u8]) -> Result<Option<(&str, Headers, usize)>, HeadError> {
    let window = &bytes[..bytes.len().min(MAX_HEAD)];
    let Some(end) = memchr::memmem::find(window, b"\r\n\r\n") else {
        return if bytes.len() >= MAX_HEAD {
            Err(HeadError::TooLong)
        } else {
            Ok(None)
        };
    };
    let text = std::str::from_utf8(&window[..end]).map_err(|_| HeadError::Malformed)?;
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut headers = Headers::default();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(HeadError::Malformed)?;
        let value = value.trim_matches([' ', '\t']);
        let clean = !name.is_empty()
            && name.bytes().all(is_token)
            && !value.chars().any(|c| c.is_control() && c != '\t');
        if !clean || headers.0.len() >= MAX_HEADERS {
            return Err(HeadError::Malformed);
        }
        headers
            .0
            .push((name.to_ascii_lowercase(), value.to_owned()));
    }
    if first.chars().any(char::is_control) {
        return Err(HeadError::Malformed);
    }
    Ok(Some((first, headers, end + 4)))
}

fn version_of(text: &str) -> Result<Version, HeadError> {
    match text {
        "HTTP/1.1" => Ok(Version::Http11),
        "HTTP/1.0" => Ok(Version::Http10),
        _ => Err(HeadError::Malformed),
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A length and chunks together, or two lengths, are how requests are smuggled.
fn framing_of(headers: &Headers, version: Version) -> Result<Option<Framing>, HeadError> {
    let chunked = headers.has("transfer-encoding");
    let length = headers.has("content-length");
    match (chunked, length) {
        (false, false) => Ok(None),
        (true, false) if version == Version::Http11 => match headers.one("transfer-encoding") {
            Some(value) if value.eq_ignore_ascii_case("chunked") => Ok(Some(Framing::Chunked)),
            _ => Err(HeadError::Malformed),
        },
        (false, true) => {
            let value = headers.one("content-length").ok_or(HeadError::Malformed)?;
            let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            let length = value
                .parse()
                .ok()
                .filter(|_| digits)
                .ok_or(HeadError::Malformed)?;
            Ok(Some(if length == 0 {
                Framing::Empty
            } else {
                Framing::Length(length)
            }))
        }
        _ => Err(HeadError::Malformed),
    }
}

/// Separates a body from the bytes of a connection.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: BodyState,
}

#[derive(Clone, Debug)]
enum BodyState {
    Length(u64),
    Chunks(Chunks),
    UntilClose,
    Done,
}

#[derive(Clone, Debug)]
struct Chunks {
    at: ChunkAt,
    line: Vec<u8>,
    trailers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChunkAt {
    Size,
    Data(u64),
    /// The line end after the data.
    DataEnd,
    Trailer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the chunks of the body are not well-formed")]
pub struct BadChunk;

impl BodyReader {
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Empty => BodyState::Done,
            Framing::Length(length) => BodyState::Length(length),
            Framing::Chunked => BodyState::Chunks(Chunks {
                at: ChunkAt::Size,
                line: Vec::new(),
                trailers: 0,
            }),
            Framing::UntilClose => BodyState::UntilClose,
        };
        Self { state }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.state, BodyState::Done)
    }

    /// Is the body whole, now that the connection has closed?
    pub fn closed_well(&self) -> bool {
        matches!(self.state, BodyState::Done | BodyState::UntilClose)
    }

    /// Hands out the body's bytes among these; returns how many were of this body, framing
    /// included.
    pub fn push(&mut self, bytes: &[u8], out: &mut dyn FnMut(&[u8])) -> Result<usize, BadChunk> {
        match &mut self.state {
            BodyState::Done => Ok(0),
            BodyState::UntilClose => {
                out(bytes);
                Ok(bytes.len())
            }
            BodyState::Length(left) => {
                let take = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                out(&bytes[..take]);
                *left -= take as u64;
                if *left == 0 {
                    self.state = BodyState::Done;
                }
                Ok(take)
            }
            BodyState::Chunks(chunks) => {
                let (used, done) = chunks.push(bytes, out)?;
                if done {
                    self.state = BodyState::Done;
                }
                Ok(used)
            }
        }
    }
}

impl Chunks {
    fn push(
        &mut self,
        bytes: &[u8],
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<(usize, bool), BadChunk> {
        let mut at = 0;
        while at < bytes.len() {
            if let ChunkAt::Data(left) = self.at {
                let take = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len() - at);
                out(&bytes[at..at + take]);
                at += take;
                let left = left - take as u64;
                self.at = if left == 0 {
                    ChunkAt::DataEnd
                } else {
                    ChunkAt::Data(left)
                };
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if byte != b'\n' {
                self.line.push(byte);
                if self.line.len() > MAX_CHUNK_LINE {
                    return Err(BadChunk);
                }
                continue;
            }
            if self.line_ended()? {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    fn line_ended(&mut self) -> Result<bool, BadChunk> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").ok_or(BadChunk)?;
        if line.contains(&b'\r') {
            return Err(BadChunk);
        }
        match self.at {
            ChunkAt::Size => {
                let digits = line
                    .split(|b| *b == b';')
                    .next()
                    .unwrap_or_default()
                    .trim_ascii_end();
                let text = std::str::from_utf8(digits).map_err(|_| BadChunk)?;
                let plain =
                    (1..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
                let size = u64::from_str_radix(text, 16)
                    .ok()
                    .filter(|_| plain)
                    .ok_or(BadChunk)?;
                self.at = if size == 0 {
                    ChunkAt::Trailer
                } else {
                    ChunkAt::Data(size)
                };
            }
            ChunkAt::DataEnd if line.is_empty() => self.at = ChunkAt::Size,
            ChunkAt::DataEnd | ChunkAt::Data(_) => return Err(BadChunk),
            ChunkAt::Trailer => {
                self.trailers += line.len();
                if self.trailers > MAX_TRAILERS {
                    return Err(BadChunk);
                }
                return Ok(line.is_empty());
            }
        }
        Ok(false)
    }
}

/// The reason phrase of a status line.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
