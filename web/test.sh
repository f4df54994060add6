#!/usr/bin/env bash
# Checks the page: the committed bundle is that of the sources, and all tests in a real browser pass, on invented runs
# and on runs of the program, which is built for them as `cargo test` builds it.
#
# Installs what is missing where it may: the packages of package-lock.json, and Debian's chromium-headless-shell. Where
# it may not, it says in one line why the page is not tested, and ends well; with CI set it fails instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

skip() {
    echo "the page is not tested: $*" >&2
    [ -z "${CI:-}" ] || exit 1
    exit 0
}

major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/') || true
[ "${major:-0}" -ge 20 ] || skip "it needs Node 20 or newer"

# The lock file that was installed last; npm itself would look at every package.
if ! cmp -s package-lock.json node_modules/.installed-lock; then
    npm ci --no-audit --no-fund --loglevel=error >&2 || skip "npm ci failed, which needs the npm registry"
    cp package-lock.json node_modules/.installed-lock
fi

bash check.sh

if ! command -v chromium-headless-shell >/dev/null && ! command -v chromium >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        skip "no chromium is here; on Debian: sudo apt-get install chromium-headless-shell fonts-dejavu-core"
    fi
    (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends -y \
        chromium-headless-shell fonts-dejavu-core) >/dev/null 2>&1 || skip "chromium-headless-shell was not installed"
fi

if [ -z "${ISLES:-}" ]; then
    if command -v cargo >/dev/null; then
        cargo build --quiet --locked -p isles-cli -p isles-dashboard -p isles-jobs -p isles-bc -p isles-uts
    else
        echo "the page is not tested on real runs: they need Cargo, or ISLES with the path of isles" >&2
    fi
fi

npm test --silent
