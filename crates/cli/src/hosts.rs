//! `isles launch --hosts`: the command line that starts a program as ranks on several hosts.
//!
//! The launcher of an MPI library starts them; this file writes its command line, in the syntax of the installed
//! library. Invariant: nothing is started before all hosts are known to have an address.

use clap::Args;
use isles::{Flag, SettingRow, setting};
use isles_app::Failure;
use isles_app::console;
use isles_app::runs::refusal;
use std::env;
use std::ffi::OsString;
use std::net::ToSocketAddrs;
use std::process::Command;

/// Largest number of ranks on a command line: more than any library was tried with.
const RANKS_MAX: u32 = 65_536;

/// Keepalive of Open MPI's `mpirun`: seconds of silence before it probes a host, seconds between two probes, and number
/// of probes. Its defaults are minutes. It must notice before ranks end because they miss others, after 5 seconds: once
/// it has sent that to a host that is cut off, TCP waits for the host without probing.
const SILENCE_OF_TCP: [(&str, u32); 3] = [("time", 2), ("intvl", 1), ("probes", 2)];

/// The launcher of the library that is installed, or was installed last.
const LAUNCHER: &str = "mpirun";

/// The settings that the command line itself sets.
const PLACES: &SettingRow = setting("places");
const MACHINE: &SettingRow = setting("machine");

/// Longest silence of another host.
const HOST_SILENCE: &SettingRow = setting("host silence");

/// Hosts on which ranks run.
#[derive(Args)]
#[command(next_help_heading = "Several hosts")]
pub struct HostsArguments {
    /// Hosts that run the program as MPI ranks, separated by commas
    #[arg(long, value_name = "A,B,..")]
    hosts: Option<String>,

    /// Number of places on each host [default: 1]
    #[arg(long, value_name = "N", requires = "hosts", allow_negative_numbers = true)]
    places_per_host: Option<String>,

    /// Only print the command that would start it
    #[arg(long, requires = "hosts")]
    dry_run: bool,
}

/// Library of the launcher; the two have different option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    OpenMpi,
    Mpich,
}

impl Library {
    /// Returns the library whose launcher is found first, and the launcher. If both are installed, with Debian's names,
    /// it is the library that this program was built with: as a rule the other program was, too.
    fn of_launcher() -> Result<(Library, &'static str), Failure> {
        let said = |launcher: &str| Command::new(launcher).arg("--version").output();
        let built = isles::mpi_library().and_then(|version| Library::of_version(&version));
        if let Some(library) = built
            && said(library.launcher()).is_ok()
        {
            return Ok((library, library.launcher()));
        }
        let output = said(LAUNCHER).map_err(|cause| {
            Failure::Usage(format!(
                "--hosts needs {LAUNCHER}, but it cannot be started: {cause}; see `isles doctor`"
            ))
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let unknown = |said: &str| refusal(LAUNCHER, said, "the launcher of Open MPI or MPICH (Hydra)");
        let library = Library::of_version(&text);
        let library = library.ok_or_else(|| unknown(text.lines().next().unwrap_or("silent").trim()))?;
        Ok((library, LAUNCHER))
    }

    /// Returns its launcher, by Debian's name if there may be several.
    fn launcher(self) -> &'static str {
        match self {
            Library::OpenMpi => "mpirun.openmpi",
            Library::Mpich => "mpirun.mpich",
        }
    }

    /// Returns the library that this version text of a library or its launcher names.
    fn of_version(text: &str) -> Option<Library> {
        match text {
            _ if text.contains("Open MPI") => Some(Library::OpenMpi),
            _ if text.contains("HYDRA") || text.contains("MPICH") => Some(Library::Mpich),
            _ => None,
        }
    }

    /// Returns the words before the program: `per_host` ranks on each of `hosts`, with these variables, and with those
    /// that this process has inherited, which Hydra passes on by itself.
    fn words(self, hosts: &[&str], per_host: u32, flags: &[Flag<'_>], inherited: &[String]) -> Vec<String> {
        let slots = hosts.iter().map(|host| format!("{host}:{per_host}")).collect::<Vec<_>>().join(",");
        let ranks = (hosts.len() as u32 * per_host).to_string();
        let mut words: Vec<String> = match self {
            // Without the last option, the only rank of each host is bound to its first core, and waiting ranks keep
            // their processors.
            Library::OpenMpi => {
                vec!["--host", &slots, "-n", &ranks, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
            }
            Library::Mpich => vec!["-hosts", &slots, "-n", &ranks],
        }
        .into_iter()
        .map(str::to_owned)
        .collect();
        // A silence limit that the user has set is the only one.
        let is_silence_chosen = inherited.iter().any(|name| name == HOST_SILENCE.variable);
        if self == Library::OpenMpi && !is_silence_chosen {
            words.extend(SILENCE_OF_TCP.iter().flat_map(|(name, value)| {
                ["--mca".to_owned(), format!("oob_tcp_keepalive_{name}"), value.to_string()]
            }));
        }
        if self == Library::OpenMpi {
            words.extend(inherited.iter().flat_map(|name| ["-x".to_owned(), name.clone()]));
        }
        for Flag { variable, value, .. } in flags {
            match self {
                Library::OpenMpi => words.extend(["-x".to_owned(), format!("{variable}={value}")]),
                Library::Mpich => {
                    words.extend(["-genv".to_owned(), (*variable).to_owned(), (*value).to_owned()]);
                }
            }
        }
        words
    }
}

impl HostsArguments {
    /// Returns the command that starts `program`, if hosts are named; it is only printed if [`HostsArguments::is_dry`].
    ///
    /// # Errors
    /// A host or a number is not allowed, a host has no address, or there is no launcher.
    pub fn command(&self, program: &[OsString], flags: &[Flag<'_>]) -> Result<Option<Command>, Failure> {
        let Some(list) = &self.hosts else { return Ok(None) };
        if let Some(Flag { name, .. }) = flags.iter().find(|flag| flag.variable == PLACES.variable) {
            return Err(Failure::Usage(format!(
                "{name} cannot be combined with --hosts; allowed: --places-per-host, the number on each \
                 host"
            )));
        }
        if let Some(Flag { value, .. }) =
            flags.iter().find(|flag| flag.variable == MACHINE.variable && flag.value != "mpi")
        {
            return Err(refusal("--machine", value, "mpi, because --hosts is given"));
        }
        let hosts = hosts(list)?;
        let per_host = self.per_host(hosts.len() as u32)?;
        if !self.dry_run {
            hosts.iter().try_for_each(|host| reachable(host))?;
        }
        let (library, launcher) = Library::of_launcher()?;
        let mut command = Command::new(launcher);
        command.args(library.words(&hosts, per_host, flags, &inherited(flags))).args(program);
        Ok(Some(command))
    }

    /// Returns `true` if the command line is only printed.
    pub fn is_dry(&self) -> bool {
        self.dry_run
    }

    fn per_host(&self, hosts: u32) -> Result<u32, Failure> {
        let most = RANKS_MAX / hosts;
        let text = self.places_per_host.as_deref().unwrap_or("1");
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| refusal("--places-per-host", text, &format!("1 to {most}")))
    }
}

/// Returns the variables of Isles that this process has inherited and no flag sets, in order.
fn inherited(flags: &[Flag<'_>]) -> Vec<String> {
    let is_said = |name: &String| flags.iter().any(|flag| flag.variable == name);
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("ISLES_") && !is_said(name)).collect();
    names.sort();
    names
}

/// Returns the hosts of a list, without duplicates.
fn hosts(list: &str) -> Result<Vec<&str>, Failure> {
    let allowed = "host names or addresses, separated by commas, each once";
    let is_name = |host: &&str| {
        !host.is_empty()
            && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
            && !host.starts_with('-')
    };
    let hosts: Vec<&str> = list.split(',').map(str::trim).collect();
    let is_repeated = hosts.iter().enumerate().any(|(index, host)| hosts[..index].contains(host));
    if is_repeated || !hosts.iter().all(is_name) {
        return Err(refusal("--hosts", list, allowed));
    }
    Ok(hosts)
}

fn reachable(host: &str) -> Result<(), Failure> {
    match (host, 0).to_socket_addrs() {
        Ok(_) => Ok(()),
        Err(cause) => Err(refusal("--hosts", host, &format!("hosts whose names resolve ({cause})"))),
    }
}

/// Prints the command line as a shell reads it.
pub fn print(command: &Command) -> Result<(), Failure> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    console::print(line.join(" ") + "\n").map_err(Failure::stdout)
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_its_words() {
        let flag = Flag { variable: "ISLES_REPORT", name: "--report", value: "finish" };
        let words = |library: Library| library.words(&["a", "b"], 3, &[flag], &[]).join(" ");
        let open_mpi = words(Library::OpenMpi);
        assert!(open_mpi.starts_with("--host a:3,b:3 -n 6 "), "{open_mpi}");
        assert!(open_mpi.contains(" --mca oob_tcp_keepalive_time 2 "), "{open_mpi}");
        assert!(open_mpi.ends_with("-x ISLES_REPORT=finish"), "{open_mpi}");
        let silence = ["ISLES_HOST_SILENCE".to_owned()];
        let chosen = Library::OpenMpi.words(&["a"], 1, &[], &silence).join(" ");
        assert!(chosen.ends_with("-x ISLES_HOST_SILENCE") && !chosen.contains("keepalive"), "{chosen}");
        assert_eq!(words(Library::Mpich), "-hosts a:3,b:3 -n 6 -genv ISLES_REPORT finish");
    }

    #[test]
    fn launchers_are_distinguished() {
        assert_eq!(Library::of_version("mpirun (Open MPI) 4.1.4\n"), Some(Library::OpenMpi));
        assert_eq!(Library::of_version("HYDRA build details:\n    Version: 4.0.2\n"), Some(Library::Mpich));
        assert_eq!(Library::of_version("MPICH Version:\t4.0.2"), Some(Library::Mpich));
        assert_eq!(Library::of_version("Intel(R) MPI Library"), None);
    }

    #[test]
    fn lists_of_hosts_are_read() {
        assert_eq!(hosts("a, b.example,10.0.0.1").unwrap(), ["a", "b.example", "10.0.0.1"]);
        for bad in ["", "a,,b", "a,a", "-x", "a b", "a;b"] {
            let text = hosts(bad).unwrap_err().to_string();
            assert!(text.contains(&format!("--hosts is {bad:?}")), "{text}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a:2,b"), "a:2,b");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
