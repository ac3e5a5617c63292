#!/usr/bin/env bash
# Runs every fuzz target for a while, on top of the inputs that are kept in the
# testdata/fuzz folders, which every test run replays.
#
#	tests/fuzz.sh [-keep] [<time>] [<regexp of targets>]
#
# The time is for each target; default 20s. With -keep, up to 32 of the inputs
# that were found to reach new code are added to the kept ones, of every length.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

keep=
if [ "${1:-}" = -keep ]; then
	keep=yes
	shift
fi
time=${1:-20s}
chosen=${2:-.}
most=32

# Without the race detector, which slows the search down ten times.
export GOFLAGS="-tags=nobadger,nomysql,nopgx"
found=$(go env GOCACHE)/fuzz/$(go list -m)

grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^\./([^:]*)/[^/:]*:[0-9]+:func |\1 |' | sort | while read -r package target; do
	[[ $target =~ $chosen ]] || continue
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package" </dev/null
	if [ -n "$keep" ] && [ -d "$found/$package/$target" ]; then
		kept=$package/testdata/fuzz/$target
		mkdir -p "$kept"
		room=$((most - $(find "$kept" -type f | wc -l)))
		[ "$room" -gt 0 ] || continue
		find "$found/$package/$target" -type f -size -4k -printf '%s %p\n' | sort -n | cut -d' ' -f2 |
			awk -v step="$(find "$found/$package/$target" -type f -size -4k | wc -l)" -v room="$room" 'BEGIN { step = step > room ? step / room : 1 } NR >= next_one { print; next_one += step }' |
			head -n "$room" | xargs -r cp -t "$kept"
	fi
done
