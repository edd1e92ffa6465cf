//! One entry for everything that is observed: from watches and from files.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::wire::{Content, Object, WirePod};
use super::{BudgetKey, Cluster, Node, ObjectKind, Pod, PodKey, Raw, Text};

/// What a watch reports of one kind. `kube`'s watcher events map to these one by one.
#[derive(Debug, Clone)]
pub enum Change {
    /// A list begins (`Event::Init`). What is known stays until the list is complete.
    Listing(ObjectKind),
    /// One object of the list (`Event::InitApply`).
    Listed(Raw),
    /// The list is complete (`Event::InitDone`): what it did not contain is gone.
    Complete(ObjectKind),
    /// An object is new or has changed (`Event::Apply`).
    Applied(Raw),
    /// An object is gone (`Event::Delete`).
    Deleted(Raw),
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    pub kind: ObjectKind,
    pub namespace: Text,
    pub name: Text,
    /// Something that is read differs from before. A node's heartbeat is no change.
    pub changed: bool,
}

impl Effect {
    fn key(&self) -> PodKey {
        PodKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// An object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadObject {
    pub kind: ObjectKind,
    pub namespace: Text,
    pub name: Text,
    /// What is wrong with it.
    pub why: String,
}

/// What has been listed, what is being listed, and what could not be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    complete: BTreeSet<ObjectKind>,
    /// Objects of the lists that are under way: namespace and name, uid for workloads.
    listing: BTreeMap<ObjectKind, HashSet<PodKey>>,
    bad: BTreeMap<(ObjectKind, PodKey), BadObject>,
}

impl Cluster {
    /// Takes in a change. Returns what it did to one object, and nothing for the begin and end of a list.
    pub fn observe(&mut self, change: Change) -> Option<Effect> {
        match change {
            Change::Listing(kind) => {
                self.progress.listing.insert(kind, HashSet::new());
                self.progress.bad.retain(|(of, _), _| *of != kind);
                None
            }
            Change::Complete(kind) => {
                self.complete(kind);
                None
            }
            Change::Listed(raw) => {
                let uid = by_uid(raw.kind).then(|| self.strings.text(&raw.meta().uid));
                let effect = self.apply(raw);
                let key = match uid {
                    Some(uid) => PodKey { namespace: Text::default(), name: uid },
                    None => effect.key(),
                };
                self.progress.listing.entry(effect.kind).or_default().insert(key);
                Some(effect)
            }
            Change::Applied(raw) if self.knows_newer(&raw) => {
                let (kind, namespace, name) = self.identity(&raw);
                Some(Effect { kind, namespace, name, changed: false })
            }
            Change::Applied(raw) => Some(self.apply(raw)),
            Change::Deleted(raw) => Some(self.delete(&raw)),
        }
    }

    /// Whether a first list of the kind is complete.
    #[must_use]
    pub fn is_listed(&self, kind: ObjectKind) -> bool {
        self.progress.complete.contains(&kind)
    }
    /// The kinds whose first list is not complete yet.
    pub fn not_listed(&self) -> impl Iterator<Item = ObjectKind> {
        ObjectKind::ALL.into_iter().filter(|kind| !self.is_listed(*kind))
    }
    /// Objects that cannot be read. What was known of them before stays.
    pub fn bad_objects(&self) -> impl Iterator<Item = &BadObject> {
        self.progress.bad.values()
    }

    /// The answer to our own patch of a node comes before the watch events that led to it.
    fn knows_newer(&self, raw: &Raw) -> bool {
        let meta = raw.meta();
        let known = self.nodes.get(meta.name.as_str()).filter(|_| raw.kind == ObjectKind::Node);
        known.is_some_and(|known| older(&meta.resource_version, &known.resource_version))
    }

    fn apply(&mut self, raw: Raw) -> Effect {
        let Raw { kind, content } = raw;
        let content = match content {
            Content::Pod(pod) if !pod.meta().name.is_empty() => return self.apply_wire_pod(*pod),
            content => content,
        };
        let raw = Raw { kind, content };
        let (kind, namespace, name) = self.identity(&raw);
        let changed = match raw.into_object(&mut self.strings) {
            Object::Bad(why) => {
                let bad = BadObject { kind, namespace: namespace.clone(), name: name.clone(), why };
                let effect = Effect { kind, namespace, name, changed: false };
                self.progress.bad.insert((kind, effect.key()), bad);
                return effect;
            }
            Object::Node(node) => {
                let changed = self.node(&node.name).is_none_or(|old| !same_but_version(old, &node));
                self.apply_node(node);
                changed
            }
            Object::Namespace(namespace) => {
                let changed = self.namespace(&namespace.name).is_none_or(|old| **old != namespace);
                self.apply_namespace(namespace);
                changed
            }
            Object::Pod(pod) => self.keep_pod(pod),
            Object::Pdb(budget) => {
                let changed = self.budget(&budget.key()).is_none_or(|old| !old.says_the_same(&budget));
                self.apply_budget(budget);
                changed
            }
            Object::Workload(workload) => {
                let changed = self.workload(&workload.uid).is_none_or(|old| **old != workload);
                self.apply_workload(workload);
                changed
            }
            Object::DaemonSet(daemon_set) => {
                let changed = self.daemon_set(&daemon_set.uid) != Some(&daemon_set);
                self.apply_daemon_set(daemon_set);
                changed
            }
            Object::Job(job) => {
                let changed = self.job(&job.uid) != Some(&job);
                self.apply_job(job);
                changed
            }
            Object::PersistentVolume(volume) => self.volumes.add(volume),
            Object::VolumeAttachment(attachment) => self.volumes.attach(attachment),
        };
        let effect = Effect { kind, namespace, name, changed };
        self.read_well(&effect);
        effect
    }

    /// Pods are most of what is observed: what has not changed is neither looked up among the shared strings nor
    /// copied.
    fn apply_wire_pod(&mut self, wire: WirePod) -> Effect {
        let meta = wire.meta();
        let key = PodKey { namespace: self.strings.text(&meta.namespace), name: meta.name.as_str().into() };
        let known = self.pods.get(&key);
        let pod = wire.into_pod(&mut self.strings, known.map(AsRef::as_ref));
        let PodKey { namespace, name } = pod.key();
        let effect = Effect { kind: ObjectKind::Pod, namespace, name, changed: self.keep_pod(pod) };
        self.read_well(&effect);
        effect
    }

    /// Keeps a pod; false when nothing that is read differs from before.
    fn keep_pod(&mut self, pod: Pod) -> bool {
        let same = self.pods.get(&pod.key()).is_some_and(|known| **known == pod);
        if !same {
            self.apply_pod(pod);
        }
        !same
    }

    /// The object can be read, or is gone.
    fn read_well(&mut self, effect: &Effect) {
        if !self.progress.bad.is_empty() {
            self.progress.bad.remove(&(effect.kind, effect.key()));
        }
    }

    fn delete(&mut self, raw: &Raw) -> Effect {
        let (kind, namespace, name) = self.identity(raw);
        let effect = Effect { kind, namespace: namespace.clone(), name: name.clone(), changed: true };
        self.read_well(&effect);
        match kind {
            ObjectKind::Node => self.delete_node(&name),
            ObjectKind::Namespace => self.delete_namespace(&name),
            ObjectKind::Pod => self.delete_pod(&effect.key()),
            ObjectKind::PodDisruptionBudget => {
                self.delete_budget(&BudgetKey { namespace: namespace.clone(), name: name.clone() });
            }
            ObjectKind::DaemonSet => self.delete_daemon_set(&raw.meta().uid),
            ObjectKind::Job => self.delete_job(&raw.meta().uid),
            ObjectKind::PersistentVolume => self.volumes.remove(&name),
            ObjectKind::VolumeAttachment => self.volumes.detach(&name),
            ObjectKind::ReplicationController
            | ObjectKind::ReplicaSet
            | ObjectKind::Deployment
            | ObjectKind::StatefulSet => self.delete_workload(&raw.meta().uid),
        }
        effect
    }

    fn identity(&mut self, raw: &Raw) -> (ObjectKind, Text, Text) {
        let meta = raw.meta();
        (raw.kind, self.strings.text(&meta.namespace), meta.name.as_str().into())
    }

    /// Forgets the objects of a kind that the list did not contain.
    fn complete(&mut self, kind: ObjectKind) {
        self.progress.complete.insert(kind);
        let Some(listed) = self.progress.listing.remove(&kind) else { return };
        let named = |namespace: &Text, name: &Text| {
            listed.contains(&PodKey { namespace: namespace.clone(), name: name.clone() })
        };
        let cluster_scoped = Text::default();
        match kind {
            ObjectKind::Node => self.nodes.retain(|name, _| named(&cluster_scoped, name)),
            ObjectKind::Namespace => self.namespaces.retain(|name, _| named(&cluster_scoped, name)),
            ObjectKind::Pod => {
                let gone: Vec<PodKey> =
                    self.pods().map(|pod| pod.key()).filter(|key| !listed.contains(key)).collect();
                for key in gone {
                    self.delete_pod(&key);
                }
            }
            ObjectKind::PodDisruptionBudget => {
                let all = self.budgets().map(|budget| budget.key());
                let gone: Vec<BudgetKey> = all.filter(|key| !named(&key.namespace, &key.name)).collect();
                for key in gone {
                    self.delete_budget(&key);
                }
            }
            ObjectKind::DaemonSet => self.daemon_sets.retain(|uid, _| named(&cluster_scoped, uid)),
            ObjectKind::Job => self.jobs.retain(|uid, _| named(&cluster_scoped, uid)),
            ObjectKind::PersistentVolume => self.volumes.retain(|name| named(&cluster_scoped, name)),
            ObjectKind::VolumeAttachment => {
                self.volumes.retain_attachments(|name| named(&cluster_scoped, name));
            }
            ObjectKind::ReplicationController
            | ObjectKind::ReplicaSet
            | ObjectKind::Deployment
            | ObjectKind::StatefulSet => {
                let gone: Vec<Text> = self
                    .workloads
                    .iter()
                    .filter(|(uid, workload)| {
                        workload.kind.object_kind() == kind && !named(&cluster_scoped, uid)
                    })
                    .map(|(uid, _)| uid.clone())
                    .collect();
                for uid in gone {
                    self.delete_workload(&uid);
                }
            }
        }
    }
}

/// Whether an object with this resourceVersion is older than what is known. Both are the server's numbers.
#[must_use]
pub fn older(new: &str, known: &str) -> bool {
    let number = |version: &str| version.parse::<u128>().ok();
    matches!((number(new), number(known)), (Some(new), Some(known)) if new < known)
}

/// These are kept by uid.
fn by_uid(kind: ObjectKind) -> bool {
    match kind {
        ObjectKind::Node
        | ObjectKind::Namespace
        | ObjectKind::Pod
        | ObjectKind::PodDisruptionBudget
        | ObjectKind::PersistentVolume
        | ObjectKind::VolumeAttachment => false,
        ObjectKind::ReplicationController
        | ObjectKind::ReplicaSet
        | ObjectKind::Deployment
        | ObjectKind::StatefulSet
        | ObjectKind::DaemonSet
        | ObjectKind::Job => true,
    }
}

fn same_but_version(old: &Node, new: &Node) -> bool {
    Node { resource_version: new.resource_version.clone(), ..old.clone() } == *new
}
