# shellcheck shell=bash
# What ./run and ./test share: the Debian packages, and the build. Sourced with $top set to the project's
# folder. Everything said here goes to stderr: stdout belongs to the script that ./run starts.
: "${top:?is set by the script that sources this file}"

# One item a line; "a|b" is satisfied by either, and the first is installed.
# shellcheck disable=SC2034  # used by the scripts that source this file
build_packages=(
  "gcc|clang"
  libc6-dev
  cmake
  ninja-build
  pkg-config
  "libluajit-5.1-dev|libluajit2-5.1-dev"
  libuv1-dev
  libdeflate-dev
  liblz4-dev
  libzstd-dev
  lua-luv-dev
  lua-luv
  lua-cjson
)

# shellcheck disable=SC2034
test_packages=(
  gcc
  lua-busted
  lua-check
  clang
  clang-format
  clang-tidy
  libclang-rt-14-dev
  shellcheck
  openjdk-17-jdk-headless
  maven
)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# quietly LOG WHAT COMMAND... : runs the command, its output in the log, which is shown when it fails.
quietly() {
  local log=$1 what=$2
  shift 2
  mkdir -p "${log%/*}"
  "$@" >"$log" 2>&1 </dev/null && return 0
  cat "$log" >&2
  die "$what failed; its output stands above and in $log"
}

# missing_packages ITEM... : prints, a line each, what must be installed to satisfy every item.
missing_packages() {
  local installed item name names found
  installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' 2>/dev/null || true)"
  for item in "$@"; do
    found=no
    IFS='|' read -ra names <<<"$item"
    for name in "${names[@]}"; do
      case $installed in *" installed:$name "*) found=yes ;; esac
    done
    [ $found = yes ] || printf '%s\n' "${names[0]}"
  done
}

# need_packages ITEM... : installs what is missing, or says what to install where that cannot be done.
need_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "this system has no apt-get. Needed are, by the names of their Debian 12 packages:"
    printf '  %s\n' "$@" >&2
    die "install their like (of a|b either), then build:
  cmake -G Ninja -B build/release -DCMAKE_BUILD_TYPE=Release && ninja -C build/release"
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@" | sort -u)
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "these packages are missing and there is no sudo; as root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  quietly "$top/build/logs/apt-update.log" "apt-get update" \
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update
  quietly "$top/build/logs/apt-install.log" "apt-get install" \
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
}

# configure FOLDER OPTION... : runs cmake unless the folder was configured so before, from just here.
configure() {
  local folder=$1 wanted
  shift
  wanted=$(printf '%s\n' "$top" "$*")
  [ -f "$folder/build.ninja" ] && [ "$(cat "$folder/.configured" 2>/dev/null)" = "$wanted" ] && return 0
  # CMake's cache keeps the compiler and the place of the source, and neither can be changed there.
  rm -rf "$folder"
  quietly "$top/build/logs/cmake-${folder##*/}.log" "cmake" cmake -G Ninja -S "$top" -B "$folder" "$@"
  printf '%s\n' "$wanted" >"$folder/.configured"
}

# build FOLDER [TARGET]: a few hundredths of a second when there is nothing to do.
build() { quietly "$top/build/logs/ninja-${1##*/}.log" "the build" ninja -C "$@"; }
