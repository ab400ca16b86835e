# Names the engine has not seen. Read whole and removed before the code under test is compiled or started;
# the program only answers, it does not judge.
cargo build --offline --quiet || exit 1
failed=0
expect() {
    got=$(target/debug/initials "$1") || failed=1
    [ "$got" = "$2" ] || { printf 'FAIL: %s: got %s\n' "$1" "$got"; failed=1; }
}
expect 'ada lovelace' 'AL'
expect '  Edsger   W. Dijkstra ' 'EWD'
expect 'plato' 'P'
expect '' ''
exit $failed
