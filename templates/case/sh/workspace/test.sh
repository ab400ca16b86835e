#!/bin/sh
# Compares initials.sh with what it must print.
failed=0
expect() {
    got=$(sh initials.sh "$1")
    if [ "$got" != "$2" ]; then
        printf 'FAIL: %s: wanted %s, got %s\n' "$1" "$2" "$got"
        failed=1
    fi
}
expect 'grace hopper' 'GH'
expect 'Alan Mathison Turing' 'AMT'
expect '  ' ''
exit $failed
