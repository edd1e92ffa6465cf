//! What is said of pods, and whether it comes true.

use std::collections::{BTreeMap, HashSet};

use drainplan::api::{Outlook, PodPolicy, Reason};
use drainplan::budget;
use drainplan::cluster::{Cluster, Oddities, Pod, PodKey, PodPhase, Scale, Text, Workload};
use drainplan::explain::{Explainer, Judgement, Patience, Treatment, Wait};
use drainplan::simulate::World;

use super::{Confused, Said};

/// Whoever looks again and again, and remembers since when what should not last is seen.
pub struct Watch {
    policy: PodPolicy,
    oddities: Oddities,
}

/// What was said at one instant of every pod that is to leave its node.
pub struct Look(Vec<Asked>);

struct Asked {
    key: PodKey,
    uid: Text,
    judgement: Judgement,
    /// Of its budget's pods some are going, of an owner of which nobody knows how many pods it wants: they may be replaced or
    /// not, or have been already.
    uncertain: bool,
    /// How many pods of such owners its budgets select.
    unscaled: usize,
    /// Of its budget's owners some have more pods than they want: nobody knows which will be deleted, and when.
    surplus: bool,
}

impl Watch {
    pub fn new(policy: PodPolicy) -> Self {
        Self { policy, oddities: Oddities::default() }
    }

    /// Asks about every pod on a node.
    pub fn look(&mut self, world: &World) -> Look {
        let mut cluster: Cluster = world.store().cluster().clone();
        cluster.oddities = self.oddities.clone();
        let patience = Patience::default();
        let explainer = Explainer::new(&cluster, world.now(), &patience);
        let on_nodes = world.store().pods().filter(|pod| pod.node.is_some());
        let judged = on_nodes.map(|pod| Asked {
            key: pod.key(),
            uid: pod.uid.clone(),
            judgement: explainer.judge(pod, &self.policy),
            uncertain: unscaled(&cluster, pod).any(Pod::terminating),
            unscaled: unscaled(&cluster, pod).count(),
            surplus: has_surplus(&cluster, pod),
        });
        let judged = judged.filter(|asked| asked.judgement.treatment != Treatment::Ignore).collect();
        self.oddities.seen(explainer.oddities(), world.now());
        Look(judged)
    }
}

/// Where a pod stands that was asked about before.
enum Now<'w> {
    /// It is gone, or going by itself: what held it holds it no more.
    Gone,
    /// It has finished, and may stay.
    Finished,
    There(&'w Pod),
}

fn now<'w>(world: &'w World, asked: &Asked) -> Now<'w> {
    match world.store().pod_of(&asked.key, &asked.uid) {
        None => Now::Gone,
        Some(pod) if pod.terminating() => Now::Gone,
        Some(pod) if pod.finished() => Now::Finished,
        Some(pod) => Now::There(pod),
    }
}

fn evictable(world: &World, pod: &Pod) -> bool {
    budget::verdict(world.store().cluster(), pod).cause.evicts()
}

impl Look {
    /// How often what was said.
    pub fn said(&self) -> Said {
        let mut said = Said::new();
        for wait in self.0.iter().filter_map(|asked| asked.judgement.wait.as_ref()) {
            *said.entry((wait.reason, wait.outlook)).or_default() += 1;
        }
        said
    }

    /// The waits of pods that the plan would evict: what holds them is not the plan, nor an owner that scales down.
    fn held(&self) -> impl Iterator<Item = (&Asked, &Wait)> {
        let evicted =
            self.0.iter().filter(|asked| asked.judgement.treatment == Treatment::Evict && !asked.surplus);
        evicted.filter_map(|asked| Some((asked, asked.judgement.wait.as_ref()?)))
    }

    /// What never clears does not clear for a moment.
    pub fn still_refused(&self, world: &World) -> Result<(), Confused> {
        for (asked, wait) in self.held().filter(|(_, wait)| wait.outlook == Outlook::NeverClears) {
            if let Now::There(pod) = now(world, asked)
                && evictable(world, pod)
                // An owner without a scale counts as the pods that it has: that it will have more nobody could know.
                && unscaled(world.store().cluster(), pod).count() <= asked.unscaled
            {
                let message = format!("{} may go at {}", said(&asked.key, wait), world.now());
                return Err(Confused { rule: "what never clears is refused at every look", message });
            }
        }
        Ok(())
    }

    /// The pods that were told to wait and may go now, or are gone.
    pub fn free<'w>(&'w self, world: &'w World) -> impl Iterator<Item = &'w Text> {
        let free = |asked: &&Asked| match now(world, asked) {
            Now::There(pod) => evictable(world, pod),
            Now::Gone | Now::Finished => true,
        };
        self.held().map(|(asked, _)| asked).filter(free).map(|asked| &asked.uid)
    }

    /// Everything has recovered: what would clear by itself has, and so has what may.
    pub fn came_true(&self, world: &World, free: &HashSet<Text>) -> Result<(), Confused> {
        for (asked, wait) in self.held().filter(|(_, wait)| wait.reason.is_about_budgets()) {
            let Now::There(pod) = now(world, asked) else { continue };
            let rule = match wait.outlook {
                Outlook::NeverClears => continue,
                Outlook::WillClear | Outlook::MayClear if may_last(world, pod, wait) => continue,
                Outlook::WillClear => "what clears by itself does",
                Outlook::MayClear if asked.uncertain => continue,
                Outlook::MayClear => "what may clear does when everything recovers",
            };
            if !free.contains(&asked.uid) && !is_counted_late(world, pod) {
                let verdict = budget::verdict(world.store().cluster(), pod);
                let message =
                    format!("{} was never free to go; at the end: {verdict:?}", said(&asked.key, wait));
                return Err(Confused { rule, message });
            }
        }
        Ok(())
    }

    /// What is no matter of budgets and only takes time has passed: the pod is gone, or has nothing to wait for.
    pub fn has_passed(&self, world: &World, last: &Self) -> Result<(), Confused> {
        for asked in &self.0 {
            let Some(wait) = asked.judgement.wait.as_ref() else { continue };
            if wait.outlook != Outlook::WillClear || wait.reason.is_about_budgets() {
                continue;
            }
            let there = world.store().pod_of(&asked.key, &asked.uid).is_some_and(|pod| !pod.finished());
            let still =
                last.0.iter().find(|now| now.uid == asked.uid).and_then(|now| now.judgement.wait.as_ref());
            if there && let Some(still) = still {
                let message = format!("{} waits at the end: {}", said(&asked.key, wait), still.message);
                return Err(Confused { rule: "what only takes time has passed at the end", message });
            }
        }
        Ok(())
    }

    /// Nothing is out of order any more: whoever is refused now is by what is written, and whoever is not does not wait.
    pub fn is_about_configuration(&self, world: &World) -> Result<(), Confused> {
        for asked in &self.0 {
            let Asked { key, judgement, .. } = asked;
            let Now::There(pod) = now(world, asked) else { continue };
            let counts = judgement.treatment == Treatment::Evict && pod.phase == PodPhase::Running;
            if !counts || is_counted_late(world, pod) {
                continue;
            }
            let held = !evictable(world, pod);
            let (rule, said) = match &judgement.wait {
                None if held => ("whoever is refused is told why", format!("{}/{}", key.namespace, key.name)),
                Some(wait) if !held => ("whoever may go does not wait", said(&asked.key, wait)),
                Some(wait) if wait.outlook != Outlook::NeverClears && !may_last(world, pod, wait) => {
                    ("what holds a pod when all is well never clears", said(&asked.key, wait))
                }
                _ => continue,
            };
            return Err(Confused { rule, message: format!("{said}, at the end") });
        }
        Ok(())
    }
}

/// The pods that a pod's budgets select and whose owner has no scale: nobody but it knows how many it wants.
fn unscaled<'c>(cluster: &'c Cluster, pod: &'c Pod) -> impl Iterator<Item = &'c Pod> {
    let unscaled = |pod: &&Pod| {
        pod.owner.as_ref().is_some_and(|owner| {
            let scale = cluster.scale(&owner.uid);
            cluster.workload(&owner.uid).is_none() && !matches!(scale, Some(Scale::Replicas { .. }))
        })
    };
    let selected = cluster.budgets_of(pod).flat_map(|budget| budget::selected(cluster, budget));
    selected.map(|pod| &**pod).filter(|pod| !pod.finished()).filter(unscaled)
}

fn has_surplus(cluster: &Cluster, pod: &Pod) -> bool {
    let mut pods: BTreeMap<&Text, usize> = BTreeMap::new();
    let selected = cluster.budgets_of(pod).flat_map(|budget| budget::selected(cluster, budget));
    for owner in selected.filter(|pod| !pod.finished()).filter_map(|pod| pod.owner.as_deref()) {
        *pods.entry(&owner.uid).or_default() += 1;
    }
    pods.into_iter().any(|(uid, count)| {
        let above = |of: &Workload| of.owner.as_ref().and_then(|owner| cluster.workload(&owner.uid)).cloned();
        let wants = match (cluster.workload(uid), cluster.scale(uid)) {
            (Some(workload), _) => above(workload).as_ref().unwrap_or(workload).replicas,
            (None, Some(Scale::Replicas { replicas, .. })) => *replicas,
            _ => return false,
        };
        usize::try_from(wants).is_ok_and(|wants| wants < count)
    })
}

/// Of the budgets of one pod the disruption controller recounts only one when that pod changes (`disruption.go:
/// getPdbForPod`), so a budget that shares pods with another may keep old numbers until a pod of its own changes.
fn is_counted_late(world: &World, pod: &Pod) -> bool {
    let cluster = world.store().cluster();
    let mut budgets = cluster.budgets_of(pod);
    let (Some(budget), None) = (budgets.next(), budgets.next()) else { return false };
    budget::selected(cluster, budget).any(|pod| cluster.budgets_of(pod).count() > 1)
}

/// What may clear, or would, and yet need not when every pod is healthy, since it waits for something else: a budget that cannot
/// be computed for a Job's pods waits for the Job to end, or for somebody to delete them.
fn may_last(world: &World, pod: &Pod, wait: &Wait) -> bool {
    let cluster = world.store().cluster();
    let of_job = |pod: &Pod| pod.owner.as_ref().is_some_and(|owner| &*owner.kind == "Job");
    let mut selected = cluster.budgets_of(pod).flat_map(|budget| budget::selected(cluster, budget));
    wait.reason == Reason::BudgetSyncFailed && selected.any(|pod| of_job(pod))
}

fn said(key: &PodKey, wait: &Wait) -> String {
    let reason: Reason = wait.reason;
    format!("{}/{} ({reason} {:?}: {})", key.namespace, key.name, wait.outlook, wait.message)
}
