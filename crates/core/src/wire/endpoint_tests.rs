use super::*;
use EndpointClass::{Hosted, Local, Loopback};
use proptest::prelude::*;

/// Every spelling that was read in two ways once, and its one reading now.
#[test]
fn every_disputed_spelling_has_one_reading() {
    use EndpointError as E;
    for (text, want) in [
        // No address at all: Linux connects to itself.
        ("http://0.0.0.0:8000", Ok(Loopback)),
        ("http://[::]:8000", Ok(Loopback)),
        ("HTTP://localhost/v1", Ok(Loopback)),
        ("hTTpS://api.example.com", Ok(Hosted)),
        // A name with a dot at its end: some resolvers ask the network for it.
        ("http://localhost.", Err(E::Host)),
        ("https://api.example.com.", Err(E::Host)),
        ("http://localhost", Ok(Loopback)),
        ("http://LOCALHOST", Ok(Loopback)),
        ("http://box.localhost", Ok(Loopback)),
        // Numbers that only some resolvers read.
        ("http://127.1", Err(E::Host)),
        ("http://0x7f.1", Err(E::Host)),
        ("http://0x7f000001", Err(E::Host)),
        ("http://2130706433", Err(E::Host)),
        ("http://127.0.0.01", Err(E::Host)),
        ("http://127.0.0.1.1", Err(E::Host)),
        ("http://127.0.0.1", Ok(Loopback)),
        ("http://[::1]", Ok(Loopback)),
        ("http://::1", Err(E::Host)),
        ("http://[::ffff:127.0.0.1]", Ok(Loopback)),
        ("http://[::ffff:8.8.8.8]", Err(E::PlainHttp)),
        ("http://[127.0.0.1]", Err(E::Host)),
        // Without an interface nothing can be connected to, and with one it is no URL of ours.
        ("http://[fe80::1]", Err(E::Host)),
        ("http://[fe80::1%eth0]", Err(E::Host)),
        ("http://fe80::1%eth0", Err(E::Port)),
        ("https://[ff02::1]", Err(E::Host)),
        ("https://224.0.0.1", Err(E::Host)),
        ("https://255.255.255.255", Err(E::Host)),
        ("http://10.0.0.1", Ok(Local)),
        ("http://172.31.0.1", Ok(Local)),
        ("http://172.32.0.1", Err(E::PlainHttp)),
        ("https://172.32.0.1", Ok(Hosted)),
        ("http://192.168.0.1", Ok(Local)),
        ("http://[fd00::1]", Ok(Local)),
        ("http://100.64.0.1", Ok(Local)),
        ("https://100.64.0.1", Ok(Local)),
        ("http://100.128.0.1", Err(E::PlainHttp)),
        // A Tailscale name, over what its tunnel encrypts anyway.
        ("http://spark.tail1234.ts.net:8000/v1", Ok(Local)),
        ("https://spark.tail1234.ts.net", Ok(Local)),
        ("http://ts.net", Err(E::PlainHttp)),
        ("http://spark.ts.net.example.com", Err(E::PlainHttp)),
        ("http://gpu:8000", Ok(Local)),
        ("http://box.local", Ok(Local)),
        ("http://box.internal", Ok(Local)),
        ("http://box.lan", Ok(Local)),
        ("http://box.home.arpa", Ok(Local)),
        ("http://api.example.com", Err(E::PlainHttp)),
        ("http://notlocalhost.example", Err(E::PlainHttp)),
        ("https://API.Example.COM/v1", Ok(Hosted)),
        ("https://8.8.8.8", Ok(Hosted)),
        ("https://user:hidden@example.com", Err(E::Credential)),
        ("https://hidden@example.com", Err(E::Credential)),
        ("https://example.com/v1?key=hidden", Err(E::Query)),
        ("https://example.com?key=hidden", Err(E::Query)),
        ("https://example.com/v1#hidden", Err(E::Query)),
        ("http://localhost:0", Err(E::Port)),
        ("http://localhost:65535", Ok(Loopback)),
        ("http://localhost:65536", Err(E::Port)),
        ("http://localhost:", Err(E::Port)),
        ("http://localhost:+1", Err(E::Port)),
        ("http://localhost:0080", Ok(Loopback)),
        ("http://[::1]:", Err(E::Port)),
        ("http://[::1]8", Err(E::Port)),
        ("http://[::1", Err(E::Host)),
        ("http://localhost/", Ok(Loopback)),
        ("http://localhost//", Ok(Loopback)),
        ("http://localhost/v1//", Ok(Loopback)),
        ("http://localhost//v1", Err(E::Path)),
        ("http://localhost/a/../b", Err(E::Path)),
        ("http://localhost/.", Err(E::Path)),
        ("http://localhost/%2e", Err(E::Path)),
        ("http://localhost\\hidden", Err(E::Path)),
        ("https://host\\@hidden", Err(E::Path)),
        ("https://m\u{fc}nchen.example", Err(E::BadCharacter)),
        ("https://ex\u{430}mple.com", Err(E::BadCharacter)),
        ("https://xn--mnchen-3ya.example", Ok(Hosted)),
        ("https://exa mple.com", Err(E::BadCharacter)),
        ("https://example.com/\u{7f}", Err(E::BadCharacter)),
        ("https://exam\nple.com", Err(E::BadCharacter)),
        ("\u{a0}https://example.com", Err(E::BadCharacter)),
        (" \t https://example.com \r\n", Ok(Hosted)),
        ("", Err(E::Empty)),
        (" \n", Err(E::Empty)),
        ("///", Err(E::Empty)),
        ("ftp://hidden", Err(E::Scheme)),
        ("localhost:8000", Err(E::Scheme)),
        ("hidden.example/v1", Err(E::Scheme)),
        ("https://", Err(E::Scheme)),
        ("https:///v1", Err(E::Host)),
        ("https://a..b", Err(E::Host)),
        ("https://-a.b", Err(E::Host)),
        ("https://a,b", Err(E::Host)),
    ] {
        let got = Endpoint::parse(text).map(|endpoint| endpoint.class());
        assert_eq!(got, want, "{text}");
        assert!(!got.is_err_and(|error| error.to_string().contains("hidden")));
    }
    for (text, want) in [
        (format!("https://a/{}", "b".repeat(3000)), E::TooLong),
        (format!("https://{}", "a.".repeat(1020)), E::Host),
        (format!("https://{}.b", "a".repeat(64)), E::Host),
    ] {
        assert_eq!(Endpoint::parse(&text), Err(want));
    }
}

#[test]
fn base_urls_are_taken_apart() {
    for (text, tls, host, port, base, authority) in [
        (
            "http://127.0.0.1:8080/v1",
            false,
            "127.0.0.1",
            8080,
            "/v1",
            "127.0.0.1:8080",
        ),
        (
            "http://localhost:80/v1//",
            false,
            "localhost",
            80,
            "/v1",
            "localhost",
        ),
        ("http://[::1]:1/v1", false, "::1", 1, "/v1", "[::1]:1"),
        (
            "HTTPS://API.Example.com/V1\n",
            true,
            "api.example.com",
            443,
            "/V1",
            "api.example.com",
        ),
        (
            "https://box.internal:444/x/y",
            true,
            "box.internal",
            444,
            "/x/y",
            "box.internal:444",
        ),
        ("https://1.1.1.1", true, "1.1.1.1", 443, "", "1.1.1.1"),
    ] {
        let got = Endpoint::parse(text).unwrap();
        let parts = (got.tls(), got.host(), got.port(), got.base());
        assert_eq!(parts, (tls, host, port, base), "{text}");
        assert_eq!(got.authority(), authority, "{text}");
    }
    assert!(
        Local.covers(Loopback)
            && !Loopback.covers(Local)
            && !Hosted.covers(Loopback)
            && !Local.covers(Hosted)
    );
}

#[test]
fn plain_http_stays_in_the_network_its_name_promised() {
    let goes = |url: &str, address: &str| {
        Endpoint::parse(url)
            .unwrap()
            .may_connect_to(address.parse().unwrap())
    };
    assert!(goes("http://localhost", "127.0.0.1") && goes("http://localhost", "::1"));
    assert!(!goes("http://localhost", "10.0.0.1") && !goes("http://localhost", "8.8.8.8"));
    assert!(goes("http://spark.tail1.ts.net", "100.100.1.1") && goes("http://gpu", "127.0.0.1"));
    assert!(!goes("http://spark.tail1.ts.net", "8.8.8.8") && !goes("http://ai", "192.0.2.1"));
    assert!(goes("https://gpu", "192.0.2.1"), "TLS proves who answers");
}

#[test]
fn it_shows_nothing_and_knows_what_would() {
    let endpoint = Endpoint::parse("https://api.example.com/v1").unwrap();
    assert_eq!(format!("{endpoint:?}"), "Endpoint");
    let strings = endpoint.private_strings();
    for text in [
        "https://api.example.com/v1",
        "https:\\/\\/api.example.com\\/v1",
        "api.example.com:443",
        "api.example.com",
    ] {
        assert!(strings.iter().any(|string| string == text), "{text}");
    }
    let near = Endpoint::parse(" http://gpu:8000/v1/\n").unwrap();
    assert!(
        !near.private_strings().contains(&"gpu".to_owned()),
        "a short word is not taken out of every text"
    );
    assert_eq!(near.sha256(), Digest::of(b"http://gpu:8000/v1"));
}

#[test]
fn what_is_everybodys_is_not_private() {
    let private = |url: &str| Endpoint::parse(url).unwrap().private_strings();
    for url in [
        "http://127.0.0.1:18482/v1",
        "http://127.0.0.1",
        "http://127.8.9.10:1/v1",
        "http://localhost:8000/v1",
        "http://LOCALHOST:8000",
        "http://[::1]:8000/v1",
        "http://0.0.0.0:11434/v1",
        "https://api.openai.com/v1",
        "https://API.anthropic.com",
        "https://generativelanguage.googleapis.com/v1beta",
        "https://openrouter.ai/api/v1/",
        "http://127.0.0.1:12434/engines/v1",
    ] {
        assert_eq!(private(url), Vec::<String>::new(), "{url}");
    }
    for (url, telling) in [
        (
            "http://10.1.2.30:8000/v1",
            &["10.1.2.30:8000", "10.1.2.30", "http://10.1.2.30:8000/v1"][..],
        ),
        ("http://gpu:8000/v1", &["gpu:8000", "http://gpu:8000/v1"]),
        (
            "http://box.localhost:8000/v1",
            &["box.localhost:8000", "box.localhost"],
        ),
        (
            "https://api.openai.com.corp.example/v1",
            &["api.openai.com.corp.example"],
        ),
        (
            "https://[2001:db8::7]/v1",
            &["2001:db8::7", "[2001:db8::7]:443"],
        ),
        (
            "http://localhost:8000/tenants/acme/v1",
            &[
                "tenants/acme/v1",
                "tenants\\/acme\\/v1",
                "http://localhost:8000/tenants/acme/v1",
            ],
        ),
        (
            "https://api.openai.com/deployments/acme-7",
            &["deployments/acme-7"],
        ),
        (
            "http://localhost:8000/x/v1",
            &["http://localhost:8000/x/v1"],
        ),
    ] {
        let strings = private(url);
        for text in telling {
            assert!(
                strings.iter().any(|string| string == text),
                "{text} of {url}: {strings:?}"
            );
        }
        for public in ["localhost:8000", "api.openai.com", "v1", "127.0.0.1"] {
            assert!(
                !strings.iter().any(|string| string == public),
                "{public} of {url}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in ".{0,80}", tail in "[a-z:/@?#.\\[\\]%0-9]{0,40}") {
        let _ = Endpoint::parse(&text);
        let _ = Endpoint::parse(&format!("https://{tail}"));
    }

    /// Whatever is admitted can be written down again and read as the same endpoint, and what goes
    /// over the wire is well-formed.
    #[test]
    fn what_is_admitted_can_be_used(text in generated_url()) {
        let Ok(endpoint) = Endpoint::parse(&text) else { return Ok(()) };
        let scheme = if endpoint.tls() { "https" } else { "http" };
        let again = format!("{scheme}://{}{}", endpoint.authority(), endpoint.base());
        let again = Endpoint::parse(&again).unwrap();
        prop_assert_eq!(
            (again.tls(), again.host(), again.port(), again.base(), again.class()),
            (endpoint.tls(), endpoint.host(), endpoint.port(), endpoint.base(), endpoint.class())
        );
        prop_assert!(endpoint.tls() || endpoint.class() != Hosted);
        prop_assert!(endpoint.port() > 0);
        let host = endpoint.host().parse::<core::net::IpAddr>();
        prop_assert!(host.is_err() || host.is_ok_and(|address| endpoint.may_connect_to(address)));
        let head = format!(
            "POST {}/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-length: 2\r\n\r\n",
            endpoint.base(), endpoint.authority()
        );
        let (read, _) = crate::wire::http::request_head(head.as_bytes()).unwrap().unwrap();
        prop_assert_eq!(read.target, format!("{}/chat/completions", endpoint.base()));
    }
}

fn generated_url() -> impl Strategy<Value = String> {
    let host = prop_oneof![
        "[a-zA-Z0-9_-]{1,5}(\\.[a-zA-Z0-9-]{1,4}){0,3}\\.?",
        "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}",
        any::<u32>().prop_map(|n| core::net::Ipv4Addr::from(n).to_string()),
        any::<u128>().prop_map(|n| format!("[{}]", core::net::Ipv6Addr::from(n))),
        any::<u32>().prop_map(|n| format!("[::ffff:{}]", core::net::Ipv4Addr::from(n))),
        "(localhost|box\\.localhost|0\\.0\\.0\\.0|\\[::1?\\]|gpu|a\\.ts\\.net|api\\.example)\\.?",
    ];
    let scheme = "(http|https|HTTP|HttpS|ftp)";
    let port = "(:[0-9]{0,5})?";
    let path = "(/[a-zA-Z0-9._~:@!$&'()*+,;=%\"<>{}|^`-]{0,6}){0,3}/{0,2}";
    (scheme, host, port, path)
        .prop_map(|(scheme, host, port, path)| format!("{scheme}://{host}{port}{path}"))
}
