#!/bin/sh
# Does something on every node that a plan hands off, and releases it. For plans with handOff.until: Released.
#   manifests/samples/hand-off.sh PLAN COMMAND…
# COMMAND is run once for each node, with the node's name as its last argument. When it has succeeded and the node is
# Ready, the node is released and the plan goes on. When it has not, the node is left to timeouts.handOff, and that
# ends the plan. With repeat: EachWindow this ends with each run: start it anew while the next one goes on. Several of
# these may be run for several plans. Exits 0 when the plan, or its run, has completed, 1 when it has failed.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 PLAN COMMAND…" >&2
    exit 2
fi
plan=$1
shift

# One line a node that this plan has handed off and nobody has released: its name and the plan's claim on it, which is
# another one with every hand-off.
handed_off() {
    kubectl get nodes --selector drainplan.dev/state=drained --output jsonpath='{range .items[*]}{.metadata.name}{" "}{.metadata.annotations.drainplan\.dev/plan}{" "}{.metadata.annotations.drainplan\.dev/release}{"\n"}{end}' |
        while read -r node claim release; do
            case $claim in
                "$plan"/*) [ "$release" = "$plan" ] || echo "$node $claim" ;;
            esac
        done
}

tried=
while :; do
    # What has failed once is not tried again.
    next=$(handed_off | while read -r node claim; do
        case $tried in *" $node $claim "*) ;; *) echo "$node $claim" && break ;; esac
    done)
    if [ -n "$next" ]; then
        node=${next%% *}
        tried="$tried $next "
        if "$@" "$node" </dev/null && kubectl wait --for=condition=Ready --timeout=10m "node/$node"; then
            kubectl annotate --overwrite node "$node" "drainplan.dev/release=$plan"
        else
            echo "$node: $* has failed, or the node is not Ready; it is not released" >&2
        fi
        continue
    fi
    # A rest of two seconds, unless the plan completes before.
    if kubectl wait --for=condition=Ready --timeout=2s "drainplan/$plan" 2>/dev/null; then
        exit 0
    fi
    # A failed run of several leaves the plan Scheduled, and not Ready.
    why=$(kubectl get drainplan "$plan" --output jsonpath='{.status.conditions[?(@.type=="Ready")].reason}')
    if [ "$why" = Failed ]; then
        kubectl get drainplan "$plan" --output wide >&2
        exit 1
    fi
done
