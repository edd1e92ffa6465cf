//! Draws hand-offs, and who works on the nodes: in time, late, never, well or ill.

use std::time::Duration;

use drainplan::api::DrainPlan;
use drainplan::simulate::{ActorSetup, After, Work};
use serde_json::{Value, json};

use super::chance::Chance;

/// What a plan may wait for, and the work that brings it about.
const HAND_OFFS: [(&str, Work); 4] = [
    ("Released", Work::Release),
    ("Rebooted", Work::Reboot),
    ("Upgraded", Work::Upgrade),
    ("Deleted", Work::Delete),
];

/// Changes a spec so that nodes are handed off.
pub fn draw(chance: &mut Chance, spec: &mut Value) -> ActorSetup {
    let (until, work) = chance.pick(&HAND_OFFS).copied().unwrap_or(("Released", Work::Release));
    spec["handOff"]["until"] = json!(until);
    if chance.percent(50) {
        // It is Uncordon then.
        spec["handOff"]["then"] = Value::Null;
    }
    spec["timeouts"]["handOff"] = json!(format!("{}s", chance.number(4, 40)));
    // Some do something else than what the plan waits for.
    let other = chance.pick(&HAND_OFFS).map(|(_, other)| *other).filter(|_| chance.percent(10));
    ActorSetup {
        begins: if chance.percent(10) { After::Never } else { After::Some(chance.millis(0, 5_000)) },
        work: other.unwrap_or(work),
        takes: chance.millis(100, 20_000),
        well: match chance.number(0, 9) {
            0..=2 => After::Never,
            3..=5 => After::Some(Duration::ZERO),
            _ => After::Some(chance.millis(100, 10_000)),
        },
    }
}

/// Changes a plan so that nodes are handed off, each to somebody who does what the plan waits for.
pub fn that_ends_well(chance: &mut Chance, plan: &mut DrainPlan) -> ActorSetup {
    let (until, work) = chance.pick(&HAND_OFFS).copied().unwrap_or(("Released", Work::Release));
    plan.spec.hand_off = serde_json::from_value(json!({"until": until})).ok();
    // A node that is deleted does not come again: it would be open to pods at a time of its own.
    let well = if work == Work::Delete { After::Never } else { After::Some(chance.millis(0, 5_000)) };
    ActorSetup { begins: After::Some(chance.millis(0, 2_000)), work, takes: chance.millis(100, 5_000), well }
}
