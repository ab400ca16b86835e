//! The head of a script: its first line, comments that give orders, and directives.

use proptest::prelude::*;

use super::*;

const MARK: &str = "process[\"exit\"](97);\n";

fn spoiled(text: &str) -> String {
    String::from_utf8(ends(text.as_bytes(), Dialect::Plain).0).unwrap()
}

#[test]
fn it_stands_behind_first_line_comments_and_directives() {
    // `§` is where the statement has to stand.
    for text in [
        "§",
        "§import x from 'x';\n",
        "#!/usr/bin/env node\n§require('x');\n",
        "// @ts-check\n/* eslint-disable */\n§let a;\n",
        "/**\n * @jest-environment jsdom\n */\n§let a;\n",
        "'use strict';§",
        "\"use strict\"; 'use other';§",
        // No directive: the string is part of an expression.
        "§'a' + b;\n",
        "§'a'\n.length;\n",
        "§'a'\n  ? 1 : 2;\n",
        "§'a'\n in b;\n",
        "§'a' instanceof b;\n",
        "§'a'\n != b;\n",
        "§`use strict`;\n",
        "§'open\n",
        "\u{feff}§let a;\n",
    ] {
        let (before, after) = text.split_once('§').unwrap();
        let line = match before.is_empty() || before.ends_with(['\n', '\u{feff}']) {
            true => "",
            false => "\n",
        };
        assert_eq!(
            spoiled(&format!("{before}{after}")),
            format!("{before}{line}{MARK}{after}"),
            "{text}"
        );
    }
}

#[test]
fn directives_keep_their_place() {
    for (text, want) in [
        (
            "'use strict';\nlet a;\n",
            format!("'use strict';\n{MARK}\nlet a;\n"),
        ),
        (
            "'use strict'\nlet a\n",
            format!("'use strict'\n{MARK}\nlet a\n"),
        ),
        (
            "'use strict' // why\nlet a\n",
            format!("'use strict'\n{MARK} // why\nlet a\n"),
        ),
        ("'use strict'", format!("'use strict'\n{MARK}")),
        (
            "// @ts-check\n'use strict';\n",
            format!("// @ts-check\n'use strict';\n{MARK}\n"),
        ),
        (
            "'use strict' /* a\n b */ let a",
            format!("'use strict'\n{MARK} /* a\n b */ let a"),
        ),
        ("'it\\'s'\n++a\n", format!("'it\\'s'\n{MARK}\n++a\n")),
        (
            "#!/usr/bin/env node",
            format!("#!/usr/bin/env node\n{MARK}"),
        ),
        (
            "/** @jest-environment jsdom */ let a",
            format!("/** @jest-environment jsdom */ \n{MARK}let a"),
        ),
        ("/* open", format!("/* open\n{MARK}")),
    ] {
        assert_eq!(spoiled(text), want, "{text}");
    }
    assert_eq!(
        spoiled("'use strict';\r\nlet a;\r\n"),
        "'use strict';\r\nprocess[\"exit\"](97);\r\n\r\nlet a;\r\n"
    );
}

#[test]
fn types_are_satisfied() {
    let (ends, harmless) = ends(b"// x\nimport a from 'a'\n", Dialect::Typed);
    assert_eq!(
        String::from_utf8(ends).unwrap(),
        "// x\n;(globalThis as any).process[\"exit\"](97);\nimport a from 'a'\n"
    );
    assert_eq!(
        String::from_utf8(harmless).unwrap(),
        "// x\n;(globalThis as any).process[\"setMaxListeners\"](97);\nimport a from 'a'\n"
    );
}

#[test]
fn a_component_has_its_code_in_a_script() {
    for (text, typed) in [
        (
            "<template/>\n<script>\nexport default {}\n</script>\n",
            Some(false),
        ),
        (
            "<script setup lang=\"ts\">\nlet a: number\n</script>\n",
            Some(true),
        ),
        ("<SCRIPT lang='ts'>\n</SCRIPT>", Some(true)),
        ("---\nimport a from 'a'\n---\n<p/>\n", Some(true)),
        ("<template/>", None),
        ("<scripted>", None),
        ("<script src=\"./a.js\"></script>", None),
        ("<script", None),
        ("---", None),
        ("", None),
    ] {
        let found = component(text.as_bytes()).map(|(ends, _)| String::from_utf8(ends).unwrap());
        assert_eq!(found.is_some(), typed.is_some(), "{text}");
        if let (Some(found), Some(typed)) = (found, typed) {
            assert_eq!(found.contains("globalThis as any"), typed, "{found}");
            let (tag, exit) = (found.find(['>', '-']), found.find("[\"exit\"](97)"));
            assert!(tag < exit, "{found}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_keeps_its_text(
        text in "(('|\"|'use strict'|;|\n|\r|/|\\*|//|/\\*|\\*/| |a|in|\\\\|#!|\u{2028}|\u{feff}|<script>|\\})){0,24}"
    ) {
        let whole = spoiled(&text);
        let mark = MARK.replace('\n', newline(text.as_bytes()));
        let at = whole.find(&mark).unwrap();
        let bare = |text: &str| text.replace(['\n', '\r'], "");
        prop_assert_eq!(bare(&text), bare(&format!("{}{}", &whole[..at], &whole[at + mark.len()..])));
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(ends(&bytes, Dialect::Typed).0.len() > bytes.len());
        component(&bytes);
    }
}
