//! Go, Rust, C and their like: what is refused by a compiler, and what fails once it is linked.
//!
//! Where a declaration may stand anywhere it goes to the end: nothing at the head of a file (build
//! constraints, inner attributes, a package clause, guards) has to be understood.

use super::{Word, after_mark, newline, put};

/// Every file of a package may have an `init` of its own, and nothing can recover from it.
pub fn go(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let line = newline(text);
    let with = |body: &str| append(text, &format!("{line}func init() {{ {body} }}{line}"));
    (with("panic(97)"), with("recover()"))
}

/// An item that no compiler takes, at the end of the module.
pub fn rust(text: &[u8], word: &Word) -> Vec<u8> {
    let line = newline(text);
    append(
        text,
        &format!("{line}compile_error!(\"{}\");{line}", word.text()),
    )
}

/// Runs before `main` in every program that links this file. It needs no header and no library.
pub fn constructor(text: &[u8], word: &Word) -> (Vec<u8>, Vec<u8>) {
    let line = newline(text);
    let with = |body: &str| {
        let name = word.text();
        let text_of = format!(
            "{line}__attribute__((constructor)) static void {name}(void) {{ {body} }}{line}"
        );
        append(text, &text_of)
    };
    (with("__builtin_trap();"), with(""))
}

/// Before any condition or comment can take it away.
pub fn error_directive(text: &[u8], word: &Word) -> Vec<u8> {
    let lines = format!("#error \"{}\"{}", word.text(), newline(text));
    put(text, after_mark(text), lines.as_bytes())
}

fn append(text: &[u8], lines: &str) -> Vec<u8> {
    put(text, text.len(), lines.as_bytes())
}
