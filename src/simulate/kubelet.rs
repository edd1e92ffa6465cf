//! The kubelets: pods start, become Ready, finish and end as their templates say, unless the kubelet is silent.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::setup::{After, Template};
use super::world::{Event, World};
use crate::cluster::{ContainerTrouble, Node, Pod, PodKey, PodPhase, Taint, Text};

/// The taint of a node whose kubelet is silent.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// How long until a controller manager that is down is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// The kubelet of a node.
#[derive(Debug, Default)]
pub struct Kubelet {
    /// Since when it is silent.
    silent_since: Option<Timestamp>,
    /// What it would have done meanwhile.
    parked: Vec<(PodKey, Text, PodStep)>,
}

/// What a pod does by itself, and how far it has come.
#[derive(Debug, Clone)]
pub struct PodState {
    pub(super) template: Arc<Template>,
    /// The workload, by namespace and name.
    pub(super) owner: Option<String>,
    /// Its kubelet has taken it up.
    begun: bool,
    /// Its kubelet is ending it.
    ending: bool,
    /// It loops in crashes.
    failing: bool,
}

impl PodState {
    pub(super) fn new(template: Arc<Template>, owner: Option<String>) -> Self {
        Self { template, owner, begun: false, ending: false, failing: false }
    }
}

/// A step in the life of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodStep {
    Start,
    Ready,
    Complete,
    Recover,
    End,
    /// Somebody takes the finalizer off.
    Release,
}

impl World {
    /// A kubelet learns of a pod of its node.
    pub(super) fn kubelet_sees(&mut self, pod: &Pod) {
        if pod.node.is_none() {
            return;
        }
        let Some(state) = self.pods.get_mut(&pod.uid) else { return };
        let (starts, ends) = (!state.begun, pod.terminating() && !state.ending);
        state.begun = true;
        state.ending |= ends;
        let template = Arc::clone(&state.template);
        if starts && !pod.terminating() {
            self.pod_later(pod, template.starts, PodStep::Start);
        }
        if ends {
            self.pod_later(pod, template.terminates, PodStep::End);
        }
    }

    fn pod_later(&mut self, pod: &Pod, after: After, step: PodStep) {
        if let After::Some(wait) = after {
            self.after(wait, Event::Pod { key: pod.key(), uid: pod.uid.clone(), step });
        }
    }

    /// A pod takes a step, when its kubelet lives.
    pub(super) fn step_pod(&mut self, key: &PodKey, uid: &Text, step: PodStep) {
        let Some(pod) = self.pod(key, uid).cloned() else { return };
        let Some(state) = self.pods.get(uid).cloned() else { return };
        let kubelet = pod.node.as_ref().and_then(|node| self.kubelets.get_mut(node));
        if step != PodStep::Release {
            // Without its node a pod is looked after by nobody.
            let Some(kubelet) = kubelet else { return };
            if kubelet.silent_since.is_some() {
                kubelet.parked.push((key.clone(), uid.clone(), step));
                return;
            }
        }
        self.count_step();
        let lives = !pod.terminating() && !pod.finished();
        match step {
            PodStep::Start if lives && pod.phase == PodPhase::Pending => {
                self.store.edit_pod(key, |pod| pod.phase = PodPhase::Running);
                self.pod_later(&pod, state.template.ready, PodStep::Ready);
                self.pod_later(&pod, state.template.completes, PodStep::Complete);
            }
            PodStep::Ready if lives && !state.failing => self.store.edit_pod(key, |pod| pod.ready = true),
            PodStep::Complete if lives => self.store.edit_pod(key, |pod| {
                pod.phase = PodPhase::Succeeded;
                pod.ready = false;
            }),
            PodStep::Recover => {
                if let Some(state) = self.pods.get_mut(uid) {
                    state.failing = false;
                }
                self.store.edit_pod(key, |pod| {
                    pod.trouble = Some(Box::new(ContainerTrouble {
                        restarts: 3,
                        waiting: None,
                        ..ContainerTrouble::default()
                    }));
                    pod.ready |= lives;
                });
            }
            PodStep::End => {
                let now = self.now;
                self.store.end_pod(key, now);
                if let Some(release) = state.template.finalizer {
                    self.pod_later(&pod, release, PodStep::Release);
                }
            }
            PodStep::Release => {
                let now = self.now;
                self.store.edit_pod(key, |pod| pod.finalizers = Box::default());
                if pod.deletion.is_some_and(|deletion| deletion.grace_seconds == 0) {
                    self.store.end_pod(key, now);
                }
            }
            PodStep::Start | PodStep::Ready | PodStep::Complete => {}
        }
    }

    /// A pod loops in crashes for a while.
    pub(super) fn fail_pod(&mut self, key: &PodKey, uid: &Text, wait: Duration) {
        let Some(state) = self.pods.get_mut(uid) else { return };
        if state.failing || !self.store.pod_of(key, uid).is_some_and(|pod| pod.ready && !pod.terminating()) {
            return;
        }
        state.failing = true;
        let looping = ContainerTrouble {
            restarts: 3,
            waiting: Some("CrashLoopBackOff".into()),
            ..ContainerTrouble::default()
        };
        self.store.edit_pod(key, |pod| {
            pod.ready = false;
            pod.trouble = Some(Box::new(looping));
        });
        self.count_fault("pod crashes");
        self.after(wait, Event::Pod { key: key.clone(), uid: uid.clone(), step: PodStep::Recover });
    }

    /// A kubelet for a new node; pods that are bound to that name are its own.
    pub(super) fn add_kubelet(&mut self, node: &Text) {
        self.kubelets.insert(node.clone(), Kubelet::default());
        self.resume_pods(node);
    }

    /// Takes up all pods of a node as a kubelet does that has just started.
    fn resume_pods(&mut self, node: &Text) {
        let pods: Vec<Arc<Pod>> = self.store.cluster().pods_on(node).cloned().collect();
        for pod in pods {
            let Some(state) = self.pods.get(&pod.uid).cloned() else { continue };
            let template = &state.template;
            if pod.terminating() {
                if pod.deletion.is_some_and(|deletion| deletion.grace_seconds > 0) {
                    self.pod_later(&pod, template.terminates, PodStep::End);
                }
            } else if pod.phase == PodPhase::Pending {
                self.pod_later(&pod, template.starts, PodStep::Start);
            } else if !pod.ready && !state.failing {
                self.pod_later(&pod, template.ready, PodStep::Ready);
            }
        }
    }

    pub(super) fn is_silent(&self, node: &str) -> bool {
        self.kubelets.get(node).is_some_and(|kubelet| kubelet.silent_since.is_some())
    }

    pub(super) fn silence(&mut self, node: &str) {
        let (now, wait) = (self.now, self.timing.unreachable);
        let Some((node, kubelet)) = self.kubelets.get_key_value(node) else { return };
        if kubelet.silent_since.is_some() {
            return;
        }
        let node = node.clone();
        if let Some(kubelet) = self.kubelets.get_mut(&node) {
            kubelet.silent_since = Some(now);
        }
        self.count_fault("kubelet dies");
        self.after(wait, Event::Unreachable { node, since: now, evict: false });
    }

    pub(super) fn revive(&mut self, node: &str) {
        let Some((node, _)) = self.kubelets.get_key_value(node) else { return };
        let node = node.clone();
        let Some(kubelet) = self.kubelets.get_mut(&node) else { return };
        if kubelet.silent_since.is_none() {
            return;
        }
        self.count_fault("kubelet returns");
        self.revive_as(&node, |_| {});
    }

    /// A kubelet tells that it is there, and more in the same write; it need not have been silent.
    pub(super) fn revive_as(&mut self, node: &Text, more: impl FnOnce(&mut Node)) {
        let Some(kubelet) = self.kubelets.get_mut(node) else { return };
        kubelet.silent_since = None;
        let parked = std::mem::take(&mut kubelet.parked);
        for (key, uid, step) in parked {
            self.after(Duration::ZERO, Event::Pod { key, uid, step });
        }
        self.store.edit_node(node, |node| {
            node.ready = "True".into();
            node.taints.retain(|taint| &*taint.key != UNREACHABLE);
            more(node);
        });
        self.resume_pods(node);
    }

    /// The node lifecycle controller: a silent node is Unknown, its pods not Ready; later they are deleted, past all
    /// budgets (`node_lifecycle_controller.go`, `taint_eviction.go`).
    pub(super) fn unreachable(&mut self, node: &Text, since: Timestamp, evict: bool) {
        let silent = self.kubelets.get(node).is_some_and(|kubelet| kubelet.silent_since == Some(since));
        if !silent {
            return;
        }
        if !self.manager_up {
            self.after(AGAIN, Event::Unreachable { node: node.clone(), since, evict });
            return;
        }
        self.count_step();
        let now = self.now;
        let pods: Vec<Arc<Pod>> = self.store.cluster().pods_on(node).cloned().collect();
        if evict {
            for pod in pods {
                if pod.mirror || self.returns_to_node(&pod) {
                    continue;
                }
                let grace = self.pods.get(&pod.uid).map_or(30, |state| state.template.grace_seconds);
                self.store.delete_pod(&pod.key(), grace, now);
            }
            return;
        }
        self.store.edit_node(node, |node| {
            node.ready = "Unknown".into();
            let taint = Taint { key: UNREACHABLE.into(), value: Text::default(), effect: "NoExecute".into() };
            node.taints.push(taint);
        });
        for pod in &pods {
            self.store.edit_pod(&pod.key(), |pod| pod.ready = false);
        }
        let wait = self.timing.unreachable_eviction;
        self.after(wait, Event::Unreachable { node: node.clone(), since, evict: true });
    }

    /// Pods of DaemonSets tolerate their node's silence.
    fn returns_to_node(&self, pod: &Pod) -> bool {
        pod.owner.as_ref().is_some_and(|owner| self.store.cluster().daemon_set(&owner.uid).is_some())
    }

    /// Pods of a node that is gone are deleted at once (`gc_controller.go: gcOrphaned`).
    pub(super) fn collect_garbage(&mut self, node: &Text) {
        if self.store.cluster().node(node).is_some() {
            return;
        }
        if !self.manager_up {
            self.after(AGAIN, Event::Garbage(node.clone()));
            return;
        }
        let now = self.now;
        let pods: Vec<PodKey> = self.store.cluster().pods_on(node).map(|pod| pod.key()).collect();
        for key in pods {
            self.count_step();
            self.store.delete_pod(&key, 0, now);
        }
    }
}
