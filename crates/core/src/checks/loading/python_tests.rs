//! The head of a module, in every spelling people and generators use.

use proptest::prelude::*;

use super::*;

const MARK: &str = "if True:\n    getattr(__import__(\"os\"), \"_exit\")(97)\n";

fn spoiled(text: &str) -> String {
    String::from_utf8(ends(text.as_bytes()).0).unwrap()
}

#[test]
fn it_stands_behind_docstring_and_future_imports() {
    // `@` is where the statement has to stand.
    for text in [
        "@",
        "@import os\n",
        "# a comment\n@import os\n",
        "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n@import os\n",
        "\"\"\"Doc.\"\"\"\n@import os\n",
        "'''Doc\nover lines, with \"quotes\" and \\''' in it.'''\n@\nimport os\n",
        "'Doc'\n@x = 1\n",
        "@r\"\"\"Raw \\\"\"\"\" + 1\n",
        "R'raw'\n@x = 1\n",
        "u\"text\"\n@x = 1\n",
        "\"a\" 'b' \\\n  \"c\"\n@x = 1\n",
        "(\"in\"\n # why not\n 'brackets')\n@x = 1\n",
        "from __future__ import annotations\n@import os\n",
        "\"\"\"Doc.\"\"\"\n\n# then\nfrom __future__ import annotations  # why\n@\nimport os\n",
        "from __future__ import (  # noqa\n    annotations,\n    division,\n)\n@import os\n",
        "from __future__ import(annotations)\n@import os\n",
        "from __future__ \\\n    import annotations\n@import os\n",
        "from __future__ import a\nfrom __future__ import b\n@from os import path\n",
        "\"doc\"; from __future__ import annotations\n@import os\n",
        "from __future__ import annotations;\n@import os\n",
        "from __future__ import annotations;  # end\n@import os\n",
        // No docstring, so the module begins there.
        "@b'bytes'\n",
        "@f'{x}'\n",
        "@rb'x'\n",
        "@'a'.join(x)\n",
        "@'a' % b\n",
        "@from __future__import x\n",
        "@from __future__x import x\n",
        "@x = 1\nfrom __future__ import annotations\n",
        "@'open\n",
        "@'''open\n",
        "@('open'\n",
        "\n\n\x0c\n@import os\n",
        "# only a comment\n@",
    ] {
        let (before, after) = text.split_once('@').unwrap();
        assert_eq!(
            spoiled(&format!("{before}{after}")),
            format!("{before}{MARK}{after}"),
            "{text}"
        );
    }
}

#[test]
fn what_follows_on_the_same_line_begins_a_line() {
    assert_eq!(
        spoiled("from __future__ import annotations;   import os\nx = 1\n"),
        format!("from __future__ import annotations;\n{MARK}import os\nx = 1\n")
    );
    assert_eq!(
        spoiled("\"doc\"; import os"),
        format!("\"doc\";\n{MARK}import os")
    );
    assert_eq!(spoiled("'doc'"), format!("'doc'\n{MARK}"));
    assert_eq!(spoiled("# end"), format!("# end\n{MARK}"));
    assert_eq!(spoiled("'doc' # end"), format!("'doc' # end\n{MARK}"));
}

#[test]
fn marks_and_ends_of_lines_stay() {
    let crlf = MARK.replace('\n', "\r\n");
    assert_eq!(
        spoiled("\u{feff}\"\"\"Doc\r\n\"\"\"\r\nimport os\r\n"),
        format!("\u{feff}\"\"\"Doc\r\n\"\"\"\r\n{crlf}import os\r\n")
    );
    assert_eq!(
        spoiled("\u{feff}import os\n"),
        format!("\u{feff}{MARK}import os\n")
    );
    assert_eq!(
        spoiled("'a'\rx = 1\r"),
        format!("'a'\r{MARK}x = 1\r"),
        "old ends of lines"
    );
    let latin = ends(b"# -*- coding: latin-1 -*-\n'caf\xe9'\nx = 1\n").0;
    assert!(latin.starts_with(b"# -*- coding: latin-1 -*-\n'caf\xe9'\nif True:"));
}

#[test]
fn the_twin_differs_by_one_name() {
    let (ends, harmless) = ends(b"x = 1\n");
    let ends = String::from_utf8(ends).unwrap();
    assert_eq!(
        String::from_utf8(harmless).unwrap(),
        ends.replace("\"_exit\"", "\"strerror\"")
    );
}

proptest! {
    /// Whatever the file: nothing of it is lost but blanks, and the statement is whole lines.
    #[test]
    fn any_bytes_keep_their_text(
        text in "((from|__future__|import|u|r|b|f|x| |\t|\\\\|\n|\r|\"|'|\"\"\"|'''|\\(|\\)|;|#|\u{feff}|é)){0,24}"
    ) {
        let whole = spoiled(&text);
        let at = whole.find("if True:").unwrap();
        let line = newline(text.as_bytes());
        let mark = MARK.replace('\n', line);
        prop_assert!(whole[at..].starts_with(&mark), "{whole:?}");
        let before = &whole[..at];
        prop_assert!(before.is_empty() || before == "\u{feff}" || before.ends_with(['\n', '\r']), "{whole:?}");
        let bare = |text: &str| text.replace([' ', '\t', '\n', '\r', '\x0c', '\\'], "");
        prop_assert_eq!(bare(&text), bare(&format!("{before}{}", &whole[at + mark.len()..])));
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let (ends, harmless) = ends(&bytes);
        prop_assert!(ends.len() > bytes.len() && harmless.len() > bytes.len());
    }
}
