//! Whoever works on nodes that are handed off: finds them by the label, and does what a plan waits for, or not.

use std::time::Duration;

use super::acts::Act;
use super::setup::{After, NodeSetup};
use super::world::{Event, World};
use crate::api::names;
use crate::cluster::{Node, Text};
use crate::plan::Claim;

/// What is done to the nodes that a plan hands off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorSetup {
    /// From the label until it begins.
    pub begins: After,
    pub work: Work,
    /// How long that takes.
    pub takes: Duration,
    /// From its end until the node is Ready, or is there again.
    pub well: After,
}

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Reboot,
    Upgrade,
    /// The node is deleted, and comes again as another one.
    Delete,
    /// The node is not Ready meanwhile, and is released at the end, well or not.
    Release,
}

/// A step of the work on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkStep {
    /// For that plan.
    Begin(String),
    /// The machine runs again.
    Back {
        upgraded: bool,
        well: After,
    },
    Well,
    Release(String),
}

impl World {
    /// Nodes that the plan of that name hands off are worked on so.
    pub fn set_actor(&mut self, plan: &str, setup: ActorSetup) {
        self.actors.insert(plan.to_owned(), setup);
    }

    /// The actors look at a node that has changed.
    pub(super) fn actor_sees(&mut self, node: &Node) {
        let announced = node.labels.get(names::STATE).is_some_and(|state| **state == *names::DRAINED);
        let Some(claim) = Claim::on(node).filter(|_| announced) else {
            self.worked_on.remove(&node.uid);
            return;
        };
        let Some(setup) = self.actors.get(claim.plan) else { return };
        let plan = claim.plan.to_owned();
        let begins = setup.begins;
        if self.worked_on.insert(node.uid.clone())
            && let After::Some(wait) = begins
        {
            self.work_later(node, wait, WorkStep::Begin(plan));
        }
    }

    fn work_later(&mut self, node: &Node, wait: Duration, step: WorkStep) {
        self.after(wait, Event::Work { node: node.name.clone(), uid: node.uid.clone(), step });
    }

    /// Somebody goes on with the work on a node, if it is still there.
    pub(super) fn work(&mut self, name: &Text, uid: &Text, step: WorkStep) {
        let Some(node) = self.store.cluster().node(name).filter(|node| node.uid == *uid).cloned() else {
            return;
        };
        self.count_step();
        match step {
            WorkStep::Begin(plan) => self.begin_work(&node, &plan),
            WorkStep::Back { upgraded, well } => self.comes_back(&node, upgraded, well),
            WorkStep::Well => self.store.edit_node(name, |node| node.ready = "True".into()),
            WorkStep::Release(plan) => self.act(Act::Release(name.to_string(), plan)),
        }
    }

    fn begin_work(&mut self, node: &Node, plan: &str) {
        let Some(setup) = self.actors.get(plan).cloned() else { return };
        let name = node.name.to_string();
        match setup.work {
            Work::Reboot => self.act(Act::Reboot { node: name, away: setup.takes, well: setup.well }),
            Work::Upgrade => self.act(Act::Upgrade { node: name, away: setup.takes, well: setup.well }),
            Work::Delete => {
                let back = self.as_new(node);
                self.act(Act::DeleteNode(name));
                if let After::Some(wait) = setup.well {
                    self.after(wait, Event::Act(Act::AddNode(back)));
                }
            }
            Work::Release => {
                if setup.well != After::Some(Duration::ZERO) {
                    self.store.edit_node(&node.name, |node| node.ready = "False".into());
                }
                self.work_later(node, setup.takes, WorkStep::Release(plan.to_owned()));
                if let After::Some(wait) = setup.well {
                    self.work_later(node, setup.takes + wait, WorkStep::Well);
                }
            }
        }
    }

    /// The same machine under the same name, as another node.
    fn as_new(&self, node: &Node) -> NodeSetup {
        let labels = node.labels.iter().filter(|(key, _)| !key.starts_with(names::PREFIX));
        NodeSetup {
            name: node.name.to_string(),
            labels: labels.map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            capacity: self.capacity(&node.name),
            cordoned: false,
        }
    }

    /// A machine goes down, and comes back another one in this.
    pub(super) fn go_down(&mut self, name: &str, away: Duration, step: WorkStep) {
        let Some(node) = self.store.cluster().node(name).cloned() else { return };
        self.silence(name);
        self.work_later(&node, away, step);
    }

    /// The kubelet tells of its new start, and that it is not ready yet, in one write.
    fn comes_back(&mut self, node: &Node, upgraded: bool, well: After) {
        self.boots += 1;
        let boot = format!("boot-{}", self.boots + 1);
        let at_once = well == After::Some(Duration::ZERO);
        self.revive_as(&node.name, |node| {
            node.boot_id = boot.as_str().into();
            if upgraded {
                node.kubelet_version = format!("v1.38.0-{boot}").into();
            }
            if !at_once {
                node.ready = "False".into();
            }
        });
        if let (After::Some(wait), false) = (well, at_once) {
            self.work_later(node, wait, WorkStep::Well);
        }
    }
}
