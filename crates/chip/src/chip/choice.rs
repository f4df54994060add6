//! What can be chosen of a chip: its setting of the clocks, its power model, its voltages.
//!
//! Each choice gives another chip; nothing is chosen that its file does not have. Invariant: chips that differ have
//! other fingerprints, and a choice of what is there already changes nothing.

use super::Chip;

impl Chip {
    /// A number made of the text of its file and of what was chosen of it: what differs has another one, for all
    /// practical purposes.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// The same chip, with this preset as [`Chip::default_preset`]; none if its file has none of that name.
    pub fn with_preset(mut self, name: &str) -> Option<Chip> {
        let chosen = self.presets.iter().position(|preset| preset.name == name)?;
        if chosen != self.default_preset {
            self.default_preset = chosen;
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// The same chip, with this power model as the first, by which energy and caps are reckoned; none if its file has
    /// none of that name.
    pub fn with_power_model(mut self, name: &str) -> Option<Chip> {
        let chosen = self.power.iter().position(|model| model.name == name)?;
        if chosen > 0 {
            self.power[..=chosen].rotate_right(1);
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// The same chip, whose power models all reckon with this voltage table instead of the one that each was fitted
    /// with; none if its file has none of that name.
    pub fn with_voltages(mut self, name: &str) -> Option<Chip> {
        self.voltage_table(name)?;
        if self.power.iter().any(|model| model.voltages != name) {
            self.power.iter_mut().for_each(|model| name.clone_into(&mut model.voltages));
            self.chosen_voltages = Some(name.to_owned());
            self.fingerprint = digest(self.fingerprint, name);
        }
        Some(self)
    }

    /// The voltage table that was chosen for all power models, if that changed one of them.
    pub fn chosen_voltages(&self) -> Option<&str> {
        self.chosen_voltages.as_deref()
    }
}

/// FNV-1a with 128 bits, from `start` on.
pub(crate) fn digest(start: u128, text: &str) -> u128 {
    let prime = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    text.bytes().fold(start, |hash: u128, byte| (hash ^ u128::from(byte)).wrapping_mul(prime))
}
