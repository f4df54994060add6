//! `isles bare run`: one QEMU machine per core over shared memory, a merged console, and a report of how each core
//! ended.

use crate::arguments::{self, Run};
use crate::bell::{BellSocket, Bells, VECTORS};
use crate::chip::Chip;
use crate::console::Console;
use crate::{Failure, image};
use bare_map::record;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const QEMU: &str = "qemu-system-x86_64";
/// Private memory of a core in MiB.
const MEMORY_MIB: u32 = 64;
/// Interval at which consoles and states are polled.
const POLL: Duration = Duration::from_millis(2);

/// A running or ended machine.
struct CoreMachine {
    core: usize,
    process: Child,
    /// The socket of its doorbells; QEMU would treat its close as the end of all other cores.
    _bell: OwnedFd,
    begin: Instant,
    /// Time until the core had mapped the chip.
    boot: Option<Duration>,
    console: Console,
    ended: bool,
    /// True if the launcher has ended the machine.
    killed: bool,
}

/// Runs programs on cores until all have ended.
///
/// # Errors
/// The words are invalid, or a core has failed.
pub fn execute(words: &[String]) -> Result<(), Failure> {
    let run = arguments::parse(words, |file| std::fs::read_to_string(file))?;
    for program in &run.programs {
        image::check(&program.image)?;
    }
    if !is_on_path(QEMU) {
        return Err(Failure::Usage(format!(
            "{QEMU}, needed to run the cores, is not on PATH; on Debian: apt-get install qemu-system-x86"
        )));
    }
    let chip = Chip::new(&run).map_err(|cause| Failure::Usage(format!("no memory for the chip: {cause}")))?;
    let cores = run.programs.iter().flat_map(|program| &program.cores).copied();
    let bells =
        Bells::new(cores).map_err(|cause| Failure::Usage(format!("no doorbells for the cores: {cause}")))?;
    let mut machines = Vec::new();
    for program in &run.programs {
        for core in &program.cores {
            let (process, bell) =
                start(*core, &program.image, &chip, &bells).inspect_err(|_| end_all(&mut machines))?;
            let console = Console::new(*core);
            let begin = Instant::now();
            machines.push(CoreMachine {
                core: *core,
                process,
                _bell: bell,
                begin,
                boot: None,
                console,
                ended: false,
                killed: false,
            });
        }
    }
    let watched = watch(&run, &chip, &mut machines);
    end_all(&mut machines);
    watched.map_err(|cause| match cause.kind() {
        // The reader of the output has gone, which ends the run.
        io::ErrorKind::BrokenPipe => Failure::Run,
        _ => Failure::Usage(format!("consoles of the cores: {cause}")),
    })?;
    outcome(&run, &chip, &machines)
}

/// Returns `true` if the program is a file in a folder of `PATH`.
pub fn is_on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Starts the machine of a core, which ends with this process in any case.
fn start(core: usize, image: &Path, chip: &Chip, bells: &Bells) -> Result<(Child, OwnedFd), Failure> {
    let no_bells = |cause| Failure::Usage(format!("no doorbells for core {core}: {cause}"));
    let socket = BellSocket::new().map_err(no_bells)?;
    let mut command = if is_on_path("setpriv") {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", QEMU]);
        command
    } else {
        Command::new(QEMU)
    };
    // Translation instead of KVM, with which the firmware takes seconds in a nested virtual machine. A second
    // processor is allowed but never created: otherwise the translator omits atomic operations.
    command.args(["-accel", "tcg,thread=multi", "-smp", "1,maxcpus=2", "-m", &MEMORY_MIB.to_string()]);
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"]);
    command.arg("-kernel").arg(image).args(["-append", &format!("core={core}")]);
    command.args(["-chardev", &format!("socket,id=bells,fd={}", socket.number())]);
    command.args(["-device", &format!("ivshmem-doorbell,chardev=bells,vectors={VECTORS}")]);
    command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process =
        command.spawn().map_err(|cause| Failure::Usage(format!("cannot start {QEMU}: {cause}")))?;
    forward_lines(core, "", process.stdout.take());
    forward_lines(core, "qemu: ", process.stderr.take());
    if let Err(cause) = bells.send_setup(core, &socket, chip.descriptor()) {
        let _ = process.kill(); // it may have ended by itself
        let _ = process.wait();
        return Err(no_bells(cause));
    }
    Ok((process, socket.into_lifeline()))
}

/// Prints lines of a machine's own streams: output of a core before it has mapped the chip, and QEMU's errors.
fn forward_lines(core: usize, source: &'static str, stream: Option<impl Read + Send + 'static>) {
    if let Some(stream) = stream {
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                let _ = writeln!(io::stderr(), "[{core:02}]: {source}{}", line.trim_end());
            }
        });
    }
}

/// Prints consoles and records ends until all machines have ended or the time limit is reached.
fn watch(run: &Run, chip: &Chip, machines: &mut [CoreMachine]) -> io::Result<()> {
    let begin = Instant::now();
    let mut out = io::stdout();
    while machines.iter().any(|machine| !machine.ended) {
        if run.limit.is_some_and(|limit| begin.elapsed() >= limit) {
            for machine in machines.iter_mut().filter(|machine| !machine.ended) {
                machine.killed = true;
                let _ = machine.process.kill(); // it may have ended by itself
            }
        }
        for machine in machines.iter_mut().filter(|machine| !machine.ended) {
            let gone = machine.process.try_wait()?.is_some();
            let state = chip.record(machine.core, record::STATE)?;
            if state != record::OFF && machine.boot.is_none() {
                machine.boot = Some(machine.begin.elapsed());
            }
            machine.console.poll(chip, &mut out)?;
            if gone {
                machine.console.end(&mut out)?;
                machine.ended = true;
                if matches!(state, record::OFF | record::RUNNING) {
                    chip.store(bare_map::record_of(machine.core) + record::STATE, record::LOST)?;
                }
            }
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Ends the running machines.
fn end_all(machines: &mut [CoreMachine]) {
    for machine in machines.iter_mut().filter(|machine| !machine.ended) {
        let _ = machine.process.kill(); // it may have ended by itself
        let _ = machine.process.wait();
    }
}

/// Reports failed cores, lost bytes and, on request, boot times.
fn outcome(run: &Run, chip: &Chip, machines: &[CoreMachine]) -> Result<(), Failure> {
    let mut failed = false;
    for machine in machines {
        let core = machine.core;
        let of_core = |offset| {
            chip.record(core, offset).map_err(|cause| Failure::Usage(format!("core {core}: {cause}")))
        };
        let code = of_core(record::EXIT_CODE)?.cast_signed();
        let why = match of_core(record::STATE)? {
            record::ENDED if code == 0 => None,
            record::ENDED => Some(format!("ended with exit code {code}")),
            record::FAULTED => Some(match of_core(record::VECTOR)? {
                256 => String::from("gave up"),
                vector => format!("was stopped by exception {vector}"),
            }),
            _ if machine.killed => Some(String::from("was ended by --limit")),
            _ => Some(String::from("was lost: its virtual machine ended without a message")),
        };
        if let Some(why) = why {
            eprintln!("error: core {core} {why}");
            failed = true;
        }
        if machine.console.lost() > 0 {
            eprintln!("core {core}: {} bytes of its console were overwritten unread", machine.console.lost());
        }
        if let Some(boot) = machine.boot.filter(|_| run.times) {
            eprintln!("core {core}: {:.3} s to main", boot.as_secs_f64());
        }
    }
    if failed { Err(Failure::Run) } else { Ok(()) }
}
