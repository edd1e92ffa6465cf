# shellcheck shell=bash
# Clusters: created by kwokctl, each in a directory of its own that names
# everything it consists of.

# cluster_dir NAME
cluster_dir() {
    (($# == 1)) || die "one cluster's name is wanted"
    [[ $1 =~ ^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$ ]] || die "\"$1\" is no name for a cluster: lowercase letters, digits and dashes"
    [[ -d $STATE/$1 ]] || die "there is no cluster $1; e2e/testbed list shows those that are"
    printf '%s\n' "$STATE/$1"
}

# started PID: when that process started, in clock ticks since the machine did.
started() {
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # The command's name, in parentheses, may itself hold spaces and parentheses.
    read -ra stat <<<"${stat##*) }"
    [[ ${stat[0]} != [ZX] ]] || return 1
    printf '%s\n' "${stat[19]}"
}

# caller: the process that called, or the shell that is behind it when that is
# only a fork, as in kubeconfig=$(e2e/testbed up demo | tail -n 1).
caller() {
    local pid=$PPID stat parent
    while stat=$(<"/proc/$pid/stat") && read -r _ parent _ <<<"${stat##*) }" && ((parent > 1)) &&
        cmp -s "/proc/$pid/cmdline" "/proc/$parent/cmdline"; do
        pid=$parent
    done
    printf '%s\n' "$pid"
}

# owner_line: the process that the cluster belongs to, so that no other process
# that gets its number one day is taken for it.
owner_line() {
    local owner=${TESTBED_OWNER:-$(caller)} since
    if [[ $owner == none ]]; then
        printf 'none\n'
        return
    fi
    since=$(started "$owner") || die "TESTBED_OWNER=$owner is no running process"
    printf '%s %s %s\n' "$owner" "$since" "$(</proc/sys/kernel/random/boot_id)"
}

# owner_gone DIR
owner_gone() {
    local pid since boot
    read -r pid since boot <"$1/owner" || true
    [[ $pid != none ]] || return 1
    [[ $boot == "$(</proc/sys/kernel/random/boot_id)" && $(started "$pid") == "$since" ]] && return 1
    return 0
}

# lock_state: takes the lock on all clusters in the descriptor LOCK.
lock_state() {
    (umask 077 && mkdir -p "$STATE")
    [[ -O $STATE && ! -L $STATE ]] || die "$STATE is somebody else's"
    exec {LOCK}>"$STATE/.lock"
    flock -n "$LOCK" || {
        say "waiting for another cluster to be created"
        flock "$LOCK"
    }
}

unlock_state() { exec {LOCK}>&-; }

# remove_orphans: needs the lock.
remove_orphans() {
    local dir
    for dir in "$STATE"/*/; do
        dir=${dir%/}
        [[ -f $dir/owner ]] || continue
        if owner_gone "$dir"; then
            say "removing cluster ${dir##*/}, whose owner is gone"
            cluster_remove "$dir"
        fi
    done
}

# cluster_remove DIR: its processes, then its files.
cluster_remove() {
    local dir=$1 component pid pids=()
    for component in "${COMPONENTS[@]}"; do
        pid=$(component_pid "$dir" "$component") || continue
        pids+=("$pid")
        kill -KILL "$pid" 2>/dev/null || true
    done
    for pid in "${pids[@]}"; do
        await 20 has_ended "$dir" "$pid" || die "process $pid of $dir cannot be ended"
    done
    rm -rf "$dir"
}

# free_ports N: N ports that nobody has, nor any cluster, even a stopped one.
# They lie below the ports that the kernel hands out.
free_ports() {
    local taken=" " line found=() port=$((20000 + RANDOM % 12000))
    while read -r line; do
        taken+="$((16#$line)) "
    done < <(cut -d: -f3 /proc/net/tcp /proc/net/tcp6 2>/dev/null | sed -n 's/^\([0-9A-F]\{4\}\) .*/\1/p' | sort -u)
    taken+=$(cat "$STATE"/*/ports 2>/dev/null | awk '{ printf "%s ", $2 }')
    while ((${#found[@]} < $1)); do
        port=$((port >= 32700 ? 20000 : port + 1))
        [[ $taken == *" $port "* ]] || found+=("$port")
    done
    printf '%s\n' "${found[@]}"
}

# token_kubeconfig DIR USER TOKEN: for a component that is known by a token.
token_kubeconfig() {
    cat <<KUBECONFIG
apiVersion: v1
kind: Config
current-context: testbed
contexts: [{name: testbed, context: {cluster: testbed, user: $2}}]
clusters:
- name: testbed
  cluster: {server: "https://127.0.0.1:$(component_port "$1" kube-apiserver)", certificate-authority: $1/pki/ca.crt}
users: [{name: $2, user: {token: $3}}]
KUBECONFIG
}

# cluster_up NAME [OPTION…]
cluster_up() {
    (($#)) || die "usage: e2e/testbed up NAME [OPTION…]"
    local name=$1 components=("${COMPONENTS[@]}") arguments=()
    shift
    [[ $name =~ ^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$ ]] || die "\"$name\" is no name for a cluster: lowercase letters, digits and dashes"
    while (($#)); do
        case $1 in
            --no-controller-manager) components=("${components[@]/#kube-controller-manager/}") ;;
            --no-scheduler) components=("${components[@]/#kube-scheduler/}") ;;
            --no-kwok) components=("${components[@]/#kwok-controller/}") ;;
            --arg)
                [[ ${2:-} =~ ^[a-z-]+:[a-z0-9-]+= ]] || die "--arg wants COMPONENT:KEY=VALUE"
                arguments+=("$2")
                shift
                ;;
            *) die "up does not know $1" ;;
        esac
        shift
    done
    # shellcheck disable=SC2206 # the removed ones are empty
    components=(${components[@]})

    local owner bin began=$SECONDS
    umask 077
    owner=$(owner_line)
    build
    bin=$(bin_dir)
    lock_state
    remove_orphans
    "$E2E/room" 1 "$STATE" || die "there is no room for a cluster"
    [[ ! -e $STATE/$name ]] || die "there is a cluster $name already; e2e/testbed down $name removes it"
    DIR=$STATE/$name
    mkdir "$DIR"
    ln -s "$bin" "$DIR/bin"
    printf '%s\n' "$owner" >"$DIR/owner"
    trap cluster_abandon EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM

    cluster_prepare "$DIR" "${components[@]}" -- "${arguments[@]}"
    cluster_create "$DIR" "$bin"
    unlock_state
    cluster_settle "$DIR" "${components[@]}"
    trap - EXIT HUP INT TERM
    say "cluster $name is up after $((SECONDS - began)) s"
    printf '%s\n' "$DIR/kubeconfig"
}

# cluster_abandon: what `up` leaves when it fails is the logs.
cluster_abandon() {
    trap - EXIT
    local name=${DIR##*/}
    [[ -z ${KWOKCTL:-} ]] || { kill -KILL "$KWOKCTL" && wait "$KWOKCTL"; } 2>/dev/null || true
    mkdir -p "$STATE/.failed"
    rm -rf "$STATE/.failed/$name"
    mkdir "$STATE/.failed/$name"
    cp "$DIR/kwokctl.log" "$DIR"/logs/* "$STATE/.failed/$name/" 2>/dev/null || true
    say "the logs are in $STATE/.failed/$name"
    cluster_remove "$DIR"
    exit 1
}

# cluster_prepare DIR COMPONENT… -- ARGUMENT…: every file that kwokctl reads.
cluster_prepare() {
    local dir=$1 components=() argument key user token
    shift
    while [[ $1 != -- ]]; do
        components+=("$1")
        shift
    done
    shift

    # kwokctl keeps a cluster in clusters/NAME of its own directory; links make
    # it one directory for everybody else.
    local home=$dir/kwok/clusters/${dir##*/} part
    mkdir -p "$home/logs" "$home/pids"
    for part in logs pids pki kwok.yaml; do
        ln -s "$home/$part" "$dir/$part"
    done

    paste -d' ' <(printf '%s\n' "${COMPONENTS[@]}" etcd-peer) <(free_ports 6) >"$dir/ports"

    for user in kube-controller-manager kube-scheduler simulator; do
        token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
        case $user in
            kube-scheduler) printf '%s,system:kube-scheduler,,\n' "$token" ;;
            kube-controller-manager) printf '%s,system:kube-controller-manager,,system:masters\n' "$token" ;;
            simulator) printf '%s,system:testbed,,system:masters\n' "$token" ;;
        esac >>"$dir/tokens.csv"
        token_kubeconfig "$dir" "$user" "$token" >"$dir/$user.kubeconfig"
    done
    {
        sed -e "s|@DIR@|$dir|g" -e "s|@PEER_PORT@|$(component_port "$dir" etcd-peer)|" -e "s|@COMPONENTS@|$(IFS=,; printf '%s' "${components[*]}")|" "$E2E/cluster/kwokctl.yaml"
        for argument; do
            key=${argument#*:}
            printf -- '- name: %s\n  extraArgs:\n  - {key: %s, value: "%s"}\n' "${argument%%:*}" "${key%%=*}" "${key#*=}"
        done
        printf -- '---\n'
        cat "$E2E/cluster/node-stages.yaml"
        printf -- '---\n'
        cat "$E2E/cluster/pod-stages.yaml"
    } >"$dir/config.yaml"
}

# cluster_create DIR BIN: lets kwokctl create it. Its word on how
# that went is worth nothing, so etcd and the API server are watched meanwhile.
cluster_create() {
    local dir=$1 bin=$2 component end=$((SECONDS + 120))
    env -i PATH="$bin:$PATH" HOME="$dir" KWOK_WORKDIR="$dir/kwok" \
        kwokctl create cluster --name "${dir##*/}" --config "$dir/config.yaml" --kubeconfig "$dir/kubeconfig" \
        --kube-audit-policy "$E2E/cluster/audit-policy.yaml" --timeout 120s --wait 0s \
        --etcd-binary "$bin/etcd" --kube-apiserver-binary "$bin/kube-apiserver" \
        --kube-controller-manager-binary "$bin/kube-controller-manager" \
        --kube-scheduler-binary "$bin/kube-scheduler" --kwok-controller-binary "$bin/kwok" \
        --etcd-port "$(component_port "$dir" etcd)" --kube-apiserver-port "$(component_port "$dir" kube-apiserver)" \
        --kube-controller-manager-port "$(component_port "$dir" kube-controller-manager)" \
        --kube-scheduler-port "$(component_port "$dir" kube-scheduler)" \
        --controller-port "$(component_port "$dir" kwok-controller)" \
        </dev/null >"$dir/kwokctl.log" 2>&1 {LOCK}>&- &
    KWOKCTL=$!
    while [[ -n $(jobs -pr) ]]; do
        for component in etcd kube-apiserver; do
            if [[ -s $(component_pidfile "$dir" "$component") ]] && component_gone "$dir" "$component"; then
                component_blame "$dir" "$component"
                exit 1
            fi
        done
        ((SECONDS < end)) || break
        sleep 0.1
    done
    for component in etcd kube-apiserver; do
        [[ -s $(component_pidfile "$dir" "$component") ]] || {
            say "kwokctl could not create the cluster:"
            tail -n 30 "$dir/kwokctl.log" >&2
            exit 1
        }
        component_await "$dir" "$component" || exit 1
    done
    wait "$KWOKCTL" || {
        say "kwokctl could not create the cluster:"
        tail -n 30 "$dir/kwokctl.log" >&2
        exit 1
    }
    KWOKCTL=
}

# cluster_settle DIR COMPONENT…: all healthy, and the first pod can come.
cluster_settle() {
    local dir=$1 component
    shift
    for component; do
        # On a slow machine some give up before the API server is there.
        component_alive "$dir" "$component" || component_start "$dir" "$component"
        component_await "$dir" "$component" || exit 1
    done
    [[ " $* " != *" kube-controller-manager "* ]] ||
        await 60 default_account "$dir" || die "the controller manager does not work: there is no default service account"
}

default_account() { simulator "$1" get serviceaccount default --namespace default >/dev/null 2>&1; }

# simulator DIR ARG…: kubectl with the rights of a kubelet and of everybody
# else, as a user that is not in the audit log.
simulator() {
    "$1/bin/kubectl" --kubeconfig "$1/simulator.kubeconfig" "${@:2}"
}

# cluster_down NAME: also when it is not there.
cluster_down() {
    (($# == 1)) || die "usage: e2e/testbed down NAME"
    lock_state
    if [[ ! -d $STATE/$1 ]]; then
        say "there is no cluster $1"
        return
    fi
    cluster_remove "$(cluster_dir "$1")"
}

cluster_list() {
    local dir owner
    for dir in "$STATE"/*/; do
        dir=${dir%/}
        [[ -f $dir/owner ]] || continue
        read -r owner _ <"$dir/owner"
        ! owner_gone "$dir" || owner="$owner(gone)"
        printf '%s\t%s\t%s\n' "${dir##*/}" "$owner" "$dir/kubeconfig"
    done
}

cluster_kubectl() {
    local dir
    dir=$(cluster_dir "${1:-}")
    exec "$dir/bin/kubectl" --kubeconfig "$dir/kubeconfig" "${@:2}"
}
