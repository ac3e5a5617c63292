#!/usr/bin/env bash
# Builds ./caddy (or $OUTPUT) with this module, from this checkout. Further
# arguments go to xcaddy, such as: ./xcaddy.sh --with github.com/example/plugin
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

module=github.com/webhook-dedupe/caddy-webhook-dedupe
xcaddy=github.com/caddyserver/xcaddy/cmd/xcaddy@v0.4.5

command -v go >/dev/null || { echo "xcaddy.sh: Go is needed, see https://go.dev/doc/install" >&2; exit 1; }
caddy=$(go list -m -f '{{.Version}}' github.com/caddyserver/caddy/v2)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

GOBIN=$tmp go install "$xcaddy"
go mod download

# What the arguments name besides this module is fetched here, so that the build
# itself finds everything in the module cache.
others=()
for ((i = 1; i < $#; i++)); do
	next=$((i + 1))
	[[ ${!i} == --with && ${!next} != *=* ]] && others+=("${!next}")
done
if ((${#others[@]})); then
	mkdir "$tmp/others"
	cp go.sum "$tmp/others/"
	(cd "$tmp/others" && go mod init others && go get "github.com/caddyserver/caddy/v2@$caddy" "${others[@]}" && go mod download) >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log" >&2; exit 1; }
fi

# The path of this package is asked for as if it were a module, and a proxy may
# refuse a path that it does not know. The module cache just says that it has
# none. Its modules were verified when they came in.
GOPROXY=file://$(go env GOMODCACHE)/cache/download GOSUMDB=off GOFLAGS=-mod=mod \
	"$tmp/xcaddy" build "$caddy" --output "${OUTPUT:-./caddy}" \
	--with "$module/caddymodule" --replace "$module=$PWD" "$@"
