//! The host's own power and clocks, read and never set: RAPL through powercap, and cpufreq.
//!
//! A reading names its file. Many hosts, virtual machines among them, offer nothing, and energy is often readable by
//! root only; then there is no number, and the text names the file and the reason. Invariant: no number is made up,
//! estimated or carried over from another file.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Folder of the energies, below the root of the system's files.
const POWERCAP: &str = "class/powercap";

/// Folder of the clocks, below the root of the system's files.
const PROCESSORS: &str = "devices/system/cpu";

/// Maximum bytes of a file that are used: each holds a word.
const FILE_BYTES_MAX: u64 = 4096;

/// Reads power and clocks of a host repeatedly.
#[derive(Debug)]
pub struct HostMeter {
    root: PathBuf,
    zones: BTreeMap<PathBuf, ZoneState>,
}

/// Last reading of a zone, and its energy since the first one.
#[derive(Debug)]
struct ZoneState {
    counter: u64,
    microjoules: u64,
}

/// Readings of a host at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostReading {
    /// The energy of each zone.
    pub energy: HostPart<EnergyZone>,
    /// The clock of each processor.
    pub clocks: HostPart<HostClock>,
}

/// Readings of one kind, or the reason why there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPart<T> {
    /// At least one.
    Read(Vec<T>),
    /// `not readable here:` and the reason.
    Unreadable(String),
}

/// Energy that a part of the host has drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnergyZone {
    /// Its name as the system has it: `package-0`.
    pub name: String,
    /// The file.
    pub source: String,
    /// Energy since the first reading by this meter.
    pub joule: f64,
}

/// The clock of a processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostClock {
    /// Its number.
    pub processor: u32,
    /// The file.
    pub source: String,
    /// Clock rate that the system reports, in MHz.
    pub mhz: f64,
    /// Governor that chooses the rate, if that can be read.
    pub governor: Option<String>,
}

impl HostMeter {
    /// Returns a meter of this host.
    pub fn of_system() -> HostMeter {
        HostMeter::at(Path::new("/sys"))
    }

    /// Returns a meter of the files below `root`, which is laid out like `/sys`.
    pub fn at(root: &Path) -> HostMeter {
        HostMeter { root: root.to_owned(), zones: BTreeMap::new() }
    }

    /// Reads everything that is readable now.
    pub fn read(&mut self) -> HostReading {
        let unreadable = |why: String| format!("not readable here: {why}");
        HostReading {
            energy: self.energy().map_or_else(|why| HostPart::Unreadable(unreadable(why)), HostPart::Read),
            clocks: self.clocks().map_or_else(|why| HostPart::Unreadable(unreadable(why)), HostPart::Read),
        }
    }

    /// Returns the energy of each readable zone; the reason if none is readable.
    fn energy(&mut self) -> Result<Vec<EnergyZone>, String> {
        let folder = self.root.join(POWERCAP);
        let is_zone = |name: &str| name.split_once(':').is_some_and(|(driver, _)| driver.contains("rapl"));
        let mut zones = Vec::new();
        let mut why = format!("{} has no zone of RAPL", folder.display());
        for zone in entries(&folder, is_zone)? {
            match self.zone(&zone) {
                Ok(zone) => zones.push(zone),
                Err(cause) => why = cause,
            }
        }
        if zones.is_empty() { Err(why) } else { Ok(zones) }
    }

    fn zone(&mut self, zone: &Path) -> Result<EnergyZone, String> {
        let source = zone.join("energy_uj");
        let counter: u64 = number(&source)?;
        let name = word(&zone.join("name"))?;
        // The counter wraps after this value; without the file, it never wraps.
        let range = number(&zone.join("max_energy_range_uj")).unwrap_or(u64::MAX);
        let state = self.zones.entry(zone.to_owned()).or_insert(ZoneState { counter, microjoules: 0 });
        let passed = match counter.checked_sub(state.counter) {
            Some(passed) => passed,
            None => (range.saturating_sub(state.counter)).saturating_add(counter),
        };
        state.counter = counter;
        state.microjoules = state.microjoules.saturating_add(passed);
        Ok(EnergyZone { name, source: source.display().to_string(), joule: state.microjoules as f64 / 1e6 })
    }

    fn clocks(&self) -> Result<Vec<HostClock>, String> {
        let folder = self.root.join(PROCESSORS);
        let number_of = |name: &str| name.strip_prefix("cpu")?.parse::<u32>().ok();
        let mut clocks = Vec::new();
        let mut why = format!("{} has no processor with cpufreq", folder.display());
        for path in entries(&folder, |name| number_of(name).is_some())? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let source = path.join("cpufreq/scaling_cur_freq");
            match number::<u64>(&source) {
                Ok(kilohertz) => clocks.push(HostClock {
                    processor: number_of(&name).unwrap_or_default(),
                    source: source.display().to_string(),
                    mhz: kilohertz as f64 / 1e3,
                    governor: word(&path.join("cpufreq/scaling_governor")).ok(),
                }),
                Err(cause) => why = cause,
            }
        }
        clocks.sort_by_key(|clock| clock.processor);
        if clocks.is_empty() { Err(why) } else { Ok(clocks) }
    }
}

/// Returns the entries of a folder whose names match, in order.
fn entries(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
    let listed = fs::read_dir(folder).map_err(|cause| read_error(folder, &cause))?;
    let mut found: Vec<PathBuf> = listed
        .filter_map(Result::ok)
        .filter(|entry| is_wanted(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    Ok(found)
}

fn word(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map(|file| file.take(FILE_BYTES_MAX));
    opened.and_then(|mut start| start.read_to_end(&mut bytes)).map_err(|cause| read_error(file, &cause))?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    let is_word = !text.is_empty() && text.chars().all(|character| character.is_ascii_graphic());
    if is_word { Ok(text) } else { Err(format!("{} is {text:?}; allowed: a word", file.display())) }
}

fn number<N: std::str::FromStr>(file: &Path) -> Result<N, String> {
    let text = word(file)?;
    text.parse().map_err(|_| format!("{} is {text:?}; allowed: a whole number", file.display()))
}

fn read_error(path: &Path, cause: &io::Error) -> String {
    format!("{}: {cause}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replacement for `/sys`.
    struct System(PathBuf);

    impl System {
        fn new(name: &str) -> System {
            let root = std::env::temp_dir().join(format!("isles-host-{}-{name}", std::process::id()));
            fs::create_dir_all(&root).unwrap();
            System(root)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn zone(&self, zone: &str, name: &str, energy: &str) {
            self.write(&format!("class/powercap/{zone}/name"), &format!("{name}\n"));
            self.write(&format!("class/powercap/{zone}/energy_uj"), &format!("{energy}\n"));
            self.write(&format!("class/powercap/{zone}/max_energy_range_uj"), "1000000\n");
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn joules(reading: &HostReading) -> Vec<(String, f64)> {
        let HostPart::Read(zones) = &reading.energy else { panic!("{reading:?}") };
        zones.iter().map(|zone| (zone.name.clone(), zone.joule)).collect()
    }

    #[test]
    fn energies_count_from_the_first_reading_also_where_the_counter_begins_again() {
        let system = System::new("energy");
        system.zone("intel-rapl:0", "package-0", "900000");
        system.zone("intel-rapl:0:0", "core", "5");
        system.write("class/powercap/dtpm/energy_uj", "1");
        let mut meter = HostMeter::at(&system.0);
        assert_eq!(joules(&meter.read()), [("package-0".to_owned(), 0.0), ("core".to_owned(), 0.0)]);
        system.zone("intel-rapl:0", "package-0", "400000");
        system.zone("intel-rapl:0:0", "core", "250005");
        let reading = meter.read();
        assert_eq!(joules(&reading), [("package-0".to_owned(), 0.5), ("core".to_owned(), 0.25)]);
        let HostPart::Read(zones) = reading.energy else { panic!() };
        assert!(zones[0].source.ends_with("class/powercap/intel-rapl:0/energy_uj"), "{zones:?}");
    }

    #[test]
    fn clocks_are_those_of_each_processor_with_what_chooses_them() {
        let system = System::new("clocks");
        for (processor, kilohertz) in [(0, "2400000\n"), (2, "800000\n"), (10, "3100500\n")] {
            let path = format!("devices/system/cpu/cpu{processor}/cpufreq/scaling_cur_freq");
            system.write(&path, kilohertz);
        }
        system.write("devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n");
        system.write("devices/system/cpu/cpufreq/policy0/scaling_cur_freq", "1\n");
        let HostPart::Read(clocks) = HostMeter::at(&system.0).read().clocks else { panic!() };
        let known: Vec<_> =
            clocks.iter().map(|clock| (clock.processor, clock.mhz, clock.governor.as_deref())).collect();
        assert_eq!(known, [(0, 2400.0, None), (2, 800.0, Some("powersave")), (10, 3100.5, None)]);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_file_and_never_made_up() {
        let system = System::new("nothing");
        let reading = HostMeter::at(&system.0).read();
        let (HostPart::Unreadable(energy), HostPart::Unreadable(clocks)) = (reading.energy, reading.clocks)
        else {
            panic!("there are no files");
        };
        assert!(energy.starts_with("not readable here: ") && energy.contains("class/powercap: "), "{energy}");
        assert!(
            clocks.starts_with("not readable here: ") && clocks.contains("devices/system/cpu: "),
            "{clocks}"
        );
        system.zone("intel-rapl:0", "package-0", "warm \u{1b}[2J");
        system.write("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "-5");
        let reading = HostMeter::at(&system.0).read();
        let (HostPart::Unreadable(energy), HostPart::Unreadable(clocks)) = (reading.energy, reading.clocks)
        else {
            panic!("no number is one");
        };
        assert!(energy.ends_with(r#"energy_uj is "warm \u{1b}[2J"; allowed: a word"#), "{energy}");
        assert!(clocks.ends_with(r#"scaling_cur_freq is "-5"; allowed: a whole number"#), "{clocks}");
    }
}
