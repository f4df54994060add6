//! Drawing of the screen: a header, one pane, and a line of keys.
//!
//! A state is a word, never only a colour; bars have their number beside them. Text of the run is shown without control
//! characters. A narrow terminal has fewer columns. Invariant: content that does not fit is cut, and a cut list states
//! its number of rows.

use crate::screen::{Pane, Screen};
use isles_telemetry::CounterId;
use isles_view::{FinishView, PlaceCondition, ProgressView, RunState, Snapshot, StageView};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

/// Cells of a bar.
const BAR_CELLS: usize = 10;

/// Cells of each column, its heading at least.
const WIDTHS: [u16; 14] = [5, 7, 5, BAR_CELLS as u16, 6, 7, 6, 7, 6, 6, 8, 7, 5, 6];

/// The columns that a narrow terminal lacks, by index, in order of removal: the bar, tasks, finishes, bytes a second,
/// waiting, memory.
const LEFT_OUT: [usize; 6] = [3, 4, 10, 9, 7, 11];

/// The keys and their actions, for the help.
const KEYS: [(&str, &str); 14] = [
    ("?", "this help"),
    ("q, Ctrl-C", "quit; the run continues"),
    ("j k, arrows", "next and previous place; PgUp PgDn Home End"),
    ("Enter, Esc", "look at a place; back"),
    ("Space", "pin a place to the top"),
    ("/", "filter: a state, or places such as 0,4-7"),
    ("o", "order by place, busy or queue"),
    ("p", "pause; samples are still read meanwhile"),
    ("g t", "table of places"),
    ("g f", "open finishes"),
    ("g m", "messages between places"),
    ("g l", "stages of pipelines"),
    ("g w", "warnings"),
    ("g j", "jobs, with --jobs DIR; Enter shows the last lines of one"),
];

/// Draws the screen.
pub fn screen(frame: &mut Frame<'_>, screen: &Screen) {
    let [head, pane, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(3), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(screen)), head);
    match screen.pane {
        Pane::Places => places(frame, pane, screen),
        Pane::Place => lines(frame, pane, "place", place_lines(screen)),
        Pane::Finishes => lines(frame, pane, "open finishes", finish_lines(screen)),
        Pane::Messages => lines(frame, pane, "messages, the largest first", message_lines(screen)),
        Pane::Stages => lines(frame, pane, "stages of pipelines", stage_lines(screen)),
        Pane::Warnings => lines(frame, pane, "warnings", warning_lines(screen)),
        Pane::Jobs => jobs(frame, pane, screen),
        Pane::Job => {
            let title =
                screen.chosen_job().map(|job| format!("job {job}, its last lines")).unwrap_or_default();
            // The newest lines are shown.
            let room = pane.height.saturating_sub(2) as usize;
            let output = job_lines(screen);
            let skipped = output.len().saturating_sub(room);
            lines(frame, pane, &title, output.into_iter().skip(skipped).collect());
        }
        Pane::Help => {
            let keys = KEYS.iter().map(|(key, action)| Line::from(format!("{key:<14}{action}")));
            lines(frame, pane, "keys", keys.collect());
        }
    }
    frame.render_widget(Paragraph::new(foot_line(screen)), foot);
}

/// Returns the table of places as text, for output that is not a terminal.
pub fn text(screen: &Screen) -> String {
    let mut out = head_lines(screen).iter().map(|line| line.to_string() + "\n").collect::<String>();
    let (names, rows) = table(screen);
    let widths: Vec<usize> = (0..names.len())
        .map(|column| {
            rows.iter().map(|(_, row)| row[column].chars().count()).chain([names[column].len()]).max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let mut line = |cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        out += cells.join("  ").trim_end();
        out.push('\n');
    };
    line(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|(_, row)| line(row));
    out
}

/// Returns text of a run without control characters.
fn plain(text: &str) -> String {
    let is_shown =
        |character: &char| !character.is_control() && !('\u{202a}'..='\u{202e}').contains(character);
    text.chars().filter(is_shown).take(200).collect()
}

fn head_lines(screen: &Screen) -> Vec<Line<'static>> {
    let run = &screen.run;
    let words = std::iter::once(&run.program).chain(&run.arguments).map(|word| plain(word));
    let command = plain(&words.collect::<Vec<_>>().join(" "));
    let Some(shown) = &screen.shown else { return vec![Line::from(command)] };
    let state = match shown.state {
        RunState::Running => "runs",
        RunState::Ended => "has ended",
        RunState::Failed => "has failed",
        RunState::Unknown => "is unknown",
    };
    let reason = shown.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
    let count = shown.places.busy.len().max(1) as f64;
    let busy = 100.0 * shown.places.busy.iter().sum::<f64>() / count;
    let model = shown.model_ms.map(|model| format!(", {model:.3} ms modelled")).unwrap_or_default();
    let progress = shown.progress.as_ref().map(progress_text).unwrap_or_default();
    let (machine, places, seconds) = (plain(&run.machine), run.places, shown.time_ms as f64 / 1e3);
    let warnings = match shown.warnings.len() {
        0 => String::new(),
        number => format!(", {number} warnings (g w)"),
    };
    let paused = if screen.is_paused { ", PAUSED" } else { "" };
    let status = format!(
        "{state}{reason} for {seconds:.1} s{model} on {places} places ({machine}), busy {busy:.0} %{progress}{warnings}{paused}"
    );
    let bold = Style::new().add_modifier(Modifier::BOLD);
    vec![Line::styled(command, bold), Line::from(status)]
}

/// Returns the phase and the steps of a program, as the end of a line.
fn progress_text(shown: &ProgressView) -> String {
    let ProgressView { phase, label, done, total, grows } = shown;
    let (phase, label) = (plain(phase), plain(label));
    let phase = if phase.is_empty() { phase } else { format!(", {phase}") };
    let steps = match grows {
        _ if done + total == 0 => String::new(),
        true => format!(", {done} {label}").trim_end().to_owned() + " so far",
        false => format!(", {done} of {total} {label}").trim_end().to_owned(),
    };
    phase + &steps
}

fn foot_line(screen: &Screen) -> Line<'static> {
    if screen.is_typing {
        return Line::from(format!("filter: {}_   Enter keeps it, Esc drops it", plain(&screen.filter)));
    }
    let filter =
        if screen.filter.is_empty() { String::new() } else { format!("  filter {}", plain(&screen.filter)) };
    let order = screen.order.name();
    Line::from(format!(
        "? help  q end  Enter look  / filter  o order ({order})  p pause  g t|f|m|w|j panes{filter}"
    ))
}

/// Returns a number in few characters.
fn short(value: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match STEPS.iter().find(|(step, _)| value >= 10.0 * step / 1.0001 || (value >= *step && *step > 1e3)) {
        Some((step, character)) => format!("{:.1}{character}", value / step),
        None => format!("{value:.0}"),
    }
}

fn bar(share: f64) -> String {
    let full = (share * BAR_CELLS as f64).round() as usize;
    format!("{}{}", "█".repeat(full.min(BAR_CELLS)), "·".repeat(BAR_CELLS - full.min(BAR_CELLS)))
}

/// Returns the growth of a counter a second since the picture before.
fn rate(screen: &Screen, place: usize, counter: CounterId) -> f64 {
    let (Some(before), Some(shown)) = (&screen.before, &screen.shown) else { return 0.0 };
    let passed = shown.time_ms.saturating_sub(before.time_ms) as f64 / 1e3;
    let value = |snapshot: &Snapshot| snapshot.places.counters.word(counter, place);
    if passed > 0.0 { value(shown).saturating_sub(value(before)) as f64 / passed } else { 0.0 }
}

/// The names of the columns, and a row for each shown place.
fn table(screen: &Screen) -> (Vec<&'static str>, Vec<(usize, Vec<String>)>) {
    let mut names = vec![
        "place", "state", "busy", "", "tasks", "tasks/s", "queue", "waiting", "msg/s", "B/s", "finishes",
        "memory",
    ];
    let Some(shown) = &screen.shown else { return (names, Vec::new()) };
    let columns = &shown.places;
    if columns.watt.is_some() {
        names.extend(["MHz", "W"]);
    }
    let row = |place: usize| {
        let count = |counter| columns.counters.word(counter, place) as f64;
        let pin = if screen.pinned.contains(&place) { "*" } else { "" };
        let mut row = vec![
            format!("{pin}{place}"),
            columns.state[place].to_string(),
            format!("{:.0} %", 100.0 * columns.busy[place]),
            bar(columns.busy[place]),
            short(count(CounterId::Tasks)),
            short(rate(screen, place, CounterId::Tasks)),
            short(count(CounterId::Queue)),
            short(count(CounterId::Blocked)),
            short(rate(screen, place, CounterId::MessagesSent)),
            short(rate(screen, place, CounterId::BytesSent)),
            short(count(CounterId::FinishesOpen)),
            short(count(CounterId::MemoryBytes)),
        ];
        if let (Some(clock), Some(watts)) = (columns.counters.shown(CounterId::Clock, place), &columns.watt) {
            row.extend([format!("{clock:.0}"), format!("{:.2}", watts[place])]);
        }
        (place, row)
    };
    (names, screen.places().into_iter().map(row).collect())
}

/// Returns those of the first `count` columns that fit into `width` cells, with one cell between columns.
fn columns_in(width: u16, count: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..count).collect();
    for left_out in LEFT_OUT {
        let needed = columns.iter().map(|column| WIDTHS[*column] + 1).sum::<u16>() - 1;
        if needed <= width {
            break;
        }
        columns.retain(|column| *column != left_out);
    }
    columns
}

fn places(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let (names, rows) = table(screen);
    let columns = columns_in(area.width.saturating_sub(2), names.len());
    let style = |place: usize| match screen.shown.as_ref().map(|shown| shown.places.state[place]) {
        Some(PlaceCondition::Dead) => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        Some(PlaceCondition::Silent | PlaceCondition::Ended) => Style::new().add_modifier(Modifier::DIM),
        _ => Style::new(),
    };
    let count = rows.len();
    let all = screen.run.places;
    let cell = |text: String| Cell::from(Line::from(text).right_aligned());
    let rows = rows.into_iter().map(|(place, row)| {
        Row::new(columns.iter().map(|column| cell(row[*column].clone()))).style(style(place))
    });
    let widths = columns.iter().map(|column| Constraint::Length(WIDTHS[*column]));
    let head = Row::new(columns.iter().map(|column| cell(names[*column].to_owned())));
    let title = format!("{count} of {all} places");
    let table = Table::new(rows, widths)
        .header(head.style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(title));
    let mut state = TableState::default();
    state.select((count > 0).then(|| screen.cursor.min(count.saturating_sub(1))));
    frame.render_stateful_widget(table, area, &mut state);
}

/// The table of jobs, or why there is none.
fn jobs(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let shown = &screen.jobs;
    let trouble = match (&shown.trouble, screen.has_jobs) {
        (_, false) => ": isles top RUN --jobs DIR shows them".to_owned(),
        (Some(trouble), true) => format!(": {}", plain(trouble)),
        (None, true) => String::new(),
    };
    let rows = shown.jobs.iter().map(|job| {
        let place = job.place.map_or_else(|| "-".to_owned(), |place| place.to_string());
        let (used, memory) = (format!("{:.0} %", job.processor), short(job.memory));
        let computed = format!("{:.1} s", job.busy);
        Row::new([
            job.id.to_string(),
            plain(&job.name),
            plain(&job.state),
            place,
            used,
            memory,
            computed,
            plain(&job.reason),
        ])
    });
    let widths = [5, 16, 13, 5, 6, 7, 9].map(Constraint::Length).into_iter().chain([Constraint::Min(10)]);
    let head = Row::new(["job", "name", "state", "place", "use", "memory", "computed", "result"]);
    let table = Table::new(rows, widths)
        .header(head.style(Style::new().add_modifier(Modifier::UNDERLINED)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(format!("{} jobs{trouble}", shown.jobs.len())));
    let mut state = TableState::default();
    state.select((!shown.jobs.is_empty()).then(|| screen.job_cursor.min(shown.jobs.len().saturating_sub(1))));
    frame.render_stateful_widget(table, area, &mut state);
}

fn job_lines(screen: &Screen) -> Vec<Line<'static>> {
    let shown = &screen.jobs;
    if let Some(trouble) = &shown.trouble {
        return vec![Line::from(plain(trouble))];
    }
    if shown.output.is_empty() {
        return vec![Line::from("it has printed nothing")];
    }
    shown.output.iter().map(|line| Line::from(plain(line))).collect()
}

fn lines(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'static>>) {
    let room = area.height.saturating_sub(2) as usize;
    let cut = if lines.len() > room { format!(" ({room} of {} lines)", lines.len()) } else { String::new() };
    let block = Block::bordered().title(format!("{title}{cut}"));
    let shown: Vec<Line<'static>> = lines.into_iter().take(room).collect();
    frame.render_widget(Paragraph::new(shown).wrap(Wrap { trim: false }).block(block), area);
}

fn place_lines(screen: &Screen) -> Vec<Line<'static>> {
    let (Some(shown), Some(place)) = (&screen.shown, screen.chosen()) else { return Vec::new() };
    let columns = &shown.places;
    let fact =
        |name: &str, value: String| Line::from(vec![Span::raw(format!("{name:<18}")), Span::raw(value)]);
    let mut lines = vec![
        fact("place", place.to_string()),
        fact("state", columns.state[place].to_string()),
        fact("busy", format!("{} {:.0} %", bar(columns.busy[place]), 100.0 * columns.busy[place])),
    ];
    lines.extend(columns.cause[place].as_deref().map(|cause| fact("dead", plain(cause))));
    let home = |finish: &&FinishView| finish.home as usize == place;
    lines.extend(shown.finishes.iter().filter(home).map(|finish| fact("open finish", plain(&finish.label))));
    // Counters of 0 are left out, because few lines fit.
    lines.extend(columns.counters.iter().filter(|(_, words)| words[place] != 0).map(|(counter, words)| {
        fact(&counter.name.replace('_', " "), format!("{} {}", counter.shown(words[place]), counter.unit))
    }));
    lines
}

/// Returns the number of finishes of the same place around one.
fn depth(shown: &Snapshot, finish: &FinishView) -> usize {
    let around = |inner: &&FinishView| {
        let id = inner.parent.as_ref()?;
        shown.finishes.iter().find(|outer| outer.id == *id)
    };
    // The first is the finish itself; the bound also ends a cycle in invalid data.
    std::iter::successors(Some(finish), around).take(16).count() - 1
}

fn finish_lines(screen: &Screen) -> Vec<Line<'static>> {
    let Some(shown) = &screen.shown else { return Vec::new() };
    let line = |finish: &FinishView| {
        let waits = finish.waits_for.iter().map(|(place, tasks)| format!("{tasks} at place {place}"));
        let waits: Vec<String> = waits.collect();
        let waits =
            if waits.is_empty() { String::new() } else { format!("; waits for {}", waits.join(", ")) };
        let (indent, seconds) = (2 * depth(shown, finish), finish.open_ms as f64 / 1e3);
        let (home, label) = (finish.home, plain(&finish.label));
        Line::from(format!("{:indent$}{label} at place {home}, open for {seconds:.1} s{waits}", ""))
    };
    shown.finishes.iter().map(line).collect()
}

fn message_lines(screen: &Screen) -> Vec<Line<'static>> {
    let Some(shown) = &screen.shown else { return Vec::new() };
    let mut pairs = shown.pairs.clone();
    pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.3), pair.0, pair.1));
    let line = |(from, to, messages, bytes): (u32, u32, u64, u64)| {
        Line::from(format!("{from:>6} to {to:<6} {messages:>12} messages {bytes:>14} bytes"))
    };
    pairs.into_iter().map(line).collect()
}

fn stage_lines(screen: &Screen) -> Vec<Line<'static>> {
    let line = |stage: &StageView| {
        let StageView { pipeline, name, place, items_per_s, waiting, queue, .. } = stage;
        let name = plain(name);
        Line::from(format!(
            "{name:<24} pipeline {pipeline:<3} place {place:<5} {items_per_s:>10.1} items/s, {waiting} of {queue} waiting"
        ))
    };
    let lines: Vec<Line<'static>> = screen.stages.iter().map(line).collect();
    if lines.is_empty() { vec![Line::from("no pipeline runs, or none for a second yet")] } else { lines }
}

fn warning_lines(screen: &Screen) -> Vec<Line<'static>> {
    let Some(shown) = &screen.shown else { return Vec::new() };
    let line = |warning: &isles_view::Warning| {
        Line::from(format!("{:<12} place {:<5} {}", warning.kind.name(), warning.place, plain(&warning.text)))
    };
    let lines: Vec<Line<'static>> = shown.warnings.iter().map(line).collect();
    if lines.is_empty() { vec![Line::from("no warnings")] } else { lines }
}
