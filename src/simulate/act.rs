//! Carries out what people, machines and networks do to the cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::actor::WorkStep;
use super::acts::{Act, PlanEdit};
use super::facts::Fact;
use super::setup::{After, NodeSetup};
use super::store::whole_second;
use super::workloads::labels;
use super::world::{Event, World};
use crate::api::{
    DrainPlan, Eviction, IntOrPercent, Nodes, PlanDuration, PodPolicy, Repeat, Timeouts, names,
};
use crate::cluster::{BudgetKey, Labels, Node, Right, Taint, Text, VolumeAttachment};

impl World {
    /// Creates a node with its kubelet.
    pub fn add_node(&mut self, setup: &NodeSetup) {
        let name: Text = setup.name.as_str().into();
        if self.store.cluster().node(&name).is_some() {
            return;
        }
        let node = Node {
            name: name.clone(),
            uid: self.store.new_uid(&setup.name),
            resource_version: Text::default(),
            created: Some(whole_second(self.now)),
            deleting: false,
            labels: labels(&setup.labels),
            annotations: BTreeMap::new(),
            annotated: false,
            unschedulable: setup.cordoned,
            taints: Vec::new(),
            ready: "True".into(),
            pressure: Box::default(),
            boot_id: "boot-1".into(),
            kubelet_version: "v1.37.2".into(),
        };
        self.capacities.insert(name.clone(), setup.capacity);
        self.store.put_node(node);
        self.add_kubelet(&name);
        self.react();
    }

    /// What the pods of a node may request together.
    pub(super) fn capacity(&self, node: &str) -> u32 {
        self.capacities.get(node).copied().unwrap_or(0)
    }

    /// Lets something happen now.
    pub fn act(&mut self, act: Act) {
        self.count_step();
        self.tell(Fact::Acted(act.clone()));
        match act {
            Act::Cordon(node) => {
                self.by_hand(&node, "node cordoned by hand", |node| node.unschedulable = true);
            }
            Act::Uncordon(node) => {
                self.by_hand(&node, "node uncordoned by hand", |node| node.unschedulable = false);
            }
            Act::Taint(node, key) => self.by_hand(&node, "node tainted by hand", |node| {
                let taint = Taint { key: key.into(), value: Text::default(), effect: "NoSchedule".into() };
                if !node.taints.contains(&taint) {
                    node.taints.push(taint);
                }
            }),
            Act::Untaint(node, key) => {
                self.by_hand(&node, "taint removed by hand", |node| {
                    node.taints.retain(|taint| *taint.key != *key);
                });
            }
            Act::StripAnnotations(node) => {
                self.by_hand(&node, "annotations removed by hand", |node| node.annotations.clear());
            }
            Act::Release(node, plan) => self.by_hand(&node, "node released", |node| {
                node.annotations.insert(names::RELEASE.into(), plan.into());
                node.annotated = true;
            }),
            Act::StripLabel(node) => self.by_hand(&node, "label removed by hand", |node| {
                let others = node.labels.iter().filter(|(key, _)| ***key != *names::STATE);
                node.labels = Labels::new(others.map(|(key, value)| (key.clone(), value.clone())));
            }),
            Act::AddNode(setup) => {
                self.count_fault("node added");
                self.add_node(&setup);
            }
            Act::DeleteNode(node) => {
                self.count_fault("node deleted");
                self.store.delete_node(&node);
            }
            Act::AddWorkload(setup) => self.add_workload(*setup),
            Act::Scale(workload, replicas) => {
                self.count_fault("workload scaled");
                self.scale(&workload, replicas);
            }
            Act::DeletePod(workload, number) => self.delete_pod_by_hand(&workload, number),
            Act::PutBudget(setup) => {
                self.count_fault("budget edited");
                self.put_budget(&setup);
            }
            Act::DeleteBudget(namespace, name) => {
                self.count_fault("budget deleted");
                self.store.delete_budget(&BudgetKey { namespace: namespace.into(), name: name.into() });
            }
            Act::CreatePlan(plan) => self.create_plan(*plan),
            Act::EditPlan(plan, edit) => self.edit_plan(&plan, edit),
            Act::DeletePlan(plan) => self.delete_plan(&plan),
            Act::KubeletDies(node) => self.silence(&node),
            Act::KubeletReturns(node) => self.revive(&node),
            Act::Attach(node, volume, lasts) => self.attach(&node, &volume, lasts),
            Act::Reboot { node, away, well } => {
                self.count_fault("machine rebooted");
                self.go_down(&node, away, WorkStep::Back { upgraded: false, well });
            }
            Act::Upgrade { node, away, well } => {
                self.count_fault("kubelet upgraded");
                self.go_down(&node, away, WorkStep::Back { upgraded: true, well });
            }
            Act::NodePressed(node) => {
                self.by_hand(&node, "node lacks disk", |node| {
                    node.pressure = Box::new(["DiskPressure".into()]);
                });
            }
            Act::NodeRelieved(node) => self.store.edit_node(&node, |node| node.pressure = Box::default()),
            Act::PodFails(workload, number, wait) => {
                if let Some((key, uid)) = self.nth_pod(&workload, number) {
                    self.fail_pod(&key, &uid, wait);
                }
            }
            Act::ManagerStops
            | Act::ManagerStarts
            | Act::SchedulerStops
            | Act::SchedulerStarts
            | Act::RightTaken
            | Act::RightGiven => {
                self.switch(&act);
            }
            Act::Crash(process, back) => self.crash(process, back),
            Act::CrashAfterCalls(calls, back) => self.crash_after = Some((calls, back)),
            Act::Partition(process, wait) => self.partition(process, wait),
            Act::HandOver(back) => self.hand_over(back),
            Act::WatchStalls(process, stream, wait) => self.stall_watch(process, stream, wait),
            Act::WatchBreaks(process, stream, wait) => self.break_watch(process, stream, wait),
            Act::WatchRepeats(process, stream, events) => self.repeat_watch(process, stream, events),
            Act::FaultsStop => self.stop_faults(),
            Act::Call(kind, fault) => self.call_faults.push((kind, fault)),
        }
    }

    fn switch(&mut self, act: &Act) {
        match act {
            Act::ManagerStops => {
                self.count_fault("controller manager stopped");
                self.manager_up = false;
            }
            Act::ManagerStarts if !self.manager_up => {
                self.manager_up = true;
                self.all_owners_due();
                self.all_budgets_due();
            }
            Act::SchedulerStops => {
                self.count_fault("scheduler stopped");
                self.scheduler_up = false;
            }
            Act::RightTaken => {
                self.count_fault("right to evict taken away");
                self.right = Right::Denied { user: "drainplan".into(), why: Text::default() };
            }
            Act::RightGiven => self.right = Right::Granted,
            Act::SchedulerStarts => {
                self.scheduler_up = true;
                self.schedule_soon();
            }
            _ => {}
        }
    }

    fn stop_faults(&mut self) {
        self.call_faults.clear();
        self.crash_after = None;
        self.switch(&Act::ManagerStarts);
        self.switch(&Act::SchedulerStarts);
        self.switch(&Act::RightGiven);
        let nodes: Vec<Text> = self.kubelets.keys().cloned().collect();
        for node in nodes {
            self.revive(&node);
            if self.store.cluster().node(&node).is_some_and(|node| !node.pressure.is_empty()) {
                self.store.edit_node(&node, |node| node.pressure = Box::default());
            }
        }
    }

    fn by_hand(&mut self, node: &str, what: &str, edit: impl FnOnce(&mut Node)) {
        if self.store.cluster().node(node).is_some() {
            self.count_fault(what);
            self.store.edit_node(node, edit);
        }
    }

    fn attach(&mut self, node: &str, volume: &str, lasts: After) {
        if self.store.cluster().node(node).is_none()
            || self.store.cluster().volumes.attachment(volume).is_some()
        {
            return;
        }
        self.count_fault("volume attached");
        let attachment = VolumeAttachment {
            name: volume.into(),
            uid: self.store.new_uid(volume),
            node: node.into(),
            volume: Some(volume.into()),
            attached: true,
        };
        self.store.attach(attachment);
        if let After::Some(wait) = lasts {
            self.after(wait, Event::Detach(volume.into()));
        }
    }

    fn delete_pod_by_hand(&mut self, workload: &str, number: usize) {
        let Some((key, uid)) = self.nth_pod(workload, number) else { return };
        self.count_fault("pod deleted by hand");
        let grace = self.pods.get(&uid).map_or(30, |state| state.template.grace_seconds);
        let now = self.now;
        self.store.delete_pod(&key, grace, now);
    }

    fn create_plan(&mut self, mut plan: DrainPlan) {
        let name = plan.metadata.name.clone().unwrap_or_default();
        if self.store.plan(&name).is_some() {
            return;
        }
        plan.metadata.uid = Some(self.store.new_uid(&name).to_string());
        plan.metadata.generation = Some(1);
        plan.metadata.creation_timestamp = Some(Time(whole_second(self.now)));
        self.store.put_plan(plan);
    }

    /// A finished plan's spec is frozen, and a deleted plan is past editing.
    fn edit_plan(&mut self, name: &str, edit: PlanEdit) {
        let Some(plan) = self.store.plan(name) else { return };
        let over = plan.status.as_ref().is_some_and(|status| status.finished_at.is_some());
        if over || plan.metadata.deletion_timestamp.is_some() {
            return;
        }
        let mut plan = DrainPlan::clone(plan);
        apply(&mut plan, edit);
        plan.metadata.generation = plan.metadata.generation.map(|generation| generation + 1);
        self.count_fault("plan edited");
        self.store.put_plan(plan);
    }

    fn delete_plan(&mut self, name: &str) {
        let Some(plan) = self.store.plan(name) else { return };
        let mut plan = DrainPlan::clone(plan);
        if plan.metadata.deletion_timestamp.is_none() {
            plan.metadata.deletion_timestamp = Some(Time(whole_second(self.now)));
            self.count_fault("plan deleted");
            self.store.put_plan(plan);
        }
    }
}

fn apply(plan: &mut DrainPlan, edit: PlanEdit) {
    let seconds = |seconds: u64| format!("{seconds}s").parse::<PlanDuration>().ok();
    let spec = &mut plan.spec;
    match edit {
        PlanEdit::Suspend(suspend) => spec.suspend = suspend,
        PlanEdit::NodeTimeout(timeout) => {
            spec.timeouts.get_or_insert_with(Timeouts::default).node = seconds(timeout);
        }
        PlanEdit::HandOffTimeout(timeout) => {
            spec.timeouts.get_or_insert_with(Timeouts::default).hand_off = seconds(timeout);
        }
        PlanEdit::PlanTimeout(timeout) => {
            spec.timeouts.get_or_insert_with(Timeouts::default).plan = timeout.and_then(seconds);
        }
        PlanEdit::OnNodeTimeout(choice) => spec.on_node_timeout = Some(choice),
        PlanEdit::MaxFailedNodes(nodes) => spec.max_failed_nodes = Some(IntOrPercent::Int(nodes)),
        PlanEdit::Names(names) => spec.nodes = Nodes { selector: None, names },
        PlanEdit::AllowAll => {
            let evict = Some(Eviction::Evict);
            spec.pods = Some(PodPolicy { unmanaged: evict, empty_dir: evict, ..spec.pod_policy() });
        }
        PlanEdit::Repeat(repeats) => {
            spec.repeat = Some(if repeats { Repeat::EachWindow } else { Repeat::Once });
        }
        PlanEdit::PreflightIsOver => spec.preflight_only = false,
    }
}
