# shellcheck shell=bash
# Shared by the scripts of hack/, build/ and tools/: installs what is missing, each step only when it is missing.
# Works as root or with sudo, without a terminal, without git, and with an empty environment.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export ROOT
NODE_MAJOR=24
# Go for building programs: the least minor version of Go 1, and the version to fetch if there is none.
GO_MINOR=26
GO_TOOLCHAIN=1.26.8
export npm_config_update_notifier=false

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}

# npm and Chromium want a home directory; `env -i` and some service managers give none.
if [ -z "${HOME:-}" ]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6 || true)
  if [ -z "$HOME" ] || [ ! -w "$HOME" ]; then HOME=${TMPDIR:-/tmp}/kube-nvr-home-$(id -u); fi
  mkdir -p "$HOME"
  export HOME
fi
# Tests use mkfs, mount and similar programs, whose directory is not on every PATH.
export PATH=$PATH:/usr/sbin:/sbin
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/kube-nvr
# The system may trust a CA, such as that of a company's proxy, that Node does not know by itself.
trust_as_the_system() {
  if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -r /etc/ssl/certs/ca-certificates.crt ]; then
    export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
  fi
}
trust_as_the_system

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root for: $* (run as root, or install sudo)"
  fi
}

# Shows the output of apt only if it fails.
apt_get() {
  local log
  log=$(mktemp)
  mkdir -p "$CACHE/locks"
  # apt itself waits for some of its locks, not for all.
  if ! as_root flock --close "$CACHE/locks/apt" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=600 "$@" </dev/null >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

installed() { dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

# need_packages PACKAGE[=COMMAND]...: a package counts as installed if it is, or if its command exists.
need_packages() {
  local item missing=()
  for item in "$@"; do
    case $item in
      *=*) command -v "${item#*=}" >/dev/null || missing+=("${item%%=*}") ;;
      *) installed "$item" || missing+=("$item") ;;
    esac
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || {
    say "missing and not installable here (no apt-get): ${missing[*]}"
    return 1
  }
  say "installing with apt: ${missing[*]}"
  if [ -z "${APT_UPDATED:-}" ]; then
    # One unreachable source must not prevent installing from the others.
    apt_get update || say "apt-get update failed; trying with the package lists at hand"
    APT_UPDATED=1
  fi
  apt_get install --no-install-recommends "${missing[@]}" || {
    say "could not install: ${missing[*]}"
    return 1
  }
}

node_is_new_enough() {
  command -v "$1" >/dev/null && "$1" -e "process.exit(process.versions.node.split('.')[0] >= $NODE_MAJOR ? 0 : 1)" \
    2>/dev/null
}

# Puts a Node of at least NODE_MAJOR first in PATH: the system's, or one from the npm registry kept in the cache.
need_node() {
  if node_is_new_enough node && command -v npm >/dev/null; then return 0; fi
  local arch home=$CACHE/node
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *) die "no Node $NODE_MAJOR for $(uname -m) in the npm registry: install Node $NODE_MAJOR or newer, then try again" ;;
  esac
  local modules=$home/node_modules
  if ! node_is_new_enough "$modules/node-linux-$arch/bin/node" || [ ! -e "$modules/npm/bin/npm-cli.js" ]; then
    need_packages ca-certificates npm=npm || die "no npm to fetch Node $NODE_MAJOR with"
    trust_as_the_system
    say "fetching Node $NODE_MAJOR into $home"
    mkdir -p "$home"
    # npm comes too: a distribution's npm is tied to the distribution's older Node.
    npm install --prefix "$home" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
      "node-linux-$arch@$NODE_MAJOR" npm@11 </dev/null >&2 || die "could not fetch Node $NODE_MAJOR"
  fi
  PATH=$modules/node-linux-$arch/bin:$modules/.bin:$PATH
  export PATH
}

# Installs the packages of package-lock.json when it changed since the last time.
need_modules() {
  local stamp=$ROOT/node_modules/.lock-sha256 hash
  hash=$(sha256sum "$ROOT/package-lock.json" | cut -d' ' -f1)
  if [ "$(cat "$stamp" 2>/dev/null || true)" = "$hash" ]; then return 0; fi
  say "installing node_modules"
  (cd "$ROOT" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error </dev/null >&2) ||
    die "npm ci failed"
  echo "$hash" >"$stamp"
}

# GStreamer's RTSP server with the plugins of the demo cameras: pictures and audio (base), overlays (x), RTP and G.711 (good),
# AAC, H.265 and the parsers (bad), x264 (ugly). The overlays draw nothing without a font.
CAMERA_PACKAGES=(
  python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good
  gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-x fonts-dejavu-core
)

go_is_new_enough() {
  local minor
  minor=$("$1" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  [ "${minor:-0}" -ge "$GO_MINOR" ]
}

# Puts a Go of at least GO_MINOR first in PATH: the system's, or one that the Go module proxy has as a module.
need_go() {
  local directory go=
  export GOTOOLCHAIN=local
  for directory in "$(dirname "$(command -v go || echo /none)")" /usr/local/go/bin /usr/lib/go-*/bin \
    "$(cat "$CACHE/go-directory" 2>/dev/null || echo /none)"; do
    if [ -x "$directory/go" ] && go_is_new_enough "$directory/go"; then
      export PATH=$directory:$PATH
      return 0
    fi
    if [ -x "$directory/go" ]; then go=$directory/go; fi
  done
  if [ -z "$go" ]; then
    need_packages ca-certificates golang-go=go || die "no Go to build Kubernetes with"
    go=$(command -v go)
    if go_is_new_enough "$go"; then return 0; fi
  fi
  local module arch
  case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) die "no Go for $(uname -m) among the modules: install Go 1.$GO_MINOR or newer, then try again" ;;
  esac
  say "fetching Go $GO_TOOLCHAIN"
  module=golang.org/toolchain@v0.0.1-go$GO_TOOLCHAIN.linux-$arch
  # A Go that predates toolchain modules can download one only inside a module.
  directory=$(mktemp -d)
  (cd "$directory" && "$go" mod init fetch && "$go" mod download "$module") >"$directory/log" 2>&1 || {
    tail -n 5 "$directory/log" >&2
    rm -rf "$directory"
    die "could not fetch Go $GO_TOOLCHAIN"
  }
  rm -rf "$directory"
  directory=$("$go" env GOMODCACHE)/$module
  # Modules have no executable files, and are read-only.
  chmod -R u+w "$directory"
  find "$directory/bin" "$directory/pkg/tool" -type f -exec chmod a+x {} +
  mkdir -p "$CACHE"
  echo "$directory/bin" >"$CACHE/go-directory"
  export PATH=$directory/bin:$PATH
}

# go_build DIRECTORY OUTPUT LINKER_FLAGS PACKAGE: builds a package of the module in DIRECTORY. Shows how far it is on a terminal,
# and Go's output only if it fails.
go_build() {
  local log name progress=
  log=$(mktemp)
  name=$(basename "$2")
  say "building $name (minutes, once)"
  mkdir -p "$(dirname "$2")"
  if [ -t 2 ]; then
    tell_packages "$name" "$log" &
    progress=$!
  fi
  # Without data for debuggers the compiler takes a seventh less of the processor; stack traces do not need it.
  local code=0
  (cd "$1" && CGO_ENABLED=0 GOFLAGS='-buildvcs=false -mod=readonly' nice -n 5 \
    go build -v -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w $3" -o "$2.$$" "$4" </dev/null >"$log" 2>&1) || code=1
  [ -z "$progress" ] || kill "$progress" 2>/dev/null || true
  if [ $code -ne 0 ]; then
    tail -n 30 "$log" >&2
    rm -f "$2.$$"
  fi
  rm -f "$log"
  [ $code -eq 0 ] || return 1
  # Another shell may have built it meanwhile: the last one replaces the file, and both are the same.
  mv "$2.$$" "$2"
}

# tell_packages NAME LOG: says every 15 s how many modules Go has fetched and how many packages it has compiled.
tell_packages() {
  local never fetched
  exec {never}<> <(:)
  while ! read -r -t 15 -u "$never"; do
    fetched=$(grep -c '^go: downloading ' "$2") || true
    say "  $1: $fetched modules fetched, $(($(wc -l <"$2") - fetched)) packages compiled"
  done
}

# need_kubernetes PROGRAM...: programs built from the modules in test/rig/kube/go.mod, unless KUBEBUILDER_ASSETS or the
# cache has them.
need_kubernetes() {
  local version name missing=() set=k8s.io/component-base/version
  version=$(module_version test/rig/kube k8s.io/kubernetes)
  local directory=$CACHE/kubernetes/$version
  for name in "$@"; do
    if [ ! -x "${KUBEBUILDER_ASSETS:-/none}/$name" ] && [ ! -x "$directory/$name" ]; then missing+=("$name"); fi
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  need_go
  local minor=${version#v*.}
  for name in "${missing[@]}"; do
    go_build "$ROOT/test/rig/kube" "$directory/$name" \
      "-X $set.gitVersion=$version -X $set.gitMajor=1 -X $set.gitMinor=${minor%%.*}" "k8s.io/kubernetes/cmd/$name" ||
      return 1
  done
}

# module_version DIRECTORY MODULE: the version that DIRECTORY/go.mod requires.
module_version() { sed -n "s|^require $2 ||p" "$ROOT/$1/go.mod"; }

# built_with_helm PROGRAM MODULE: builds a program from the modules in test/rig/helm/go.mod.
built_with_helm() {
  local version minor name flags
  version=$(module_version test/rig/helm "$2")
  if [ -x "$CACHE/$1/$version/$1" ]; then return 0; fi
  need_go
  # The version of the cluster that Helm assumes when it only renders; its own default is 1.20.
  minor=$(sed -n 's|^\tk8s.io/client-go v0\.\([0-9]*\)\..*|\1|p' "$ROOT/test/rig/helm/go.mod")
  flags="-X helm.sh/helm/v3/internal/version.version=$(module_version test/rig/helm helm.sh/helm/v3)"
  for name in pkg/chartutil pkg/lint/rules; do
    flags+=" -X helm.sh/helm/v3/$name.k8sVersionMajor=1 -X helm.sh/helm/v3/$name.k8sVersionMinor=$minor"
  done
  go_build "$ROOT/test/rig/helm" "$CACHE/$1/$version/$1" "$flags" "$2/cmd/$1"
}

need_helm() { command -v helm >/dev/null || built_with_helm helm helm.sh/helm/v3; }

# The program that makes Debian and RPM packages: where it is, once need_nfpm has built it.
nfpm_path() { echo "$CACHE/nfpm/$(module_version build/package github.com/goreleaser/nfpm/v2)/nfpm"; }
need_nfpm() {
  if [ -x "$(nfpm_path)" ]; then return 0; fi
  need_go
  go_build "$ROOT/build/package" "$(nfpm_path)" "" github.com/goreleaser/nfpm/v2/cmd/nfpm
}

# debian_sources SUITE: the package repositories of this machine, as lines of sources.list.
debian_sources() {
  # shellcheck disable=SC2016 # apt fills these in
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v suite="$1" '$3 == suite || index($3, suite "-") == 1' | sort -u
}

# A small Debian with systemd, and with rpm for its packages: the server that tests install packages on. They do not change it.
need_server() {
  local directory=$CACHE/server/bookworm mirror
  if [ -d "$directory" ]; then return 0; fi
  mirror=$(debian_sources bookworm | awk '$3 == "bookworm" { print $2; exit }')
  [ -n "$mirror" ] || {
    say "apt has no package source of Debian bookworm"
    return 1
  }
  say "making a server of Debian bookworm"
  mkdir -p "${directory%/*}"
  as_root debootstrap --variant=minbase --include=systemd-sysv,rpm bookworm "$directory.$$" "$mirror" \
    >"$directory.log" 2>&1 </dev/null || {
    tail -n 10 "$directory.log" >&2
    as_root rm -rf "$directory.$$"
    return 1
  }
  as_root find "$directory.$$/var/cache/apt" "$directory.$$/var/lib/apt/lists" -type f -delete
  as_root mv "$directory.$$" "$directory"
}

# Tools for tests of the chart: unit tests next to its templates, and validation of each rendered object against the schema
# of its kind.
need_chart_checks() {
  built_with_helm helm-unittest github.com/helm-unittest/helm-unittest &&
    built_with_helm kubeconform github.com/yannh/kubeconform &&
    need_schema kube k8s.io/kubernetes kubernetes .json api/openapi-spec/swagger.json &&
    need_schema schemas sigs.k8s.io/gateway-api gateway-api .yaml 'config/crd/standard/*_httproutes.yaml' &&
    need_schema schemas github.com/prometheus-operator/prometheus-operator prometheus-operator .yaml \
      'example/prometheus-operator-crd/*_podmonitors.yaml example/prometheus-operator-crd/*_servicemonitors.yaml
      example/prometheus-operator-crd/*_prometheusrules.yaml'
}

# need_schema DIRECTORY MODULE NAME ENDING PATTERNS: joins files of a module in test/rig/DIRECTORY/go.mod into one file in
# the cache.
need_schema() {
  local file from
  file=$CACHE/schemas/$3-$(module_version "test/rig/$1" "$2")$4
  if [ -e "$file" ]; then return 0; fi
  need_go
  from=$(go -C "$ROOT/test/rig/$1" mod download -json "$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -d "$from" ] || {
    say "could not fetch $2"
    return 1
  }
  mkdir -p "$CACHE/schemas"
  # shellcheck disable=SC2086 # patterns
  (cd "$from" && cat $5) >"$file.$$" && mv "$file.$$" "$file"
}

# CoreDNS, which resolves names of Services for pods on a real node.
need_coredns() {
  local version
  version=$(module_version test/rig/dns github.com/coredns/coredns)
  if [ -x "$CACHE/coredns/$version/coredns" ]; then return 0; fi
  need_go
  go_build "$ROOT/test/rig/dns" "$CACHE/coredns/$version/coredns" "" .
}

# Object storage (S3) on a directory.
need_versitygw() {
  local version
  version=$(module_version test/rig/s3 github.com/versity/versitygw)
  if [ -x "$CACHE/versitygw/$version/versitygw" ]; then return 0; fi
  need_go
  go_build "$ROOT/test/rig/s3" "$CACHE/versitygw/$version/versitygw" "" github.com/versity/versitygw/cmd/versitygw
}

# need_own_program NAME: a program of test/rig. Its version is that of its source.
need_own_program() {
  local version
  version=$(cat "$ROOT/test/rig/$1"/{go.mod,main.go} | sha256sum | cut -c1-16)
  if [ -x "$CACHE/$1/$version/$1" ]; then return 0; fi
  need_go
  go_build "$ROOT/test/rig/$1" "$CACHE/$1/$version/$1" "" .
}

# The linter of the OpenAPI document, a program of 15 MB that is not part of the product.
REDOCLY_VERSION=2.77.0
need_redocly() {
  local home=$CACHE/redocly
  local package=$home/node_modules/@redocly/cli/package.json
  if grep -q "\"version\": \"$REDOCLY_VERSION\"" "$package" 2>/dev/null; then return 0; fi
  say "fetching redocly $REDOCLY_VERSION into $home"
  mkdir -p "$home"
  npm install --prefix "$home" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
    "@redocly/cli@$REDOCLY_VERSION" </dev/null >&2
}

# Schemathesis, which generates requests from the OpenAPI document, with fixed versions in its own environment.
need_schemathesis() { need_python_environment schemathesis "$ROOT/test/openapi/requirements.txt"; }

# need_python_environment NAME REQUIREMENTS
need_python_environment() {
  local home=$CACHE/$1
  if cmp -s "$2" "$home/requirements.txt"; then return 0; fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || need_packages python3-venv || return 1
  say "fetching $1 into $home"
  rm -rf "$home"
  python3 -m venv "$home" &&
    "$home/bin/pip" install --quiet --disable-pip-version-check --requirement "$2" </dev/null >&2 &&
    cp "$2" "$home/requirements.txt"
}

# Generators of clients in three languages from the OpenAPI document, and a checker for breaking changes.
OPENAPI_TYPESCRIPT_VERSION=7.13.0
OPENAPI_FETCH_VERSION=0.17.0
need_client_generators() {
  local home=$CACHE/openapi-typescript requirements=$ROOT/test/openapi/clients/requirements.txt
  local versions="$OPENAPI_TYPESCRIPT_VERSION $OPENAPI_FETCH_VERSION"
  if [ "$(cat "$home/versions" 2>/dev/null || true)" != "$versions" ]; then
    say "fetching openapi-typescript into $home"
    mkdir -p "$home"
    npm install --prefix "$home" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
      "openapi-typescript@$OPENAPI_TYPESCRIPT_VERSION" "openapi-fetch@$OPENAPI_FETCH_VERSION" </dev/null >&2 || return 1
    echo "$versions" >"$home/versions"
  fi
  # Needed even if all programs are built: it compiles the client in Go.
  need_go
  built_with_openapi oapi-codegen github.com/oapi-codegen/oapi-codegen/v2 cmd/oapi-codegen &&
    built_with_openapi oasdiff github.com/oasdiff/oasdiff &&
    need_python_environment openapi-python-client "$requirements"
}

# built_with_openapi PROGRAM MODULE [PACKAGE]: builds a program from the modules in test/rig/openapi/go.mod, with the
# packages that clients import.
built_with_openapi() {
  local version
  version=$(module_version test/rig/openapi "$2")
  if [ -x "$CACHE/$1/$version/$1" ]; then return 0; fi
  go -C "$ROOT/test/rig/openapi" build github.com/oapi-codegen/runtime </dev/null >&2 || return 1
  go_build "$ROOT/test/rig/openapi" "$CACHE/$1/$version/$1" "" "$2${3:+/$3}"
}

# need_programs PACKAGE=COMMAND...: only the programs are needed; the service that a package starts is stopped.
need_programs() {
  local item
  for item in "$@"; do
    if command -v "${item#*=}" >/dev/null; then continue; fi
    need_packages "${item%%=*}" || return 1
    if [ -d /run/systemd/system ]; then as_root systemctl disable --quiet --now "${item#*=}"; fi
  done
}

# setup GROUP...: installs a group once, also when several parts of a test run ask for it at the same moment.
setup() {
  local group lock code=0
  mkdir -p "$CACHE/locks"
  for group in "$@"; do
    exec {lock}>"$CACHE/locks/$group"
    flock "$lock"
    # Does not pass the lock's file descriptor on: a server that a package starts would keep the lock.
    setup_group "$group" {lock}>&- || code=1
    exec {lock}>&-
  done
  return $code
}

# setup_group GROUP: base, media, cameras, senders, links, browser, database, jobs, shell, api, clients, http, proxies, collectors, s3, kube, helm, gitops, monitoring, kubelet, images, packages, signing, server.
setup_group() {
  case $1 in
    base)
      need_node
      need_modules
      ;;
    # faketime for a recorder that takes over what an older version left, jq for the commands of a page.
    media) need_packages ffmpeg=ffmpeg mediainfo=mediainfo curl=curl faketime=faketime jq=jq ;;
    # iproute2 for network namespaces, in which tests search for cameras.
    cameras) need_packages "${CAMERA_PACKAGES[@]}" iproute2=ip ;;
    # A small program that simulates many cameras; it is built at first use.
    senders) need_packages gcc=gcc libc6-dev ;;
    # Network namespaces with a device in each, and the program that connects them.
    links) need_packages iproute2=ip util-linux=unshare python3=python3 ;;
    browser) need_packages chromium=chromium firefox-esr=firefox-esr fonts-dejavu-core ;;
    # Only the programs: tests start their own servers.
    database) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || need_packages postgresql ;;
    # Only the program: recorders start it themselves.
    jobs) need_packages redis-server=redis-server ;;
    # In front of a recorder.
    proxies) need_packages openssl=openssl && need_programs nginx-light=nginx caddy=caddy ;;
    shell) need_packages shellcheck=shellcheck ;;
    api)
      need_redocly && need_schemathesis
      ;;
    clients) need_client_generators ;;
    # What the audit is sent to. Only the programs: tests start their own.
    collectors) need_packages rsyslog=rsyslogd rsyslog-openssl && need_own_program collector ;;
    s3) need_versitygw ;;
    # HTTP clients of several languages. The compiler of Java is that of the system, which also runs what it made, as does Java 21.
    http)
      need_packages curl=curl ruby=ruby python3=python3 python3-requests python3-aiohttp || return 1
      command -v javac >/dev/null || need_packages openjdk-17-jdk-headless || need_packages default-jdk-headless || return 1
      need_python_environment http-clients "$ROOT/test/http-clients/requirements.txt" || return 1
      need_go
      ;;
    # iproute2 for network namespaces: each node has one.
    kube)
      if [ ! -x "${KUBEBUILDER_ASSETS:-/none}/etcd" ]; then need_packages etcd-server=etcd || return 1; fi
      need_packages openssl=openssl iproute2=ip || return 1
      need_kubernetes kube-apiserver kubectl kube-controller-manager kube-scheduler
      ;;
    helm) need_helm && need_chart_checks ;;
    # The comparison of objects with a cluster by the libraries of Argo CD and Flux.
    gitops) need_own_program gitops ;;
    monitoring)
      need_programs prometheus=prometheus prometheus-alertmanager=prometheus-alertmanager && need_packages prometheus=promtool
      ;;
    # A real node: containers, their network, and Services. Images come from a base that debootstrap makes.
    kubelet)
      need_packages containerd=containerd runc=runc containernetworking-plugins iptables=iptables conntrack=conntrack \
        gcc=gcc libc6-dev || return 1
      need_kubernetes kubelet kube-proxy && need_coredns
      ;;
    images) need_packages buildah=buildah debootstrap=debootstrap ;;
    packages) need_nfpm ;;
    signing) need_packages minisign=minisign ;;
    # Containers with an init system, in which packages are installed.
    server)
      need_packages debootstrap=debootstrap systemd-container=systemd-nspawn util-linux=nsenter curl=curl rpm=rpm && need_server
      ;;
    *) die "no such group: $1 (base, media, cameras, senders, links, browser, database, jobs, shell, api, clients, http, proxies, collectors, s3, kube, helm, gitops, monitoring, kubelet, images, packages, signing, server)" ;;
  esac
}
