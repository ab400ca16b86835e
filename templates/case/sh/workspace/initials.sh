#!/bin/sh
# Prints the initials of the name it is given.
printf '%.1s\n' "$1"
