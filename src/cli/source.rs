//! Where a cluster comes from: the API server, or files.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

use super::args::Global;
use super::live::Live;
use super::visible::warn;
use crate::cluster::{Cluster, Files, Notes};

/// What says everything that an answer needs.
const DUMP: &str = "dump all of it with kubectl get pods,pdb,deploy,rs,sts,rc,ds,jobs,nodes,namespaces,pv,volumeattachments,crd -A -o \
     json --show-managed-fields, and the custom resources that own pods";

/// Which namespaces are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    One(String),
}

impl Scope {
    pub(super) fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(name) => name == namespace,
        }
    }
}

/// What the objects of the files refer to and the files hold nothing of. It may be gone, or was not dumped: only whoever
/// did that knows.
pub(super) fn missing(cluster: &Cluster) -> Vec<String> {
    let held: BTreeSet<&str> = cluster.workloads().map(|workload| workload.kind.name()).collect();
    let owners = cluster.pods().filter_map(|pod| pod.owner.as_deref());
    let owners = owners.chain(cluster.workloads().filter_map(|workload| workload.owner.as_deref()));
    let watched = ["ReplicaSet", "Deployment", "StatefulSet", "ReplicationController"];
    let absent: BTreeSet<&str> = owners
        .map(|owner| &*owner.kind)
        .filter(|kind| watched.contains(kind) && !held.contains(kind))
        .collect();
    let mut missing: Vec<String> = absent
        .iter()
        .map(|kind| {
            format!(
                "objects in the files belong to {kind}s, and no {kind} is there: they are taken to be gone"
            )
        })
        .collect();
    if cluster.pods().next().is_none() {
        missing.push("the files hold budgets and no pods: there are taken to be none".to_owned());
    }
    missing
}

/// What of the files is not in the answer, and should perhaps be.
fn left_out(notes: &Notes) -> Vec<String> {
    let more =
        (notes.more_left_out > 0).then(|| format!("and {} more objects are left out", notes.more_left_out));
    notes.left_out.iter().cloned().chain(more).collect()
}

/// A file's name in messages, and its text; - is the standard input.
pub(super) fn read(path: &Path) -> anyhow::Result<(String, String)> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the standard input")?;
        return Ok(("standard input".to_owned(), text));
    }
    Ok((path.display().to_string(), crate::cluster::read_text(path)?))
}

/// A source of objects.
pub(super) enum Source {
    Live(Box<Live>),
    Files(Box<Cluster>),
}

impl Source {
    /// Opens what the options name.
    pub(super) async fn open(global: &Global) -> anyhow::Result<Self> {
        if global.from.is_empty() {
            return Ok(Self::Live(Box::new(Live::connect(global).await?)));
        }
        let mut files = Files::default();
        for path in &global.from {
            let (name, text) = read(path)?;
            files.add_text(&name, &text)?;
        }
        let (cluster, notes) = files.finish();
        for warning in left_out(&notes) {
            warn(&warning);
        }
        let skipped = notes.passed_over;
        if !skipped.is_empty() && cluster.pods().next().is_none() && cluster.budgets().next().is_none() {
            let kinds: Vec<&str> = skipped.keys().map(String::as_str).collect();
            anyhow::bail!("the files hold no pods and no budgets, only {}; {DUMP}", kinds.join(", "));
        }
        if cluster.pods().next().is_none() && cluster.budgets().next().is_none() {
            anyhow::bail!("the files hold no pods and no budgets; {DUMP}");
        }
        for missing in missing(&cluster) {
            warn(&format!("{missing}; {DUMP}"));
        }
        Ok(Self::Files(Box::new(cluster)))
    }

    /// The namespaces to answer for: what was asked, else everything in files and the context's namespace in a cluster.
    pub(super) fn scope(&self, global: &Global) -> Scope {
        match (&global.namespace, global.all_namespaces, self) {
            (Some(namespace), _, _) => Scope::One(namespace.clone()),
            (None, false, Self::Live(live)) => Scope::One(live.default_namespace().to_owned()),
            (None, _, _) => Scope::All,
        }
    }

    /// Reads what the scope needs.
    pub(super) async fn read(&self, scope: &Scope) -> anyhow::Result<Cluster> {
        match self {
            Self::Live(live) => live.read(scope).await,
            Self::Files(cluster) => Ok(Cluster::clone(cluster)),
        }
    }
}
