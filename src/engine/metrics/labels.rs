//! The labels whose values are known beforehand.

/// An enum whose values are the values of a label.
macro_rules! label_values {
    ($(#[$of_enum:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$of_enum])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$of_value])* $value,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];
            /// As it stands in the label.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

label_values! {
    /// The watched kinds.
    Kind {
        DrainPlan = "DrainPlan",
        Node = "Node",
        Namespace = "Namespace",
        Pod = "Pod",
        PodDisruptionBudget = "PodDisruptionBudget",
        ReplicationController = "ReplicationController",
        ReplicaSet = "ReplicaSet",
        Deployment = "Deployment",
        StatefulSet = "StatefulSet",
        DaemonSet = "DaemonSet",
        Job = "Job",
        PersistentVolume = "PersistentVolume",
        VolumeAttachment = "VolumeAttachment",
    }
}

label_values! {
    /// What the answer to an eviction request amounts to: the reason that its pod waits for, or why there was none.
    EvictionCause {
        /// Accepted.
        None = "none",
        /// The budget allows nothing now.
        BudgetExhausted = "BudgetExhausted",
        /// "Still being processed": the budget's controller is behind, or cannot compute it.
        BudgetStale = "BudgetStale",
        /// 403 with the cause DisruptionBudget.
        BudgetRefused = "BudgetRefused",
        /// Several budgets select the pod.
        MultipleBudgets = "MultipleBudgets",
        /// The namespace is being deleted.
        NamespaceTerminating = "NamespaceTerminating",
        /// A webhook or a policy denied it, with whatever code.
        AdmissionDenied = "AdmissionDenied",
        /// A webhook could not be asked.
        AdmissionUnavailable = "AdmissionUnavailable",
        /// 403 without a cause: the right is missing.
        Forbidden = "Forbidden",
        /// 429 without a budget's cause, or a budget that changed too often for the server.
        ApiThrottled = "ApiThrottled",
        /// The pod was gone, going or another one by then.
        PodGone = "PodGone",
        /// 409: the pod changed between the look at it and the request.
        PodChanged = "PodChanged",
        /// Any other answer.
        ServerError = "ServerError",
        /// This replica may not act any more, or had no turn in time.
        NotSent = "NotSent",
        /// The connection failed, or no answer came in time: it may have been carried out.
        NoAnswer = "NoAnswer",
    }
}

label_values! {
    /// What became of a write.
    WriteResult {
        Ok = "ok",
        /// 409: the object had changed, or existed already.
        Conflict = "conflict",
        Failed = "failed",
        /// No answer in time; it may have been done.
        Timeout = "timeout",
    }
}

label_values! {
    /// What became of an Event.
    EventResult {
        Published = "published",
        Failed = "failed",
        /// The queue was full.
        Dropped = "dropped",
    }
}

impl EvictionCause {
    /// The code that most often comes with it; admission and errors may have others.
    #[must_use]
    pub fn usual_code(self) -> &'static str {
        match self {
            Self::None => "201",
            Self::BudgetExhausted | Self::BudgetStale | Self::ApiThrottled => "429",
            Self::BudgetRefused | Self::NamespaceTerminating | Self::Forbidden => "403",
            Self::MultipleBudgets | Self::AdmissionUnavailable | Self::ServerError => "500",
            Self::AdmissionDenied => "422",
            Self::PodGone => "404",
            Self::PodChanged => "409",
            Self::NotSent | Self::NoAnswer => "error",
        }
    }
}
