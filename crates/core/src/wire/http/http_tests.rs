use super::*;
use proptest::prelude::*;

fn request(text: &str) -> Parsed<RequestHead> {
    request_head(text.as_bytes())
}

#[test]
fn heads_are_read() {
    let text = "POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello";
    let (head, used) = request(text).unwrap().unwrap();
    assert_eq!(
        (head.method.as_str(), head.target.as_str(), head.body),
        ("POST", "/v1/x?y=1", Framing::Length(5))
    );
    assert_eq!(head.headers.one("x-a"), Some("b"));
    assert_eq!(&text[used..], "hello");
    assert!(head.keeps_alive());
    let (old, _) = request("GET / HTTP/1.0\r\n\r\n").unwrap().unwrap();
    assert!(!old.keeps_alive() && old.body == Framing::Empty);
    let (answer, _) = response_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n")
        .unwrap()
        .unwrap();
    assert_eq!((answer.status, answer.body), (200, Framing::Chunked));
    let (bare, _) = response_head(b"HTTP/1.1 500\r\n\r\n").unwrap().unwrap();
    assert_eq!(
        (bare.status, bare.body, bare.keeps_alive()),
        (500, Framing::UntilClose, false)
    );
    let (none, _) = response_head(b"HTTP/1.1 204 No\r\n\r\n").unwrap().unwrap();
    assert_eq!(none.body, Framing::Empty);
    let (stream, _) =
        response_head(b"HTTP/1.0 200 OK\r\ncontent-type: Text/Event-Stream; charset=x\r\n\r\n")
            .unwrap()
            .unwrap();
    assert!(stream.is_event_stream());
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for bad in [
        "POST / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost : a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "POST  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/2\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1 x\r\nHost: a\r\n\r\n",
        "P(ST / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\n",
    ] {
        assert_eq!(request(bad), Err(HeadError::Malformed), "{bad:?}");
    }
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "x: y\r\n".repeat(200)
    );
    assert_eq!(request(&many), Err(HeadError::Malformed));
    assert_eq!(request(&"a".repeat(MAX_HEAD)), Err(HeadError::TooLong));
    assert_eq!(request("POST / HTTP/1.1\r\nHost: a\r\n"), Ok(None));
    for bad in [
        "HTTP/1.1 99 x\r\n\r\n",
        "HTTP/1.1 0200 x\r\n\r\n",
        "HTTP/1.1 +20 x\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
    ] {
        assert_eq!(
            response_head(bad.as_bytes()),
            Err(HeadError::Malformed),
            "{bad:?}"
        );
    }
}

fn body(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), BadChunk> {
    let mut reader = BodyReader::new(framing);
    let (mut out, mut used) = (Vec::new(), 0);
    for piece in pieces {
        used += reader.push(piece, &mut |bytes| out.extend_from_slice(bytes))?;
    }
    Ok((out, used, reader.is_done()))
}

#[test]
fn bodies_end_where_they_say() {
    assert_eq!(
        body(Framing::Length(3), &[b"ab", b"cd"]),
        Ok((b"abc".to_vec(), 3, true))
    );
    assert_eq!(body(Framing::Empty, &[b"ab"]), Ok((vec![], 0, true)));
    assert_eq!(
        body(Framing::UntilClose, &[b"ab"]),
        Ok((b"ab".to_vec(), 2, false))
    );
    let text = b"3;x=y\r\nabc\r\n2 \r\nde\r\n0\r\nT: v\r\n\r\nnext";
    assert_eq!(
        body(Framing::Chunked, &[text]),
        Ok((b"abcde".to_vec(), text.len() - 4, true))
    );
    for bad in [
        &b"x\r\n"[..],
        b"\r\n",
        b"1\nab",
        b"1\r\nabc\r\n",
        b"-1\r\n",
        b"fffffffffffffffff\r\n",
        b"1\r\na\r\r\n",
    ] {
        assert_eq!(body(Framing::Chunked, &[bad]), Err(BadChunk), "{bad:?}");
    }
    assert_eq!(body(Framing::Chunked, &[&[b'0'; 5000]]), Err(BadChunk));
    let endless = [&b"0\r\n"[..], &b"a: bcdefghijk\r\n".repeat(1000)].concat();
    assert_eq!(body(Framing::Chunked, &[&endless]), Err(BadChunk));
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_body(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..8), cut in 1usize..17) {
        let mut wire = Vec::new();
        for part in &parts {
            wire.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            wire.extend_from_slice(part);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(b"0\r\n\r\n");
        let pieces: Vec<&[u8]> = wire.chunks(cut).collect();
        prop_assert_eq!(body(Framing::Chunked, &pieces), Ok((parts.concat(), wire.len(), true)));
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "(GET|HTTP/1.1 200)[ -~\r\n]{0,120}\r\n\r\n") {
        let _ = request_head(&bytes);
        let _ = response_head(&bytes);
        let _ = request_head(text.as_bytes());
        let _ = response_head(text.as_bytes());
        let _ = body(Framing::Chunked, &[&bytes]);
    }
}

/// A head that is nearly right: every part is sometimes odd, and one byte may be changed anywhere.
fn nearly_a_head(first: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let name = "(host|Host|content-length|Transfer-Encoding|connection|[!-~]{1,6}|[a-z ]{0,4})";
    let value = "(a|1|chunked|close|[ -~\\t]{0,8}|[a-zé\\x00\\x7f\u{85}]{0,4})";
    let space = "[ \\t]{0,2}";
    let header = (name, space, value, space)
        .prop_map(|(name, before, value, after)| format!("{name}:{before}{value}{after}\r\n"));
    let headers = proptest::collection::vec(header, 0..5);
    let change = proptest::option::of((any::<usize>(), any::<u8>()));
    (first, "(Host: a\r\n)?", headers, change, "[a-z\r\n]{0,5}").prop_map(
        |(first, host, headers, change, rest)| {
            let text = format!("{first}\r\n{host}{}\r\n{rest}", headers.concat());
            let mut bytes = text.into_bytes();
            if let Some((at, byte)) = change {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes
        },
    )
}

/// Names in lower case and values, as httparse read them.
fn pairs(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let value = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .map(|header| (header.name.to_ascii_lowercase(), value(header.value)))
        .collect()
}

fn ours(headers: &Headers) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn minor(version: Version) -> u8 {
    match version {
        Version::Http10 => 0,
        Version::Http11 => 1,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// What passes here is read in the same way by a parser that half the world uses.
    #[test]
    fn httparse_reads_the_same_request(bytes in nearly_a_head("(POST|GET|[!-~]{1,5}) [ !-~]{1,8} HTTP/1\\.[01]")) {
        let Ok(Some((head, used))) = request_head(&bytes) else { return Ok(()) };
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut other = httparse::Request::new(&mut headers);
        let status = other.parse(&bytes);
        prop_assert_eq!(status, Ok(httparse::Status::Complete(used)), "{:?}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(other.method, Some(head.method.as_str()));
        prop_assert_eq!(other.path, Some(head.target.as_str()));
        prop_assert_eq!(other.version, Some(minor(head.version)));
        prop_assert_eq!(pairs(other.headers), ours(&head.headers));
    }

    #[test]
    fn httparse_reads_the_same_response(bytes in nearly_a_head("HTTP/1\\.[01] [0-9]{3}( [ -~é]{0,8})?")) {
        let Ok(Some((head, used))) = response_head(&bytes) else { return Ok(()) };
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut other = httparse::Response::new(&mut headers);
        let status = other.parse(&bytes);
        prop_assert_eq!(status, Ok(httparse::Status::Complete(used)), "{:?}", String::from_utf8_lossy(&bytes));
        prop_assert_eq!(other.code, Some(head.status));
        prop_assert_eq!(other.version, Some(minor(head.version)));
        prop_assert_eq!(pairs(other.headers), ours(&head.headers));
    }
}
