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

# fuzz runs one target. Up to Go 1.26 the end of the time is now and then reported
# as the target's failure (https://go.dev/issue/75804); the time is over then, and
# a real failure says which input it wrote.
fuzz() {
	local report
	report=$(mktemp)
	if go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" "./$2" </dev/null 2>&1 | tee "$report"; then
		rm "$report"
	elif grep -qx '    context deadline exceeded' "$report" && ! grep -q 'Failing input written' "$report"; then
		rm "$report"
		echo "$1: no failing input until the time was over"
	else
		rm "$report"
		return 1
	fi
}

grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^\./([^:]*)/[^/:]*:[0-9]+:func |\1 |' | sort | while read -r package target; do
	[[ $target =~ $chosen ]] || continue
	fuzz "$target" "$package"
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
