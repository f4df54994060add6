//! The model of a hub: lists that are searched from end to end, instead of a sorted waiting list.

use super::*;
use crate::hub::node::LogEntry;

/// A hub as a plain list of waiting requests, and its state.
#[derive(Debug)]
pub(super) struct ListModel {
    kind: HubKind,
    /// Requests that wait, in order of arrival.
    waiting: Vec<ServiceRequest>,
    owner: Option<u32>,
    is_pending: bool,
    /// Stored data: the packets of a FIFO, the value of a data event, the text of a black board.
    kept: Vec<Vec<u8>>,
    /// The count of a semaphore, the bit of an event, the number of a black board's writes.
    count: u64,
    /// The allocated blocks with their owners, and the free ones.
    given: Vec<(u32, u32)>,
    free: Vec<u32>,
}

/// Outcome of a request of the model: its identity, its status, and the data it receives.
pub(super) type Outcome = (RequestId, Status, Vec<u8>);

impl ListModel {
    pub(super) fn new(kind: HubKind) -> ListModel {
        let blocks = match kind {
            HubKind::MemoryPool { blocks, .. } | HubKind::PacketPool { packets: blocks } => blocks,
            _ => 0,
        };
        let count = if let HubKind::Semaphore { count } = kind { u64::from(count) } else { 0 };
        ListModel {
            kind,
            waiting: Vec::new(),
            owner: None,
            is_pending: false,
            kept: Vec::new(),
            count,
            given: Vec::new(),
            free: (0..blocks).rev().collect(),
        }
    }

    /// Replays one step of the log; returns its outcomes.
    pub(super) fn step(&mut self, step: &LogEntry, hub_place: PlaceId) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        match step {
            LogEntry::Served(PacketBody::Request(request)) => self.request(request, hub_place, &mut outcomes),
            LogEntry::Served(PacketBody::Withdraw { id, .. }) => {
                if let Some(at) = self.waiting.iter().position(|request| request.id == *id) {
                    self.waiting.remove(at);
                    outcomes.push((*id, Status::TimedOut, Vec::new()));
                }
            }
            LogEntry::Served(PacketBody::ChangeRequest { id, priority, .. }) => {
                let found = self.waiting.iter_mut().find(|request| request.id == *id);
                found.into_iter().for_each(|request| request.priority = *priority);
            }
            LogEntry::Rescheduled(_) => {
                self.is_pending = false;
                self.serve_waiting(&mut outcomes);
            }
            LogEntry::Ended(_, task) => self.end(task.0),
            LogEntry::Served(_) | LogEntry::Replied(_) => {}
        }
        outcomes
    }

    fn is_deferring(&self) -> bool {
        matches!(self.kind, HubKind::Resource { .. } | HubKind::MemoryPool { .. })
    }

    fn is_pool(&self) -> bool {
        matches!(self.kind, HubKind::PacketPool { .. } | HubKind::MemoryPool { .. })
    }

    fn end(&mut self, task: u32) {
        self.waiting.retain(|request| request.task.0 != task);
        let mut released = self.owner == Some(task);
        if released {
            self.owner = None;
        }
        let mut back: Vec<u32> =
            self.given.iter().filter(|(_, owner)| *owner == task).map(|(block, _)| *block).collect();
        back.sort_unstable();
        self.given.retain(|(_, owner)| *owner != task);
        released |= !back.is_empty();
        self.free.extend(back);
        self.is_pending |= released && !self.waiting.is_empty();
    }

    fn request(&mut self, request: &ServiceRequest, hub_place: PlaceId, outcomes: &mut Vec<Outcome>) {
        if self.is_pool() && request.id.place != hub_place {
            outcomes.push((request.id, Status::NotLocal, Vec::new()));
            return;
        }
        if let Some(status) = self.refusal(request) {
            outcomes.push((request.id, status, Vec::new()));
            return;
        }
        let others = self.waiting.iter().any(|waiting| waiting.operation == request.operation);
        if self.is_possible(request) && !(self.is_pending && others) {
            self.apply(request, outcomes);
            if self.is_deferring() {
                self.is_pending = !self.waiting.is_empty();
            } else {
                self.serve_waiting(outcomes);
            }
        } else if request.expired {
            outcomes.push((request.id, Status::TimedOut, Vec::new()));
        } else if request.waits {
            self.waiting.push(request.clone());
        } else {
            outcomes.push((request.id, Status::Failed, Vec::new()));
        }
    }

    fn refusal(&self, request: &ServiceRequest) -> Option<Status> {
        let task = request.task.0;
        let number = request.payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        match (&self.kind, request.operation) {
            (HubKind::Semaphore { .. }, HubOperation::Put) if self.count == 65_535 => Some(Status::Overflow),
            (HubKind::Resource { .. }, HubOperation::Put) if self.owner != Some(task) => {
                Some(Status::NotOwner)
            }
            (HubKind::Resource { .. }, HubOperation::Get) if self.owner == Some(task) => {
                Some(Status::AlreadyOwned)
            }
            (HubKind::Resource { ceiling }, HubOperation::Get) if request.base < *ceiling => {
                Some(Status::CeilingViolated)
            }
            (HubKind::MemoryPool { block_bytes, .. }, HubOperation::Get) if number > Some(*block_bytes) => {
                Some(Status::TooLong)
            }
            (HubKind::MemoryPool { .. } | HubKind::PacketPool { .. }, HubOperation::Put) => {
                let all = self.given.iter().find(|(block, _)| Some(*block) == number);
                let blocks = self.given.len() + self.free.len();
                match all {
                    _ if number.is_none_or(|number| number as usize >= blocks) => Some(Status::Invalid),
                    Some((_, owner)) if self.is_deferring() && *owner != task => Some(Status::NotOwner),
                    Some(_) => None,
                    None => Some(Status::NotOwner),
                }
            }
            _ => None,
        }
    }

    fn is_possible(&self, request: &ServiceRequest) -> bool {
        let puts = request.operation == HubOperation::Put;
        match &self.kind {
            HubKind::Port => self.waiting.iter().any(|other| other.operation != request.operation),
            HubKind::Event => (self.count == 1) != puts,
            HubKind::Semaphore { .. } => puts || self.count > 0,
            HubKind::Resource { .. } => puts || self.owner.is_none(),
            HubKind::Fifo { capacity } if puts => self.kept.len() < *capacity as usize,
            HubKind::Fifo { .. } => !self.kept.is_empty(),
            HubKind::MemoryPool { .. } | HubKind::PacketPool { .. } => puts || !self.free.is_empty(),
            HubKind::DataEvent => puts || !self.kept.is_empty(),
            HubKind::BlackBoard => puts || self.kept.iter().any(|text| !text.is_empty()),
        }
    }

    fn apply(&mut self, request: &ServiceRequest, outcomes: &mut Vec<Outcome>) {
        let mut got = Vec::new();
        let puts = request.operation == HubOperation::Put;
        match &self.kind {
            HubKind::Port => return self.meet(request, outcomes),
            HubKind::Event => self.count = u64::from(puts),
            HubKind::Semaphore { .. } if puts => self.count += 1,
            HubKind::Semaphore { .. } => self.count -= 1,
            HubKind::Resource { .. } => self.owner = (!puts).then_some(request.task.0),
            HubKind::Fifo { .. } if puts => self.kept.push(request.payload.clone()),
            HubKind::Fifo { .. } => got = self.kept.remove(0),
            HubKind::MemoryPool { .. } | HubKind::PacketPool { .. } if puts => {
                let block = u32::from_le_bytes(request.payload[..4].try_into().expect("four bytes"));
                self.given.retain(|(given, _)| *given != block);
                self.free.push(block);
            }
            HubKind::MemoryPool { .. } | HubKind::PacketPool { .. } => {
                let block = self.free.pop().expect("one is free");
                self.given.push((block, request.task.0));
                got = block.to_le_bytes().to_vec();
            }
            HubKind::DataEvent if puts => self.kept = vec![request.payload.clone()],
            HubKind::DataEvent => got = self.kept.remove(0),
            HubKind::BlackBoard if puts => {
                self.kept = vec![request.payload.clone()];
                self.count += 1;
            }
            HubKind::BlackBoard => got = [&self.count.to_le_bytes()[..], &self.kept[0]].concat(),
        }
        outcomes.push((request.id, Status::Done, got));
    }

    fn meet(&mut self, request: &ServiceRequest, outcomes: &mut Vec<Outcome>) {
        let partner = self.most_urgent(|other| other.operation != request.operation).expect("one waits");
        let partner = self.waiting.remove(partner);
        let data = if request.operation == HubOperation::Put { &request.payload } else { &partner.payload };
        for side in [request, &partner] {
            let got = if side.operation == HubOperation::Get { data.clone() } else { Vec::new() };
            outcomes.push((side.id, Status::Done, got));
        }
    }

    /// Returns the first of the most urgent of the wanted requests.
    fn most_urgent(&self, wanted: impl Fn(&ServiceRequest) -> bool) -> Option<usize> {
        let all = self.waiting.iter().enumerate().filter(|(_, request)| wanted(request));
        all.min_by_key(|(at, request)| (request.priority, *at)).map(|(at, _)| at)
    }

    fn serve_waiting(&mut self, outcomes: &mut Vec<Outcome>) {
        let is_over = |request: &ServiceRequest| self.is_possible(request) || self.refusal(request).is_some();
        if matches!(self.kind, HubKind::Port) {
            return;
        }
        if let Some(at) = self.most_urgent(is_over) {
            let request = self.waiting.remove(at);
            match self.refusal(&request) {
                Some(status) => outcomes.push((request.id, status, Vec::new())),
                None => self.apply(&request, outcomes),
            }
            self.serve_waiting(outcomes);
        }
    }

    /// Checks the waiting requests once the kernel has scheduled.
    pub(super) fn check_idle(&self) {
        let waits = |operation| self.waiting.iter().any(|request| request.operation == operation);
        let (puts, gets) = (waits(HubOperation::Put), waits(HubOperation::Get));
        assert!(!(puts && gets), "both sides wait: {self:?}");
        assert!(!self.waiting.iter().any(|request| self.is_possible(request)), "{self:?}");
        if matches!(self.kind, HubKind::Semaphore { .. } | HubKind::DataEvent | HubKind::BlackBoard) {
            assert!(!puts, "{self:?}");
        }
    }
}
