//! What must hold after every step, whatever goes wrong: the invariants of the design, judged from the truth.
//!
//! A process cannot know what its watches have not brought. So "after a suspension" means: after a suspension that was
//! older, when the process decided, than the oldest event it still lacked ([`Process::behind_since`]); of its own
//! writes it knows at once.
//!
//! [`Process::behind_since`]: drainplan::simulate::Process::behind_since

mod budgets;
mod deadlines;
mod deadlock;
mod evictions;
mod gates;
mod hand_offs;
mod moved;
mod nodes;
mod own_pod;
mod pace;
mod seen;
mod statuses;
mod windows;

use std::fmt;

use drainplan::simulate::{Fact, World};
use jiff::Timestamp;

use budgets::Budgets;
use deadlines::Deadlines;
use deadlock::Deadlocks;
use evictions::Evictions;
use gates::Gates;
use hand_offs::HandOffs;
use moved::Moved;
use nodes::Nodes;
use own_pod::OwnPods;
use pace::Pace;
use seen::Seen;
use statuses::Statuses;

/// An invariant that does not hold.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    pub message: String,
    pub at: Timestamp,
    pub step: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: {} (at {}, step {})", self.invariant, self.message, self.at, self.step)
    }
}

/// What was found wrong, before it is known where.
pub struct Wrong(&'static str, String);

pub type Verdict = Result<(), Wrong>;

/// Holds when `holds`; the message is made only when it does not.
pub fn hold(invariant: &'static str, holds: bool, message: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(Wrong(invariant, message())) }
}

/// Looks at a world after every step.
pub struct Checker {
    /// The store was looked at in this state.
    version: u64,
    budgets: Budgets,
    deadlines: Deadlines,
    deadlocks: Deadlocks,
    evictions: Evictions,
    gates: Gates,
    moved: Moved,
    hand_offs: HandOffs,
    nodes: Nodes,
    own_pods: OwnPods,
    pace: Pace,
    statuses: Statuses,
    pub seen: Seen,
    /// The last facts, for whoever has to find out how it came.
    pub trace: Vec<String>,
    pub tracing: bool,
}

impl Checker {
    /// All plans together may hold so many nodes cordoned.
    pub fn new(world: &World, most_cordoned: Option<u32>) -> Self {
        Self {
            version: 0,
            budgets: Budgets::default(),
            deadlines: Deadlines::default(),
            deadlocks: Deadlocks::default(),
            evictions: Evictions::default(),
            gates: Gates::default(),
            moved: Moved::default(),
            hand_offs: HandOffs::default(),
            nodes: Nodes::new(world),
            own_pods: OwnPods::default(),
            pace: Pace::new(most_cordoned),
            statuses: Statuses::default(),
            seen: Seen::default(),
            trace: Vec::new(),
            tracing: false,
        }
    }

    /// Looks at what the last step has done.
    pub fn look(&mut self, world: &mut World) -> Result<(), Violation> {
        let facts = world.take_facts();
        let verdict = self.judge(world, &facts);
        verdict.map_err(|Wrong(invariant, message)| Self::violation(world, invariant, message))
    }

    fn judge(&mut self, world: &World, facts: &[Fact]) -> Verdict {
        for fact in facts {
            if self.tracing {
                self.trace.extend(describe(world.now(), fact));
            }
            self.seen.count(world.now(), fact);
            self.evictions.judge(world, fact)?;
            self.budgets.judge(world, fact)?;
            self.moved.judge(world, fact)?;
            self.gates.judge(world, fact)?;
            self.nodes.judge(world, fact)?;
            self.statuses.judge(world, fact)?;
            self.hand_offs.judge(world, fact)?;
            windows::judge(world, fact)?;
            self.own_pods.judge(world, fact, &mut self.seen)?;
            self.pace.judge(world, fact)?;
            self.deadlocks.judge(world, fact)?;
            self.deadlines.judge(world, fact)?;
        }
        if world.store().version() != self.version {
            self.version = world.store().version();
            self.budgets.count(world);
            self.evictions.follow(world);
            self.pace.follow(world);
            self.deadlocks.follow(world, &mut self.seen);
        }
        Ok(())
    }

    /// Looks at a world in which nothing is left to be done.
    pub fn look_at_the_end(&mut self, world: &World) -> Result<(), Violation> {
        let verdict = self.nodes.judge_the_end(world);
        verdict.map_err(|Wrong(invariant, message)| Self::violation(world, invariant, message))
    }

    pub fn violation(world: &World, invariant: &'static str, message: String) -> Violation {
        Violation { invariant, message, at: world.now(), step: world.steps() }
    }
}

/// A fact as a line.
fn describe(now: Timestamp, fact: &Fact) -> Option<String> {
    let what = match fact {
        Fact::Acted(act) => format!("acted: {act:?}"),
        Fact::Decided { .. } => return None,
        Fact::EvictionSent { process, eviction } => {
            format!("process {process} sends the eviction of {} on {}", eviction.uid, eviction.node)
        }
        Fact::Evicted { process, eviction, code, charged, .. } => {
            format!("eviction of {} by process {process}: {code}, charged {charged:?}", eviction.uid)
        }
        Fact::EvictionConcluded { process, eviction, accepted } => {
            format!("process {process} learns: eviction of {} accepted {accepted}", eviction.uid)
        }
        Fact::NodePatched { process, change, after, .. } => format!(
            "process {process} patches {}: {change:?}, now unschedulable {}, {:?}",
            after.name, after.unschedulable, after.annotations
        ),
        Fact::Listed { node } => format!("pods of {node} listed"),
        Fact::StatusWritten { process, plan, .. } => {
            let status = plan.status.as_ref()?;
            let nodes: Vec<String> = status
                .nodes
                .iter()
                .map(|node| {
                    format!("{} {:?} {}", node.name, node.phase, node.reason.as_deref().unwrap_or(""))
                })
                .collect();
            let name = plan.metadata.name.as_deref().unwrap_or_default();
            format!("process {process} writes the status of {name}: {:?} {nodes:?}", status.phase)
        }
        Fact::Leads { process } => format!("process {process} leads"),
    };
    Some(format!("{now} {what}"))
}
