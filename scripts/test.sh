#!/usr/bin/env bash
# Run the tests in two processes side by side: scripts/test.sh PYTHON [PYTEST_ARGUMENTS...]
# One begins with the tests that share a Spark, the other with all others; who is done first helps the other.
# The second one's output comes at the end. Control-C ends both.
set -uo pipefail
set -m # or what runs in the background would ignore Control-C, which some tests send
python=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/taken"

"$python" -m pytest --part spark --beside="$folder/taken" "$@" </dev/null &
spark=$!
"$python" -m pytest --part rest --beside="$folder/taken" -p no:cacheprovider "$@" </dev/null >"$folder/log" 2>&1 &
rest=$!
trap 'kill -INT -- "-$spark" "-$rest" 2>/dev/null' INT TERM HUP

# The exit code of a process; a signal that arrives meanwhile is passed on, and the wait goes on.
await() {
  local code
  while true; do
    wait "$1"
    code=$?
    kill -0 "$1" 2>/dev/null || return "$code"
  done
}
await "$spark"
first=$?
await "$rest"
second=$?
cat "$folder/log"

# 5 says that nothing was chosen; that is an error only if it is so in both.
for code in "$first" "$second"; do
  if [ "$code" -ne 0 ] && [ "$code" -ne 5 ]; then exit "$code"; fi
done
if [ "$first" -eq 5 ] && [ "$second" -eq 5 ]; then exit 5; fi
