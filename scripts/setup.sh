#!/usr/bin/env bash
# Prepare a virtual environment and a Java runtime: scripts/setup.sh VENV [SPARK_VERSION]
# Does nothing, in milliseconds, when both are already as asked for.
set -euo pipefail
venv=$1
spark=${2:-}
cd "$(dirname "$0")/.."

say() { printf '%s\n' "setup: $*" >&2; }
die() { printf '%s\n' "setup: $*" >&2; exit 1; }
is_root() { [ "$(id -u)" = 0 ]; }

apt_install() { # apt_install PACKAGE...: one quiet installation, only as root on a Debian-like machine
  command -v apt-get >/dev/null || return 1
  is_root || return 1
  say "installing $* with apt"
  apt-get update -qq >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

find_python() { # the newest supported interpreter on the PATH, PYTHON wins
  local candidate
  for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3 python; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "Python 3.11, 3.12 or 3.13 is needed and none was found; on Debian: apt-get install python3 python3-venv"
}

java_major() { # the major version of the java given, or 0
  "$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -1 | grep . || echo 0
}

ensure_java() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  if command -v "$java" >/dev/null && [ "$(java_major "$java")" -ge 17 ]; then return; fi
  # Debian 12 has 17, Debian 13 has 21.
  apt_install openjdk-21-jre-headless || apt_install openjdk-17-jre-headless ||
    die "Java 17 or newer is needed and was not found; install a JRE (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
}

ensure_venv() {
  local stamp want python
  stamp=$venv/.ready
  want=$(cat pyproject.toml constraints.txt scripts/setup.sh; echo "$spark"; pwd)
  if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(printf '%s' "$want" | cksum)" ]; then return; fi
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install python3-venv || die "the venv module is missing; on Debian: apt-get install python3-venv"
  fi
  say "creating $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
  local constraints=constraints.txt
  if [ -n "$spark" ]; then
    constraints=$venv/constraints.txt
    grep -vE '^(pyspark|py4j)==' constraints.txt >"$constraints"
    echo "pyspark==$spark" >>"$constraints"
  fi
  say "installing packages"
  # The same floors as [dependency-groups] dev, pinned by the constraints.
  local dev
  dev=$("$python" -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"]))')
  printf '%s\n' "$dev" >"$venv/dev-requirements.txt"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$constraints" \
    -r "$venv/dev-requirements.txt" -e '.[compiled,connect,kafka,pandas,postgresql,rocksdb,server,vector]'
  printf '%s' "$want" | cksum >"$stamp"
}

ensure_java
ensure_venv
