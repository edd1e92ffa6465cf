//! What GitOps tools make of a plan: kstatus, which Flux, Helm and kpt go by, and the health script for Argo CD.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use mlua::{Lua, LuaOptions, LuaSerdeExt as _, StdLib, Table};
use serde_json::Value;

/// The manifest with the health script.
const MANIFEST: &str = "manifests/argocd/argocd-cm.yaml";
/// The key of the script in it.
const KEY: &str = "resource.customizations.health.drainplan.dev_DrainPlan";

/// The text at that place.
pub fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// Status of the condition, if it is there.
pub fn condition<'v>(plan: &'v Value, kind: &str) -> Option<&'v str> {
    let all = plan.pointer("/status/conditions").and_then(Value::as_array);
    let found = all.into_iter().flatten().find(|condition| text(condition, "/type") == Some(kind));
    found.and_then(|condition| text(condition, "/status"))
}

/// The rules for any resource (`sigs.k8s.io/cli-utils`, `pkg/kstatus/status`: `checkGenericProperties`, then
/// `checkReadyCondition`).
pub fn kstatus(plan: &Value) -> &'static str {
    if plan.pointer("/metadata/deletionTimestamp").is_some() {
        return "Terminating";
    }
    let generation = plan.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = plan.pointer("/status/observedGeneration").and_then(Value::as_i64);
    if observed.is_some_and(|observed| Some(observed) != generation) {
        return "InProgress";
    }
    if condition(plan, "Reconciling") == Some("True") {
        return "InProgress";
    }
    if condition(plan, "Stalled") == Some("True") {
        return "Failed";
    }
    match condition(plan, "Ready") {
        Some("True") | None => "Current",
        Some(_) => "InProgress",
    }
}

/// The health script, as Argo CD runs it: Lua 5.1 without the libraries for strings, files and the like.
pub struct Script {
    lua: Lua,
    code: String,
}

impl Script {
    /// Reads the script out of its manifest.
    pub fn load() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(MANIFEST);
        let manifest: Value = serde_saphyr::from_str(&fs::read_to_string(path)?)?;
        let data = manifest.get("data").and_then(|data| data.get(KEY)).and_then(Value::as_str);
        let code = data.with_context(|| format!("{MANIFEST} has no {KEY}"))?.to_owned();
        let lua = Lua::new_with(StdLib::TABLE, LuaOptions::default()).map_err(|error| told(&error))?;
        Ok(Self { lua, code })
    }

    /// Status and message of a plan.
    pub fn health(&self, plan: &Value) -> Result<(String, String)> {
        let run = || {
            self.lua.globals().set("obj", self.lua.to_value(plan)?)?;
            let health: Table = self.lua.load(&self.code).eval()?;
            Ok((health.get("status")?, health.get("message")?))
        };
        run().map_err(|error| told(&error))
    }
}

fn told(error: &mlua::Error) -> anyhow::Error {
    anyhow!("the health script: {error}")
}

/// What is wrong with how a plan can be read, if anything is.
pub fn judge(script: &Script, plan: &Value) -> Result<Option<String>> {
    let (health, message) = script.health(plan)?;
    let verdict = kstatus(plan);
    let fits = match verdict {
        "Current" => health == "Healthy",
        "Failed" => health == "Degraded",
        "InProgress" => matches!(health.as_str(), "Progressing" | "Suspended"),
        _ => health == "Progressing",
    };
    if !fits || message.is_empty() {
        return Ok(Some(format!("kstatus reads {verdict}, Argo CD {health} with the message \"{message}\"")));
    }
    Ok(broken_rule(plan).map(str::to_owned))
}

/// Whether the last run has completed, and the next one has not begun.
fn between_runs(plan: &Value) -> bool {
    let last = plan.pointer("/status/lastRun");
    let of = |field: &str| last.and_then(|last| last.get(field));
    of("run").is_some()
        && of("run") == plan.pointer("/status/run")
        && of("phase").and_then(Value::as_str) == Some("Completed")
        && text(plan, "/status/phase") == Some("Scheduled")
}

/// The rules that statuses keep so that they can be read without knowing this kind.
fn broken_rule(plan: &Value) -> Option<&'static str> {
    let phase = text(plan, "/status/phase");
    phase?;
    let flag = |kind: &str| condition(plan, kind);
    let observed = plan.pointer("/status/observedGeneration");
    let all = plan.pointer("/status/conditions").and_then(Value::as_array);
    let mut of = all.into_iter().flatten().map(|condition| condition.get("observedGeneration"));
    let rules = [
        (flag("Ready").is_some(), "there is no condition Ready"),
        (
            (flag("Ready") == Some("True")) == (phase == Some("Completed") || between_runs(plan)),
            "Ready is True when Completed or after a completed run, and only then",
        ),
        (flag("Reconciling") != Some("False"), "Reconciling is there when it is True only"),
        (flag("Stalled") != Some("False"), "Stalled is there when it is True only"),
        (
            !(flag("Stalled").is_some() && flag("Reconciling").is_some()),
            "it is Stalled and Reconciling at once",
        ),
        (
            flag("Reconciling").is_none() || phase == Some("Running"),
            "Reconciling is there while Running only",
        ),
        (phase != Some("Failed") || flag("Stalled").is_some(), "it has Failed and is not Stalled"),
        (
            of.all(|generation| generation == observed),
            "a condition is about another generation than the status",
        ),
    ];
    rules.iter().find(|(holds, _)| !holds).map(|(_, broken)| *broken)
}
