#!/bin/sh
# tools/sbom.sh [FOLDER]: writes what a release consists of, as CycloneDX: the locked Python packages, and the
# packages that the console's pages are made of.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-dist}
mkdir -p "$folder"
.cache/uv/bin/uv export --quiet --frozen --format cyclonedx1.5 --no-default-groups --all-extras \
    --output-file "$folder/freezeframe.cdx.json" >/dev/null
npm --prefix ui sbom --sbom-format cyclonedx --omit dev --package-lock-only >"$folder/console.cdx.json"
echo "$folder/freezeframe.cdx.json"
echo "$folder/console.cdx.json"
