//! Objects that are not read and look like some that are: of another version, or with a kind or group that is mistyped.

use crate::cluster::ObjectKind;

/// Why an object of this apiVersion and kind, which is not read, may be meant as one that is; `None` for what is
/// certainly something else.
pub(super) fn alike(api_version: &str, kind: &str, holds_items: bool) -> Option<String> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if group.contains('.') && !group.ends_with(".k8s.io") {
        return None; // Whoever has a group of their own may have a Job of their own.
    }
    let Some(known) = ObjectKind::ALL.into_iter().find(|known| near(kind, *known)) else {
        return holds_items.then(|| format!("it holds items, and {kind} is no List; correct its kind"));
    };
    let name = known.name();
    let read = if known.group().is_empty() { "v1".to_owned() } else { format!("{}/v1", known.group()) };
    Some(if kind == name {
        format!(
            "a {name} is read as {read}, and this one says {api_version}; write it anew with kubectl get -o yaml, or \
             correct its apiVersion"
        )
    } else {
        format!("its kind is {kind}, and {name} of {read} is what is read; correct its kind if that is meant")
    })
}

/// The same but for case, its plural or short name, or one or two letters.
fn near(kind: &str, known: ObjectKind) -> bool {
    let kind = kind.trim().to_lowercase();
    let name = known.name().to_lowercase();
    let short = (known == ObjectKind::PodDisruptionBudget).then_some("pdb");
    let most = if name.len() > 4 { 2 } else { 1 };
    kind == known.plural()
        || Some(kind.as_str()) == short
        || (kind.chars().count().abs_diff(name.len()) <= most && distance(&kind, &name) <= most)
}

/// How many letters must be put in, left out or exchanged to make one of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (number, from) in a.chars().enumerate() {
        let mut next = vec![number + 1];
        let mut left = number + 1;
        for ((to, pair), above) in b.iter().zip(row.windows(2)).map(|(to, pair)| ((to, pair), pair.last())) {
            let exchanged = pair.first().map_or(usize::MAX, |corner| corner + usize::from(from != *to));
            left = exchanged.min(left + 1).min(above.map_or(usize::MAX, |above| above + 1));
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_something_that_is_read() {
        for (api_version, kind) in [
            ("policy/v1beta1", "PodDisruptionBudget"),
            ("policy.k8s.io/v1", "PodDisruptionBudget"),
            ("policy/v1", "PodDisruptionBudgets"),
            ("policy/v1", "PodDistuptionBudget"),
            ("policy/v1", "PDB"),
            ("v1", "pod"),
            ("v1", "Pods"),
            ("apps/v1", "Pod"),
            ("extensions/v1beta1", "Deployment"),
            ("apps/v1beta2", "StatefulSet"),
            ("v1", "Statefulset"),
            ("batch/v1", "Jobs"),
        ] {
            assert!(alike(api_version, kind, false).is_some(), "{api_version} {kind}");
        }
        // All that a server of today serves without further ado, and some that others add.
        let of_core = "Binding ComponentStatus ConfigMap Endpoints Event LimitRange PersistentVolumeClaim PodTemplate \
                       ResourceQuota Secret Service ServiceAccount";
        let others = "ControllerRevision CronJob CSIDriver CSINode CSIStorageCapacity StorageClass Eviction Lease \
                      VolumeAttributesClass PodMetrics NodeMetrics Ingress Role RoleBinding ClusterRole";
        for kind in of_core.split_whitespace().chain(others.split_whitespace()) {
            for api_version in ["v1", "apps/v1", "batch/v1", "storage.k8s.io/v1", "metrics.k8s.io/v1beta1"] {
                assert_eq!(alike(api_version, kind, false), None, "{api_version} {kind}");
            }
        }
        assert_eq!(alike("batch.volcano.sh/v1alpha1", "Job", false), None);
        assert_eq!(alike("apps.kruise.io/v1beta1", "StatefulSet", false), None);
        assert!(alike("v1", "list", true).is_some());
    }

    #[test]
    fn letters_are_counted() {
        let counted = |a, b| distance(a, b);
        assert_eq!([counted("pod", "pod"), counted("pods", "pod"), counted("", "pod")], [0, 1, 3]);
        assert_eq!([counted("node", "mode"), counted("job", "cronjob"), counted("dpo", "pod")], [1, 4, 2]);
    }
}
