//! The scheduler: it knows cordons, taints, capacity, selectors and spreading, and is a little behind.

use std::sync::Arc;

use super::kubelet::PodState;
use super::world::{Event, World};
use crate::cluster::{Node, Pod, PodKey, Text};

impl World {
    /// The scheduler looks at what is not bound a little later.
    pub(super) fn schedule_soon(&mut self) {
        if !self.scheduling {
            self.scheduling = true;
            let wait = self.takes("scheduler", self.timing.scheduler);
            self.after(wait, Event::Schedule);
        }
    }

    pub(super) fn schedule(&mut self) {
        self.scheduling = false;
        if !self.scheduler_up {
            return;
        }
        let unbound = |pod: &&Arc<Pod>| pod.node.is_none() && !pod.terminating();
        let mut waiting: Vec<Arc<Pod>> = self.store.pods().filter(unbound).cloned().collect();
        waiting.sort_by_key(|pod| (pod.created, pod.key()));
        for pod in waiting {
            if self.assumed.contains_key(&pod.uid) {
                continue;
            }
            let Some(state) = self.pods.get(&pod.uid).cloned() else { continue };
            if let Some(node) = self.pick(&pod, &state) {
                self.assumed.insert(pod.uid.clone(), node.clone());
                let wait = self.takes("bind", self.timing.scheduler);
                self.after(wait, Event::Bind { key: pod.key(), uid: pod.uid.clone(), node });
            } else {
                let nodes = self.store.cluster().nodes().count();
                let message = format!("0/{nodes} nodes are available for this pod.");
                self.store.edit_pod(&pod.key(), |pod| {
                    pod.unschedulable.get_or_insert(message.into());
                });
            }
        }
    }

    /// The node that fits best: one that is not to be preferred less, with the fewest pods.
    fn pick(&self, pod: &Pod, state: &PodState) -> Option<Text> {
        let fitting = self.store.cluster().nodes().filter(|node| self.fits(pod, state, node));
        let best = fitting.min_by_key(|node| {
            let avoided = node.taints.iter().filter(|taint| &*taint.effect == "PreferNoSchedule").count();
            (avoided, self.load(&node.name), node.name.clone())
        });
        best.map(|node| node.name.clone())
    }

    fn fits(&self, pod: &Pod, state: &PodState, node: &Node) -> bool {
        let template = &state.template;
        let tainted = node.taints.iter().any(|taint| matches!(&*taint.effect, "NoSchedule" | "NoExecute"));
        let open = &*node.ready == "True" && (!node.unschedulable || template.tolerates_cordon) && !tainted;
        let selected = template
            .node_selector
            .as_ref()
            .is_none_or(|(key, value)| node.labels.get(key).map(AsRef::as_ref) == Some(value.as_str()));
        let capacity = self.capacity(&node.name);
        open && selected
            && self.load(&node.name) + template.requests <= capacity
            && !(template.spread && self.has_sibling(pod, state, &node.name))
    }

    /// What the pods of a node request, those that are about to be bound included.
    fn load(&self, node: &str) -> u32 {
        let requests = |uid: &Text| self.pods.get(uid).map_or(0, |state| state.template.requests);
        let bound = self.store.cluster().pods_on(node).filter(|pod| !pod.finished());
        let bound: u32 = bound.map(|pod| requests(&pod.uid)).sum();
        let assumed: u32 =
            self.assumed.iter().filter(|(_, at)| &***at == node).map(|(uid, _)| requests(uid)).sum();
        bound + assumed
    }

    fn has_sibling(&self, pod: &Pod, state: &PodState, node: &str) -> bool {
        let sibling = |uid: &Text| {
            *uid != pod.uid && self.pods.get(uid).is_some_and(|other| other.owner == state.owner)
        };
        self.store.cluster().pods_on(node).any(|other| !other.finished() && sibling(&other.uid))
            || self.assumed.iter().any(|(uid, at)| &**at == node && sibling(uid))
    }

    /// Binds a pod where the scheduler has put it, whatever has become of the node meanwhile.
    pub(super) fn bind(&mut self, key: &PodKey, uid: &Text, node: Text) {
        self.assumed.remove(uid);
        let unbound = self.pod(key, uid).is_some_and(|pod| pod.node.is_none() && !pod.terminating());
        if !unbound {
            return;
        }
        if self.store.cluster().node(&node).is_none() {
            self.schedule_soon();
            return;
        }
        self.count_step();
        self.store.edit_pod(key, |pod| {
            pod.node = Some(node);
            pod.unschedulable = None;
        });
    }
}
