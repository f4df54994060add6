#!/usr/bin/env bash
# Builds the bundle again and compares it with what is committed: what the server embeds is what the sources say.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

npx --no-install tsc --noEmit
node build.mjs
git diff --exit-code --stat -- dist
if [ -n "$(git ls-files --others --exclude-standard -- dist)" ]; then
    echo "web/dist has files that are not committed" >&2
    exit 1
fi
sources=(--include='*.ts' --include='*.mjs' --include='*.css')
long=$(LC_ALL=C.UTF-8 grep -rnE '^.{121,}' "${sources[@]}" src tests build.mjs || true)
if [ -n "$long" ]; then
    printf 'lines over 120 columns:\n%s\n' "$long" >&2
    exit 1
fi
echo "the bundle is that of the sources"
