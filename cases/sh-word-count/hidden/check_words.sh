# Texts the engine has not seen. Read whole and removed before the program under test is started, in a
# directory that holds nothing else; the program only answers, it does not judge.
place=$(mktemp -d)
cp words.sh "$place"
cd "$place" || exit 2
failed=0
expect() {
    got=$(printf '%s' "$1" | sh words.sh)
    [ "$got" = "$2" ] || { printf 'FAIL: %s: got %s\n' "$1" "$got"; failed=1; }
}
expect 'To be, or not TO BE.' '2 be
2 to
1 not
1 or'
expect 'x X x' '3 x'
expect '' ''
exit $failed
