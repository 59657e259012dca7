#!/usr/bin/env bash
# Run the tests in three processes side by side: scripts/test.sh PYTHON [PYTEST_ARGUMENTS...]
# One begins with the tests that share a Spark, one with those that start their own, one with those that need none;
# who is done first helps the others. Much of a test is waiting, so that two cores have work for three.
# The output of the second and third comes at the end. Control-C ends all.
set -uo pipefail
unset PYTHONDONTWRITEBYTECODE # hundreds of child processes import what one of them has compiled
set -m # or what runs in the background would ignore Control-C, which some tests send
python=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/taken"

"$python" -m pytest --part spark --beside="$folder/taken" "$@" </dev/null &
processes=($!)
for part in own plain; do
  "$python" -m pytest --part "$part" --beside="$folder/taken" -p no:cacheprovider "$@" </dev/null >"$folder/$part" 2>&1 &
  processes+=($!)
done
trap 'for one in "${processes[@]}"; do kill -INT -- "-$one" 2>/dev/null; done' INT TERM HUP

# The exit code of a process; a signal that arrives meanwhile is passed on, and the wait goes on.
await() {
  local code
  while true; do
    wait "$1"
    code=$?
    kill -0 "$1" 2>/dev/null || return "$code"
  done
}
worst=0
chosen=no
for one in "${processes[@]}"; do
  await "$one"
  code=$?
  # 5 says that nothing was chosen; that is an error only if it is so in all.
  if [ "$code" -ne 5 ]; then chosen=yes; fi
  if [ "$code" -ne 0 ] && [ "$code" -ne 5 ]; then worst=$code; fi
done
cat "$folder/own" "$folder/plain"
if [ "$chosen" = no ]; then exit 5; fi
exit "$worst"
