//! Reads a cluster once, from the API server.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use futures::{FutureExt as _, StreamExt as _, stream};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Config};

use super::args::Global;
use super::failure;
use super::source::Scope;
use super::visible::warn;
use crate::budget;
use crate::cluster::{Change, Cluster, Kind, ObjectKind, Raw, Watched, kinds};
use crate::engine::scales;

/// How it is named in the server's audit log.
const AGENT: &str = concat!("kubectl-drainplan/", env!("CARGO_PKG_VERSION"));
/// How many objects are asked for at once.
const PAGE: u32 = 500;
/// How many scales are asked for at once.
const PARALLEL: usize = 8;
/// How long the server may stay silent.
const SILENCE: Duration = Duration::from_mins(1);

/// An API server.
pub(super) struct Live {
    client: Client,
    /// Sends each request once: a refused eviction must not be repeated.
    once: Client,
    namespace: String,
    server: String,
}

impl Live {
    pub(super) async fn connect(global: &Global) -> anyhow::Result<Self> {
        let mut config = config(global).await?;
        config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
        config.read_timeout = Some(SILENCE);
        config.reset_reader_on_write = true;
        let (namespace, server) = (config.default_namespace.clone(), config.cluster_url.to_string());
        let mut once = config.clone();
        once.default_retry = false;
        let client = |config| {
            Client::try_from(config).context("cannot set up the connection that the kubeconfig describes")
        };
        Ok(Self { client: client(config)?, once: client(once)?, namespace, server })
    }

    pub(super) fn default_namespace(&self) -> &str {
        &self.namespace
    }

    /// A client that never repeats a request by itself.
    pub(super) fn once(&self) -> Client {
        self.once.clone()
    }

    /// Everything that decides about evictions in the scope.
    pub(super) async fn read(&self, scope: &Scope) -> anyhow::Result<Cluster> {
        let lists = try_join_all([
            self.shared::<kinds::Node>(scope).boxed(),
            self.shared::<kinds::Namespace>(scope).boxed(),
            self.list::<kinds::Pod>(scope).boxed(),
            self.list::<kinds::PodDisruptionBudget>(scope).boxed(),
            self.list::<kinds::ReplicationController>(scope).boxed(),
            self.list::<kinds::ReplicaSet>(scope).boxed(),
            self.list::<kinds::Deployment>(scope).boxed(),
            self.list::<kinds::StatefulSet>(scope).boxed(),
            self.list::<kinds::DaemonSet>(scope).boxed(),
            self.list::<kinds::Job>(scope).boxed(),
        ]);
        let mut cluster = Cluster::new();
        for raw in lists.await?.into_iter().flatten() {
            cluster.observe(Change::Applied(raw));
        }
        for kind in ObjectKind::ALL {
            cluster.observe(Change::Complete(kind));
        }
        // Where there are pods there are nodes, unless they may not be listed.
        if cluster.nodes().next().is_none() {
            cluster.miss_nodes();
        }
        for bad in cluster.bad_objects() {
            warn(&format!("{} {}/{} is left out: {}", bad.kind.name(), bad.namespace, bad.name, bad.why));
        }
        self.read_scales(&mut cluster).await;
        Ok(cluster)
    }

    async fn read_scales(&self, cluster: &mut Cluster) {
        let namespaces: BTreeSet<_> = cluster.budgets().map(|budget| budget.namespace.clone()).collect();
        let wanted: Vec<_> =
            namespaces.iter().flat_map(|namespace| budget::scales_wanted(cluster, namespace)).collect();
        let read = stream::iter(wanted).map(|(namespace, owner)| async move {
            let scale = scales::read(&self.client, &namespace, &owner).await;
            (owner.uid, scale)
        });
        let read: Vec<_> = read.buffer_unordered(PARALLEL).collect().await;
        for (uid, scale) in read {
            cluster.record_scale(uid, scale);
        }
    }

    /// Namespaced objects.
    async fn list<K: Kind<Scope = NamespaceResourceScope>>(&self, scope: &Scope) -> anyhow::Result<Vec<Raw>> {
        let api: Api<Watched<K>> = match scope {
            Scope::All => Api::all(self.client.clone()),
            Scope::One(namespace) => Api::namespaced(self.client.clone(), namespace),
        };
        pages(api, K::KIND, &self.server).await
    }

    /// Objects without a namespace. Whoever may read one namespace only gets along without them.
    async fn shared<K: Kind<Scope = ClusterResourceScope>>(&self, scope: &Scope) -> anyhow::Result<Vec<Raw>> {
        match pages(Api::<Watched<K>>::all(self.client.clone()), K::KIND, &self.server).await {
            Err(error) if *scope != Scope::All && failure::is_forbidden(&error) => {
                warn(&format!("may not list {}: the answer does without what they say", K::KIND.plural()));
                Ok(Vec::new())
            }
            answer => answer,
        }
    }
}

async fn pages<K: Kind>(api: Api<Watched<K>>, kind: ObjectKind, server: &str) -> anyhow::Result<Vec<Raw>>
where
    Watched<K>: kube::Resource<DynamicType = ()>,
{
    let mut objects = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match api.list(&params).await {
            // The list has grown too old between two pages: once more, in one piece.
            Err(kube::Error::Api(status)) if status.code == 410 && params.limit.is_some() => {
                objects.clear();
                params = ListParams::default();
                continue;
            }
            page => page.map_err(|error| failure::listing(kind.plural(), server, error))?,
        };
        objects.extend(page.items.into_iter().map(Watched::into_raw));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// The configuration that the options name.
async fn config(global: &Global) -> anyhow::Result<Config> {
    let options = KubeConfigOptions { context: global.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &global.kubeconfig {
        let read = Kubeconfig::read_from(path)
            .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
        return Config::from_custom_kubeconfig(read, &options)
            .await
            .with_context(|| format!("cannot use the kubeconfig {}", path.display()));
    }
    if let Some(name) = &global.context {
        return Config::from_kubeconfig(&options).await.with_context(|| {
            format!("cannot use the context {name}; kubectl config get-contexts lists them")
        });
    }
    Config::infer()
        .await
        .context("no cluster to ask: name a kubeconfig with --kubeconfig, or read objects with --from")
}
