# Names the engine has not seen. Read whole and removed before the program under test is started, in a
# directory that holds nothing else; the program only answers, it does not judge.
place=$(mktemp -d)
cp initials.sh "$place"
cd "$place" || exit 2
failed=0
expect() {
    got=$(sh initials.sh "$1")
    [ "$got" = "$2" ] || { printf 'FAIL: %s: got %s\n' "$1" "$got"; failed=1; }
}
expect 'ada lovelace' 'AL'
expect '  Edsger   W. Dijkstra ' 'EWD'
expect 'plato' 'P'
expect '' ''
exit $failed
