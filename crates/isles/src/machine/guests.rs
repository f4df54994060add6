//! Environment in which the tasks of a place run: its process, or a guest of it, in ring 3 of a virtual machine.
//!
//! This is the only difference between the machines `guests` and `processes`: both start, join and watch processes
//! alike, and send messages through the same shared segment. Without the feature `guests` no place is a guest.

use isles_transport::PlaceId;

/// Variable that is not empty in a process whose place is a guest.
pub(crate) const GUEST_VARIABLE: &str = "ISLES_JOIN_GUEST";

/// Environment in which the tasks of a place run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceCode {
    /// In the process.
    OfProcesses,
    /// In a guest of the process.
    OfGuests,
}

impl PlaceCode {
    /// Returns the environment chosen by the process that started this one.
    pub(crate) fn of_this_process() -> PlaceCode {
        match std::env::var_os(GUEST_VARIABLE) {
            Some(value) if !value.is_empty() => PlaceCode::OfGuests,
            _ => PlaceCode::OfProcesses,
        }
    }

    /// Checks, before anything is started, that this process supports it.
    ///
    /// # Errors
    /// The text of the error, if KVM is not usable.
    #[cfg(feature = "guests")]
    pub(crate) fn check(self) -> std::result::Result<(), String> {
        match self {
            PlaceCode::OfProcesses => Ok(()),
            PlaceCode::OfGuests => isles_hypervisor::check().map_err(|error| error.to_string()),
        }
    }

    /// Creates the guest of `place`, if it runs in one. The guest belongs to this thread.
    ///
    /// # Errors
    /// The text of the error, if KVM refuses.
    pub(crate) fn prepare(self, place: PlaceId) -> std::result::Result<TaskSpace, String> {
        #[cfg(feature = "guests")]
        {
            let guest =
                (self == PlaceCode::OfGuests).then(|| isles_hypervisor::Guest::new(&place.to_string()));
            Ok(TaskSpace { guest: guest.transpose().map_err(|error| error.to_string())? })
        }
        #[cfg(not(feature = "guests"))]
        {
            let _ = place;
            Ok(TaskSpace {})
        }
    }
}

/// Environment of the tasks of a place: a guest, or the process itself.
pub(crate) struct TaskSpace {
    #[cfg(feature = "guests")]
    guest: Option<isles_hypervisor::Guest>,
}

impl TaskSpace {
    /// Calls `body`, in the guest if there is one. A guest that fails ends the process, as a signal would.
    pub(crate) fn run<R>(&mut self, body: impl FnOnce() -> R) -> R {
        #[cfg(feature = "guests")]
        if let Some(guest) = &mut self.guest {
            return guest.run(|_| body());
        }
        body()
    }
}
