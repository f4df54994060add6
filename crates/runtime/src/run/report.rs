//! Reports of a place, sent to the first place at the end of the run or when nothing happens any more.

use super::region::MeasuredRegion;
use crate::call::site::SiteCount;
use crate::error::{Error, ErrorKind, named};
use crate::finish::Scope;
use crate::local::Local;
use crate::message::{Handler, Refused};
use crate::service::Inquiry;
use crate::time::earlier;
use crate::wire::Reader;
use isles_protocol::PlaceId;
use isles_protocol::finish::{Explanation, Waiting};
use isles_protocol::ordered::{OrderedMap, OrderedSet};
use isles_telemetry::{COUNTERS, CounterGroup, CounterId, CounterInfo, CounterValues};
use isles_transport::{Class, notice};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

/// Running totals of one place: a cell for each counter.
pub(crate) struct Totals([Cell<u64>; COUNTERS.len()]);

impl Default for Totals {
    fn default() -> Self {
        Totals([const { Cell::new(0) }; COUNTERS.len()])
    }
}

impl Totals {
    /// Adds `more` to a counter that only grows.
    #[inline]
    pub(crate) fn add(&self, counter: CounterId, more: u64) {
        let cell = &self.0[counter as usize];
        cell.set(cell.get() + more);
    }

    /// Returns what `counter` has counted.
    pub(crate) fn count(&self, counter: CounterId) -> u64 {
        self.0[counter as usize].get()
    }

    #[inline]
    pub(crate) fn sent(&self, class: Class, bytes: usize) {
        self.add(CounterId::MessagesSent, 1);
        self.add(CounterId::BytesSent, bytes as u64);
        if class == Class::Control {
            self.add(CounterId::ControlMessages, 1);
            self.add(CounterId::ControlBytes, bytes as u64);
        }
    }

    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        self.add(CounterId::MessagesReceived, 1);
        self.add(CounterId::BytesReceived, bytes as u64);
    }
}

/// Memory that the tasks of one place say they hold. A place cannot measure the memory that a core of a modelled chip
/// would need: on the host its places share one heap with the model.
#[derive(Default)]
pub(crate) struct StatedMemory {
    bytes: Cell<u64>,
    peak: Cell<u64>,
}

impl StatedMemory {
    /// Returns the largest number of bytes held at one time.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.get()
    }

    fn hold(&self, bytes: u64) {
        let held = self.bytes.get().saturating_add(bytes);
        self.bytes.set(held);
        self.peak.set(self.peak.get().max(held));
    }
}

/// Bytes that a place holds until this is dropped; see [`hold_memory`].
#[must_use = "the memory counts as held until this is dropped"]
pub struct HeldMemory {
    stated: Rc<StatedMemory>,
    bytes: u64,
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.stated.bytes.set(self.stated.bytes.get().saturating_sub(self.bytes));
    }
}

/// Records that the calling place holds `bytes` more bytes of its own memory, until the guard is dropped.
///
/// It costs nothing and allocates nothing. The [`PlaceReport`](crate::PlaceReport) has the peak of a place. A run on a
/// modelled chip whose file has the memory of a core (`memory.per_core`) warns at its end if a place held more.
///
/// # Panics
/// Outside of a place.
#[track_caller]
pub fn hold_memory(bytes: u64) -> HeldMemory {
    let stated = Local::with(|local| Rc::clone(&local.stated_memory));
    stated.hold(bytes);
    HeldMemory { stated, bytes }
}

/// Report of one place about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceReport {
    /// Values of its counters, in the order of the table of counters; see [`PlaceReport::count`].
    pub counters: Vec<u64>,
    /// Number of those messages that control finishes.
    pub finish_messages: u64,
    /// Finishes released here, by kind.
    pub finishes: Vec<(String, u64)>,
    /// Calls and bytes by call site.
    pub sites: Vec<(String, u64, u64)>,
    /// Number of parts of handles that still existed at the end.
    pub parts: u64,
    /// Peak of the memory that its tasks said they hold with [`hold_memory`](crate::hold_memory), in bytes.
    pub memory_held: u64,
    /// The regions that its tasks have marked, see [`measured`](crate::measured).
    pub regions: Vec<MeasuredRegion>,
}

/// Report of all places about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// One entry for each place; `None` for a place that died, or did not answer in time.
    pub places: Vec<Option<PlaceReport>>,
}

impl PlaceReport {
    /// Returns the value of a counter at the end of the run, as the place reported it.
    pub fn count(&self, counter: CounterId) -> u64 {
        self.counters.get(counter.index()).copied().unwrap_or_default()
    }
}

impl Local {
    /// Returns the counters of this place so far, without those that only observers get.
    pub(crate) fn counts(&self) -> CounterValues {
        let mut values = self.tally.0.each_ref().map(Cell::get);
        self.services().count(&mut values);
        values
    }

    /// Returns the report of this place so far.
    pub fn report(&self) -> PlaceReport {
        let (kinds, finish_messages) = self.finishes.totals();
        let sites = self.calls.site_counts.borrow().list();
        PlaceReport {
            counters: self.counts().to_vec(),
            finish_messages,
            finishes: kinds.into_iter().map(|(kind, count)| (format!("{kind:?}"), count)).collect(),
            sites: sites.into_iter().map(|(site, SiteCount { calls, bytes })| (site, calls, bytes)).collect(),
            parts: self.parts.borrow().len() as u64,
            memory_held: self.stated_memory.peak(),
            regions: self.regions.borrow().clone(),
        }
    }
}

impl Local {
    /// Describes what this place waits for, one line each, without the place's name.
    pub fn explain(&self) -> Vec<String> {
        causes(self, &Inquiry { asker: self.here(), query: &[] })
    }

    /// Returns the errors of tasks of finishes that have not ended, as far as this place knows.
    pub fn failures(&self) -> Vec<Error> {
        self.finishes.failures()
    }

    /// Returns the error with which the run ends because of its services, if any.
    ///
    /// # Errors
    /// Tasks waited for each other without end, such as members of a team in different collectives, and no call of the
    /// program has ended with that error.
    pub fn check_unreported_faults(&self) -> crate::Result<()> {
        self.services().take_fault().map_or(Ok(()), Err)
    }

    /// Returns the time by the place's clock at which there will be something to do, if nothing happens.
    pub fn next_due(&self) -> Option<Duration> {
        let due = earlier(self.timers.next(), self.turn_due());
        let due = earlier(earlier(due, self.finishes.next_deferred_ask()), self.services().next_due());
        earlier(due, self.parts.borrow().next_settling())
    }
}

impl RunReport {
    fn sum(&self, of: impl Fn(&PlaceReport) -> u64) -> u64 {
        self.places.iter().flatten().map(of).sum()
    }

    /// Returns the sum of a counter over all places.
    pub fn count(&self, counter: CounterId) -> u64 {
        self.sum(|place| place.count(counter))
    }

    /// Returns the number of bytes of all messages of all places.
    pub fn bytes(&self) -> u64 {
        self.count(CounterId::BytesSent)
    }

    /// Returns the number of messages of all places.
    pub fn messages(&self) -> u64 {
        self.count(CounterId::MessagesSent)
    }

    /// Returns the table of `--report captures`: calls and bytes by call site, the largest first.
    pub fn captures(&self) -> String {
        let mut sites: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (site, calls, bytes) in self.places.iter().flatten().flat_map(|place| &place.sites) {
            let total = sites.entry(site).or_default();
            *total = (total.0 + calls, total.1 + bytes);
        }
        let mut rows: Vec<_> = sites.into_iter().collect();
        rows.sort_by_key(|(site, (_, bytes))| (std::cmp::Reverse(*bytes), *site));
        let mut text = format!("{:>12} {:>14} {:>12}  site\n", "calls", "bytes", "bytes/call");
        for (site, (calls, bytes)) in rows {
            let each = bytes as f64 / calls.max(1) as f64;
            text += &format!("{calls:>12} {bytes:>14} {each:>12.1}  {site}\n");
        }
        text
    }

    /// Returns the table of `ISLES_REPORT=messages`: the messages of tasks over channels and as members of teams.
    pub fn task_messages(&self) -> String {
        let is_listed =
            |counter: &&CounterInfo| matches!(counter.group, CounterGroup::Channels | CounterGroup::Members);
        let line = |counter: &CounterInfo| {
            let mut what = counter.description.trim_end_matches('.').to_owned();
            what[..1].make_ascii_lowercase();
            format!("{:>12}  {what}\n", self.count(counter.id))
        };
        let lines: String = COUNTERS.iter().filter(is_listed).map(line).collect();
        format!("{:>12}  messages between tasks\n", "count") + &lines
    }

    /// Returns the table of `ISLES_REPORT=counters`: for each counter that grows and is not 0, the sum over all places,
    /// the minimum and the maximum.
    pub fn counters(&self) -> String {
        let names = COUNTERS.iter().map(|counter| counter.name.len()).max().unwrap_or_default();
        let head = format!("{:names$} {:>16} {:>16} {:>16}  of\n", "counter", "sum", "least", "most");
        let row = |counter: &CounterInfo| {
            let of_places = || self.places.iter().flatten().map(|place| place.count(counter.id));
            let (sum, least, most) = (of_places().sum::<u64>(), of_places().min()?, of_places().max()?);
            let name = counter.name;
            (sum > 0).then(|| format!("{name:names$} {sum:>16} {least:>16} {most:>16}  {}\n", counter.unit))
        };
        head + &COUNTERS.iter().filter_map(row).collect::<String>()
    }

    /// Returns the table of `ISLES_REPORT=finish`: finishes by kind, and the messages they cost.
    pub fn finishes(&self) -> String {
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for (kind, count) in self.places.iter().flatten().flat_map(|place| &place.finishes) {
            *kinds.entry(kind).or_default() += count;
        }
        let mut text = format!("{:>12}  kind\n", "finishes");
        for (kind, count) in kinds {
            text += &format!("{count:>12}  {kind}\n");
        }
        text + &format!("{:>12}  control messages\n", self.sum(|place| place.finish_messages))
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages, {} bytes", self.messages(), self.bytes())
    }
}

/// Message about the run between the first place and the others.
#[derive(Serialize, Deserialize)]
pub(crate) enum RunMessage {
    /// From the first place: the program has ended.
    ShutDown,
    /// To the first place: this place has ended. Its report, and the fault of a team that no call there ended with.
    FinalReport(Box<PlaceReport>, Option<Error>),
    /// From the first place, when nothing happens: tell the members of your teams in which collectives you wait.
    CompareWaits,
    /// Explain what you wait for, and whether you have begun what the sender waits for.
    Explain(Vec<u8>),
    /// Descriptions of what the sender waits for.
    Explained(Vec<String>),
}

/// State of the run, as received from other places.
#[derive(Default)]
pub(crate) struct RunState {
    /// True once the first place has told this one to end.
    pub(crate) is_shut_down: Cell<bool>,
    /// Reports of the other places at the end of the run; used at the first place only.
    pub(crate) final_reports: RefCell<OrderedMap<PlaceId, PlaceReport>>,
    /// Explanations of the other places' waits since they were last asked; used at the first place only.
    explanations: RefCell<OrderedMap<PlaceId, Vec<String>>>,
}

impl Local {
    /// Returns the number of reports of other places' waits: explanations since the last request, and waits in teams.
    pub(crate) fn wait_reports_received(&self) -> usize {
        self.run.explanations.borrow().len() + self.services().wait_reports()
    }
}

/// Sends a message about the run; ignored if the place is dead.
pub(crate) fn send(local: &Local, to: PlaceId, message: &RunMessage) {
    let _ = local.send(to, Class::Control, Handler::Run.id(), |writer| writer.put_serde(message));
}

/// Receives a message about the run.
pub(crate) fn receive(local: &Local, source: PlaceId, reader: &mut Reader<'_>) -> Result<(), Refused> {
    match reader.take_serde()? {
        RunMessage::ShutDown if source == PlaceId(0) => local.run.is_shut_down.set(true),
        RunMessage::FinalReport(report, unreported) if local.here() == PlaceId(0) => {
            local.run.final_reports.borrow_mut().insert(source, *report);
            unreported.into_iter().for_each(|fault| local.services().keep_fault(fault));
        }
        RunMessage::CompareWaits => _ = local.services().compare_waits(local),
        RunMessage::Explain(query) => {
            let lines = explanation(local, &Inquiry { asker: source, query: &query });
            send(local, source, &RunMessage::Explained(lines));
        }
        RunMessage::Explained(lines) => {
            print(&lines);
            local.run.explanations.borrow_mut().insert(source, lines);
        }
        RunMessage::ShutDown | RunMessage::FinalReport(..) => return Err(Refused::NotItsHome),
    }
    Ok(())
}

/// Describes the failures here, what this place waits for, and what it has not begun of the `inquiry`, one line each.
fn explanation(local: &Local, inquiry: &Inquiry<'_>) -> Vec<String> {
    let failures = local.failures().into_iter().map(|error| format!("failed: {error}"));
    let causes = causes(local, inquiry);
    failures.chain(causes).map(|line| format!("{}: {line}", local.here())).collect()
}

/// Describes what this place waits for, and what it has not begun of the `inquiry`, one line each.
fn causes(local: &Local, inquiry: &Inquiry<'_>) -> Vec<String> {
    let finishes = local.finishes.explain().into_iter();
    let finishes = finishes.filter_map(|(site, explanation)| explain_finish(site, &explanation));
    let calls = local.calls.pending.borrow().waiting().into_iter();
    let calls = calls.map(|(to, site)| format!("the answer of {to} to the call at {site}"));
    let services = local.services().explain(inquiry);
    let tasks = local.waiting_sites(|scope| scope != Scope::DETACHED).into_iter();
    let tasks = tasks.map(|(site, count)| match count {
        1 => format!("1 waiting task started at {site}"),
        _ => format!("{count} waiting tasks started at {site}"),
    });
    let timers = local.timers.next().map(|next| {
        let seconds = next.saturating_sub(local.clock().now()).as_secs_f64();
        format!("the first of {} timers, in {seconds:.1} s", local.timers.len())
    });
    let causes = finishes.chain(calls).chain(services).chain(timers).chain(tasks);
    let mut lines: Vec<String> = causes.collect();
    if lines.is_empty() && local.here() == PlaceId(0) {
        lines.push(OUTSIDE.to_owned());
    }
    lines
}

/// Explanation if the first place waits for nothing that Isles knows.
const OUTSIDE: &str = "the main task, which waits for nothing of Isles except perhaps a monitor: a \
     thread or a timer of the program wakes tasks on threads and processes only";

/// Describes what a finish waits for, which the program called at `site`; `None` for the whole run while only its main
/// task is left.
fn explain_finish(site: Option<&Location<'_>>, explanation: &Explanation) -> Option<String> {
    let Explanation { live, cancelled, waiting, .. } = explanation;
    let name = match site {
        Some(site) => format!("the finish at {site}"),
        None if *live <= 1 && waiting.is_empty() => return None,
        None => "the whole run".to_owned(),
    };
    let cancelled = if *cancelled { " (cancelled)" } else { "" };
    let mut groups: OrderedMap<(u64, u8), OrderedSet<u32>> = OrderedMap::new();
    for Waiting { place, tasks, asked, .. } in waiting {
        groups.get_or_default((*tasks, u8::from(*asked))).insert(place.0);
    }
    let others = groups.into_iter().map(|((tasks, asked), places)| {
        let asked = if asked > 0 { ", no report since whether they have ended" } else { "" };
        let each = if places.len() == 1 { "" } else { "each of " };
        format!("{tasks} at {each}{}{asked}", named(&places))
    });
    // The reports may be old: a place sends one when its last task has ended.
    let others: Vec<String> = others.collect();
    let heard = if others.is_empty() { "" } else { ", as last reported " };
    Some(format!("{name}{cancelled}: {live} live here{heard}{}", others.join(", ")))
}

/// Merges equal lines of several places: `39 places (0-6, 8-39): ..`.
pub fn together(lines: impl IntoIterator<Item = (PlaceId, String)>) -> Vec<String> {
    let mut order: Vec<(String, OrderedSet<u32>)> = Vec::new();
    let mut known = HashMap::new();
    for (place, line) in lines {
        let index = *known.entry(line.clone()).or_insert(order.len());
        if index == order.len() {
            order.push((line, OrderedSet::new()));
        }
        order[index].1.insert(place.0);
    }
    order.into_iter().map(|(line, places)| format!("{}: {line}", named(&places))).collect()
}

/// Returns the places that have not explained their waits, one line each.
fn unresponsive_places(local: &Local) -> Vec<String> {
    let explanations = local.run.explanations.borrow();
    let others = local.others();
    let unresponsive = others.filter(|place| !local.is_dead(*place) && !explanations.contains_key(*place));
    unresponsive
        .map(|place| format!("{place}: does not answer: it computes without an `await`, or is stopped"))
        .collect()
}

/// Prints the places that have not answered [`print_stall`].
pub(crate) fn print_unresponsive(local: &Local) {
    print(&unresponsive_places(local));
}

fn print(lines: &[String]) {
    lines.iter().for_each(|line| notice(format_args!("isles:   {line}")));
}

/// Returns the error of a run that is given up: what each place waits for, as far as they answered [`print_stall`].
pub(crate) fn stalled(local: &Local, silence: Duration) -> Error {
    let unresponsive = unresponsive_places(local);
    let heard = local.run.explanations.take().into_iter().flat_map(|(_, lines)| lines);
    let own = explanation(local, &Inquiry { asker: local.here(), query: &[] });
    let lines: Vec<String> = own.into_iter().chain(heard).chain(unresponsive).collect();
    let seconds = silence.as_secs_f64();
    let text = format!("nothing has happened for {seconds:.1} s; waiting for:\n  {}", lines.join("\n  "));
    Error::new(ErrorKind::Misused, text)
}

/// Returns the error of a run that has gone on for `after` since its `main` failed with `fault`, or panicked.
pub(crate) fn outlived(local: &Local, after: Duration, fault: Option<String>) -> Error {
    let own = explanation(local, &Inquiry { asker: local.here(), query: &[] });
    let (how, seconds) =
        (fault.map_or("panicked".to_owned(), |fault| format!("failed ({fault})")), after.as_secs_f64());
    let text = format!(
        "`main` has {how}, but what it started still runs {seconds:.1} s later:\n  {}",
        own.join("\n  ")
    );
    Error::new(ErrorKind::Misused, text)
}

/// Prints what each place waits for, as far as they answer.
pub(crate) fn print_stall(local: &Local, silence: Duration) {
    let here = local.here();
    let seconds = match silence.as_secs() {
        0 => format!("{:.1}", silence.as_secs_f64()),
        whole => whole.to_string(),
    };
    notice(format_args!("isles: {here}: nothing has happened for {seconds} s; waiting for:"));
    print(&explanation(local, &Inquiry { asker: here, query: &[] }));
    local.run.explanations.borrow_mut().clear();
    for place in local.others() {
        if !local.is_dead(place) {
            send(local, place, &RunMessage::Explain(local.services().query(place)));
        }
    }
}
