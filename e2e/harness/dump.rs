//! Everything that tells why a case has failed.

use std::fmt::{Debug, Write as _};

use drainplan::api::DrainPlan;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::{Bed, cordoned, marks, pods_told};

/// Lines of the controller's log that are shown.
const LOG_LINES: usize = 60;

/// The case's plans, nodes, pods, budgets and events, the end of the controller's log, and the audit log's lines.
pub async fn dump(bed: &Bed) -> String {
    let mut out = String::new();
    let mut say = |line: &str| {
        let _ = writeln!(out, "{line}");
    };
    let ours = |name: &str| name.starts_with(&bed.name);
    say("---- plans");
    for mut plan in items::<DrainPlan>(Api::all(bed.client())).await {
        if !ours(&plan.name_any()) {
            continue;
        }
        plan.metadata.managed_fields = None;
        say(&serde_saphyr::to_string(&plan).unwrap_or_else(|error| format!("{}: {error}", plan.name_any())));
    }
    say("---- nodes");
    for node in items::<Node>(Api::all(bed.client())).await.iter().filter(|node| ours(&node.name_any())) {
        say(&format!("{} cordoned {} {:?}", node.name_any(), cordoned(node), marks(node)));
    }
    say("---- pods");
    say(&pods_told(&items::<Pod>(bed.space.pods()).await).replace("; ", "\n"));
    say("---- budgets");
    for budget in items::<PodDisruptionBudget>(bed.space.budgets()).await {
        say(&serde_json::to_string(&budget).unwrap_or_default());
    }
    say("---- events");
    let events =
        ["get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp", "--no-headers"];
    let events = bed.installation.testbed.kubectl(&events).await.unwrap_or_else(|error| format!("{error:#}"));
    events.lines().filter(|line| line.contains(&bed.name)).for_each(&mut say);
    say(if bed.installation.controller.runs() { "---- the controller runs" } else { "---- no controller" });
    say(&bed.installation.controller.log_tail(LOG_LINES));
    say("---- the audit log's evictions in the namespace, and writes to the nodes");
    let requests = bed.audit().requests(|request| {
        (request.subresource == "eviction" && request.namespace == bed.name)
            || (request.resource == "nodes" && ours(&request.name) && request.verb != "get")
    });
    match requests {
        Ok(requests) => requests.iter().for_each(|request| say(&request.line())),
        Err(error) => say(&format!("{error:#}")),
    }
    say("----");
    out
}

async fn items<K>(api: Api<K>) -> Vec<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => {
            eprintln!("cannot list {}: {error}", K::plural(&()));
            Vec::new()
        }
    }
}
