//! Why a pod waits.
