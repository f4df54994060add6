//! Reasons why a guest cannot be created or its monitor cannot continue.

use rustix::io::Errno;
use std::{fmt, io};

/// Reason why a guest cannot be created.
#[derive(Debug)]
pub enum GuestError {
    /// `/dev/kvm` is absent or cannot be opened.
    NoKvm(io::Error),
    /// The interface of KVM is not version 12, or a capability is missing.
    Unsupported(&'static str),
    /// A system call failed.
    System {
        /// Name of the call.
        call: &'static str,
        /// Error of the call.
        error: io::Error,
    },
    /// This resource is exhausted.
    Exhausted(&'static str),
}

impl GuestError {
    pub(crate) fn of(call: &'static str) -> impl Fn(Errno) -> GuestError {
        move |error| GuestError::System { call, error: error.into() }
    }

    pub(crate) fn of_kvm(call: &'static str) -> impl Fn(kvm_ioctls::Error) -> GuestError {
        move |error| GuestError::System { call, error: io::Error::from_raw_os_error(error.errno()) }
    }
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestError::NoKvm(error) => write!(f, "cannot open /dev/kvm: {error}"),
            GuestError::Unsupported(resource) => write!(f, "KVM lacks {resource}"),
            GuestError::System { call, error } => write!(f, "{call}: {error}"),
            GuestError::Exhausted(resource) => write!(f, "a guest has no more {resource}"),
        }
    }
}

impl std::error::Error for GuestError {}
