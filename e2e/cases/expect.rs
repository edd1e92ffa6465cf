//! What is expected of a case.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

/// `expect.yaml`.
#[derive(Debug, Deserialize)]
pub struct Case {
    pub id: String,
    #[serde(default)]
    pub before: Vec<String>,
    #[serde(default)]
    pub at_rest: Vec<PodExpectation>,
    #[serde(default)]
    pub budgets: Vec<BudgetExpectation>,
    #[serde(default)]
    pub later: Vec<Later>,
    #[serde(default)]
    end: Option<Value>,
    #[serde(default)]
    variants: Vec<Value>,
}

/// A further state.
#[derive(Debug, Deserialize)]
pub struct Later {
    #[serde(rename = "do", default)]
    pub steps: Vec<String>,
    #[serde(default)]
    pub expect: Vec<PodExpectation>,
}

/// What must be said about a pod. A key that is absent is not asked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodExpectation {
    pub pod: Which,
    #[serde(default)]
    pub verify: bool,
    #[serde(rename = "as", default)]
    pub subject: Option<String>,
    #[serde(default)]
    pub action: Option<String>,
    #[serde(default)]
    pub code: Option<u16>,
    #[serde(default)]
    pub budgets: Option<Vec<String>>,
    #[serde(default)]
    pub reason: Wanted,
    #[serde(default)]
    pub outlook: Wanted,
    #[serde(default)]
    pub mentions: Vec<Mention>,
}

/// Which pods an expectation is about.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    pub namespace: String,
    /// A name, or how names begin.
    pub name: String,
    #[serde(default)]
    pub node: Option<String>,
    #[serde(default)]
    pub terminating: Option<bool>,
}

/// What a message must contain.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Mention {
    Number(i64),
    Text(String),
}

/// What a budget's status must show.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetExpectation {
    pub namespace: String,
    pub name: String,
    pub expected_pods: Option<i64>,
    pub current_healthy: Option<i64>,
    pub desired_healthy: Option<i64>,
    pub disruptions_allowed: Option<i64>,
    #[serde(default)]
    pub sync_failed: bool,
}

/// A key that may be absent, and whose null is a value.
#[derive(Debug, Clone, Default)]
pub enum Wanted {
    #[default]
    Anything,
    Exactly(Option<String>),
}

impl<'de> Deserialize<'de> for Wanted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::Exactly)
    }
}

impl PodExpectation {
    /// The same with one thing changed that is asked for, each with the name of what is changed.
    pub fn falsified(&self) -> Vec<(&'static str, Self)> {
        let other = || "Other".to_owned();
        let mut all = Vec::new();
        if self.action.is_some() {
            all.push(("action", Self { action: Some(other()), ..self.clone() }));
        }
        if let Some(code) = self.code {
            all.push(("code", Self { code: Some(code + 1), ..self.clone() }));
        }
        if let Some(budgets) = &self.budgets {
            let more = budgets.iter().cloned().chain([other()]).collect();
            all.push(("budgets", Self { budgets: Some(more), ..self.clone() }));
        }
        if let Wanted::Exactly(_) = self.reason {
            all.push(("reason", Self { reason: Wanted::Exactly(Some(other())), ..self.clone() }));
        }
        if let Wanted::Exactly(_) = self.outlook {
            all.push(("outlook", Self { outlook: Wanted::Exactly(Some(other())), ..self.clone() }));
        }
        let mentions = self.mentions.iter().cloned();
        for unsaid in
            [Mention::Number(1_234_567), Mention::Text(other()), Mention::Text("other-*".to_owned())]
        {
            let mentions = mentions.clone().chain([unsaid]).collect();
            all.push(("mentions", Self { mentions, ..self.clone() }));
        }
        all
    }
}

impl Case {
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("cannot use {}", path.display()))
    }

    /// The keys that nothing compares yet.
    pub fn not_compared(&self) -> Vec<String> {
        let end = self.end.is_some().then(|| "end".to_owned());
        let variants = (!self.variants.is_empty()).then(|| "variants".to_owned());
        end.into_iter().chain(variants).collect()
    }
}
