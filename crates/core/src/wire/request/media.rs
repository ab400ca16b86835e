//! Bytes that a request carries itself: pictures and documents that nobody has to fetch.

/// Kinds of bytes that hold no reference to anything else. SVG and HTML do, and are not here.
pub(super) const MEDIA: &[&str] = &[
    "application/pdf",
    "audio/aac",
    "audio/flac",
    "audio/mp3",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "image/bmp",
    "image/gif",
    "image/heic",
    "image/heif",
    "image/jpeg",
    "image/jpg",
    "image/png",
    "image/webp",
    "text/plain",
    "video/mp4",
    "video/mpeg",
    "video/quicktime",
    "video/webm",
];

/// Is this the beginning of a `data:` URL of such bytes? In exactly these letters: what another
/// reader would fold, strip or complete is not told apart from an address.
pub(super) fn is_inline(text: &str) -> bool {
    text.strip_prefix("data:").is_some_and(|rest| {
        rest.split_once(";base64,")
            .is_some_and(|(kind, bytes)| MEDIA.contains(&kind) && is_base64(bytes))
    })
}

/// Bytes in one of both spellings.
pub(super) fn is_encoded(text: &str) -> bool {
    is_inline(text) || is_base64(text)
}

/// Letters of base64 and nothing else, as far as they are shown: no address is spelled so.
pub(super) fn is_base64(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-\r\n".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_are_inline() {
        for good in [
            "data:image/png;base64,iVBORw0KGgo=",
            "data:application/pdf;base64,",
            "data:image/webp;base64,AA-_\n==",
        ] {
            assert!(is_inline(good), "{good}");
        }
        for bad in [
            "https://example.com/a.png",
            "//example.com/a.png",
            "Data:image/png;base64,AA",
            " data:image/png;base64,AA",
            "data:image/svg+xml;base64,AA",
            "data:image/svg+xml,<svg><image href='https://example.com'/></svg>",
            "data:text/html;base64,AA",
            "data:,https://example.com",
            "data:image/png,https://example.com",
            "data:image/png;base64,https://example.com",
            "data:image/png;charset=x;base64,AA",
            "data:",
            "file:///etc/passwd",
            "gs://bucket/a",
            "blob:x",
            "",
        ] {
            assert!(!is_inline(bad), "{bad}");
        }
        assert!(!is_base64("https://example.com") && is_base64("iVBORw0KGgo="));
    }
}
