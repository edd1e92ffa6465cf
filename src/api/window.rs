//! When a plan may work, as its spec writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlanDuration;

/// A time that opens again and again.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When it opens: five cron fields as in a CronJob, minute hour day-of-month month day-of-week.
    #[schemars(length(max = 100))]
    #[x_kube(validation = Rule::new(r"self.matches('^\\s*([0-9A-Za-z*/,?-]+\\s+){4}[0-9A-Za-z*/,?-]+\\s*$')")
        .message("write five cron fields, minute hour day-of-month month day-of-week, such as 0 22 * * SAT"))]
    pub schedule: String,
    /// How long it stays open, as time that passes, whatever the clocks are put to.
    pub duration: PlanDuration,
    /// The IANA time zone of the schedule. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$')")
        .message("write an IANA time zone, such as Europe/Berlin or UTC"))]
    pub time_zone: Option<String>,
}

/// A time in which nothing is open.
#[derive(KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.start < self.end")
    .message("an exclusion ends after its start: write a later end"))]
// Later times can be written and not be read.
#[x_kube(validation = Rule::new("self.end < timestamp('9999-01-01T00:00:00Z') && self.start > timestamp('1000-01-01T00:00:00Z')")
    .message("an exclusion lies between the years 1000 and 9999"))]
pub struct Exclusion {
    /// Its first instant.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
}

/// How often a plan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Repeat {
    /// One run; then the plan has ended.
    #[default]
    Once,
    /// A new run whenever a window opens and the previous one has ended.
    EachWindow,
}

/// What happens to nodes in progress when a window ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnWindowEnd {
    /// They are given back, and taken up again in the next window.
    #[default]
    Return,
    /// They are brought to their end.
    Finish,
}
