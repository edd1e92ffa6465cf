//! Fields of a status that another version, or a person, wrote otherwise than this version reads them.
//!
//! Most of a status is a report, which the next decision writes anew: what cannot be read of it counts as absent, so
//! that one odd field does not stop a plan. What a plan remembers is different. A time may be absent: its clock begins
//! again, once, and what it bounds stays bounded. That a plan has ended must never be forgotten. A phase of a node that
//! is not known could mean anything, so a plan with one cannot be read.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Absent when it cannot be read.
pub fn or_absent<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Option<T>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// Those that can be read.
pub fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(from)?.unwrap_or_default();
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// Some time, if any is written: that it has happened matters more than when.
pub fn happened<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
    let value = Option::<Value>::deserialize(from)?;
    Ok(value.map(|value| serde_json::from_value(value).unwrap_or(Time(Timestamp::UNIX_EPOCH))))
}

/// The beginning of all times when it cannot be read.
pub fn in_time<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    Ok(or_absent(from)?.unwrap_or(Time(Timestamp::UNIX_EPOCH)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::api::DrainPlanStatus;

    /// Times that the schema allows and that cannot be read.
    const ODD: [&str; 2] = ["9999-12-31T23:59:59Z", "2026-12-31T00:00:00.1234567890123Z"];

    #[test]
    fn times_that_cannot_be_read_are_absent_but_an_end_stays_an_end() {
        for odd in ODD {
            let status: DrainPlanStatus = serde_json::from_value(json!({
                "startedAt": odd, "finishedAt": odd, "idleSince": odd,
                "nodes": [{"name": "a", "phase": "Draining", "startedAt": odd, "deadline": odd,
                    "drainedAt": odd, "finishedAt": odd, "podsLeft": 1, "podsEvicted": 0,
                    "waiting": [{"namespace": "shop", "pod": "web-0", "reason": "BudgetExhausted",
                        "outlook": "WillClear", "message": "wait", "since": odd}]}],
                "conditions": [{"type": "Ready", "status": "True", "reason": "Completed", "message": "",
                    "lastTransitionTime": odd}],
            }))
            .unwrap();
            assert_eq!((&status.started_at, &status.idle_since), (&None, &None));
            assert!(status.finished_at.is_some());
            let [node] = status.nodes.as_slice() else { panic!("{status:?}") };
            let times = [&node.started_at, &node.deadline, &node.drained_at, &node.finished_at];
            assert_eq!(times, [&None; 4]);
            assert!(node.waiting.is_empty() && status.conditions.is_empty());
        }
    }

    #[test]
    fn the_report_of_another_version_is_left_out_and_what_is_remembered_is_not_guessed_at() {
        let status: DrainPlanStatus = serde_json::from_value(json!({
            "phase": "Resting", "progress": 5, "nodeCounts": {"total": 1}, "budgets": ["shop/web"],
            "nextWindow": "2026-12-31T00:00:00Z", "moreDone": ["b"],
        }))
        .unwrap();
        assert_eq!((status.phase, &status.progress, &status.node_counts), (None, &None, &None));
        assert_eq!((status.budgets.len(), status.more_done.len()), (0, 1));
        let node = json!({"name": "a", "phase": "Cooling", "podsLeft": 1, "podsEvicted": 0});
        let unknown = serde_json::from_value::<DrainPlanStatus>(json!({"nodes": [node]}));
        assert!(unknown.unwrap_err().to_string().contains("unknown variant `Cooling`"));
    }
}
