//! How a replica signs the lease, and whose signature it takes for whose.

use std::hash::{BuildHasher, Hasher};

/// How a process signs the lease: `<name>_<token>`, which no other process does, nor this one after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    signature: String,
    /// A name that no other living process may have.
    name: Option<String>,
    /// Whether whoever started us has seen the end of the process that had our name before.
    succeeds: bool,
}

impl Identity {
    /// On a host, which several processes may run on.
    #[must_use]
    pub fn of_host(host: &str) -> Self {
        Self { signature: signature(host), name: None, succeeds: false }
    }
    /// With a name that somebody has chosen for this process alone. Whether its predecessor is dead nobody knows.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { signature: signature(name), name: Some(name.to_owned()), succeeds: false }
    }
    /// In a pod, where a container is started again only after its end: a lease under the pod's name is not renewed
    /// any more.
    #[must_use]
    pub fn of_pod(pod: &str) -> Self {
        Self { succeeds: true, ..Self::named(pod) }
    }
    /// As it stands in the lease.
    #[must_use]
    pub fn signature(&self) -> &str {
        &self.signature
    }
    /// Whether the process that had our name before has ended for sure.
    pub(super) fn succeeds(&self) -> bool {
        self.succeeds
    }
    /// Whether the holder is another process under the name that is ours alone.
    pub(super) fn is_namesake(&self, holder: &str) -> bool {
        let name = holder.rsplit_once('_').map(|(name, _)| name);
        self.name.is_some() && self.name.as_deref() == name && holder != self.signature
    }
}

fn signature(name: &str) -> String {
    let random = std::hash::RandomState::new().build_hasher().finish();
    format!("{name}_{random:016x}")
}

/// Another living process signs the lease with our name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "another process uses the identity {name}: it holds the lease {lease} as {holder}; \
     give each replica its own --identity"
)]
pub struct SameIdentity {
    name: String,
    lease: String,
    holder: String,
}

impl SameIdentity {
    pub(super) fn new(identity: &Identity, lease: String, holder: String) -> Self {
        Self { name: identity.name.clone().unwrap_or_default(), lease, holder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shared_and_a_signature_is_not() {
        let (a, b) = (Identity::named("a_1"), Identity::named("a_1"));
        assert_ne!(a.signature(), b.signature());
        assert!(a.is_namesake(b.signature()) && !a.is_namesake(a.signature()));
        for stranger in [Identity::named("a"), Identity::named("a_1_2"), Identity::named("b")] {
            assert!(!a.is_namesake(stranger.signature()), "{stranger:?}");
        }
        assert!(!a.is_namesake("a_1") && !a.is_namesake(""));
        let host = Identity::of_host("a_1");
        assert!(!host.is_namesake(a.signature()) && !host.is_namesake(Identity::of_host("a_1").signature()));
    }
}
