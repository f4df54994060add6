//! `isles doctor`: what this host offers to runs, and how each pair of places communicates.
//!
//! It reads facts from the system, and runs a small program over the available places for the rest. Invariant: it
//! changes nothing; it reports what it cannot find out, and goes on.

use clap::Args;
use isles::Machine;
use isles::prelude::*;
use isles_app::console;
use isles_app::console::cpu_info;
use isles_app::{Failure, PlaceArguments, ended};
use isles_telemetry::{HostMeter, HostPart, HostReading};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{MembarrierQuery, membarrier_query, sched_getaffinity};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write;
use std::net::{ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Largest number of places whose paths the table shows one by one; `--json` has them all.
const ROWS_MAX: usize = 64;

/// The arguments of `isles doctor`.
#[derive(Args)]
pub struct Arguments {
    /// Print everything as JSON instead
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    places: PlaceArguments,
}

/// Fitness for runs of what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    /// Runs work, but slower, or not everywhere.
    Poor,
    /// Some feature of Isles does not work.
    Missing,
}

/// One finding.
#[derive(Debug, Serialize)]
struct Fact {
    name: &'static str,
    value: String,
    verdict: Verdict,
    /// Meaning of the finding and its remedy, unless it is good.
    advice: Option<String>,
}

impl Fact {
    fn good(name: &'static str, value: impl Into<String>) -> Fact {
        Fact { name, value: value.into(), verdict: Verdict::Good, advice: None }
    }

    /// Keeps the fact as good if `is_good`; otherwise sets `verdict` and `advice`.
    fn unless(self, is_good: bool, verdict: Verdict, advice: &str) -> Fact {
        if is_good { self } else { Fact { verdict, advice: Some(advice.to_owned()), ..self } }
    }
}

/// Facts that a place reports about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PlaceFacts {
    place: usize,
    host: String,
    process: u32,
    /// The processors it may use, as `lscpu` numbers them.
    processors: Vec<usize>,
    /// The other places that it communicates with through memory.
    memory: Vec<usize>,
}

/// Prints the findings.
///
/// # Errors
/// No run is possible here; the list says so, too.
pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let launch = arguments.places.launch(Vec::new())?;
    let machine = launch.chosen_machine();
    if !matches!(machine, Machine::Threads | Machine::Processes | Machine::Mpi) {
        let text = format!("--machine is {:?}; allowed: threads, processes, mpi", machine.name());
        return Err(Failure::Usage(text));
    }
    let mut facts = facts();
    let (places, all) = std::sync::mpsc::channel();
    let run = launch.run(move || async move {
        let mut found = Vec::with_capacity(place_count());
        for place in isles::places() {
            found.push(at!(place, local_facts()).await?);
        }
        // Its receiver lives until the run is over.
        let _ = places.send(found);
        Ok::<(), isles::Error>(())
    });
    let ended = ended(run).and_then(|((outcome, _), unwritten)| {
        outcome.map_err(Failure::Run)?;
        Ok(unwritten)
    });
    let (lack, unwritten) = match ended {
        Ok(unwritten) => (None, unwritten),
        Err(failure) => (Some(failure.to_string()), Vec::new()),
    };
    if let Some(lack) = &lack {
        facts.push(Fact::good("places", "no run is possible").unless(false, Verdict::Missing, lack));
    }
    let places = all.recv().unwrap_or_default();
    let far = if machine == Machine::Mpi { "mpi" } else { "none" };
    let text = match arguments.json {
        true => format!("{:#}\n", as_json(machine.name(), far, &facts, &places)),
        false => as_text(machine.name(), far, &facts, &places),
    };
    let printed = console::print(text).map_err(Failure::stdout);
    let lack = lack.map(|lack| Err(Failure::Usage(lack)));
    Failure::first_of([printed].into_iter().chain(lack).chain(unwritten.into_iter().map(Err)))
}

fn local_facts() -> PlaceFacts {
    let here = isles::here();
    PlaceFacts {
        place: here.index(),
        host: host_name(),
        process: std::process::id(),
        processors: processors(),
        memory: isles::places()
            .filter(|place| *place != here && place.shares_memory())
            .map(|place| place.index())
            .collect(),
    }
}

fn facts() -> Vec<Fact> {
    let mut facts = vec![cores(), memory(), kernel(), proc()];
    facts.extend([huge_pages(), membarrier(), siblings(), one_copy(), open_files(), network()]);
    facts.extend(host_power());
    facts.extend(mpi());
    facts
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn host_name() -> String {
    read("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the processors that this thread may use.
fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect()
}

fn cores() -> Fact {
    let model = cpu_info("model name");
    let count = processors().len();
    let fact = Fact::good("processors", format!("{count}, {}", model.as_deref().unwrap_or("unknown")));
    fact.unless(count > 1, Verdict::Poor, "places share the only processor: more than one place is no faster")
}

fn memory() -> Fact {
    let text = read("/proc/meminfo").unwrap_or_default();
    let gigabytes = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kibibytes * 1024.0 / 1e9)
    };
    match (gigabytes("MemTotal:"), gigabytes("MemAvailable:")) {
        (Some(all), Some(free)) => Fact::good("memory", format!("{all:.1} GB, {free:.1} GB free")),
        _ => Fact::good("memory", "unknown").unless(
            false,
            Verdict::Poor,
            "cannot read it from \
             /proc/meminfo",
        ),
    }
}

fn proc() -> Fact {
    let is_mounted = Path::new("/proc/self/exe").exists();
    let fact = Fact::good("/proc", if is_mounted { "mounted" } else { "not mounted" });
    fact.unless(is_mounted, Verdict::Missing, "places that are processes are started from /proc/self/exe")
}

fn kernel() -> Fact {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let mut numbers = release.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // Sealed memory without a name: 3.17; watching a process by a descriptor: 5.3.
    let fact = Fact::good("kernel", release);
    fact.unless(version >= (5, 3), Verdict::Missing, "processes as places need Linux 5.3")
}

fn huge_pages() -> Fact {
    let path = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let chosen = read(path).and_then(|text| {
        let word = text.split_whitespace().find(|word| word.starts_with('['))?;
        Some(word.trim_matches(['[', ']']).to_owned())
    });
    let chosen = chosen.unwrap_or_else(|| "not offered".to_owned());
    let is_good = ["advise", "always", "within_size", "force"].contains(&chosen.as_str());
    let fact = Fact::good("huge pages of shared memory", chosen);
    fact.unless(is_good, Verdict::Poor, "large messages use pages of 4 KiB; set shmem_enabled to `advise`")
}

/// Returns energy and clocks of the host, as far as its files have them; no run needs them.
fn host_power() -> [Fact; 2] {
    let HostReading { energy, clocks } = HostMeter::of_system().read();
    let energy = match energy {
        HostPart::Read(zones) => {
            let zones = zones.iter().map(|zone| format!("{} ({})", zone.name, zone.source));
            zones.collect::<Vec<_>>().join(", ")
        }
        HostPart::Unreadable(why) => why,
    };
    let clocks = match clocks {
        HostPart::Read(clocks) => {
            let mhz = clocks.iter().map(|clock| clock.mhz);
            let (least, most) =
                mhz.fold((f64::MAX, 0.0f64), |(least, most), mhz| (least.min(mhz), most.max(mhz)));
            let governor =
                clocks[0].governor.as_ref().map(|governor| format!(", {governor}")).unwrap_or_default();
            format!("{least:.0} to {most:.0} MHz{governor} ({})", clocks[0].source)
        }
        HostPart::Unreadable(why) => why,
    };
    [Fact::good("energy of the host", energy), Fact::good("clocks of the host", clocks)]
}

fn membarrier() -> Fact {
    let offered = membarrier_query().contains(MembarrierQuery::PRIVATE_EXPEDITED);
    let fact = Fact::good("membarrier", if offered { "offered" } else { "not offered" });
    fact.unless(offered, Verdict::Poor, "a place fences itself before it sleeps")
}

fn siblings() -> Fact {
    let scope = read("/proc/sys/kernel/yama/ptrace_scope");
    let is_good = scope.as_deref().is_none_or(|scope| scope == "0" || rustix::process::geteuid().is_root());
    let value = scope.map_or("none".to_owned(), |scope| format!("ptrace_scope {scope}"));
    let fact = Fact::good("guard between processes", value);
    let advice = "ranks of one host may not open each other's memory, and talk over MPI instead";
    fact.unless(is_good, Verdict::Poor, advice)
}

fn one_copy() -> Fact {
    let reads = isles::reads_others();
    let fact = Fact::good("long messages", if reads { "one copy (process_vm_readv)" } else { "two copies" });
    fact.unless(
        reads,
        Verdict::Poor,
        "a process may not read another's memory, so long slices go through shared blocks",
    )
}

fn open_files() -> Fact {
    let limit = getrlimit(Resource::Nofile).current;
    let fact =
        Fact::good("open files", limit.map_or("no limit".to_owned(), |limit| format!("at most {limit}")));
    let is_good = limit.is_none_or(|limit| limit >= 1024);
    fact.unless(
        is_good,
        Verdict::Poor,
        "runs of hundreds of places open more; `ulimit -n 4096` raises the limit",
    )
}

fn network() -> Fact {
    let name = host_name();
    let address = (name.as_str(), 0).to_socket_addrs().ok().and_then(|mut found| found.next());
    let bound = address.map(|address| (address.ip(), UdpSocket::bind(address).is_ok()));
    match bound {
        Some((address, true)) => Fact::good("host name", format!("{name}, {address}")),
        Some((address, false)) => Fact::good("host name", format!("{name}, {address}")).unless(
            false,
            Verdict::Poor,
            "this host does not have that address: a message from another host wakes a sleeping rank after up to 10 ms",
        ),
        None => Fact::good("host name", name).unless(
            false,
            Verdict::Poor,
            "it resolves to no address: a message from another host wakes a sleeping rank after up to 10 \
             ms",
        ),
    }
}

fn mpi() -> [Fact; 3] {
    let built = isles::mpi_library();
    let has = built.is_some();
    let library = Fact::good("MPI library", built.unwrap_or_else(|| "none in this program".to_owned()));
    let how = "for more than one host: cargo build --release -p isles-cli --features mpi";
    let tool = |name: &'static str, program: &str, advice: &str| {
        let path = on_path(program);
        let says = path.as_ref().and_then(|path| first_line(path));
        let place = path.as_ref().map_or("not found".to_owned(), |path| path.display().to_string());
        let value = says.map_or(place.clone(), |says| format!("{place}, {says}"));
        Fact::good(name, value).unless(path.is_some(), Verdict::Missing, advice)
    };
    [
        library.unless(has, Verdict::Missing, how),
        tool("MPI compiler", "mpicc", "apt-get install libopenmpi-dev, or libmpich-dev"),
        tool("MPI launcher", "mpirun", "apt-get install openmpi-bin, or mpich"),
    ]
}

fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn first_line(program: &Path) -> Option<String> {
    let output =
        Command::new(program).arg("--version").output().ok().filter(|output| output.status.success())?;
    let line = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

fn as_json(machine: &str, far: &str, facts: &[Fact], places: &[PlaceFacts]) -> serde_json::Value {
    let path = |from: &PlaceFacts, to: &PlaceFacts| {
        let by = if from.memory.contains(&to.place) { "memory" } else { far };
        json!({ "from": from.place, "to": to.place, "by": by })
    };
    let paths: Vec<_> = places
        .iter()
        .flat_map(|from| places.iter().filter(|to| to.place != from.place).map(move |to| path(from, to)))
        .collect();
    json!({ "facts": facts, "machine": machine, "places": places, "paths": paths })
}

fn as_text(machine: &str, far: &str, facts: &[Fact], places: &[PlaceFacts]) -> String {
    let width = facts.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for fact in facts {
        let mark = match fact.verdict {
            Verdict::Good => "ok     ",
            Verdict::Poor => "poor   ",
            Verdict::Missing => "missing",
        };
        let _ = writeln!(text, "{mark}  {:width$}  {}", fact.name, fact.value);
        if let Some(advice) = &fact.advice {
            let _ = writeln!(text, "         {:width$}  ({advice})", "");
        }
    }
    if places.is_empty() {
        return text;
    }
    let _ = writeln!(text, "\nmachine {machine}, {} places", places.len());
    let hosts = places.iter().map(|place| place.host.len()).max().unwrap_or(0).max(4);
    let _ = writeln!(text, "place  {:hosts$}  process  processors  talks by", "host");
    for place in places.iter().take(ROWS_MAX) {
        let rest: Vec<usize> =
            (0..places.len()).filter(|to| *to != place.place && !place.memory.contains(to)).collect();
        let ways = [("memory", &place.memory), (far, &rest)];
        let ways = ways.iter().filter(|(_, to)| !to.is_empty());
        let ways: Vec<String> = ways.map(|(by, to)| format!("{by}: {}", ranges(to))).collect();
        let _ = writeln!(
            text,
            "{:>5}  {:hosts$}  {:>7}  {:<10}  {}",
            place.place,
            place.host,
            place.process,
            ranges(&place.processors),
            ways.join("; ")
        );
    }
    if places.len() > ROWS_MAX {
        let _ = writeln!(text, "and {} more; --json lists all", places.len() - ROWS_MAX);
    }
    text
}

/// Formats ascending numbers, with runs of them as `first-last`.
fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let word = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers_are_shortened() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn each_pair_of_places_has_its_way() {
        let place = |place, memory: &[usize]| PlaceFacts {
            place,
            host: "a".to_owned(),
            process: 1,
            processors: vec![0, 1],
            memory: memory.to_vec(),
        };
        let places = [place(0, &[1]), place(1, &[0]), place(2, &[])];
        let json = as_json("mpi", "mpi", &[], &places);
        let by: Vec<&str> =
            json["paths"].as_array().unwrap().iter().filter_map(|p| p["by"].as_str()).collect();
        assert_eq!(by, ["memory", "mpi", "memory", "mpi", "mpi", "mpi"]);
        let text = as_text("mpi", "mpi", &[], &places);
        assert!(text.contains("memory: 1; mpi: 2\n"), "{text}");
        assert!(text.ends_with("mpi: 0-1\n"), "{text}");
    }
}
