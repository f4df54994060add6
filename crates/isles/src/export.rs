//! What a run is to write: the names of it, where each goes, and whether it can be written there.
//!
//! Only modelled chips write; how, is with them. Invariant: the check leaves everything as it was.

use crate::claim::Claim;
use crate::destination::Destination;
use crate::environment::{ConfigError, Machine};
use crate::launch::Launch;

/// One thing that can be written of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Export {
    Summary,
    Links,
    Traffic,
    Heat,
    Trace,
    Folded,
    Joules,
    Tape,
}

/// All of them, with the variable that says where each goes.
pub(crate) const EXPORTS: [(Export, &str); 8] = [
    (Export::Summary, "ISLES_CHIP_SUMMARY"),
    (Export::Links, "ISLES_CHIP_LINKS"),
    (Export::Traffic, "ISLES_CHIP_TRAFFIC"),
    (Export::Heat, "ISLES_CHIP_HEAT"),
    (Export::Trace, "ISLES_CHIP_TRACE"),
    (Export::Folded, "ISLES_CHIP_FOLDED"),
    (Export::Joules, "ISLES_CHIP_JOULES"),
    (Export::Tape, "ISLES_CHIP_TAPE"),
];

/// Something that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExportRequest {
    pub(crate) export: Export,
    /// The variable or the flag that said so.
    pub(crate) source: String,
    /// The file, or `-`.
    pub(crate) path: String,
}

impl ExportRequest {
    pub(crate) fn refusal(&self, allowed: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.source, &self.path, allowed)
    }

    pub(crate) fn destination(&self) -> Destination {
        Destination::at(&self.path)
    }

    fn check(&self, claims: &[Claim]) -> Result<(), ConfigError> {
        let binary = matches!(self.export, Export::Trace | Export::Tape);
        let destination = self.destination();
        // A program's own words would stand in the middle of it.
        if binary && destination.is_standard() {
            return Err(self.refusal("a file; not -, it is binary"));
        }
        if let Some(allowed) = claims.iter().find_map(|claim| claim.refusal(&destination)) {
            return Err(self.refusal(allowed));
        }
        let standard = if binary { "" } else { "- or " };
        let allowed = |cause| format!("{standard}a file that can be written ({cause})");
        destination.try_out().map_err(|cause| self.refusal(allowed(cause)))
    }
}

/// Checks that all that `launch` is to write can be written, of a run on `machine`, apart from each other and from what
/// is read.
pub(crate) fn check(launch: &Launch, machine: Machine) -> Result<(), ConfigError> {
    let mut claims = launch.read_on(machine);
    for one in &launch.exports {
        let Machine::Chip(chip) = machine else {
            return Err(one.refusal(format!("nothing with the machine {machine}, which is no modelled chip")));
        };
        chip.check_export(launch, one)?;
        one.check(&claims)?;
        claims.push(Claim::written(&one.destination(), &one.source));
    }
    Ok(())
}
