//! The errors of places that died, with the cause as far as the entered place knows it.

use super::Local;
use crate::error::{Error, ErrorKind};
use isles_protocol::PlaceId;
use isles_transport::Death;
use std::panic::Location;

impl Error {
    /// Returns the error of a place that died.
    pub fn dead(place: PlaceId) -> Self {
        let death = Local::try_with(|local| local.endpoint().death(place)).flatten();
        Error::new(ErrorKind::DeadPlace(place), death.unwrap_or(Death::Ended).to_string())
    }

    /// Returns the error of a place that died with tasks of the finish that the program called at `site`.
    pub(crate) fn dead_in(place: PlaceId, site: Option<&Location<'_>>) -> Self {
        match site {
            Some(site) => Error::dead(place).with(|| format!("the finish at {site} had tasks there")),
            None => Error::dead(place),
        }
    }
}
