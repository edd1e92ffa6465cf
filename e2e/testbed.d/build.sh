# shellcheck shell=bash
# The seven binaries: built from their Go modules into a cache keyed by what
# decides their content, or taken ready from TESTBED_BIN.

readonly BINARIES=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok kwokctl)

# module_version MODULE FILE: the version of MODULE that the go.mod FILE asks for.
module_version() {
    local version
    version=$(awk -v module="$1" '$1 == "require" { sub(/^require /, "") } $1 == module && $2 ~ /^v/ { print $2; exit }' "$2")
    [[ -n $version ]] || die "$2 does not require $1"
    printf '%s\n' "$version"
}

# recipe NAME: sets module, package and ldflags for the binary.
recipe() {
    module=$E2E/control-plane ldflags="-s -w"
    local kubernetes minor variables
    case $1 in
        etcd)
            package=go.etcd.io/etcd/server/v3
            ;;
        kwok | kwokctl)
            module=$E2E/kwok package=sigs.k8s.io/kwok/cmd/$1
            ;;
        *)
            # Without its version the server reports v0.0.0 and clients misjudge it.
            package=k8s.io/kubernetes/cmd/$1
            kubernetes=$(module_version k8s.io/kubernetes "$module/go.mod")
            minor=${kubernetes#v*.}
            for variables in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
                ldflags+=" -X $variables.gitVersion=$kubernetes"
                ldflags+=" -X $variables.gitMajor=1 -X $variables.gitMinor=${minor%%.*}"
            done
            ;;
    esac
}

# bin_dir: where the binaries are, or will be. Asks nobody but the local Go.
bin_dir() {
    if [[ -n ${TESTBED_BIN:-} ]]; then
        (cd "$TESTBED_BIN" 2>/dev/null && pwd) || die "TESTBED_BIN=$TESTBED_BIN is not a directory"
        return
    fi
    command -v go >/dev/null || die "Go is needed to build the testbed; or name a directory with ${BINARIES[*]} in TESTBED_BIN"
    local kubernetes etcd kwok go name module package ldflags recipes
    kubernetes=$(module_version k8s.io/kubernetes "$E2E/control-plane/go.mod")
    etcd=$(module_version go.etcd.io/etcd/server/v3 "$E2E/control-plane/go.mod")
    kwok=$(module_version sigs.k8s.io/kwok "$E2E/kwok/go.mod")
    go=$(cd "$E2E/control-plane" && GOWORK=off go env GOVERSION GOHOSTOS GOHOSTARCH | paste -sd-)
    recipes=$(
        cat "$E2E"/control-plane/go.{mod,sum} "$E2E"/kwok/go.{mod,sum}
        for name in "${BINARIES[@]}"; do
            recipe "$name"
            printf '%s\n' "$package $ldflags"
        done
    )
    recipes=$(sha256sum <<<"$recipes")
    printf '%s\n' "$CACHE/k8s-$kubernetes-etcd-$etcd-kwok-$kwok-$go-${recipes:0:8}"
}

# missing_binaries DIR: the names of those that are not there.
missing_binaries() {
    local name
    for name in "${BINARIES[@]}"; do
        [[ -x $1/$name ]] || printf '%s\n' "$name"
    done
}

# build: makes sure that all binaries are there; silent when they are.
build() {
    local dir missing
    dir=$(bin_dir)
    mapfile -t missing < <(missing_binaries "$dir")
    ((${#missing[@]})) || return 0
    [[ -z ${TESTBED_BIN:-} ]] || die "TESTBED_BIN=$TESTBED_BIN has no ${missing[*]}"

    mkdir -p "$dir"
    # A compiler that outlives an interrupted build keeps the lock until it ends.
    local lock
    exec {lock}>"$dir/.lock"
    if ! flock -n "$lock"; then
        say "another build of $dir is under way; waiting for it"
        flock "$lock"
    fi
    rm -f "$dir"/.*.building
    mapfile -t missing < <(missing_binaries "$dir")
    if ((${#missing[@]})); then
        say "building ${missing[*]} into $dir"
        say "a cold build takes about 13 minutes on two cores; an interrupted one resumes"
    fi
    local name number=0 began=$SECONDS
    for name in "${missing[@]}"; do
        number=$((number + 1))
        build_one "$name" "$dir" "$number/${#missing[@]}"
    done
    exec {lock}>&-
    ((${#missing[@]} == 0)) || say "built ${#missing[@]} binaries in $(minutes $((SECONDS - began)))"
}

# build_one NAME DIR N/M: the binary appears in DIR only when it is complete.
build_one() {
    local name=$1 dir=$2 number=$3 began=$SECONDS
    local module package ldflags
    recipe "$name"
    local made=$dir/.$name.building log=$dir/$name.build.log
    # GOOS and its like may be set for another target; these run here.
    if ! env -u GOOS -u GOARCH GOWORK=off CGO_ENABLED=0 \
        nice go build -C "$module" -mod=readonly -buildvcs=false -trimpath -v -p "$JOBS" \
        -ldflags "$ldflags" -o "$made" "$package" 2>&1 |
        build_progress "$name" "$number" "$log"; then
        say "building $name failed:"
        tail -n 20 "$log" >&2
        exit 1
    fi
    mv "$made" "$dir/$name"
    say "[$number] $name built in $(minutes $((SECONDS - began)))"
}

# build_progress NAME N/M LOG: counts the packages that go names as it compiles
# them: on one line of a terminal, elsewhere a line every half minute.
build_progress() {
    local name=$1 number=$2 log=$3 began=$SECONDS shown=$SECONDS packages=0 line
    : >"$log"
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$log"
        [[ $line != go:* ]] && packages=$((packages + 1))
        if [[ -t 2 ]]; then
            printf '\r\e[K[%s] %s: %d packages compiled, %s' "$number" "$name" "$packages" "$(minutes $((SECONDS - began)))" >&2
        elif ((SECONDS - shown >= 30)); then
            shown=$SECONDS
            say "[$number] $name: $packages packages compiled, $(minutes $((SECONDS - began)))"
        fi
    done
    [[ ! -t 2 ]] || printf '\r\e[K' >&2
}

minutes() { printf '%d:%02d min' $(($1 / 60)) $(($1 % 60)); }
