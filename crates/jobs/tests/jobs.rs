//! Management of jobs by `isles serve` and `isles job`, on real processes and on a modelled chip.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread::JoinHandle;

/// A job server, and the directory of its jobs.
struct JobServer {
    process: Option<Child>,
    folder: PathBuf,
}

impl JobServer {
    /// A job server with nothing in its directory.
    fn new(name: &str, words: &[&str]) -> JobServer {
        let folder = std::env::temp_dir().join(format!("isles-jobs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it need not be there
        let mut server = JobServer { process: None, folder };
        server.start(words);
        server
    }

    /// A job server that finds this `criu` first; none, if that is no text.
    fn with_criu(name: &str, criu: Option<&str>) -> JobServer {
        let folder = std::env::temp_dir().join(format!("isles-jobs-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it need not be there
        std::fs::create_dir(&folder).unwrap();
        let programs = folder.join("programs");
        std::fs::create_dir(&programs).unwrap();
        // No other folder has a CRIU then.
        for shared in ["sh", "sleep", "kill", "cat", "mkdir", "env", "tr"] {
            let found = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(shared));
            if let Some(found) = found.iter().find(|path| path.exists()) {
                std::os::unix::fs::symlink(found, programs.join(shared)).unwrap();
            }
        }
        if let Some(text) = criu {
            let criu = programs.join("criu");
            std::fs::write(&criu, text).unwrap();
            std::fs::set_permissions(&criu, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut server = JobServer { process: None, folder };
        let mut command = program(&server.folder, "serve");
        server.listen(command.args(["--machine", "processes", "--places", "2"]).env("PATH", &programs));
        server
    }

    /// Starts it, and waits until it listens: until it says so. What it says later comes with its end.
    fn start(&mut self, words: &[&str]) -> JoinHandle<String> {
        let mut command = program(&self.folder, "serve");
        self.listen(command.args(words))
    }

    /// Starts a program with jobs of its own.
    fn start_example(&mut self, name: &str, machine: &str) {
        let example = Path::new(env!("CARGO_BIN_EXE_isles-jobs")).with_file_name("examples").join(name);
        let mut command = Command::new(example);
        command.arg(&self.folder).env("ISLES_PLACES", "2").env("ISLES_MACHINE", machine);
        self.listen(command.stdin(Stdio::null()));
    }

    fn listen(&mut self, command: &mut Command) -> JoinHandle<String> {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = String::new();
        let mut lines = BufReader::new(process.stderr.take().unwrap());
        while !stderr.contains("jobs are managed in") {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the job server has ended: {stderr}");
            stderr += &line;
        }
        self.process = Some(process);
        // Who reads no more would end it by a closed pipe.
        std::thread::spawn(move || {
            let _ = lines.read_to_string(&mut stderr); // what there is
            stderr
        })
    }

    fn process(&mut self) -> &mut Child {
        self.process.as_mut().unwrap()
    }

    /// Sends a request, and returns the outcome.
    fn ask(&self, words: &[&str]) -> Output {
        program(&self.folder, "job").args(words).output().unwrap()
    }

    /// Sends a request that must succeed.
    fn json(&self, words: &[&str]) -> Value {
        let out = self.ask(&[&["--json"], words].concat());
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{words:?}: {errors}");
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// Sends a request that must be refused; returns the line.
    fn refused(&self, words: &[&str]) -> String {
        let out = self.ask(words);
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), errors.lines().count()), (Some(2), 1), "{words:?}: {errors}");
        errors
    }

    /// Starts a job, and returns its number.
    fn begin(&self, words: &[&str]) -> String {
        self.json(&[&["start"], words].concat())["job"]["id"].to_string()
    }

    fn wait(&self, job: &str, state: &str) -> Value {
        self.json(&["wait", job, "--until", state, "--limit", "3600"])["job"].clone()
    }

    fn end(&mut self) {
        self.json(&["end"]);
        let status = self.process.take().unwrap().wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for JobServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn program(folder: &Path, verb: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isles-jobs"));
    command.arg(verb).arg("--state").arg(folder).stdin(Stdio::null());
    command
}

/// The state of a process as the system says it, such as T for one that is stopped; none if there is no such process.
fn state_of(process: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().next().map(str::to_owned)
}

/// The process of a command, which has written its number.
fn process_of(server: &JobServer, job: &str) -> String {
    loop {
        let lines = server.json(&["output", job])["lines"].clone();
        if let Some(line) = lines.get(0).and_then(Value::as_str) {
            return line.to_owned();
        }
    }
}

/// Polls until `holds`; the test's own limit ends what never does.
fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

/// As sbatch(1) does it: `--chdir` is by default the folder of the call, `--export` is `ALL`.
#[test]
fn a_command_runs_where_it_was_typed_with_the_environment_of_its_caller() {
    let mut server = JobServer::new("caller", &["--places", "1"]);
    let here = std::fs::canonicalize(&server.folder).unwrap().join("typed here");
    let bin = here.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (path, text) in
        [(here.join("own.sh"), "#!/bin/sh\necho own\n"), (bin.join("by-path"), "#!/bin/sh\necho found\n")]
    {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(here.join("data.txt"), "of here\n").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ask = |words: &[&str]| {
        let mut command = program(&server.folder, "job");
        command
            .current_dir(&here)
            .env("FOO", "bar")
            .env("PATH", &path)
            .env("ISLES_PLACES", "7")
            .arg("--json");
        let out = command.args(words).output().unwrap();
        assert!(out.status.success(), "{words:?}: {out:?}");
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    let lines = |job: &str| {
        server.wait(job, "finished");
        server.json(&["output", job])["lines"].clone()
    };
    let mut last = String::new();
    for (words, expected) in [
        (&["./own.sh"][..], "own"),
        (&["cat", "data.txt"], "of here"),
        (&["by-path"], "found"),
        (&["sh", "-c", "echo $FOO $ISLES_PLACES"], "bar 7"),
        (&["pwd"], here.to_str().unwrap()),
    ] {
        let begun = ask(&[&["start", "--"], words].concat());
        assert_eq!(begun["job"]["folder"], here.to_str().unwrap());
        last = begun["job"]["id"].to_string();
        assert_eq!(lines(&last), serde_json::json!([expected]), "{words:?}");
    }
    // A copy of a job runs there, too, whoever asks for it, and after a new start of the job server.
    let copy = server.json(&["duplicate", &last])["job"]["id"].to_string();
    server.end();
    server.start(&["--places", "1"]);
    server.json(&["start", &copy]);
    server.wait(&copy, "finished");
    let output = server.json(&["output", &copy]);
    assert_eq!(output["lines"], serde_json::json!([here.to_str().unwrap()]));
    assert!(Path::new(output["file"].as_str().unwrap()).is_absolute());
    let table = std::fs::read_to_string(server.folder.join("jobs.json")).unwrap();
    assert_eq!(table.matches("\"FOO\"").count(), 1, "an environment is kept once");
    assert!(server.refused(&["start", "--", "./own.sh"]).contains("command not found: \"./own.sh\""));
    let late = server.json(&["duplicate", &copy])["job"]["id"].to_string();
    std::fs::remove_dir_all(&here).unwrap();
    server.json(&["start", &late]);
    let failed = server.wait(&late, "failed");
    assert!(failed["reason"].as_str().unwrap().contains("where it was typed, does not exist"), "{failed}");
}

#[test]
fn each_verb_does_what_it_says_to_a_task() {
    let mut server = JobServer::new("task", &["--machine", "processes", "--places", "2"]);
    let job = server.begin(&["--at", "1", "--name", "a long one", "--task", "pi", "--", "1000000000000"]);
    assert_eq!(server.wait(&job, "running")["place"], 1);
    assert!(
        server.refused(&["start", &job]).contains("a job that is running cannot start; allowed when new")
    );
    server.json(&["pause", &job]);
    assert_eq!(server.wait(&job, "paused")["name"], "a long one");
    server.json(&["resume", &job]);
    server.json(&["checkpoint", &job]);
    server.wait(&job, "checkpointed");
    let copy = server.json(&["duplicate", &job])["job"].clone();
    assert_eq!((&copy["state"], &copy["name"]), (&"checkpointed".into(), &"a long one".into()));
    assert_eq!(server.json(&["start", &job, "--at", "0"])["job"]["place"], 0);
    server.wait(&job, "running");
    server.json(&["move", &job, "--to", "1"]);
    assert_eq!(server.wait(&job, "running")["place"], 1);
    assert!(server.refused(&["move", &job, "--to", "1"]).contains("is already at place 1; allowed: another"));
    assert!(server.refused(&["move", &job, "--to", "7"]).contains("--to is 7; allowed: 0 to 1"));
    assert!(server.refused(&["remove", &job]).contains("cannot remove"));
    server.json(&["kill", &job]);
    server.wait(&job, "stopped");
    server.json(&["remove", &job]);
    assert!(server.refused(&["output", &job]).contains(&format!("there is no job {job}")));
    server.end();
}

/// Starts a job that adds up `numbers` numbers, and moves it a hundred times, or until it has finished. Checks that its
/// result is that of the same job at one place, and returns how often it was moved.
fn moves_of_a_sum(server: &JobServer, numbers: &str) -> usize {
    let words = ["--task", "sum", "--", numbers];
    let still = server.begin(&[&["--at", "2"], &words[..]].concat());
    let moved = server.begin(&[&["--at", "0"], &words[..]].concat());
    let state = || {
        let jobs = server.json(&["list"])["jobs"].clone();
        let is_it = |job: &&Value| Some(job["id"].as_u64()) == Some(moved.parse().ok());
        jobs.as_array().unwrap().iter().find(is_it).unwrap()["state"].clone()
    };
    let mut moves = 0;
    while moves < 100 {
        let to = ["1", "0"][moves % 2];
        let out = server.ask(&["move", &moved, "--to", to]);
        moves += usize::from(out.status.success());
        until(|| state() != "creating" && state() != "moving");
        assert!(state() == "running" || state() == "finished", "{}", state());
        if state() == "finished" {
            break;
        }
    }
    assert_eq!(server.wait(&still, "finished")["reason"], server.wait(&moved, "finished")["reason"]);
    moves
}

#[test]
fn a_job_that_was_moved_a_hundred_times_has_the_result_of_one_that_never_was() {
    let mut server = JobServer::new("moved", &["--machine", "threads", "--places", "3"]);
    // On a busy host a move may take as long as a short sum.
    let mut sums = ["150000000", "1200000000", "9600000000"].into_iter();
    assert!(sums.any(|numbers| moves_of_a_sum(&server, numbers) > 20), "it moved only a few times");
    server.end();
}

#[test]
fn a_program_has_jobs_of_its_own_and_only_those() {
    let folder = std::env::temp_dir().join(format!("isles-jobs-own-{}", std::process::id()));
    let mut server = JobServer { process: None, folder };
    server.start_example("primes", "processes");
    let job = server.begin(&["--task", "primes", "--at", "1", "--", "100000"]);
    assert_eq!(server.wait(&job, "finished")["reason"], "9592");
    assert!(server.refused(&["start", "--task", "pi"]).contains("--task is \"pi\"; allowed: primes"));
    server.end();
}

/// A CRIU for tests. A dump ends the command; a restore starts another one that says so, and becomes what waits for it.
/// A program cannot choose the number of a process, so it says the old one and keeps the new one beside the images.
const FAKE_CRIU: &str = r#"#!/bin/sh
verb=$1
while [ $# -gt 0 ]; do
    case $1 in
    --tree) tree=$2; shift ;;
    --images-dir) images=$2; shift ;;
    --pidfile) pidfile=$2; shift ;;
    --) shift; break ;;
    esac
    shift
done
here=${images%/*}
while [ -e "$here/hang-$verb" ]; do sleep 0.01; done
case $verb in
check) exit 0 ;;
dump)
    [ -e "$here/refuse-dump" ] && { echo "Error (dump): refused" > "$images/dump.log"; exit 1; }
    echo "$tree" > "$images/tree"
    [ -e "$here/restored" ] && tree=$(cat "$here/restored")
    tr '\0' '\n' < "/proc/$tree/environ" > "$images/environ"
    kill -KILL "$tree" ;;
restore)
    [ -e "$here/refuse-restore" ] && { echo "Error (restore): refused" > "$images/restore.log"; exit 1; }
    if [ -e "$here/fail-late" ]; then
        cat "$images/tree" > "$pidfile"
        while [ -e "$here/fail-late" ]; do sleep 0.01; done
        echo "Error (restore): failed late" > "$images/restore.log"; exit 1
    fi
    while IFS= read -r line; do
        case $line in JOB_OF_ISLES=*) export "$line" ;; esac
    done < "$images/environ"
    sh -c 'echo restored; while [ ! -e "$0" ]; do sleep 0.01; done; exit 7' "$here/finish" &
    echo $! > "$here/restored"
    cat "$images/tree" > "$pidfile"
    exec "$@" ;;
esac
"#;

#[test]
fn a_command_moves_and_is_checkpointed_by_criu() {
    let mut server = JobServer::with_criu("criu", Some(FAKE_CRIU));
    let (refuse, finish) = (server.folder.join("refuse-dump"), server.folder.join("finish"));
    assert_eq!(server.json(&["list"])["criu"], true);
    let job = server.begin(&["--at", "0", "--", "sleep", "1000"]);
    server.wait(&job, "running");

    // A dump that fails changes nothing.
    std::fs::write(&refuse, "").unwrap();
    server.json(&["checkpoint", &job]);
    until(|| {
        let reason = server.json(&["list"])["jobs"][0]["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("its state cannot be written: criu dump: Error (dump): refused")
    });
    server.wait(&job, "running");
    let images = server.folder.join(format!("job-{job}.images"));
    assert!(!images.exists(), "a failed dump leaves no image");
    std::fs::remove_file(&refuse).unwrap();

    server.json(&["move", &job, "--to", "1"]);
    until(|| server.json(&["output", &job])["lines"] == Value::from(vec!["restored"]));
    let moved = server.wait(&job, "running");
    assert_eq!(moved["place"], 1, "{moved}");
    server.json(&["checkpoint", &job]);
    server.wait(&job, "checkpointed");
    assert!(images.join("tree").exists());

    // A copy begins anew, because two commands cannot be one process.
    let copy = server.json(&["duplicate", &job])["job"].clone();
    assert_eq!(copy["state"], "new", "{copy}");

    // Its exit code is that of the restored process.
    server.json(&["start", &job]);
    server.wait(&job, "running");
    std::fs::write(&finish, "").unwrap();
    let ended = server.wait(&job, "failed");
    assert_eq!(ended["reason"], "exit code 7", "{ended}");
    assert!(!images.exists(), "the image is of the past of a command that runs");
    server.end();
}

#[test]
fn a_failed_restore_leaves_the_checkpoint() {
    let mut server = JobServer::with_criu("unrestored", Some(FAKE_CRIU));
    let (refuse, late) = (server.folder.join("refuse-restore"), server.folder.join("fail-late"));
    let job = server.begin(&["--at", "0", "--", "sleep", "1000"]);
    server.wait(&job, "running");
    let images = server.folder.join(format!("job-{job}.images"));

    // At the target of a move, and at a start.
    std::fs::write(&refuse, "").unwrap();
    server.json(&["move", &job, "--to", "1"]);
    let refused = "it cannot be restored: criu restore: Error (restore): refused";
    assert_eq!(server.wait(&job, "checkpointed")["reason"], refused);
    server.json(&["start", &job]);
    assert_eq!(server.wait(&job, "checkpointed")["reason"], refused);
    std::fs::remove_file(&refuse).unwrap();

    // CRIU has written its process file, but it has not finished: the job does not run yet.
    std::fs::write(&late, "").unwrap();
    server.json(&["start", &job]);
    until(|| images.join("process").exists());
    for _ in 0..20 {
        assert_eq!(server.json(&["list"])["jobs"][0]["state"], "creating");
    }
    std::fs::remove_file(&late).unwrap();
    let failed = server.wait(&job, "checkpointed");
    assert_eq!(failed["reason"], "it cannot be restored: criu restore: Error (restore): failed late");

    assert!(images.join("tree").exists());
    server.json(&["start", &job]);
    assert_eq!(server.wait(&job, "running")["reason"], "");
    until(|| !images.exists());
    let restored = std::fs::read_to_string(server.folder.join("restored")).unwrap();
    assert!(state_of(restored.trim()).is_some());
    server.json(&["kill", &job]);
    server.wait(&job, "stopped");
    until(|| state_of(restored.trim()).is_none_or(|state| state == "Z")); // whoever adopts it may be slow
    server.end();
}

#[test]
fn a_command_whose_state_cannot_be_written_is_restored_in_place() {
    let mut server = JobServer::with_criu("in-place", Some(FAKE_CRIU));
    let job = server.begin(&["--at", "0", "--", "sleep", "1000"]);
    server.wait(&job, "running");
    // A file cannot be written where a folder is.
    std::fs::create_dir(server.folder.join(format!("job-{job}.new"))).unwrap();
    server.json(&["checkpoint", &job]);
    until(|| server.json(&["output", &job])["lines"] == Value::from(vec!["restored"]));
    let running = server.wait(&job, "running");
    assert!(running["reason"].as_str().unwrap().contains("its state cannot be written"), "{running}");
    until(|| !server.folder.join(format!("job-{job}.images")).exists());

    // Without a state there is nothing to return to.
    std::fs::write(server.folder.join("refuse-restore"), "").unwrap();
    server.json(&["checkpoint", &job]);
    let failed = server.wait(&job, "failed");
    assert!(
        failed["reason"].as_str().unwrap().starts_with("it cannot be restored: criu restore"),
        "{failed}"
    );
    server.end();
}

#[test]
fn a_job_is_killed_while_criu_hangs() {
    let mut server = JobServer::with_criu("hang", Some(FAKE_CRIU));
    let job = server.begin(&["--at", "0", "--", "sleep", "1000"]);
    server.wait(&job, "running");
    let images = server.folder.join(format!("job-{job}.images"));
    std::fs::write(server.folder.join("hang-dump"), "").unwrap();
    server.json(&["checkpoint", &job]);
    until(|| images.exists());
    server.json(&["kill", &job]);
    server.wait(&job, "stopped");
    assert!(!images.exists(), "an ended dump leaves no image");
    std::fs::remove_file(server.folder.join("hang-dump")).unwrap();

    server.json(&["start", &job]);
    server.wait(&job, "running");
    server.json(&["checkpoint", &job]);
    server.wait(&job, "checkpointed");
    std::fs::write(server.folder.join("hang-restore"), "").unwrap();
    server.json(&["start", &job]);
    until(|| images.join("restoring").exists());
    server.json(&["kill", &job]);
    server.wait(&job, "stopped");
    server.end();
}

#[test]
fn without_criu_a_command_stays_where_it_is_and_says_why() {
    let check = "#!/bin/sh\necho 'Error (criu/vdso.c:1): not on this kernel' >&2\nexit 1\n";
    let cases = [
        (None, "CRIU is not installed"),
        (Some(check), "criu check fails: Error (criu/vdso.c:1): not on this kernel"),
    ];
    for (number, (criu, reason)) in cases.into_iter().enumerate() {
        let mut server = JobServer::with_criu(&format!("no-criu-{number}"), criu);
        assert_eq!(server.json(&["list"])["criu"], false);
        let job = server.begin(&["--at", "0", "--", "sleep", "1000"]);
        server.wait(&job, "running");
        for (words, verb) in
            [(&["checkpoint", &job][..], "checkpoint"), (&["move", &job, "--to", "1"], "move")]
        {
            let line = server.refused(words);
            let expected = format!(
                "job {job} is a command, which can {verb} only with CRIU, and {reason}; allowed: pause, resume, kill"
            );
            assert!(line.contains(&expected), "{line}");
        }
        server.json(&["kill", &job]);
        server.wait(&job, "stopped");
        server.end();
    }
}

#[test]
fn a_command_is_stopped_and_killed_and_runs_no_shell() {
    let mut server = JobServer::new("command", &["--machine", "processes", "--places", "2"]);
    let job = server.begin(&["--at", "1", "--", "sh", "-c", "echo $$; sleep 1000"]);
    server.wait(&job, "running");
    let process = process_of(&server, &job);
    server.json(&["pause", &job]);
    until(|| state_of(&process).as_deref() == Some("T"));
    server.json(&["resume", &job]);
    until(|| state_of(&process).as_deref() != Some("T"));
    server.json(&["kill", &job]);
    server.wait(&job, "stopped");
    assert_eq!(state_of(&process), None, "the command is gone");

    // Words of a shell are words.
    let hostile = format!("$(touch {0}/done); `touch {0}/done`", server.folder.display());
    let job = server.begin(&["--name", &hostile, "--", "printf", "%s\\n", &hostile, "\u{1b}[31mred"]);
    assert_eq!(server.wait(&job, "finished")["reason"], "exit code 0");
    let output = server.json(&["output", &job]);
    assert_eq!(output["lines"], Value::from(vec![hostile, "\u{1b}[31mred".to_owned()]));
    let shown = String::from_utf8(server.ask(&["output", &job]).stdout).unwrap();
    assert!(!shown.contains('\u{1b}'), "what steers a terminal is not passed on: {shown:?}");
    assert!(!server.folder.join("done").exists());
    let list = String::from_utf8(server.ask(&["list"]).stdout).unwrap();
    assert!(
        list.contains(&format!("printf %s\\n \"$(touch {0}/done); `", server.folder.display())),
        "{list}"
    );

    // Nor are characters that turn the direction of text, in words or as the name that a job has by default.
    let turned = server.folder.join("\u{202e}turned");
    std::os::unix::fs::symlink("/bin/true", &turned).unwrap();
    let job = server.begin(&["--", turned.to_str().unwrap(), "\u{2066}x"]);
    assert_eq!(server.wait(&job, "finished")["reason"], "exit code 0");
    let list = String::from_utf8(server.ask(&["list"]).stdout).unwrap();
    assert!(list.contains("\u{fffd}turned \u{fffd}x"), "{list}");
    assert!(!list.contains(|sign| sign != '\n' && isles_jobs::steers_text(sign)), "{list}");

    // A file may go after somebody has looked for it.
    let passing = server.folder.join("passing");
    std::fs::copy("/bin/true", &passing).unwrap();
    let job = server.json(&["create", "--", passing.to_str().unwrap()])["job"]["id"].to_string();
    std::fs::remove_file(&passing).unwrap();
    server.json(&["start", &job]);
    let failed = server.wait(&job, "failed");
    assert!(failed["reason"].as_str().unwrap().contains("cannot start \""), "{failed}");
    let job = server.begin(&["--", "false"]);
    assert_eq!(server.wait(&job, "failed")["reason"], "exit code 1");
    server.end();
}

#[test]
fn jobs_outlive_a_server_that_ends_and_one_that_is_killed() {
    let words = ["--machine", "processes", "--places", "2"];
    let mut server = JobServer::new("outlive", &words);
    let task = server.begin(&["--at", "1", "--task", "pi", "--", "1000000000000"]);
    server.wait(&task, "running");
    server.end();
    server.start(&words);
    // It was written when the job server ended, and goes on.
    server.wait(&task, "checkpointed");
    server.json(&["start", &task]);
    server.wait(&task, "running");
    let command = server.begin(&["--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let process = process_of(&server, &command);
    let other = server.begin(&["--task", "count", "--", "1000000000000"]);
    server.wait(&other, "running");
    server.process().kill().unwrap();
    server.process().wait().unwrap();
    server.start(&words);
    let jobs = server.json(&["list"])["jobs"].clone();
    let states: Vec<(&Value, &Value)> =
        jobs.as_array().unwrap().iter().map(|job| (&job["state"], &job["reason"])).collect();
    let why = Value::from("its job server ended");
    // The first has a state that was written; of the others nothing is left.
    let expected = ["checkpointed", "failed", "failed"].map(Value::from);
    assert_eq!(states, expected.iter().map(|state| (state, &why)).collect::<Vec<_>>());
    until(|| state_of(&process).is_none_or(|state| state == "Z"));
    server.end();
}

#[test]
fn what_a_dead_place_had_is_told_and_others_go_on() {
    let mut server = JobServer::new("dead", &["--machine", "processes", "--places", "3"]);
    let lost = server.begin(&["--at", "1", "--task", "pi", "--", "1000000000000"]);
    let kept = server.begin(&["--at", "2", "--task", "pi", "--", "1000000000000"]);
    for job in [&lost, &kept] {
        server.wait(job, "running");
    }
    server.json(&["checkpoint", &lost]);
    server.wait(&lost, "checkpointed");
    server.json(&["start", &lost, "--at", "1"]);
    server.wait(&lost, "running");
    // A command says which process its place is: its parent.
    let spy = server.begin(&["--at", "1", "--", "sh", "-c", "echo $PPID"]);
    server.wait(&spy, "finished");
    let place = process_of(&server, &spy);
    assert!(Command::new("kill").args(["-9", &place]).status().unwrap().success());
    let job = server.wait(&lost, "checkpointed");
    assert!(job["reason"].as_str().unwrap().contains("dead"), "{job}");
    assert_eq!(server.json(&["start", &lost, "--at", "2"])["job"]["place"], 2);
    server.wait(&lost, "running");
    until(|| server.json(&["cores"])["cores"][1]["is_dead"] == true);
    assert!(server.refused(&["start", &spy, "--at", "1"]).contains("which is dead"));
    server.wait(&kept, "running");
    server.end();
}

#[test]
fn a_demonstration_leaves_the_jobs_of_others_alone_and_is_forgotten() {
    let words = ["--machine", "threads", "--places", "2"];
    let mut server = JobServer::new("demonstration", &words);
    for _ in 0..20 {
        let job = server.begin(&["--task", "count", "--", "10"]);
        server.wait(&job, "finished");
    }
    let before = server.json(&["list"])["jobs"].clone();
    server.end();
    server.start(&[&words[..], &["--demo"]].concat());
    let jobs = |server: &JobServer| server.json(&["list"])["jobs"].as_array().unwrap().clone();
    until(|| jobs(&server).len() >= 36);
    // It tells its own jobs something all the time.
    until(|| {
        jobs(&server)[20..].iter().any(|job| job["state"] == "paused" || job["state"] == "checkpointed")
    });
    assert_eq!(Value::from(jobs(&server)[..20].to_vec()), before);
    server.end();
    server.start(&words);
    assert_eq!(Value::from(jobs(&server)), before);
    server.end();
}

#[test]
fn a_modelled_chip_runs_tasks_and_its_clocks_are_turned_while_they_do() {
    let mut server = JobServer::new("chip", &["--machine", "chip:scc", "--demo", "--seed", "7"]);
    until(|| server.json(&["list"])["jobs"].as_array().unwrap().len() >= 16);
    let job = server.begin(&["--at", "47", "--task", "pi", "--", "1000000000000"]);
    server.wait(&job, "running");
    let printed = server.json(&["clock", "8"]);
    assert_eq!(printed["text"], "6 supplies now divide their clock by 8");
    until(|| server.json(&["cores"])["cores"][47]["divider"] == 8);
    let refused = server.refused(&["clock", "1"]);
    assert!(refused.contains("the divider is 1; allowed: a whole number from 2 to 16"), "{refused}");
    turn_supplies_and_governors(&server);
    assert!(server.refused(&["start", "--", "ls"]).contains("a modelled core runs no command"));
    server.end();
}

/// Clocks and voltage of a domain, the clock of a tile, and the governor, while jobs run.
fn turn_supplies_and_governors(server: &JobServer) {
    // Changes of voltages take their time on the chip, and the chip takes no less of the host.
    let done = |words: &[&str]| until(|| server.ask(words).status.success());
    done(&["clock", "4", "--at", "9"]);
    let core = |place: usize| server.json(&["cores"])["cores"][place].clone();
    until(|| core(9)["divider"] == 4);
    let supply = core(9)["supply"].clone();
    let of_supply = |core: &Value| core["supply"] == supply;
    // One place after the other is looked at.
    until(|| {
        let cores = server.json(&["cores"])["cores"].as_array().unwrap().clone();
        assert_eq!(cores.iter().filter(|core| of_supply(core)).count(), 8, "four tiles with two cores each");
        cores.iter().all(|core| (core["divider"] == 4) == of_supply(core))
    });
    done(&["voltage", "1.0", "--at", "9"]);
    until(|| core(9)["volts"] == 1.1625);
    let refused = server.refused(&["voltage", "2"]);
    assert!(refused.contains("the voltage is 2 V; allowed: from 0.65625 V to 1.1625 V"), "{refused}");
    done(&["clock", "2", "--at", "9", "--tile"]);
    until(|| core(9)["divider"] == 2);
    let refused = server.refused(&["clock", "2", "--at", "47", "--tile"]);
    assert!(refused.contains("the present voltage is too low for the divider 2"), "{refused}");
    // A governor of one supply: others are not under it.
    done(&["governor", "capped:4W", "--at", "9"]);
    until(|| core(9)["governor"] == "capped:4W" && core(4)["governor"] == "fixed");
    let refused = server.refused(&["clock", "4", "--at", "9"]);
    assert!(refused.contains("the governor capped:4W controls the clocks"), "{refused}");
    done(&["clock", "3", "--at", "4"]);
    done(&["governor", "capped:60W"]);
    until(|| core(9)["governor"] == "capped:60W" && core(4)["governor"] == "capped:60W");
    let refused = server.refused(&["governor", "on-demand", "--at", "9"]);
    assert!(refused.contains("the governor capped:60W is set for the whole chip; set fixed"), "{refused}");
    assert_eq!(server.json(&["cores"])["governor"], "capped:60W");
    let refused = server.refused(&["clock", "4"]);
    assert!(refused.contains("the governor capped:60W controls the clocks"), "{refused}");
    let refused = server.refused(&["governor", "capped:1W"]);
    assert!(refused.contains("the governor does not suit this run; allowed: at least "), "{refused}");
    assert!(server.refused(&["governor", "warm"]).contains("the governor is \"warm\"; allowed: fixed, "));
    done(&["governor", "fixed"]);
    assert_eq!(server.json(&["cores"])["governor"], "fixed");
}

#[test]
fn who_has_no_right_or_says_nonsense_is_refused_in_a_line() {
    let mut server = JobServer::new("nonsense", &["--machine", "threads", "--places", "2"]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&server.folder), mode(&server.folder.join("socket"))), (0o700, 0o600));
    for (words, expected) in [
        (&["pause", "99"][..], "there is no job 99: there are no jobs"),
        (&["start"], "there is nothing to run; give --task KIND, or a command after --"),
        (&["start", "--task", "rm"], "--task is \"rm\"; allowed: pi, sum, memory, count"),
        (&["start", "--task", "pi", "--", "0"], "the number of terms is \"0\"; allowed: 1 to"),
        (&["start", "--task", "pi", "--at", "2"], "--at is 2; allowed: 0 to 1"),
        (&["wait", "1", "--until", "asleep"], "allowed: new, creating, running"),
        (&["clock", "4"], "no clock has changed"),
        (
            &["start", "--", "no-such-command"],
            "command not found: \"no-such-command\"; allowed: a program on",
        ),
        (&["start", "--", "/etc/passwd"], "command not found: \"/etc/passwd\"; allowed: "),
        (
            &["create", "--name", "a\u{202e}b", "--task", "pi", "--", "9"],
            "the name contains U+202E, a control or formatting character; allowed: printable characters",
        ),
        (&["create", "--name", "a\u{1b}b", "--", "true"], "the name contains U+001B"),
        (&["create", "--", "sleep 100"], "command not found: \"sleep 100\"; allowed: "),
        (&["create", "--", ""], "the command is empty; allowed: the name of a program"),
        (
            &["start", "--name", &"n".repeat(1025), "--", "true"],
            "the name has 1025 bytes; allowed: at \
             most 1024",
        ),
        (
            &[&["start", "--", "true"][..], &vec!["1"; 100_000]].concat(),
            "there are 100001 words; allowed: at most 4096",
        ),
        (
            &["start", "--", "true", &"1".repeat(100_000)],
            "the words have 100004 bytes; allowed: at most 65536",
        ),
        (&["start", "--", "true", &"1".repeat(120_000), &"2".repeat(120_000)], "the words have 240004 bytes"),
    ] {
        let line = server.refused(words);
        assert!(line.contains(expected), "{words:?}: {line}");
    }
    assert_eq!(server.json(&["list"])["jobs"].as_array().unwrap().len(), 0, "nothing is left behind");
    // The last are bytes that are no text.
    let negative = b"{\"ask\":\"tell\",\"job\":-1,\"order\":\"pause\"}";
    for nonsense in [&b""[..], b"{}", b"[1, 2", negative, b"\0\x01", b"\xff\xfe"] {
        let mut stream = UnixStream::connect(server.folder.join("socket")).unwrap();
        stream.write_all(&[nonsense, b"\n"].concat()).unwrap();
        let line = BufReader::new(stream).lines().next().unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["answer"], "refused", "{nonsense:?}");
    }
    // As many as are let in, and some more, who say nothing: others are heard again.
    let silent: Vec<UnixStream> =
        (0..80).map(|_| UnixStream::connect(server.folder.join("socket")).unwrap()).collect();
    until(|| server.ask(&["list"]).status.success());
    drop(silent);
    server.end();
    assert!(server.refused(&["list"]).contains("no job server listens there"));
}

#[test]
fn of_job_servers_that_start_together_one_has_the_directory() {
    let folder = std::env::temp_dir().join(format!("isles-jobs-together-{}", std::process::id()));
    for _ in 0..5 {
        let start = |_| {
            let mut command = program(&folder, "serve");
            command.args(["--machine", "threads", "--places", "1"]).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut servers: Vec<Child> = (0..4).map(start).collect();
        let mut refused = Vec::new();
        until(|| {
            for at in (0..servers.len()).rev() {
                if servers[at].try_wait().unwrap().is_some() {
                    refused.push(servers.swap_remove(at).wait_with_output().unwrap());
                }
            }
            refused.len() == 3
        });
        for out in refused {
            let errors = String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!((out.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
            let expected = format!(
                "error: {}: another job server uses this directory; allowed: another --state\n",
                folder.display()
            );
            assert_eq!(errors, expected);
        }
        let mut server = JobServer { process: servers.pop(), folder: folder.clone() };
        until(|| server.ask(&["list"]).status.success());
        server.end();
    }
}

/// Checks what a full disk does to a job that runs, and to one that is to be started; `full` fills and empties it.
fn a_full_disk_is_survived(server: &mut JobServer, full: impl Fn(&Path, bool)) {
    let job = server.begin(&["--at", "1", "--task", "pi", "--", "1000000000000"]);
    server.wait(&job, "running");
    let shown = |server: &JobServer| server.json(&["list"])["jobs"][0].clone();
    full(&server.folder, true);
    for verb in [&["checkpoint", &job][..], &["move", &job, "--to", "0"]] {
        server.json(verb);
        until(|| shown(server)["state"] == "running");
        let reason = shown(server)["reason"].clone();
        let expected = "it continues where it is, because its state cannot be written: ";
        assert!(reason.as_str().unwrap().starts_with(expected), "{reason}");
        assert_eq!(shown(server)["place"], 1);
    }
    server.json(&["pause", &job]);
    server.json(&["checkpoint", &job]);
    until(|| shown(server)["state"] == "paused");
    server.json(&["resume", &job]);
    let mark = server.folder.join("mark");
    let refused = server.refused(&["start", "--", "touch", mark.to_str().unwrap()]);
    assert!(
        refused.contains(
            "nothing was started or created, because the table of jobs cannot be \
         written: "
        ),
        "{refused}"
    );
    assert_eq!(server.json(&["list"])["jobs"].as_array().unwrap().len(), 1);
    full(&server.folder, false);
    let computed = |server: &JobServer| shown(server)["busy"].as_f64().unwrap();
    let before = computed(server);
    until(|| computed(server) > before);
    server.json(&["checkpoint", &job]);
    assert_eq!(server.wait(&job, "checkpointed")["reason"], "");
    let other = server.begin(&["--", "true"]);
    server.wait(&other, "finished");
    assert!(!mark.exists());
}

#[test]
fn a_job_that_cannot_be_written_goes_on_and_one_that_cannot_be_kept_is_not_started() {
    let mut server = JobServer::new("refused", &["--machine", "processes", "--places", "2"]);
    // Folders of the names of files that are written first.
    a_full_disk_is_survived(&mut server, |folder, is_full| {
        for name in ["jobs.new", "job-1.new"] {
            let obstacle = folder.join(name);
            let done = if is_full { std::fs::create_dir(&obstacle) } else { std::fs::remove_dir(&obstacle) };
            done.unwrap();
        }
    });
    server.end();
}

/// A file system of its own, which is gone with the test.
struct Mounted(PathBuf);

impl Mounted {
    fn new(name: &str) -> Option<Mounted> {
        let folder = std::env::temp_dir().join(format!("isles-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k,mode=700", "tmpfs"]).arg(&folder);
        let is_mounted = mount.output().is_ok_and(|out| out.status.success());
        let mounted = Mounted(folder);
        is_mounted.then_some(mounted)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output(); // it may not be mounted
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_file_system_that_is_full_loses_no_job() {
    let Some(mounted) = Mounted::new("full") else {
        println!("skipped: this user may mount no tmpfs");
        return;
    };
    let mut server = JobServer { process: None, folder: mounted.0.join("jobs") };
    server.start(&["--machine", "processes", "--places", "2"]);
    a_full_disk_is_survived(&mut server, |folder, is_full| {
        let filler = folder.join("filler");
        if !is_full {
            return std::fs::remove_file(&filler).unwrap();
        }
        let mut file = std::fs::File::create(&filler).unwrap();
        while file.write_all(&[0; 512]).is_ok() {}
    });
    server.end();
}

/// `isles job end`, which waits and says for what.
struct Ending {
    process: Child,
    lines: BufReader<ChildStderr>,
}

impl Ending {
    fn begin(server: &JobServer) -> Ending {
        let mut command = program(&server.folder, "job");
        let mut process = command.arg("end").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap());
        Ending { process, lines }
    }

    /// The next line.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// Waits until it has ended the job server, well.
    fn wait(mut self, server: &mut JobServer) {
        assert!(self.process.wait().unwrap().success());
        assert!(server.process.take().unwrap().wait().unwrap().success());
    }
}

fn signal(name: &str, process: &str) {
    assert!(Command::new("kill").args([name, process]).status().unwrap().success());
}

/// A job server with a task and a command at each of two places, and the process of place 1, which is stopped.
fn with_a_stopped_place(name: &str) -> (JobServer, String, String) {
    let server = JobServer::new(name, &["--machine", "processes", "--places", "3"]);
    for at in ["1", "2"] {
        let task = server.begin(&["--at", at, "--task", "pi", "--", "1000000000000"]);
        server.wait(&task, "running");
    }
    // The parent of a command is its place.
    let command = server.begin(&["--at", "1", "--", "sh", "-c", "echo $PPID; echo $$; exec sleep 1000"]);
    server.wait(&command, "running");
    let lines = || server.json(&["output", &command])["lines"].clone();
    until(|| lines().as_array().unwrap().len() == 2);
    let [place, command] = [0, 1].map(|line| lines()[line].as_str().unwrap().to_owned());
    signal("-STOP", &place);
    (server, place, command)
}

#[test]
fn a_stopped_place_is_named_by_who_ends_the_job_server_which_ends_when_it_goes_on() {
    let (mut server, place, command) = with_a_stopped_place("stopped");
    let reason = || server.json(&["list"])["jobs"][0]["reason"].as_str().unwrap().to_owned();
    until(|| reason().ends_with(&format!(" s: its process {place} is stopped")));
    assert!(reason().starts_with("place 1 has not answered for "), "{}", reason());
    // Others are not kept from anything.
    server.json(&["pause", "2"]);
    server.wait("2", "paused");
    let mut ending = Ending::begin(&server);
    let line = ending.line();
    assert!(line.contains("the job server waits: place 1 has not answered for "), "{line}");
    assert!(line.contains(&format!("its process {place} is stopped, with jobs 1, 3")), "{line}");
    assert!(line.contains("; --force ends it without them"), "{line}");
    signal("-CONT", &place);
    ending.wait(&mut server);
    assert_eq!(state_of(&command), None);
    server.start(&["--machine", "threads", "--places", "1"]);
    let states: Vec<Value> =
        server.json(&["list"])["jobs"].as_array().unwrap().iter().map(|job| job["state"].clone()).collect();
    assert_eq!(states, ["checkpointed", "checkpointed", "stopped"]);
    server.end();
}

#[test]
fn a_job_server_with_a_stopped_place_is_ended_by_force_and_leaves_nothing() {
    let (mut server, place, command) = with_a_stopped_place("forced");
    server.json(&["end", "--force"]);
    assert!(server.process.take().unwrap().wait().unwrap().success());
    for process in [&place, &command] {
        until(|| state_of(process).is_none_or(|state| state == "Z"));
    }
    // A stopped place that has no job is no reason to wait for anybody.
    let stderr = server.start(&["--machine", "processes", "--places", "2"]);
    let command = server.begin(&["--at", "1", "--", "sh", "-c", "echo $PPID"]);
    server.wait(&command, "finished");
    signal("-STOP", &process_of(&server, &command));
    let jobs = server.json(&["list"])["jobs"].clone();
    let states: Vec<&Value> = jobs.as_array().unwrap().iter().map(|job| &job["state"]).collect();
    // The job at the place that answers has been written, and the command was told to stop.
    assert_eq!(states[..3], ["failed", "checkpointed", "stopped"]);
    assert!(jobs[0]["reason"].as_str().unwrap().contains("place 1 is dead"), "{jobs}");
    server.end();
    let stderr = stderr.join().unwrap();
    assert!(
        stderr.contains("place 1 has not answered for ") && stderr.contains("; it has no job, and is killed"),
        "{stderr}"
    );
}

#[test]
fn a_place_whose_job_does_not_come_back_is_named_and_given_up_by_force() {
    for machine in ["threads", "processes"] {
        let folder = std::env::temp_dir().join(format!("isles-jobs-stuck-{machine}-{}", std::process::id()));
        let mut server = JobServer { process: None, folder };
        server.start_example("stuck", machine);
        let job = server.begin(&["--task", "stuck", "--at", "1"]);
        server.wait(&job, "running");
        let mut ending = Ending::begin(&server);
        let line = ending.line();
        let expected = "it is stopped, or a step of a job there does not return, with job 1";
        assert!(line.contains("place 1 has not answered for ") && line.contains(expected), "{line}");
        server.json(&["end", "--force"]);
        ending.wait(&mut server);
        server.start_example("stuck", machine);
        let job = server.json(&["list"])["jobs"][0].clone();
        assert_eq!(job["state"], "failed");
        let why = if machine == "threads" { "the job server was ended by force" } else { "place 1 is dead" };
        assert!(job["reason"].as_str().unwrap().contains(why), "{job}");
        server.end();
    }
}

#[test]
fn a_job_server_that_is_stopped_itself_is_named_and_killed_by_force() {
    let mut server = JobServer::new("halted", &["--machine", "processes", "--places", "2"]);
    let job = server.begin(&["--at", "1", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let command = process_of(&server, &job);
    let process = server.process().id().to_string();
    signal("-STOP", &process);
    let mut ending = Ending::begin(&server);
    let line = ending.line();
    assert!(
        line.contains("the job server does not answer; its process ") && line.contains(&process),
        "{line}"
    );
    server.json(&["end", "--force"]);
    assert_eq!(server.process.take().unwrap().wait().unwrap().signal(), Some(9));
    assert!(ending.process.wait().unwrap().success());
    until(|| state_of(&command).is_none_or(|state| state == "Z"));
}

#[test]
fn who_ends_a_job_server_hears_which_job_cannot_be_written() {
    let mut server = JobServer::new("unwritten", &["--machine", "threads", "--places", "1"]);
    let job = server.begin(&["--task", "pi", "--", "1000000000000"]);
    server.wait(&job, "running");
    let obstacle = server.folder.join("job-1.new");
    std::fs::create_dir(&obstacle).unwrap();
    let mut ending = Ending::begin(&server);
    let line = ending.line();
    assert!(
        line.contains("job 1: it continues where it is, because its state cannot be written: "),
        "{line}"
    );
    std::fs::remove_dir(&obstacle).unwrap();
    ending.wait(&mut server);
    server.start(&["--machine", "threads", "--places", "1"]);
    assert_eq!(server.json(&["list"])["jobs"][0]["state"], "checkpointed");
    server.end();
}
