#!/bin/sh
# Texts the engine has not seen; the program under test only answers, it does not judge.
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
