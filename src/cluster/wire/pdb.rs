//! PodDisruptionBudgets on the wire.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

use crate::cluster::interner::Interner;
use crate::cluster::{Amount, Pdb, PdbStatus, UnhealthyPolicy};

use super::meta::{Condition, Meta, condition, or_default};
use super::selector::WireSelector;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(in crate::cluster) struct WirePdb {
    pub(super) metadata: Meta,
    #[serde(deserialize_with = "or_default")]
    spec: Spec,
    #[serde(deserialize_with = "or_default")]
    status: Status,
    /// When somebody last wrote anything but the status.
    #[serde(skip)]
    written: Option<Timestamp>,
}

/// Who wrote what when.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Managed {
    #[serde(deserialize_with = "or_default")]
    metadata: ManagedFields,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ManagedFields {
    #[serde(deserialize_with = "or_default")]
    managed_fields: Vec<Writer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Writer {
    #[serde(deserialize_with = "or_default")]
    subresource: String,
    time: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    selector: Option<WireSelector>,
    min_available: Option<WireAmount>,
    max_unavailable: Option<WireAmount>,
    #[serde(deserialize_with = "or_default")]
    unhealthy_pod_eviction_policy: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "or_default")]
    observed_generation: i64,
    #[serde(deserialize_with = "or_default")]
    expected_pods: i32,
    #[serde(deserialize_with = "or_default")]
    current_healthy: i32,
    #[serde(deserialize_with = "or_default")]
    desired_healthy: i32,
    #[serde(deserialize_with = "or_default")]
    disruptions_allowed: i32,
    #[serde(deserialize_with = "or_default")]
    disrupted_pods: BTreeMap<String, Timestamp>,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

/// A number or a string.
#[derive(Debug, Clone)]
enum WireAmount {
    Int(i32),
    Text(String),
}

impl<'de> Deserialize<'de> for WireAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = WireAmount;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a 32-bit number or a string")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                let number = i32::try_from(value);
                number
                    .map(WireAmount::Int)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                let number = i32::try_from(value);
                number
                    .map(WireAmount::Int)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
                Ok(WireAmount::Text(value.to_owned()))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl WirePdb {
    /// Budgets are few, so their text may be read twice: nothing else needs to know who wrote it.
    pub(super) fn decode(json: &str) -> serde_json::Result<Self> {
        let budget = serde_json::from_str::<Self>(json)?;
        let writers = serde_json::from_str::<Managed>(json).unwrap_or_default().metadata.managed_fields;
        let written =
            writers.iter().filter(|writer| writer.subresource != "status").filter_map(|writer| writer.time);
        Ok(Self { written: written.max(), ..budget })
    }
    pub(super) fn into_pdb(self, interner: &mut Interner) -> Pdb {
        let Self { metadata, spec, status, written } = self;
        let (selector, invalid_selector) = match spec.selector.map(|selector| selector.read(interner)) {
            None => (None, None),
            Some(Ok(selector)) => (Some(selector), None),
            Some(Err(message)) => (None, Some(message.into())),
        };
        let mut amount = |amount| match amount {
            WireAmount::Int(number) => Amount::Int(number),
            WireAmount::Text(text) => Amount::Text(interner.text(&text)),
        };
        let (min_available, max_unavailable) =
            (spec.min_available.map(&mut amount), spec.max_unavailable.map(&mut amount));
        Pdb {
            namespace: interner.text(&metadata.namespace),
            name: metadata.name.as_str().into(),
            uid: metadata.uid("PodDisruptionBudget"),
            resource_version: metadata.resource_version.as_str().into(),
            generation: metadata.generation,
            // Only the first spec is as old as the object.
            spec_since: metadata.creation_timestamp.filter(|_| metadata.generation <= 1).or(written),
            selector,
            invalid_selector,
            min_available,
            max_unavailable,
            unhealthy_policy: policy(&spec.unhealthy_pod_eviction_policy),
            status: status.read(interner),
        }
    }
}

impl Status {
    fn read(self, interner: &mut Interner) -> PdbStatus {
        let allowed = condition(&self.conditions, "DisruptionAllowed");
        // As the server looks for it (`eviction.go: checkAndDecrement`).
        let failed = allowed.filter(|found| {
            found.status == "False" && found.reason == "SyncFailed" && !found.message.is_empty()
        });
        PdbStatus {
            observed_generation: self.observed_generation,
            expected_pods: self.expected_pods,
            current_healthy: self.current_healthy,
            desired_healthy: self.desired_healthy,
            disruptions_allowed: self.disruptions_allowed,
            sync_failed: failed.map(|found| found.message.as_str().into()),
            reason: allowed.map(|found| interner.text(&found.reason)).unwrap_or_default(),
            has_condition: allowed.is_some(),
            disrupted_pods: self
                .disrupted_pods
                .into_iter()
                .map(|(name, since)| (name.into(), since))
                .collect(),
        }
    }
}

fn policy(text: &str) -> UnhealthyPolicy {
    match text {
        "" | "IfHealthyBudget" => UnhealthyPolicy::IfHealthyBudget,
        "AlwaysAllow" => UnhealthyPolicy::AlwaysAllow,
        _ => UnhealthyPolicy::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec_since(generation: i64, fields: &str) -> Option<String> {
        let json = format!(
            r#"{{"metadata": {{"name": "web", "generation": {generation}, "creationTimestamp": "2026-12-01T10:00:00Z",
            "managedFields": {fields}}}}}"#
        );
        let budget = WirePdb::decode(&json).unwrap().into_pdb(&mut Interner::default());
        budget.spec_since.map(|time| time.to_string())
    }

    #[test]
    fn a_spec_is_as_old_as_its_last_write() {
        let fields = r#"[{"time": "2026-12-01T11:00:00Z", "fieldsV1": {"f:spec": {}}},
            {"time": "2026-12-01T10:30:00Z"}, {"time": "2026-12-01T12:00:00Z", "subresource": "status"}]"#;
        assert_eq!(spec_since(1, fields).as_deref(), Some("2026-12-01T10:00:00Z"));
        assert_eq!(spec_since(2, fields).as_deref(), Some("2026-12-01T11:00:00Z"));
        // Dumps are often without them.
        assert_eq!(spec_since(2, "null"), None);
        assert_eq!(spec_since(2, "\"nonsense\""), None);
    }
}
