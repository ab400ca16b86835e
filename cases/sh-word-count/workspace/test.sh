#!/bin/sh
# Compares words.sh with what it must print.
failed=0
expect() {
    got=$(printf '%s' "$1" | sh words.sh)
    if [ "$got" != "$2" ]; then
        printf 'FAIL: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$got"
        failed=1
    fi
}
expect 'b a b' '2 b
1 a'
expect 'The cat and the dog' '2 the
1 and
1 cat
1 dog'
exit $failed
