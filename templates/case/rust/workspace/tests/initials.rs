use initials::initials;

#[test]
fn first_letters() {
    assert_eq!(initials("grace hopper"), "GH");
}

#[test]
fn upper_case_stays() {
    assert_eq!(initials("Alan Mathison Turing"), "AMT");
}

#[test]
fn no_name() {
    assert_eq!(initials("  "), "");
}
