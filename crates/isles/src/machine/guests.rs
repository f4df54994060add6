//! Environment in which the tasks of a place run: its process, or a guest of it, in ring 3 of a virtual machine.
//!
//! The machine `guests` is the machine `processes` but for this: processes are started, joined and watched alike, and
//! messages go through the same shared segment. Without the feature `guests` no place is a guest.

use isles_transport::PlaceId;

/// The variable by which a process learns that its place is a guest, if it is not empty.
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
    /// As the process that started this one has said.
    pub(crate) fn of_this_process() -> PlaceCode {
        match std::env::var_os(GUEST_VARIABLE) {
            Some(value) if !value.is_empty() => PlaceCode::OfGuests,
            _ => PlaceCode::OfProcesses,
        }
    }

    /// Checks that this process can have it, before anything is started; in words.
    ///
    /// # Errors
    /// There is no KVM that makes guests.
    #[cfg(feature = "guests")]
    pub(crate) fn check(self) -> std::result::Result<(), String> {
        match self {
            PlaceCode::OfProcesses => Ok(()),
            PlaceCode::OfGuests => isles_hypervisor::check().map_err(|error| error.to_string()),
        }
    }

    /// Makes the guest of `place`, if it is to be one. It belongs to this thread.
    ///
    /// # Errors
    /// KVM refuses; in words.
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

/// Environment of the tasks of a place: a guest, or none, which is the process.
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
