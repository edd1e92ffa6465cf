# shellcheck shell=bash
# Simulated nodes and their kubelets.

# node_create NAME [--label KEY=VALUE]… NODE…
node_create() {
    (($# >= 2)) || die "usage: e2e/testbed nodes NAME [--label KEY=VALUE]… NODE…"
    local dir labels=() nodes=()
    dir=$(cluster_dir "$1")
    shift
    while (($#)); do
        case $1 in
            --label)
                [[ ${2:-} == ?*=* ]] || die "--label wants KEY=VALUE"
                labels+=("$2")
                shift
                ;;
            -*) die "nodes does not know $1" ;;
            *) nodes+=("$1") ;;
        esac
        shift
    done
    ((${#nodes[@]})) || die "which nodes?"

    local node label
    for node in "${nodes[@]}"; do
        cat <<NODE
---
apiVersion: v1
kind: Node
metadata:
  name: $node
  annotations: {kwok.x-k8s.io/node: fake}
  labels:
    kubernetes.io/hostname: $node
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
NODE
        for label in "${labels[@]}"; do
            printf '    %s: "%s"\n' "${label%%=*}" "${label#*=}"
        done
        cat <<NODE
status:
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
NODE
    done | simulator "$dir" create -f - >/dev/null

    component_alive "$dir" kwok-controller || return 0
    nodes_usable "$dir" "${nodes[@]/#/node/}"
}

# nodes_usable DIR node/NODE…: waits until they are Ready, and rid of the taint
# that the controller manager takes off: a new node has one, and a lost one.
nodes_usable() {
    simulator "$1" wait --for=condition=Ready --timeout=60s "${@:2}" >/dev/null
    component_alive "$1" kube-controller-manager || return 0
    await 60 nodes_untainted "$@" || die "the nodes keep the taint of a node that is not ready"
}

# nodes_untainted DIR node/NODE…
nodes_untainted() {
    local taints
    taints=$(simulator "$1" get "${@:2}" --output 'jsonpath={..spec.taints[*].key}')
    [[ ! $taints =~ node.kubernetes.io/(not-ready|unreachable) ]]
}

# node_kubelet NAME NODE dead|not-ready|alive
node_kubelet() {
    (($# == 3)) || die "usage: e2e/testbed kubelet NAME NODE dead|not-ready|alive"
    local dir node=node/$2
    dir=$(cluster_dir "$1")
    case $3 in
        dead)
            simulator "$dir" annotate --overwrite "$node" sim.drainplan.dev/kubelet=dead >/dev/null
            simulator "$dir" wait --for=condition=Ready=Unknown --timeout=30s "$node" >/dev/null
            pods_unready "$dir" "$2"
            ;;
        not-ready)
            simulator "$dir" annotate --overwrite "$node" sim.drainplan.dev/kubelet=not-ready >/dev/null
            simulator "$dir" label "$node" sim.drainplan.dev/kubelet- >/dev/null
            simulator "$dir" wait --for=condition=Ready=False --timeout=30s "$node" >/dev/null
            ;;
        alive)
            simulator "$dir" annotate "$node" sim.drainplan.dev/kubelet- >/dev/null
            simulator "$dir" label "$node" sim.drainplan.dev/kubelet- >/dev/null
            nodes_usable "$dir" "$node"
            ;;
        *) die "a kubelet is dead, not-ready or alive" ;;
    esac
}

# pods_unready DIR NODE: what the node lifecycle controller does to the pods of
# a node that it finds silent itself; it does nothing when it is told so.
pods_unready() {
    local namespace pod ready now
    now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    while read -r namespace pod ready; do
        [[ $ready == True ]] || continue
        simulator "$1" patch pod "$pod" --namespace "$namespace" --subresource=status --type=strategic --patch \
            '{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"'"$now"'"}]}}' >/dev/null
    done < <(simulator "$1" get pods --all-namespaces --field-selector "spec.nodeName=$2" --output \
        'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}')
}
