#!/bin/sh
# The pictures of docs/, from real builds: run it through the project's own environment after the page has changed.
#   scripts/make_pictures.sh            needs pdftoppm and soffice (./run test installs both)
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
picture() { # PDF PAGE PNG
    pdftoppm -r 100 -f "$2" -l "$2" -singlefile -png "$1" "${3%.png}"
}
for models in 8b,70b,405b 8b,49b,70b,100b,405b; do
    n=$(printf '%s' "$models" | tr ',' '\n' | grep -c .)
    suffix=$([ "$n" = 3 ] || printf -- '-%s-models' "$n")
    "$root/run" build --models "$models" --as-of 2026-11-20 --out "$work" --quiet
    picture "$work/sizing-sheet.pdf" 1 "$root/docs/one-page$suffix.png"
    [ "$n" != 3 ] || picture "$work/sizing-sheet.pdf" 2 "$root/docs/engineers.png"
    soffice "-env:UserInstallation=file://$work/profile" --headless --convert-to pdf --outdir "$work/office" \
        "$work/sizing-sheet.xlsx" >/dev/null
    picture "$work/office/sizing-sheet.pdf" 1 "$root/docs/workbook$suffix.png"
    [ "$n" != 3 ] || picture "$work/office/sizing-sheet.pdf" 3 "$root/docs/decision.png" # behind two of the grid
done
