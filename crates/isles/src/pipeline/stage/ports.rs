//! Ports, which hold values between two stages: type-erased cells whose types the stages at both ends know.
//!
//! Each group has ports of its own. Invariant: a port is written by one stage and read by one later stage, once for
//! each item.

use crate::{Error, ErrorKind, Result};
use isles_runtime::capture::CanSend;
use isles_runtime::wire::{from_bytes, to_bytes};
use std::any::Any;

/// A type-erased port.
pub(in crate::pipeline) trait AnyPort: Any {
    /// Takes the value as bytes, for another place.
    fn take_bytes(&mut self) -> Result<Vec<u8>>;

    /// Puts in a value that [`AnyPort::take_bytes`] returned.
    fn put_bytes(&mut self, bytes: &[u8]) -> Result<()>;
}

/// A port of values of type `T`.
pub(in crate::pipeline) struct Port<T>(Option<T>);

impl<T: CanSend> AnyPort for Port<T> {
    fn take_bytes(&mut self) -> Result<Vec<u8>> {
        to_bytes(&self.0.take().expect("a value is here when it is taken"))
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let value =
            from_bytes(bytes).map_err(|fault| Error::new(ErrorKind::Undecodable, fault.to_string()))?;
        self.0 = Some(value);
        Ok(())
    }
}

/// Description of a port of a pipeline.
#[derive(Clone, Copy)]
pub(in crate::pipeline) struct PortPlan {
    make: fn() -> Box<dyn AnyPort>,
    /// One past the stage that writes it.
    written_before: usize,
    /// The stage that reads it; for the result of the pipeline, the number of stages.
    pub(in crate::pipeline) read_by: usize,
}

impl PortPlan {
    /// Describes a port of `T` written by the stage before `written_before`, without a reader yet.
    pub(in crate::pipeline) fn of<T: CanSend>(written_before: usize) -> PortPlan {
        PortPlan { make: || Box::new(Port::<T>(None)), written_before, read_by: usize::MAX }
    }

    /// Returns `true` if the port holds a value between the stages `cut - 1` and `cut`.
    fn is_live_at(&self, cut: usize) -> bool {
        self.written_before <= cut && cut <= self.read_by
    }
}

/// Returns the ports whose values pass from one group to the next between the stages `cut - 1` and `cut`.
pub(in crate::pipeline) fn live_at(plans: &[PortPlan], cut: usize) -> Vec<usize> {
    (0..plans.len()).filter(|port| plans[*port].is_live_at(cut)).collect()
}

/// The values of some ports in transit to another group: moved within a place, encoded between places.
pub(in crate::pipeline) enum PortValues {
    /// The ports themselves.
    Here(Vec<Box<dyn AnyPort>>),
    /// The value of each port as bytes.
    Bytes(Vec<Vec<u8>>),
}

/// The ports of one group.
pub(in crate::pipeline) struct Ports {
    makes: Vec<fn() -> Box<dyn AnyPort>>,
    ports: Vec<Box<dyn AnyPort>>,
}

impl Ports {
    pub(in crate::pipeline) fn new(plans: &[PortPlan]) -> Ports {
        let makes: Vec<_> = plans.iter().map(|plan| plan.make).collect();
        let ports = makes.iter().map(|make| make()).collect();
        Ports { makes, ports }
    }

    /// Takes the value of a port, which an earlier stage has put.
    pub(in crate::pipeline) fn take<T: 'static>(&mut self, port: usize) -> T {
        self.port(port).take().expect("the stage before has put a value")
    }

    /// Puts a value into a port.
    pub(in crate::pipeline) fn put<T: 'static>(&mut self, port: usize, value: T) {
        *self.port(port) = Some(value);
    }

    fn port<T: 'static>(&mut self, port: usize) -> &mut Option<T> {
        let port: &mut dyn Any = &mut *self.ports[port];
        &mut port.downcast_mut::<Port<T>>().expect("the builder has made the port with this type").0
    }

    /// Takes the values of the ports `live`, for a group at this or another place.
    pub(in crate::pipeline) fn unload(&mut self, live: &[usize], stays_here: bool) -> Result<PortValues> {
        if stays_here {
            let take = |port: &usize| std::mem::replace(&mut self.ports[*port], (self.makes[*port])());
            return Ok(PortValues::Here(live.iter().map(take).collect()));
        }
        live.iter().map(|port| self.ports[*port].take_bytes()).collect::<Result<_>>().map(PortValues::Bytes)
    }

    /// Puts values into the ports `live`.
    pub(in crate::pipeline) fn load(&mut self, live: &[usize], payload: PortValues) -> Result<()> {
        match payload {
            PortValues::Here(ports) => {
                live.iter().zip(ports).for_each(|(port, full)| self.ports[*port] = full)
            }
            PortValues::Bytes(values) => {
                for (port, bytes) in live.iter().zip(&values) {
                    self.ports[*port].put_bytes(bytes)?;
                }
            }
        }
        Ok(())
    }
}

impl PortValues {
    /// Makes the values of an item that enters the pipeline.
    pub(in crate::pipeline) fn of<T: CanSend>(value: T, stays_here: bool) -> Result<PortValues> {
        if stays_here {
            return Ok(PortValues::Here(vec![Box::new(Port(Some(value)))]));
        }
        Ok(PortValues::Bytes(vec![to_bytes(&value)?]))
    }

    /// Returns the only value, the result of the pipeline.
    pub(in crate::pipeline) fn into_value<T: CanSend>(self) -> Result<T> {
        let mut port = Port::<T>(None);
        match self {
            PortValues::Bytes(values) => port.put_bytes(values.first().map_or(&[], Vec::as_slice))?,
            PortValues::Here(mut ports) => {
                let full: &mut dyn Any = &mut **ports.first_mut().expect("a payload has a value");
                port.0 = full.downcast_mut::<Port<T>>().and_then(|full| full.0.take());
            }
        }
        Ok(port.0.expect("the last stage has put a value"))
    }
}
