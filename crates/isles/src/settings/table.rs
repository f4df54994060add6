//! The table of settings: one row for each flag and variable `ISLES_*` of a run.
//!
//! It is the single source for the reader of the environment, the flags and `--help` of the `isles` command, the page
//! Machines of the book, the warning about misspelt variables, tapes and summaries of modelled chips, and the fuzz
//! target. The design is in `docs/design/settings.md`. It holds no value of a run. Invariants: a row follows those
//! whose values its reader needs (places after the machine); the texts are those of the book, and `--help` shows them
//! without Markdown.

#[cfg(feature = "chip")]
use crate::chip::{self, ChipSettings, ModelledChip};
use crate::machine::Machine;
#[cfg(not(feature = "chip"))]
use crate::machine::driver::LACKS_CHIPS;
use crate::observe;
use crate::output::Export;
use crate::settings::{ConfigError, Environment, color, pinning, readers};

/// A setting: its names, its reader, and the machines that use it.
#[derive(Debug)]
pub struct SettingRow {
    /// Its name, for example `governor`; an error about a default calls it `the governor`.
    pub name: &'static str,
    /// The variable, for example `ISLES_CHIP_GOVERNOR`.
    pub variable: &'static str,
    /// The flag of the `isles` command that overrides the variable, if there is one.
    pub flag: Option<SettingFlag>,
    /// Description in Markdown, as in the book; links are relative to the folder of the book.
    pub about: &'static str,
    /// Default of the setting.
    pub default: SettingDefault,
    /// The machines that use it.
    pub machines: Machines,
    /// Form in which tapes and summaries of modelled chips store it.
    pub(crate) stored: Stored,
    /// Reads a value and stores it.
    pub(crate) read: Reader,
}

/// Flag of a setting on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingFlag {
    /// The long flag, for example `--places`.
    pub name: &'static str,
    /// The letter of the short flag.
    pub short: Option<char>,
    /// Placeholder for the value in `--help`.
    pub value: &'static str,
    /// Group under which `--help` lists it.
    pub group: FlagGroup,
    /// `true` if a value may begin with a hyphen. Negative numbers are always passed to the reader, which refuses them.
    pub takes_hyphen: bool,
    /// `true` if it may be repeated; the values are joined by semicolons.
    pub repeats: bool,
}

/// A group of flags that commands offer together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlagGroup {
    /// Settings of every command, also of those that run nothing.
    Command,
    /// Settings of a run on any machine.
    Run,
    /// Settings of a modelled chip.
    Chip,
    /// Files that a run writes, most of them on modelled chips only.
    Files,
}

/// Default of a setting, in Markdown as [`SettingRow::about`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingDefault {
    /// This value.
    Value(&'static str),
    /// A default described by these words.
    Words(&'static str),
    /// Nothing happens, as these words say; `--help` omits them.
    Nothing(&'static str),
}

/// The machines that use a setting, and its effect on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machines {
    /// The machines that use it.
    pub on: &'static [MachineClass],
    /// Effect of the setting on other machines.
    pub on_other_machines: OnOtherMachines,
}

/// A class of machines with the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MachineClass {
    /// `threads`, `processes` and `guests`.
    Host,
    /// `mpi`.
    Ranks,
    /// `loopback`.
    Loopback,
    /// `chip:NAME`.
    Chip,
}

/// Effect of a setting on a machine that does not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnOtherMachines {
    /// The setting is ignored.
    Ignored,
    /// The flag is an error. The variable is ignored, because it may be set for many programs.
    FlagRefused,
    /// Flag and variable are errors.
    Refused,
}

impl MachineClass {
    /// Returns the class of `machine`.
    pub fn of(machine: Machine) -> MachineClass {
        match machine {
            Machine::Threads | Machine::Processes | Machine::Guests => MachineClass::Host,
            Machine::Mpi => MachineClass::Ranks,
            Machine::Loopback => MachineClass::Loopback,
            Machine::Chip(_) => MachineClass::Chip,
        }
    }
}

impl Machines {
    /// Returns `true` if `machine` uses the setting.
    pub fn include(&self, machine: Machine) -> bool {
        self.on.contains(&MachineClass::of(machine))
    }
}

/// Reads the value (third argument) of a source (second argument) into the environment.
pub(crate) type Reader = fn(&mut Environment, &str, &str) -> Result<(), ConfigError>;

/// Formats the value of a setting for a run of a number of places on a modelled chip.
#[cfg(feature = "chip")]
pub(crate) type ValueFormatter = fn(&ChipSettings, ModelledChip, u32) -> String;
/// A placeholder in programs without modelled chips, which never call it.
#[cfg(not(feature = "chip"))]
pub(crate) type ValueFormatter = fn() -> String;

/// Form in which tapes and summaries of modelled chips store a setting. A tape is played only if all the settings it
/// stores are the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    /// Not stored, because it does not affect a chip.
    Nowhere,
    /// Stored by both in a field of its own: as a number, or as a part of the chip.
    OwnField,
    /// Stored by the summary under its name.
    Summary(ValueFormatter),
    /// Stored by both under its name.
    TapeAndSummary(ValueFormatter),
}

impl Stored {
    /// Returns the formatter for the summary, if it stores the setting under its name.
    pub(crate) fn by_summary(&self) -> Option<ValueFormatter> {
        match self {
            Stored::Summary(format) | Stored::TapeAndSummary(format) => Some(*format),
            Stored::Nowhere | Stored::OwnField => None,
        }
    }

    /// Returns the formatter for the tape, if it stores the setting under its name.
    #[cfg(feature = "chip")]
    pub(crate) fn by_tape(&self) -> Option<ValueFormatter> {
        match self {
            Stored::TapeAndSummary(format) => Some(*format),
            Stored::Nowhere | Stored::OwnField | Stored::Summary(_) => None,
        }
    }
}

impl SettingRow {
    /// Returns `true` if the summary of a run on a modelled chip stores the setting under its name.
    pub fn is_in_summary(&self) -> bool {
        self.stored.by_summary().is_some()
    }
}

const ALL: Machines = Machines {
    on: &[MachineClass::Host, MachineClass::Ranks, MachineClass::Loopback, MachineClass::Chip],
    on_other_machines: OnOtherMachines::Ignored,
};
const HOST: Machines =
    Machines { on: &[MachineClass::Host], on_other_machines: OnOtherMachines::FlagRefused };
const RANKS: Machines = Machines { on: &[MachineClass::Ranks], on_other_machines: OnOtherMachines::Ignored };
const CHIP: Machines =
    Machines { on: &[MachineClass::Chip], on_other_machines: OnOtherMachines::FlagRefused };
const CHIP_ALONE: Machines =
    Machines { on: &[MachineClass::Chip], on_other_machines: OnOtherMachines::Refused };
const OBSERVED: Machines = Machines {
    on: &[MachineClass::Host, MachineClass::Ranks, MachineClass::Chip],
    on_other_machines: OnOtherMachines::Refused,
};
const SEEDED: Machines = Machines {
    on: &[MachineClass::Loopback, MachineClass::Chip],
    on_other_machines: OnOtherMachines::FlagRefused,
};

/// Makes a flag of `group`.
const fn flag(group: FlagGroup, name: &'static str, value: &'static str) -> SettingFlag {
    SettingFlag { name, short: None, value, group, takes_hyphen: false, repeats: false }
}

const fn flag_of_run(name: &'static str, value: &'static str) -> Option<SettingFlag> {
    Some(flag(FlagGroup::Run, name, value))
}

const fn flag_of_chip(name: &'static str, value: &'static str) -> Option<SettingFlag> {
    Some(flag(FlagGroup::Chip, name, value))
}

const fn flag_of_file(name: &'static str) -> Option<SettingFlag> {
    Some(flag(FlagGroup::Files, name, "FILE"))
}

/// Makes the functions that read and format a field of the chip's settings. In a program without modelled chips the
/// reader ignores any value, and the formatter is a placeholder.
#[cfg(feature = "chip")]
macro_rules! of_chip {
    (read $field:ident by $read:path) => {
        |environment, source, value| {
            environment.chip.$field = $read(source, value)?;
            Ok(())
        }
    };
    (format $format:expr) => {
        $format
    };
}
#[cfg(not(feature = "chip"))]
macro_rules! of_chip {
    (read $field:ident by $read:path) => {
        |_, _, _| Ok(())
    };
    (format $format:expr) => {
        String::new
    };
}

#[cfg(feature = "chip")]
use chip::read_work;

/// Reads `said`, which is allowed on every machine.
#[cfg(not(feature = "chip"))]
fn read_work(_: &mut Environment, source: &str, value: &str) -> Result<(), ConfigError> {
    match value {
        "said" => Ok(()),
        _ => Err(ConfigError::new(source, value, format!("said; {LACKS_CHIPS}"))),
    }
}

/// The reader of a setting that is not read with the others but where it is used.
const READ_ELSEWHERE: Reader = |_, _, _| Ok(());

/// Returns the row named `name`; in a constant, at compile time.
///
/// # Panics
/// If there is no such row.
pub const fn setting(name: &str) -> &'static SettingRow {
    let mut number = 0;
    while number < SETTINGS.len() {
        if is_same(SETTINGS[number].name, name) {
            return &SETTINGS[number];
        }
        number += 1;
    }
    panic!("there is no setting of this name")
}

/// Compares two texts in constant evaluation.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut number = 0;
    while number < one.len() && number < other.len() && one[number] == other[number] {
        number += 1;
    }
    one.len() == other.len() && number == one.len()
}

/// All settings, in the order in which they are read and listed.
pub const SETTINGS: &[SettingRow] = &[
    SettingRow {
        name: "machine",
        variable: "ISLES_MACHINE",
        flag: flag_of_run("--machine", "M"),
        about: "What the places are: `threads`, `processes`, `guests`, `mpi`, `loopback`, `chip:NAME` (`isles chip \
                list`) or `chip:FILE.toml`",
        default: SettingDefault::Words("`processes`; `threads` for a program that is started directly"),
        machines: ALL,
        stored: Stored::OwnField,
        read: |environment, source, value| {
            environment.machine = Some(readers::machine(source, value)?);
            Ok(())
        },
    },
    SettingRow {
        name: "places",
        variable: "ISLES_PLACES",
        flag: Some(SettingFlag { short: Some('n'), ..flag(FlagGroup::Run, "--places", "N") }),
        about: "The number of places: 1 to 256; on a chip up to its number of cores, at most 32,768",
        default: SettingDefault::Words(
            "one for each processor; on a modelled chip one for each core (at most 256), or each core of \
             its `--placement`",
        ),
        machines: ALL,
        stored: Stored::OwnField,
        read: |environment, source, value| {
            let machine = environment.machine.as_ref().map(|machine| &machine.value);
            environment.places = Some(readers::places(source, value, machine)?);
            Ok(())
        },
    },
    SettingRow {
        name: "pinning",
        variable: "ISLES_PIN",
        flag: Some(SettingFlag { takes_hyphen: true, ..flag(FlagGroup::Run, "--pin", "HOW") }),
        about: "[Processors of the host](#cores) to pin places to: `auto`, `no`, or one for each such as \
             `0,2,4-7`",
        default: SettingDefault::Value("auto"),
        machines: HOST,
        stored: Stored::Nowhere,
        read: |environment, source, value| {
            environment.pinning = pinning::read(source, value)?;
            Ok(())
        },
    },
    SettingRow {
        name: "report",
        variable: "ISLES_REPORT",
        flag: flag_of_run("--report", "WHAT"),
        about: "[What is printed at the end](measuring.md): `captures`, `finish`, `messages`, \
             `counters`, `balance`, `chip`, or several separated by commas",
        default: SettingDefault::Nothing("nothing"),
        machines: ALL,
        stored: Stored::Nowhere,
        read: |environment, source, value| {
            environment.reports = readers::reports(source, value)?;
            Ok(())
        },
    },
    SettingRow {
        name: "record",
        variable: "ISLES_RECORD",
        flag: flag_of_run("--record", "DIR"),
        about: "The directory, empty or not yet existing, in which the run is [recorded](watching.md): \
             for `isles top`, `isles replay` and `isles report`",
        default: SettingDefault::Nothing("not recorded"),
        machines: OBSERVED,
        stored: Stored::Nowhere,
        read: |environment, source, value| {
            environment.record = Some(observe::read(source, value)?);
            Ok(())
        },
    },
    SettingRow {
        name: "color",
        variable: "ISLES_COLOR",
        flag: Some(flag(FlagGroup::Command, "--color", "WHEN")),
        about: "Whether errors, warnings and heads of tables have colours: `auto`, `always` or `never`",
        default: SettingDefault::Words(
            "`auto`: on a terminal, unless `NO_COLOR` is set or it is a rank of MPI",
        ),
        machines: ALL,
        stored: Stored::Nowhere,
        read: |environment, source, value| {
            environment.color = Some(color::read(source, value)?);
            Ok(())
        },
    },
    SettingRow {
        name: "stall",
        variable: "ISLES_STALL",
        flag: None,
        about: "Seconds of silence before a stall report; 0 for never",
        default: SettingDefault::Words("30; in tests 10"),
        machines: ALL,
        stored: Stored::Nowhere,
        read: |environment, source, value| {
            environment.stall_report = Some(readers::silence(source, value)?);
            Ok(())
        },
    },
    SettingRow {
        name: "stall limit",
        variable: "ISLES_STALL_LIMIT",
        flag: None,
        about: "Seconds of silence before a run fails with that report as its error, and seconds that \
             tasks of a failed `main` may still run; 0 for never",
        default: SettingDefault::Words("0; in tests 60"),
        machines: ALL,
        stored: Stored::Nowhere,
        read: |environment, source, value| {
            environment.stall_limit = Some(readers::silence(source, value)?);
            Ok(())
        },
    },
    SettingRow {
        name: "host silence",
        variable: "ISLES_HOST_SILENCE",
        flag: None,
        about: "Seconds of silence after which a [place of another host](cluster.md) counts as lost; 0 for never",
        default: SettingDefault::Words("5"),
        machines: RANKS,
        stored: Stored::Nowhere,
        read: |_, source, value| readers::host_silence(source, value).map(drop),
    },
    SettingRow {
        name: "collectives",
        variable: "ISLES_COLLECTIVES",
        flag: None,
        about: "Collectives of [teams over several hosts](teams.md): `hierarchical`, where one member of each host talks to \
                other hosts, or `flat`, as on one host",
        default: SettingDefault::Words("`hierarchical`"),
        machines: RANKS,
        stored: Stored::Nowhere,
        read: |_, source, value| readers::hierarchical_collectives(source, value).map(drop),
    },
    SettingRow {
        name: "cache",
        variable: "ISLES_CACHE",
        flag: None,
        about: "The folder of [fetched graphs](graphs.md), for the `isles` command",
        default: SettingDefault::Words("`~/.cache/isles`"),
        machines: ALL,
        stored: Stored::Nowhere,
        read: READ_ELSEWHERE,
    },
    SettingRow {
        name: "map",
        variable: "ISLES_MAP",
        flag: None,
        about: "Where the tasks and hubs of a [program over hubs](hubs.md) are: a file `NAME.toml`, or \
             `name=place` pairs separated by commas",
        default: SettingDefault::Words("all at place 0, or as the program says"),
        machines: ALL,
        stored: Stored::Nowhere,
        read: READ_ELSEWHERE,
    },
    SettingRow {
        name: "seed",
        variable: "ISLES_SEED",
        flag: flag_of_chip("--seed", "N"),
        about: "The seed of the order of simultaneous events on a modelled chip, or of all events on the \
             loopback: a whole number",
        default: SettingDefault::Value("0"),
        machines: SEEDED,
        stored: Stored::OwnField,
        read: |environment, source, value| {
            environment.seed = readers::seed(source, value)?;
            Ok(())
        },
    },
    SettingRow {
        name: "protocol",
        variable: "ISLES_CHIP_PROTOCOL",
        flag: flag_of_chip("--protocol", "NAME"),
        about: "[Message protocol](chip/protocols/README.md) of a modelled chip: `doorbell`, `rcce-x10`, \
             `sections`, `sections-by-places`, `sections-memory`, `sections-mixed`, `sockets`, `mpi-sock`, `rcce`, \
             `ring` or `packets`",
        default: SettingDefault::Words(
            "`doorbell`, or `packets` on a chip without message buffers, if \
             it supports that many places",
        ),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(
            format | settings,
            chip,
            places | settings.protocol_on(chip, places).to_string()
        )),
        read: of_chip!(read protocol by chip::read_protocol),
    },
    SettingRow {
        name: "placement",
        variable: "ISLES_CHIP_PLACEMENT",
        flag: Some(SettingFlag { takes_hyphen: true, ..flag(FlagGroup::Chip, "--placement", "HOW") }),
        about: "[Which place runs on which core](chip/using.md) of a modelled chip: `linear`, `spread` over the tiles, \
                or a list of cores such as `0,2,10-13`",
        default: SettingDefault::Value("linear"),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(
            format | settings,
            _,
            _ | settings.placement.value.to_string()
        )),
        read: of_chip!(read placement by chip::read_placement),
    },
    SettingRow {
        name: "constants",
        variable: "ISLES_CHIP_SET",
        flag: Some(SettingFlag { repeats: true, ..flag(FlagGroup::Chip, "--set", "KEY=VALUE") }),
        about: "[A constant](chip/files.md#other-constants) of a modelled chip that overrides the one in \
             its file, by a key of `isles chip show`, such as `links.flit_time=2`; several separated by \
             semicolons",
        default: SettingDefault::Words("as its file says"),
        machines: CHIP,
        stored: Stored::OwnField,
        read: of_chip!(read constants by chip::read_name),
    },
    SettingRow {
        name: "preset",
        variable: "ISLES_CHIP_PRESET",
        flag: flag_of_chip("--preset", "NAME"),
        about: "[Clocks](chip/files.md) of a modelled chip, by a name of `isles chip show`, such as `800/1600/1066`",
        default: SettingDefault::Words("as its file says"),
        machines: CHIP,
        stored: Stored::OwnField,
        read: of_chip!(read preset by chip::read_name),
    },
    SettingRow {
        name: "power model",
        variable: "ISLES_CHIP_POWER",
        flag: flag_of_chip("--power", "NAME"),
        about: "[Power model](chip/energy.md) of a modelled chip that caps are based on, by a name of \
             `isles chip show`",
        default: SettingDefault::Words("its file's first"),
        machines: CHIP,
        stored: Stored::OwnField,
        read: of_chip!(read power by chip::read_name),
    },
    SettingRow {
        name: "voltages",
        variable: "ISLES_CHIP_VOLTAGES",
        flag: flag_of_chip("--voltages", "NAME"),
        about: "[Voltage table](design/chip-sources.md#which-voltage-a-rate-needs) of a modelled chip for all its \
                power models, by a name of `isles chip show`",
        default: SettingDefault::Words("the one that the power model was fitted with"),
        machines: CHIP,
        stored: Stored::OwnField,
        read: of_chip!(read voltages by chip::read_name),
    },
    SettingRow {
        name: "governor",
        variable: "ISLES_CHIP_GOVERNOR",
        flag: flag_of_chip("--governor", "POLICY"),
        about: "[What chooses the clocks](chip/energy.md#rates-and-voltages) of a modelled chip: `fixed`, \
                `fixed:DIVIDER`, `on-demand`, `phase-aware`, `capped:WATTS`",
        default: SettingDefault::Value("fixed"),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(
            format | settings,
            _,
            _ | settings.governor.value.to_string()
        )),
        read: of_chip!(read governor by chip::read_governor),
    },
    SettingRow {
        name: "rest",
        variable: "ISLES_CHIP_REST",
        flag: flag_of_chip("--rest", "HOW"),
        about: "[What waiting places do](chip/energy.md#rates-and-voltages) on a modelled chip: `poll`, \
             or `nap:TIME` to halt for that time before each poll",
        default: SettingDefault::Value("poll"),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(format | settings, _, _ | settings.rest.to_string())),
        read: of_chip!(read rest by chip::read_rest),
    },
    SettingRow {
        name: "broadcast",
        variable: "ISLES_CHIP_BROADCAST",
        flag: flag_of_chip("--broadcast", "HOW"),
        about: "Algorithm of [`broadcast` of teams](chip/collectives.md) on a modelled chip: `auto`, \
             `flat`, `binomial`, `chain`, `scatter-allgather`, `fan:CHILDREN` (as OC-Bcast) or \
             `async:CHILDREN` (by interrupts)",
        default: SettingDefault::Value("auto"),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(
            format | settings,
            _,
            _ | settings.broadcast.value.to_string()
        )),
        read: of_chip!(read broadcast by chip::Broadcast::read),
    },
    SettingRow {
        name: "reduce",
        variable: "ISLES_CHIP_REDUCE",
        flag: flag_of_chip("--reduce", "HOW"),
        about: "Algorithm of [`reduce` of teams](chip/collectives.md) on a modelled chip: `auto`, \
             `serial` or `logarithmic`",
        default: SettingDefault::Value("auto"),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(format | settings, _, _ | settings.reduce.to_string())),
        read: of_chip!(read reduce by chip::Reduce::read),
    },
    SettingRow {
        name: "window-lines",
        variable: "ISLES_CHIP_WINDOW_LINES",
        flag: flag_of_chip("--window-lines", "N"),
        about: "Lines of each message buffer that are kept for [served windows](windows.md) on a modelled \
             chip; messages have the rest",
        default: SettingDefault::Value("0"),
        machines: CHIP,
        stored: Stored::TapeAndSummary(of_chip!(
            format | settings,
            _,
            _ | settings.window_lines.value.to_string()
        )),
        read: of_chip!(read window_lines by chip::read_window_lines),
    },
    SettingRow {
        name: "work",
        variable: "ISLES_CHIP_WORK",
        flag: flag_of_chip("--work", "HOW"),
        about: "[Cost of a program's own code](chip/tape.md) on a modelled chip: `said`, `host:RATIO` to \
             measure it here, or `tape:FILE`",
        default: SettingDefault::Value("said"),
        machines: CHIP_ALONE,
        stored: Stored::Summary(of_chip!(format | settings, _, _ | settings.work.value.to_string())),
        read: read_work,
    },
    SettingRow {
        name: "trace",
        variable: "ISLES_TRACE",
        flag: flag_of_file("--trace"),
        about: "[What each place did when](traces.md), for ui.perfetto.dev; slows the run. For threads, \
             processes, mpi and modelled chips",
        default: SettingDefault::Nothing("not written"),
        machines: OBSERVED,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Trace, source, value),
    },
    SettingRow {
        name: "summary",
        variable: "ISLES_CHIP_SUMMARY",
        flag: flag_of_file("--summary"),
        about: "The [summary](chip/report.md#the-summary) as JSON; `-` is standard output, as for all but `--trace` \
                and `--tape`",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Summary, source, value),
    },
    SettingRow {
        name: "links",
        variable: "ISLES_CHIP_LINKS",
        flag: flag_of_file("--links"),
        about: "Flits, time and utilisation of [each directed link](chip/report.md#links-and-heat-map) as CSV",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Links, source, value),
    },
    SettingRow {
        name: "traffic",
        variable: "ISLES_CHIP_TRAFFIC",
        flag: flag_of_file("--traffic"),
        about: "Messages and bytes [from each place to each other one](chip/report.md#traffic) as CSV",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Traffic, source, value),
    },
    SettingRow {
        name: "heat",
        variable: "ISLES_CHIP_HEAT",
        flag: flag_of_file("--heat"),
        about: "The chip with [its links in the colours of their utilisation](chip/report.md#links-and-heat-map), and \
                how busy its tiles were, as SVG",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Heat, source, value),
    },
    SettingRow {
        name: "folded",
        variable: "ISLES_CHIP_FOLDED",
        flag: flag_of_file("--folded"),
        about: "Modelled picoseconds by core and category as [folded stacks](chip/report.md#folded-stacks), for flame \
                graphs",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Folded, source, value),
    },
    SettingRow {
        name: "joules",
        variable: "ISLES_CHIP_JOULES",
        flag: flag_of_file("--joules"),
        about: "Modelled nanojoules by core and category as [folded stacks](chip/report.md#folded-stacks)",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Joules, source, value),
    },
    SettingRow {
        name: "tape",
        variable: "ISLES_CHIP_TAPE",
        flag: flag_of_file("--tape"),
        about: "What was [measured with `--work host:RATIO`](chip/tape.md), to replay with `--work \
             tape:FILE`",
        default: SettingDefault::Nothing("not written"),
        machines: CHIP_ALONE,
        stored: Stored::Nowhere,
        read: |environment, source, value| environment.want(Export::Tape, source, value),
    },
];
