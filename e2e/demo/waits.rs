//! Who waited on which budget, and why: gathered from everything that the plan's status ever said.

use std::collections::{BTreeMap, BTreeSet};

use drainplan::api::{DrainPlanStatus, NodePhase, Outlook};

use super::screen::{Colour, paint, say, wrap};

/// The width of a message.
const WIDTH: usize = 110;

/// Pods that waited on one budget for one reason.
struct Wait {
    outlook: Outlook,
    pods: BTreeSet<String>,
    /// One of them, and what was said of it.
    example: String,
    /// Its node.
    node: String,
    /// Whether they still waited when their node ended.
    for_ever: bool,
}

/// Prints them.
pub fn print(statuses: &[DrainPlanStatus]) {
    let mut waits: BTreeMap<(String, String), Wait> = BTreeMap::new();
    for node in statuses.iter().flat_map(|status| &status.nodes) {
        for pod in &node.waiting {
            let budget = format!("{}/{}", pod.namespace, pod.budgets.join(", "));
            let wait = waits.entry((budget, pod.reason.clone())).or_insert_with(|| Wait {
                outlook: pod.outlook,
                pods: BTreeSet::new(),
                example: format!("{} on {}: {}", pod.pod, node.name, pod.message),
                node: node.name.clone(),
                for_ever: false,
            });
            wait.pods.insert(pod.pod.clone());
            wait.for_ever |= node.phase == NodePhase::Failed;
        }
    }
    say!("{}", paint(Colour::Faint, "who waited on which budget, and why"));
    // What only time holds comes first.
    let mut waits: Vec<_> = waits.iter().collect();
    waits.sort_by_key(|((budget, _), wait)| (wait.for_ever, &wait.node, budget.clone()));
    for ((budget, reason), wait) in waits {
        let colour = if wait.outlook == Outlook::WillClear { Colour::Yellow } else { Colour::Red };
        let pods = wait.pods.len();
        say!(
            "  {}  {}  {:<11}  {pods} {} waited{}",
            paint(Colour::Bold, &format!("{budget:<17}")),
            paint(colour, &format!("{reason:<17}")),
            format!("{:?}", wait.outlook),
            if pods == 1 { "pod" } else { "pods" },
            if wait.for_ever { " in vain" } else { " and went" },
        );
        for line in wrap(&wait.example, WIDTH) {
            say!("      {line}");
        }
    }
}
