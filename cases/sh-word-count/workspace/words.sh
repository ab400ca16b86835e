#!/bin/sh
# Prints every word of standard input with its count, most frequent first.
tr -cs 'A-Za-z' '\n' | awk 'NF { n[$1]++ } END { for (w in n) print n[w], w }' | sort -k1,1nr -k2,2
