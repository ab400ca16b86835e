//! Outside text stays in its code span, and titles name the verdict.

use super::*;
use crate::values::verdict::Status;

#[test]
fn outside_text_cannot_leave_its_code_span() {
    assert_eq!(code("a`\n# PASS"), "`a' # PASS`");
    assert_eq!(
        code("x\u{202e}txt.exe\u{2069}"),
        "`x\u{fffd}txt.exe\u{fffd}`"
    );
}

#[test]
fn the_title_names_the_status() {
    assert_eq!(Renderer::One.title(Status::Blocked, "x"), "# BLOCKED: x");
    assert_eq!(Renderer::Two.title(Status::Pass, "x"), "# PASS: x");
    assert_eq!(Renderer::ALL.last(), Some(&Renderer::NEWEST));
    assert_eq!(
        Renderer::of(RendererNumber::default()),
        Some(Renderer::One),
        "a report that names none"
    );
    assert_eq!(
        Renderer::of(RendererNumber(Renderer::NEWEST.number().0 + 1)),
        None
    );
}
