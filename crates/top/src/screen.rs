//! State of the screen, and the effects of keys.
//!
//! Plain state without a terminal, so that tests can press keys and check pictures. Invariants: no key affects the run;
//! while paused, the picture does not change and the newest snapshot is kept.

use crate::jobs::ShownJobs;
use isles_telemetry::{CounterId, RunDescription};
use isles_view::{PlaceCondition, Snapshot, StageView};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Rows that a page key moves by.
const PAGE_ROWS: usize = 20;

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOutcome {
    /// Go on.
    Continue,
    /// Enough.
    End,
}

/// Content of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// The table of places.
    Places,
    /// One place.
    Place,
    /// Open finishes.
    Finishes,
    /// Messages between places.
    Messages,
    /// The stages of pipelines.
    Stages,
    /// Warnings of the run.
    Warnings,
    /// The jobs of the run.
    Jobs,
    /// The output of one of them.
    Job,
    /// The keys.
    Help,
}

/// Order of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By number, so that rows never move.
    Place,
    /// The busiest first.
    Busy,
    /// The longest queue first.
    Queue,
}

/// State of the screen.
pub struct Screen {
    pub run: RunDescription,
    /// The shown snapshot, and the previous one, for rates.
    pub shown: Option<Snapshot>,
    pub before: Option<Snapshot>,
    /// Newest snapshot, if it arrived while the picture was paused.
    newest: Option<Snapshot>,
    pub pane: Pane,
    pub order: Order,
    pub is_paused: bool,
    /// The row that is chosen in the table of places.
    pub cursor: usize,
    pub pinned: BTreeSet<usize>,
    pub filter: String,
    /// `true` while typed characters go to the filter.
    pub is_typing: bool,
    /// `true` if the last key was `g`.
    pub is_g_pressed: bool,
    /// The stages of pipelines that run.
    pub stages: Vec<StageView>,
    /// `true` if there is a source of jobs.
    pub has_jobs: bool,
    pub jobs: ShownJobs,
    /// The row that is chosen among the jobs.
    pub job_cursor: usize,
}

impl Screen {
    /// Returns the screen before the first snapshot.
    pub fn new(run: &RunDescription) -> Screen {
        Screen {
            run: run.clone(),
            shown: None,
            before: None,
            newest: None,
            pane: Pane::Places,
            order: Order::Place,
            is_paused: false,
            cursor: 0,
            pinned: BTreeSet::new(),
            filter: String::new(),
            is_typing: false,
            is_g_pressed: false,
            stages: Vec::new(),
            has_jobs: false,
            jobs: ShownJobs::default(),
            job_cursor: 0,
        }
    }

    /// Takes a new snapshot of the run.
    pub fn take(&mut self, snapshot: Snapshot) {
        if self.is_paused {
            self.newest = Some(snapshot);
        } else if self.shown.as_ref().is_none_or(|shown| shown.time_ms != snapshot.time_ms) {
            self.before = self.shown.replace(snapshot);
        } else {
            // No time has passed: rates stay.
            self.shown = Some(snapshot);
        }
    }

    /// Returns the places that pass the filter, in order; pinned ones first.
    pub fn places(&self) -> Vec<usize> {
        let Some(shown) = &self.shown else { return Vec::new() };
        let columns = &shown.places;
        let fits = |place: &usize| fits(&self.filter, *place, columns.state[*place]);
        let mut places: Vec<usize> = (0..columns.state.len()).filter(fits).collect();
        match self.order {
            Order::Place => {}
            Order::Busy => places.sort_by(|one, other| columns.busy[*other].total_cmp(&columns.busy[*one])),
            Order::Queue => {
                places.sort_by_key(|place| Reverse(columns.counters.word(CounterId::Queue, *place)));
            }
        }
        places.sort_by_key(|place| !self.pinned.contains(place));
        places
    }

    /// Returns the place under the cursor.
    pub fn chosen(&self) -> Option<usize> {
        let places = self.places();
        places.get(self.cursor.min(places.len().saturating_sub(1))).copied()
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> KeyOutcome {
        if key.kind == KeyEventKind::Release {
            return KeyOutcome::Continue;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { KeyOutcome::End } else { KeyOutcome::Continue };
        }
        if self.is_typing {
            self.type_filter(key.code);
            return KeyOutcome::Continue;
        }
        if std::mem::take(&mut self.is_g_pressed) {
            self.go(key.code);
            return KeyOutcome::Continue;
        }
        match key.code {
            KeyCode::Char('q') => return KeyOutcome::End,
            KeyCode::Char('?') => self.pane = Pane::Help,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('g') => self.is_g_pressed = true,
            KeyCode::Char('p') => self.pause(),
            KeyCode::Char('o') => self.order = self.order.next(),
            KeyCode::Char(' ') => self.pin(),
            KeyCode::Enter if self.pane == Pane::Places => self.pane = Pane::Place,
            KeyCode::Enter if self.pane == Pane::Jobs => self.look_at_job(),
            KeyCode::Esc if self.pane == Pane::Job => self.pane = Pane::Jobs,
            KeyCode::Esc if self.pane == Pane::Places => self.filter.clear(),
            KeyCode::Esc => self.pane = Pane::Places,
            code => self.move_cursor(code),
        }
        KeyOutcome::Continue
    }

    /// Returns `true` if jobs fill the screen.
    pub fn shows_jobs(&self) -> bool {
        matches!(self.pane, Pane::Jobs | Pane::Job)
    }

    /// Returns the number of the job under the cursor.
    pub fn chosen_job(&self) -> Option<u64> {
        let jobs = &self.jobs.jobs;
        jobs.get(self.job_cursor.min(jobs.len().saturating_sub(1))).map(|job| job.id)
    }

    fn look_at_job(&mut self) {
        if self.chosen_job().is_some() {
            self.jobs.output.clear();
            self.pane = Pane::Job;
        }
    }

    fn move_cursor(&mut self, code: KeyCode) {
        if self.shows_jobs() {
            let last = self.jobs.jobs.len().saturating_sub(1);
            self.job_cursor = moved(self.job_cursor, last, code);
        } else {
            let last = self.places().len().saturating_sub(1);
            self.cursor = moved(self.cursor, last, code);
        }
    }

    fn go(&mut self, code: KeyCode) {
        self.pane = match code {
            KeyCode::Char('t') => Pane::Places,
            KeyCode::Char('f') => Pane::Finishes,
            KeyCode::Char('m') => Pane::Messages,
            KeyCode::Char('l') => Pane::Stages,
            KeyCode::Char('w') => Pane::Warnings,
            KeyCode::Char('j') => Pane::Jobs,
            _ => self.pane,
        };
    }

    fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        if !self.is_paused
            && let Some(newest) = self.newest.take()
        {
            self.take(newest);
        }
    }

    /// Pins or unpins the chosen place; the cursor stays on it.
    fn pin(&mut self) {
        let Some(place) = self.chosen() else { return };
        if !self.pinned.remove(&place) {
            self.pinned.insert(place);
        }
        self.cursor = self.places().iter().position(|shown| *shown == place).unwrap_or(0);
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(letter) if self.filter.len() < 40 => self.filter.push(letter),
            _ => {}
        }
    }
}

impl Order {
    fn next(self) -> Order {
        match self {
            Order::Place => Order::Busy,
            Order::Busy => Order::Queue,
            Order::Queue => Order::Place,
        }
    }

    /// Its name in the header of the table.
    pub fn name(self) -> &'static str {
        match self {
            Order::Place => "place",
            Order::Busy => "busy",
            Order::Queue => "queue",
        }
    }
}

/// Returns the row to which a key moves a cursor; `last` is the number of the last row.
fn moved(cursor: usize, last: usize, code: KeyCode) -> usize {
    let cursor = cursor.min(last);
    let moved = match code {
        KeyCode::Char('j') | KeyCode::Down => cursor + 1,
        KeyCode::Char('k') | KeyCode::Up => cursor.saturating_sub(1),
        KeyCode::PageDown => cursor + PAGE_ROWS,
        KeyCode::PageUp => cursor.saturating_sub(PAGE_ROWS),
        KeyCode::Home => 0,
        KeyCode::End => last,
        _ => cursor,
    };
    moved.min(last)
}

/// Returns `true` if a place passes the filter: the filter is empty, part of the state's name, or a list of numbers and
/// ranges.
fn fits(filter: &str, place: usize, state: PlaceCondition) -> bool {
    let filter = filter.trim();
    if filter.is_empty() || state.to_string().contains(filter) {
        return true;
    }
    filter.split(',').any(|part| match part.split_once('-') {
        Some((first, last)) => {
            let bounds = first.trim().parse().ok().zip(last.trim().parse().ok());
            bounds.is_some_and(|(first, last): (usize, usize)| (first..=last).contains(&place))
        }
        None => part.trim().parse() == Ok(place),
    })
}
