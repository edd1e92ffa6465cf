//! Volumes and the nodes that they are attached to.

use std::collections::{BTreeMap, HashMap};

use super::{PodKey, Text};

/// A volume is attached to a node, or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VolumeAttachment {
    pub name: Text,
    pub uid: Text,
    pub node: Text,
    /// The PersistentVolume; `None` when the volume is described in place.
    pub volume: Option<Text>,
    /// The driver has confirmed it, and has not confirmed the contrary yet.
    pub attached: bool,
}

/// A PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistentVolume {
    pub name: Text,
    pub uid: Text,
    /// Namespace and name of the claim that it is bound to.
    pub claim: Option<PodKey>,
}

/// All attachments, and whose volumes they are about.
#[derive(Debug, Clone, Default)]
pub struct Volumes {
    /// By the node, then by name.
    attachments: HashMap<Text, BTreeMap<Text, VolumeAttachment>>,
    /// The node of each attachment, by name.
    nodes: HashMap<Text, Text>,
    /// By name.
    persistent: HashMap<Text, PersistentVolume>,
}

impl Volumes {
    /// Adds or replaces an attachment; false when that changes nothing.
    pub fn attach(&mut self, attachment: VolumeAttachment) -> bool {
        if self.attachment(&attachment.name) == Some(&attachment) {
            return false;
        }
        self.detach(&attachment.name);
        self.nodes.insert(attachment.name.clone(), attachment.node.clone());
        let of_node = self.attachments.entry(attachment.node.clone()).or_default();
        of_node.insert(attachment.name.clone(), attachment);
        true
    }
    /// Forgets an attachment.
    pub fn detach(&mut self, name: &str) {
        let Some(node) = self.nodes.remove(name) else { return };
        if let Some(of_node) = self.attachments.get_mut(&node) {
            of_node.remove(name);
            if of_node.is_empty() {
                self.attachments.remove(&node);
            }
        }
    }
    /// Forgets the attachments that are not to stay.
    pub fn retain_attachments(&mut self, stays: impl Fn(&Text) -> bool) {
        let gone: Vec<Text> = self.nodes.keys().filter(|name| !stays(name)).cloned().collect();
        for name in gone {
            self.detach(&name);
        }
    }
    /// Adds or replaces a volume; false when that changes nothing.
    pub fn add(&mut self, volume: PersistentVolume) -> bool {
        let changed = self.persistent.get(&volume.name) != Some(&volume);
        self.persistent.insert(volume.name.clone(), volume);
        changed
    }
    /// Forgets a volume.
    pub fn remove(&mut self, name: &str) {
        self.persistent.remove(name);
    }
    /// Forgets the volumes that are not to stay.
    pub fn retain(&mut self, stays: impl Fn(&Text) -> bool) {
        self.persistent.retain(|name, _| stays(name));
    }

    /// The attachment of that name.
    #[must_use]
    pub fn attachment(&self, name: &str) -> Option<&VolumeAttachment> {
        self.attachments.get(self.nodes.get(name)?)?.get(name)
    }
    /// All attachments, in no order of nodes.
    pub fn attachments(&self) -> impl Iterator<Item = &VolumeAttachment> {
        self.attachments.values().flat_map(BTreeMap::values)
    }
    /// The attachments to a node, by name.
    pub fn attached_to(&self, node: &str) -> impl Iterator<Item = &VolumeAttachment> {
        self.attachments.get(node).into_iter().flat_map(BTreeMap::values).filter(|of| of.attached)
    }
    /// Namespace and name of the claim that a volume is bound to.
    #[must_use]
    pub fn claim_of(&self, volume: &str) -> Option<&PodKey> {
        self.persistent.get(volume)?.claim.as_ref()
    }
}
