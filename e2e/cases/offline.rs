//! From a dump of the cluster the same is said as from the cluster itself.

use serde_json::Value;

use crate::ask::ask;
use crate::play::Report;
use crate::world::World;

/// Kinds that decide about evictions, besides those that the case defines.
const KINDS: &str = "nodes,namespaces,pods,pdb,rc,rs,deploy,sts,ds,jobs,crd";
/// How often it is tried to dump a cluster that does not change meanwhile.
const TRIES: usize = 5;

/// Compares both; a cluster that changed meanwhile is dumped again.
pub async fn compare(world: &World<'_>, report: &mut Report) -> anyhow::Result<()> {
    let testbed = world.plane.testbed();
    let kubeconfig = testbed.simulator();
    let names = ["get", "crd", "-o", "jsonpath={range .items[*]},{.metadata.name}{end}"];
    let kinds = format!("{KINDS}{}", testbed.kubectl(&names).await?);
    for format in ["json", "yaml"] {
        let dump = testbed.dir().join(format!("dump.{format}"));
        for [command, all] in [["budgets", "-A"], ["explain", "--all"]] {
            let live = [command, all, "--kubeconfig"];
            let mut tries = 0;
            loop {
                tries += 1;
                let before: Value = ask(&live, &kubeconfig).await?;
                std::fs::write(&dump, testbed.kubectl(&["get", &kinds, "-A", "-o", format]).await?)?;
                let offline: Value = ask(&[command, all, "--from"], &dump).await?;
                if before == offline {
                    break;
                }
                let after: Value = ask(&live, &kubeconfig).await?;
                if before == after || tries == TRIES {
                    report
                        .wrong
                        .push(format!("{command} from {format}: {offline}\n     from the cluster: {before}"));
                    break;
                }
            }
            report.compared += 1;
        }
    }
    Ok(())
}
