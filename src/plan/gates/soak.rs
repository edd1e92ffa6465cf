//! A pause between one node's end and the next one's start.

use jiff::Timestamp;

use crate::api::{NodePhase, NodeReason};
use crate::cluster::planted::{Planted, planted};
use crate::plan::run::Run;
use crate::plan::{Round, words};

/// Why no node is started before a while has passed since the last one was done. Nodes that failed are not waited for.
pub fn closed(run: &Run<'_>, round: &mut Round<'_>) -> Option<(NodeReason, String)> {
    let soak = run.plan.spec.soak();
    if soak.is_zero() || planted(Planted::SoakIgnored) {
        return None;
    }
    let done = run.memory.nodes.iter().filter(|(_, record)| record.phase == NodePhase::Done);
    let (at, name) = done.filter_map(|(name, record)| Some((record.finished_at?, name))).max()?;
    let until = at.saturating_add(soak).unwrap_or(Timestamp::MAX);
    round.wake(until);
    (until > round.now).then(|| (NodeReason::AwaitingSoak, words::awaiting_soak(name, at, until)))
}
