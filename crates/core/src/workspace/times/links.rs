//! Where links of a copy lead. A tool asks for the time of what is behind a link: inside the copy
//! that is a file whose time is ours to set; in an environment, or out of the copy, it is not.

use std::collections::{BTreeMap, BTreeSet};

use crate::values::paths::TreePath;

/// Every link of a copy, with what it says; nothing where that could not be read.
pub type Links = BTreeMap<TreePath, Option<Vec<u8>>>;

/// As many links one behind another as the kernel follows.
const MOST_FOLLOWED: u32 = 40;

/// Does a link lead to a place of the copy itself, over every other link on the way, without
/// touching one of `places`, where environments are? One that leads nowhere else stays: it leads to
/// nothing.
pub fn stays_in_copy(link: &TreePath, links: &Links, places: &BTreeSet<TreePath>) -> bool {
    let (mut at, mut followed) = (Vec::<&[u8]>::new(), 0);
    let mut rest: Vec<&[u8]> = parts(link.as_bytes());
    while let Some(part) = rest.pop() {
        match part {
            b"" | b"." => continue,
            b".." if at.pop().is_none() => return false,
            b".." => continue,
            name => at.push(name),
        }
        let here = TreePath::new(at.join(&b'/'));
        if places.contains(&here) || here.as_bytes() == b".git" {
            return false;
        }
        match links.get(&here) {
            None => {}
            Some(Some(text)) if !text.starts_with(b"/") && followed < MOST_FOLLOWED => {
                followed += 1;
                at.pop();
                rest.extend(parts(text));
            }
            Some(_) => return false,
        }
    }
    true
}

/// The names of a path, the first of them last.
fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.rsplit(|byte| *byte == b'/').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(of: &[(&str, &str)]) -> Links {
        let link = |(path, text): &(&str, &str)| {
            let text = (*text != "?").then(|| text.as_bytes().to_vec());
            (TreePath::new(*path), text)
        };
        of.iter().map(link).collect()
    }

    #[test]
    fn a_link_stays_or_leads_away() {
        let places = BTreeSet::from(["target", "web/node_modules"].map(TreePath::new));
        let all = links(&[
            ("up", "../x"),
            ("abs", "/usr/include"),
            ("into", "target/debug/x.rs"),
            ("self", "target"),
            ("web/in", "./node_modules/a"),
            ("web/around", "../web/../web/node_modules"),
            ("web/git", "../.git/config"),
            ("loop", "loop"),
            ("unknown", "?"),
            ("src/imp.rs", "../good.rs"),
            ("src/dir", "../v2"),
            ("nowhere", "not/there"),
            ("top", "."),
            ("web/deep/up", "../../src/imp.rs"),
            ("near", "targets/x"),
            // One behind another.
            ("first", "second/x"),
            ("second", "web/third"),
            ("web/third", "../../out"),
            ("ok1", "ok2/imp.rs"),
            ("ok2", "web/ok3"),
            ("web/ok3", "../src"),
            ("back", "src/dir/../../../x"),
        ]);
        for (link, want) in [
            ("up", false),
            ("abs", false),
            ("into", false),
            ("self", false),
            ("web/in", false),
            ("web/around", false),
            ("web/git", false),
            ("loop", false),
            ("unknown", false),
            ("first", false),
            ("second", false),
            // `..` is counted from where a link led.
            ("back", false),
            ("src/imp.rs", true),
            ("src/dir", true),
            ("nowhere", true),
            ("top", true),
            ("web/deep/up", true),
            ("near", true),
            ("ok1", true),
            ("ok2", true),
        ] {
            let link = TreePath::new(link);
            assert_eq!(stays_in_copy(&link, &all, &places), want, "{link}");
        }
    }
}
