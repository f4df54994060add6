//! The waiting list of a hub: by priority, then by arrival.

use super::message::{HubOperation, RequestId, ServiceRequest};

/// Waiting requests, the most urgent first, in order of arrival within one priority.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingList {
    /// Requests, each with the number of its arrival.
    entries: Vec<(u64, ServiceRequest)>,
    arrivals: u64,
}

impl WaitingList {
    /// Adds a request behind those of its priority.
    pub(super) fn insert(&mut self, request: ServiceRequest) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.place(arrival, request);
    }

    fn place(&mut self, arrival: u64, request: ServiceRequest) {
        let before = |(other, waiting): &(u64, ServiceRequest)| {
            (waiting.priority, *other) < (request.priority, arrival)
        };
        let at = self.entries.partition_point(before);
        self.entries.insert(at, (arrival, request));
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn first(&self) -> Option<&ServiceRequest> {
        self.entries.first().map(|(_, request)| request)
    }

    /// Returns the position of the first request of this operation.
    pub(super) fn position_of(&self, operation: HubOperation) -> Option<usize> {
        self.entries.iter().position(|(_, request)| request.operation == operation)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ServiceRequest> {
        self.entries.iter().map(|(_, request)| request)
    }

    pub(super) fn get(&self, position: usize) -> &ServiceRequest {
        &self.entries[position].1
    }

    pub(super) fn take(&mut self, position: usize) -> ServiceRequest {
        self.entries.remove(position).1
    }

    fn find(&self, id: RequestId) -> Option<usize> {
        self.entries.iter().position(|(_, request)| request.id == id)
    }

    /// Removes a request and returns it, if it waits.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<ServiceRequest> {
        self.find(id).map(|position| self.take(position))
    }

    /// Removes all requests for which `wanted` holds.
    pub(super) fn remove_all(&mut self, wanted: impl Fn(&ServiceRequest) -> bool) {
        self.entries.retain(|(_, request)| !wanted(request));
    }

    /// Changes the priority of a waiting request; its arrival stays. Returns whether it waits.
    pub(super) fn change_priority(&mut self, id: RequestId, priority: u8) -> bool {
        let Some(position) = self.find(id) else { return false };
        let (arrival, mut request) = self.entries.remove(position);
        request.priority = priority;
        self.place(arrival, request);
        true
    }
}
