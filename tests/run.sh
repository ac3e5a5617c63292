#!/usr/bin/env bash
# Runs all tests of the module: formatting, vet, staticcheck, and every Go test
# under the race detector, the end-to-end tests among them. On Debian and Ubuntu
# it installs what those need (redis-server and PHP) if it is missing.
#
#	bash tests/run.sh [arguments of go test]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# xcaddy builds with these tags, and so does everything here: one build serves all.
tags=nobadger,nomysql,nopgx

missing() {
	command -v redis-server >/dev/null || echo redis-server
	command -v php >/dev/null || echo php-cli
	command -v php-fpm >/dev/null || compgen -G '/usr/sbin/php-fpm*' >/dev/null || echo php-fpm
	php -m 2>/dev/null | grep -qi '^pdo_sqlite$' || echo php-sqlite3
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
echo "Building; the first time, this takes minutes."
go build -race -tags "$tags" -o /dev/null ./tests/caddy
go vet -tags "$tags" ./...
if staticcheck=$(go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -version 2>&1); then
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags "$tags" ./...
else
	echo "staticcheck cannot be had and is left out: $staticcheck" >&2
fi
go test -race -tags "$tags" -timeout 30m "$@" ./...
