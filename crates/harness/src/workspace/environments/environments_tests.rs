use super::*;

#[test]
fn nothing_is_put_behind_a_link_or_over_what_is_there() {
    let house = tempfile::tempdir().unwrap();
    let (top, away) = (house.path().join("top"), house.path().join("away"));
    fs::create_dir_all(top.join("a")).unwrap();
    fs::create_dir_all(&away).unwrap();
    fs::write(top.join("a/file"), "x").unwrap();
    std::os::unix::fs::symlink(&away, top.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere", top.join("a/dangling")).unwrap();
    for (path, want) in [
        ("env", true),
        ("a/env", true),
        ("a/file", false),
        ("a/file/env", false),
        ("a/dangling", false),
        ("link/env", false),
        ("gone/env", false),
    ] {
        let done = put(&top, &TreePath::new(path), |place| fs::create_dir(place)).unwrap();
        assert_eq!(done, want, "{path}");
    }
    assert_eq!(fs::read_dir(&away).unwrap().count(), 0);
}
