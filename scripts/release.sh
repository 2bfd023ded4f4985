#!/bin/sh
# Build and check a release of the version in sheetgen/version.py, and tag it: scripts/release.sh
# The wheel and the sdist are in dist/; publishing them (`twine upload dist/*`) is left to a person.
set -eu

cd "$(dirname -- "$0")/.."
stop() { printf 'release: %s\n' "$*" >&2; exit 1; }

version=$(sed -n 's/^VERSION = "\(.*\)"$/\1/p' sheetgen/version.py)
tag=v$version
[ -z "$(git status --porcelain)" ] || stop "commit or remove what git status shows"
[ "$(git rev-parse --abbrev-ref HEAD)" = main ] || stop "a release is made on main"
! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null || stop "$tag is there already: raise VERSION"
grep -q "^## $version " CHANGELOG.md || stop "CHANGELOG.md has no section '## $version (DATE)'"

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" --disable-pip-version-check --quiet install build twine
rm -rf dist
"$tools/bin/pyproject-build" --outdir dist .
"$tools/bin/twine" check --strict dist/*
"$tools/bin/pip" --disable-pip-version-check --quiet install dist/*.whl
(cd "$tools" && bin/sheetgen recommend --model 8b --users 200 >/dev/null) || stop "the installed wheel does not answer"
git tag --annotate "$tag" --message "sheetgen $version"
printf 'release: %s is tagged; dist/ holds its wheel and sdist\n' "$tag" >&2
