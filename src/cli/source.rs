//! Where a cluster comes from: the API server, or files.

use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

use super::args::Global;
use super::live::Live;
use crate::cluster::{Cluster, Files};

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
            if path == Path::new("-") {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the standard input")?;
                files.add_text("standard input", &text)?;
            } else {
                files.add_file(path)?;
            }
        }
        let (cluster, skipped) = files.finish();
        if !skipped.is_empty() && cluster.pods().next().is_none() && cluster.budgets().next().is_none() {
            let kinds: Vec<&str> = skipped.keys().map(String::as_str).collect();
            anyhow::bail!(
                "the files hold no pods and no budgets, only {}; dump them with kubectl get \
                 pods,pdb,deploy,rs,sts,rc,ds,jobs,nodes,namespaces -A -o json",
                kinds.join(", ")
            );
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
