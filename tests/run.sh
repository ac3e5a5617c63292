#!/usr/bin/env bash
# Runs all tests of the module: formatting, vet, staticcheck, every Go test under
# the race detector, the end-to-end tests among them, and each fuzz target for
# FUZZTIME (default 20s; 0 leaves them out). On Debian and Ubuntu it installs what
# they need (redis-server, PHP, a C compiler) if it is missing.
#
#	tests/run.sh [arguments of go test]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# xcaddy builds with these tags, and so does everything here: one build serves all.
tags=nobadger,nomysql,nopgx

missing() {
	command -v gcc >/dev/null || echo gcc libc6-dev # the race detector needs it
	command -v redis-server >/dev/null || echo redis-server
	command -v php >/dev/null || echo php-cli
	command -v php-fpm >/dev/null || compgen -G '/usr/sbin/php-fpm*' >/dev/null || echo php-fpm
	php -m 2>/dev/null | grep -i '^pdo_sqlite$' >/dev/null || echo php-sqlite3
}

install_missing() {
	local packages as_root=()
	packages=$(missing)
	[ -n "$packages" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		as_root=(sudo)
	fi
	if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
		echo "The end-to-end tests need, and this machine has not:" $packages >&2
		echo "They need redis-server, the php and php-fpm commands, and PHP's pdo_sqlite extension." >&2
		exit 1
	fi
	echo "Installing" $packages
	"${as_root[@]}" apt-get update -q
	# A service that the package starts would only be in the way.
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends $packages
}

if ! command -v go >/dev/null; then
	echo "The tests need Go: https://go.dev/doc/install" >&2
	exit 1
fi
install_missing

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	echo "Not formatted (gofmt -w):" $unformatted >&2
	exit 1
fi
# One set of flags, so that Caddy is compiled once.
export GOFLAGS="${GOFLAGS:-} -race -tags=$tags"
echo "Building; the first time, this takes minutes."
go build -o /dev/null ./tests/caddy
go vet ./...
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
if GOFLAGS= GOBIN=$bin go install "$staticcheck"; then
	"$bin/staticcheck" ./...
else
	echo "staticcheck cannot be had and is left out" >&2
fi
# Never from the cache: it does not see the programs that the tests run.
go test -count=1 -timeout 30m "$@" ./...

if [ "${FUZZTIME:-20s}" != 0 ]; then
	tests/fuzz.sh "${FUZZTIME:-20s}"
fi
