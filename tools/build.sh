# SPDX-License-Identifier: Apache-2.0
# Read by every run.sh: what is missing is installed, what is stale is built.
# Each function ends the script with a message when it cannot do its work.

# Objects of one checkout serve another, where ccache is installed.
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1

give_up() {
  echo "$0: $*" >&2
  exit 1
}

# need PACKAGE...: Debian packages, installed with apt-get where dpkg does not know them.
need() {
  command -v dpkg-query >/dev/null 2>&1 || return 0 # not Debian: Meson will say what is missing, and take the wraps
  missing=
  for package in "$@"; do
    case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" in
      'install ok installed') ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -n "$missing" ] || return 0
  echo "installing:$missing"
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || give_up "these packages are missing, and only root can install them:$missing"
    as_root=sudo
  fi
  $as_root apt-get -q update || echo "$0: the package lists could not be refreshed; trying those that are here" >&2
  # shellcheck disable=SC2086 # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing ||
    give_up "could not install:$missing"
}

# configure COMPILER DIRECTORY MESON-OPTION...: once; later runs leave it to ninja to see what changed. Without dpkg-dev
# Meson does not know Debian's folder of libraries, and CMake would not find what is installed.
configure() {
  configure_compiler=$1
  configure_directory=$2
  shift 2
  [ -f "$configure_directory/build.ninja" ] && return 0
  rm -rf "$configure_directory"
  configure_linker=${CXX_LD-$(lld_if_it_links "$configure_compiler")}
  command -v ccache >/dev/null 2>&1 && configure_compiler="ccache $configure_compiler"
  # Lines for a trace are enough, and an eighth of the time less than all that a debugger could ask for: CXXFLAGS=-g.
  env CXX="$configure_compiler" CXXFLAGS="-g1 ${CXXFLAGS-}" ${configure_linker:+CXX_LD=$configure_linker} \
    meson setup "$configure_directory" "$@" ||
    give_up "the build could not be configured"
}

# lld_if_it_links COMPILER: its name if it links for it, and nothing if not. Some two hundred programs are linked, each
# with the whole library and its debug information: 1.2 s each by the usual linker, 0.4 s by lld.
lld_if_it_links() {
  linked=$(mktemp) || return 0
  echo 'int main() {}' | "$1" -x c++ - -fuse-ld=lld -o "$linked" >/dev/null 2>&1 && echo lld
  rm -f "$linked"
}

# build DIRECTORY [TARGET...]: everything, when no target is named.
build() {
  build_directory=$1
  shift
  meson compile -C "$build_directory" "$@" || give_up "the build failed"
}
