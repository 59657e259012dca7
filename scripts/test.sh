#!/usr/bin/env bash
# Run the tests in two processes side by side: scripts/test.sh PYTHON [PYTEST_ARGUMENTS...]
# One has the tests that share a Spark, the other all others; the latter's output comes at the end.
set -uo pipefail
set -m # or what runs in the background would ignore Control-C, which some tests send
python=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$python" -m pytest --part rest -p no:cacheprovider "$@" >"$log" 2>&1 &
other=$!
trap 'kill "$other" 2>/dev/null; rm -f "$log"' EXIT
"$python" -m pytest --part spark "$@"
spark=$?
wait "$other"
pure=$?
cat "$log"

# 5 says that nothing was chosen; that is an error only if it is so in both parts.
for code in "$spark" "$pure"; do
  if [ "$code" -ne 0 ] && [ "$code" -ne 5 ]; then exit "$code"; fi
done
if [ "$spark" -eq 5 ] && [ "$pure" -eq 5 ]; then exit 5; fi
