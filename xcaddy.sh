#!/usr/bin/env bash
# Builds ./caddy (or $OUTPUT) with this module, from this checkout. Further
# arguments go to xcaddy, such as: ./xcaddy.sh --with github.com/example/plugin
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

module=github.com/webhook-dedupe/caddy-webhook-dedupe
xcaddy=github.com/caddyserver/xcaddy/cmd/xcaddy@v0.4.5

for tool in go git; do
	command -v $tool >/dev/null || { echo "xcaddy.sh: $tool is needed" >&2; exit 1; }
done
caddy=$(go list -m -f '{{.Version}}' github.com/caddyserver/caddy/v2)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
GOBIN=$tmp go install "$xcaddy"

# Go asks whether the path of the package is a module of its own, and a proxy may
# refuse a path that it does not know. So it is asked of a repository that holds
# nothing; what is built is this checkout.
git -c init.defaultBranch=main init -q "$tmp/nothing"
git -C "$tmp/nothing" -c user.name=- -c user.email=- commit -q --allow-empty -m nothing

GOPRIVATE=$module,${GOPRIVATE:-} \
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$tmp/nothing.insteadOf" GIT_CONFIG_VALUE_0="https://$module" \
	"$tmp/xcaddy" build "$caddy" --output "${OUTPUT:-./caddy}" \
	--with "$module/caddymodule" --replace "$module=$PWD" "$@"
