//! The loopback keeps the promises.

use super::*;
use crate::conformance;
use crate::loopback::Plan;

conformance!(calm, Seeded { plan: Plan::calm, seeds: 0..1, attach: |endpoint| Box::new(endpoint) });
conformance!(adversarial, Seeded { plan: Plan::adversarial, seeds: 0..12, attach: |endpoint| Box::new(endpoint) });
