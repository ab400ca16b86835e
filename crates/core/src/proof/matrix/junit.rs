//! The matrix as JUnit XML, for CI systems that show nothing else.

use std::fmt::Write as _;

use super::{MatrixReport, RowOutcome, RowVerdict};
use crate::values::text::is_dangerous;

/// One suite, one test case per row.
pub fn junit_xml(report: &MatrixReport) -> String {
    let counts = &report.counts;
    let numbers = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\"",
        report.rows.len(),
        counts.red,
        counts.not_applicable,
        seconds(report.time.wall_ms)
    );
    let name = escaped(&format!("cto matrix {}", report.engine));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{name}\" {numbers}>\n  <testsuite name=\"{name}\" {numbers}>\n"
    );
    report.rows.iter().for_each(|row| test_case(&mut out, row));
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn test_case(out: &mut String, row: &RowOutcome) {
    let class = escaped(&format!("cto.matrix.{}", row.engine));
    let head = format!(
        "    <testcase classname=\"{class}\" name=\"{}\" time=\"{}\"",
        escaped(&row.row),
        seconds(row.duration_ms)
    );
    // Writing to a string cannot fail.
    let _ = match row.verdict {
        RowVerdict::Green => writeln!(out, "{head}/>"),
        RowVerdict::NotApplicable => {
            let reason = escaped(row.reason.as_deref().unwrap_or("not applicable"));
            writeln!(
                out,
                "{head}>\n      <skipped message=\"{reason}\"/>\n    </testcase>"
            )
        }
        RowVerdict::Red => {
            let wrong: Vec<String> = row
                .wrong()
                .map(|w| {
                    format!(
                        "{}: {}, but: {}",
                        w.check,
                        w.want,
                        w.found.as_deref().unwrap_or("it is not so")
                    )
                })
                .collect();
            let first = escaped(wrong.first().map_or("nothing was asserted", String::as_str));
            let all = escaped(&wrong.join("\n"));
            writeln!(
                out,
                "{head}>\n      <failure type=\"matrix\" message=\"{first}\">{all}</failure>\n    </testcase>"
            )
        }
    };
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Text for an attribute or an element. What XML 1.0 cannot hold even escaped is dropped, and
/// so is what a reader would not see.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(c))),
            c if is_dangerous(c) => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_its_attribute_and_dangerous_characters_are_dropped() {
        assert_eq!(
            escaped("a<b>\"c\"&'d'"),
            "a&lt;b&gt;&quot;c&quot;&amp;&apos;d&apos;"
        );
        assert_eq!(
            escaped("x\u{0}\u{1b}[31my\u{7f}\u{9f}\u{ffff}\u{200b}\u{202e}\u{e0041}\n]]>"),
            "x[31my&#10;]]&gt;"
        );
        assert_eq!(seconds(0), "0.000");
        assert_eq!(seconds(61_007), "61.007");
    }
}
