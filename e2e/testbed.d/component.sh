# shellcheck shell=bash
# The processes of a cluster. Only a process that a file of the cluster names
# and whose command line names the cluster's directory is ever touched.

readonly COMPONENTS=(etcd kube-apiserver kube-controller-manager kube-scheduler kwok-controller)

component_pidfile() { printf "%s/pids/%s.pid\n" "$1" "$2"; }
component_logfile() { printf "%s/logs/%s.log\n" "$1" "$2"; }

# is_ours DIR PID: the process is there and works for that cluster.
is_ours() {
    local argument
    while IFS= read -r -d '' argument; do
        [[ $argument != *"$1/"* ]] || return 0
    done <"/proc/$2/cmdline"
    return 1
} 2>/dev/null

# has_ended DIR PID: the process, once ours, holds no port and no file any more.
# A process that is about to end has no command line already.
has_ended() {
    local status
    status=$(<"/proc/$2/status") || return 0
    [[ $status != *$'\nState:\t'[ZX]* ]] || return 0
    [[ -n $(tr -d '\0' <"/proc/$2/cmdline") ]] && ! is_ours "$1" "$2"
} 2>/dev/null

# component_pid DIR COMPONENT: prints the pid of the living process, or fails.
component_pid() {
    local pidfile pid
    pidfile=$(component_pidfile "$1" "$2")
    [[ -s $pidfile ]] || return 1
    pid=$(<"$pidfile")
    is_ours "$1" "$pid" || return 1
    printf '%s\n' "$pid"
}

component_alive() { component_pid "$1" "$2" >/dev/null; }
component_gone() { ! component_alive "$1" "$2"; }

# component_port DIR COMPONENT
component_port() {
    awk -v name="$2" '$1 == name { print $2 }' "$1/ports"
}

# component_healthy DIR COMPONENT: it answers for itself.
component_healthy() {
    local dir=$1 port
    port=$(component_port "$dir" "$2")
    local get=(curl --silent --fail --max-time 2 --noproxy '*')
    case $2 in
        etcd) [[ $("${get[@]}" "http://127.0.0.1:$port/health") == *'"true"'* ]] ;;
        kube-apiserver)
            "${get[@]}" --cacert "$dir/pki/ca.crt" --cert "$dir/pki/admin.crt" --key "$dir/pki/admin.key" \
                "https://127.0.0.1:$port/readyz" >/dev/null
            ;;
        kube-scheduler) "${get[@]}" --insecure "https://127.0.0.1:$port/readyz" >/dev/null ;;
        kube-controller-manager) "${get[@]}" --insecure "https://127.0.0.1:$port/healthz" >/dev/null ;;
        kwok-controller) "${get[@]}" --insecure "https://127.0.0.1:$port/healthz" >/dev/null ;;
    esac
}

component_healthy_or_gone() { component_healthy "$1" "$2" || component_gone "$1" "$2"; }

# component_await DIR COMPONENT: healthy within a minute, or its log and failure.
component_await() {
    await 60 component_healthy_or_gone "$1" "$2" || true
    component_alive "$1" "$2" && component_healthy "$1" "$2" && return 0
    component_blame "$1" "$2"
    return 1
}

# component_blame DIR COMPONENT: says what is wrong with it, with its log.
component_blame() {
    local log
    log=$(component_logfile "$1" "$2")
    if component_alive "$1" "$2"; then
        say "$2 does not answer; the end of its log:"
    else
        say "$2 has ended; the end of its log:"
    fi
    tail -n 30 "$log" >&2 || true
}

# component_command_line DIR COMPONENT: its binary and flags, one a line, as
# kwokctl has written them down.
component_command_line() {
    awk -v want="$2" '
        /^- args:/ { count = 0; within = 1; next }
        within && /^  - / {
            sub(/^  - /, "")
            if ($0 ~ /^\047.*\047$/) $0 = substr($0, 2, length($0) - 2)
            flags[++count] = $0
            next
        }
        /^  binary: / { within = 0; binary = $2 }
        /^  name: / && $2 == want {
            print binary
            for (i = 1; i <= count; i++) print flags[i]
            exit
        }
    ' "$1/kwok.yaml"
}

# component_start DIR COMPONENT [FLAG…]: as it was started first, with these
# flags behind. Does not wait until it is healthy.
component_start() {
    local dir=$1 name=$2 argv
    shift 2
    mapfile -t argv < <(component_command_line "$dir" "$name")
    ((${#argv[@]})) || die "the cluster was created without $name"
    component_launch "$dir" "$name" "${argv[@]}" "$@"
}

# component_launch DIR COMPONENT ARGV…
component_launch() {
    local dir=$1 name=$2
    shift 2
    [[ $name != kwok-controller ]] || kwok_release_leases "$dir"
    (
        cd "$dir" || exit
        setsid "$@" </dev/null >>"$(component_logfile "$dir" "$name")" 2>&1 &
        printf '%s' $! >"$(component_pidfile "$dir" "$name")"
    )
}

# component_renew DIR COMPONENT: another one with the same flags in its place,
# unless it is stopped or paused.
component_renew() {
    local pid argv
    pid=$(component_pid "$1" "$2") && ! component_paused "$1" "$2" || return 0
    mapfile -d '' -t argv <"/proc/$pid/cmdline"
    component_end "$1" "$2" KILL
    component_launch "$1" "$2" "${argv[@]}"
    component_await "$1" "$2" || exit 1
}

# component_end DIR COMPONENT SIGNAL: ends it, if it is there, and waits.
component_end() {
    local pid
    pid=$(component_pid "$1" "$2") || return 0
    kill -s "$3" "$pid"
    kill -s CONT "$pid" 2>/dev/null || true
    await 30 has_ended "$1" "$pid" || die "$2 does not end"
}

# component_signal DIR COMPONENT SIGNAL
component_signal() {
    local pid
    pid=$(component_pid "$1" "$2") || die "$2 is not running"
    kill -s "$3" "$pid"
}

component_paused() {
    local pid
    pid=$(component_pid "$1" "$2") && grep -q '^State:\s*T' "/proc/$pid/status"
}

# component_command VERB [--gently] NAME COMPONENT [FLAG…]
component_command() {
    local verb=$1 signal=KILL dir name
    shift
    if [[ $verb == stop && ${1:-} == --gently ]]; then
        signal=TERM
        shift
    fi
    (($# >= 2)) || die "usage: e2e/testbed $verb NAME COMPONENT"
    dir=$(cluster_dir "$1") name=$2
    shift 2
    [[ " ${COMPONENTS[*]} " == *" $name "* ]] || die "$name is not one of ${COMPONENTS[*]}"
    case $verb in
        log) cat "$(component_logfile "$dir" "$name")" ;;
        stop) component_end "$dir" "$name" "$signal" ;;
        start)
            component_alive "$dir" "$name" && die "$name is running"
            component_start "$dir" "$name" "$@"
            component_await "$dir" "$name" || exit 1
            component_back "$dir" "$name"
            ;;
        pause)
            component_signal "$dir" "$name" STOP
            await 10 component_paused "$dir" "$name" || die "$name cannot be paused"
            ;;
        resume)
            component_signal "$dir" "$name" CONT
            component_await "$dir" "$name" || exit 1
            [[ $name != etcd ]] || component_back "$dir" "$name"
            ;;
    esac
}

# kwok_release_leases DIR: a new kwok does not touch the nodes of an old one
# until its leases have expired, 40 s later; so they go first.
kwok_release_leases() {
    component_healthy "$1" kube-apiserver || return 0
    simulator "$1" delete leases --namespace kube-node-lease --all --wait=false >/dev/null
}

# component_back DIR COMPONENT: the others work again when this one does.
component_back() {
    local name
    [[ $2 == etcd || $2 == kube-apiserver ]] || return 0
    component_alive "$1" kube-apiserver && ! component_paused "$1" kube-apiserver || return 0
    component_await "$1" kube-apiserver || exit 1
    case $2 in
        # Left alone they come back one after the other, a minute later: they
        # wait ever longer, up to 30 s, between two tries to watch.
        kube-apiserver) for name in "${COMPONENTS[@]:2}"; do component_renew "$1" "$name"; done ;;
        # kwok does not try again what the server failed for want of etcd.
        etcd) component_renew "$1" kwok-controller ;;
    esac
}
