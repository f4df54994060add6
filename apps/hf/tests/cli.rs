//! `isles run hf`: the same bits on every machine with any number of places, a check, files, and refusals in a line.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use scene::Scene;
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-hf");

/// Returns the JSON output of `isles run hf` with these arguments.
fn document(arguments: &[&str]) -> Value {
    let scene = Scene::new("hf");
    let ended = scene.run(&[&["--json", "-", "--csv", "/dev/null"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// All of a result that must not depend on the places; numbers in JSON read back to the same bits.
fn answer(document: &Value) -> [&Value; 4] {
    ["energy", "iterations", "orbital_energies", "dipole"].map(|name| &document[name])
}

#[test]
fn the_answer_has_the_same_bits_on_every_machine_with_any_number_of_places_and_any_balance() {
    let one = document(&["--basis", "3-21g", "--places", "1", "--machine", "threads"]);
    assert_eq!(one["run"]["units"], 81);
    for machine in ["threads", "processes", "loopback", "chip:scc"] {
        for places in ["1", "2", "3", "5"] {
            for balance in ["static", "dynamic", "single", "glb"] {
                let arguments =
                    ["--basis", "3-21g", "--places", places, "--machine", machine, "--balance", balance];
                let other = document(&arguments);
                assert_eq!(answer(&other), answer(&one), "{places} places, {machine}, {balance}");
                assert_eq!(
                    (other["run"]["places"].to_string(), other["run"]["balance"].as_str()),
                    (places.to_owned(), Some(balance))
                );
                let shares = other["run"]["shares"].as_array().unwrap();
                if machine == "chip:scc" {
                    assert!(shares.is_empty() && other["imbalance"].is_null());
                } else {
                    let units: u64 = shares.iter().map(|share| share["units"].as_u64().unwrap()).sum();
                    assert_eq!(units, 81 * one["iterations"].as_array().unwrap().len() as u64);
                    assert!(other["imbalance"].as_f64().unwrap() >= 1.0);
                }
            }
        }
    }
}

#[test]
fn a_run_says_what_its_energy_was_checked_against_and_keeps_files() {
    let scene = Scene::new("hf-files");
    let ended = scene.run(&["--molecule", "NH3", "--places", "2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heading = "nh3 in sto-3g: 10 electrons, 6 shells, 8 functions, 36 units; 2 places (processes)\n";
    assert!(ended.stdout.starts_with(heading), "{ended:?}");
    assert!(ended.stdout.contains("\nenergy     -55.4517532513 hartree"), "{ended:?}");
    assert!(
        ended.stdout.contains(" hartree from PySCF's -55.4517532513; allowed: at most 1e-9\n"),
        "{ended:?}"
    );
    assert!(
        ended.stdout.ends_with("wrote  out/hf-NH3-sto-3g.json\nwrote  out/hf-NH3-sto-3g.csv\n"),
        "{ended:?}"
    );
    let table = scene.result("out/hf-NH3-sto-3g.csv");
    assert!(table.starts_with("iteration,energy,change,gradient\n1,-55."), "{table}");
}

#[test]
fn a_molecule_and_a_basis_set_of_files_give_what_the_built_in_ones_give() {
    let scene = Scene::new("hf-input");
    let molecule = scene.file("h2.xyz", "2\none bohr\nH 0 0 0\nH 0 0 0.529177210903\n");
    let sto =
        "****\nH 0\nS 3 1.00\n3.42525091 0.15432897\n0.62391373 0.53532814\n0.16885540 0.44463454\n****\n";
    let basis = scene.file("h.gbs", sto);
    let [molecule, basis] = [molecule, basis].map(|path| path.display().to_string());
    let own = document(&["--molecule", &molecule, "--basis", &basis, "--machine", "threads"]);
    let built_in = document(&["--molecule", "h2", "--machine", "threads"]);
    let energy = |document: &Value| document["energy"].as_f64().unwrap();
    assert!((energy(&own) - energy(&built_in)).abs() < 1e-11, "{own}");
    assert!(own["verification"].is_null(), "nobody has told what it should be");
    let read = scene.run(&["--molecule", &molecule, "--json", &molecule]);
    assert!(read.refusal().contains("a file other than the molecule, because that is read"), "{read:?}");
}

#[test]
fn what_a_file_holds_beside_a_molecule_and_its_basis_set_changes_nothing() {
    let scene = Scene::new("hf-more");
    let energy = |molecule: &str, basis: &str| {
        let arguments = ["--molecule", molecule, "--basis", basis, "--machine", "threads", "--places", "1"];
        document(&arguments)["energy"].as_f64().unwrap()
    };
    let file = |name: &str, text: &str| scene.file(name, text).display().to_string();
    // PySCF 2.14 gives -1.1167593075 with the scale factor multiplied out, and -75.5854088798 for water.
    let h2 = file("h2.xyz", "\u{feff}2\r\nH2 at 0.74\r\nH 0 0 0\r\nH 0 0 0.74\r\n");
    let scaled = "H 0\nS 3 1.24\n2.2276605840 0.1543289673\n0.4057711562 0.5353281423\n\
                  0.1098175104 0.4446345422\n****\nRb 0\nF 1 1.0\n1.0 1.0\n****\n";
    assert!((energy(&h2, &file("scaled.gbs", scaled)) - -1.116_759_307_5).abs() < 1e-9);
    let water = "3\nProperties=species:S:1:pos:R:3:forces:R:3 pbc=\"F F F\"\nO 0 0 1.173D-1 0 0 1\n\
                 H 0 0.7572 -0.4692 0 0 1\nH 0 -0.7572 -0.4692 0 0 1\n1648.5 3832.2\nO\tO\n";
    let plain = file("plain.xyz", "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n");
    assert_eq!(energy(&file("more.xyz", water), "3-21g").to_bits(), energy(&plain, "3-21g").to_bits());
    let set = |kind: &str| {
        format!(
            "BASIS \"ao basis\" {kind} PRINT\nH S\n0.5 1.0\nO S\n9.0 0.3\n0.9 0.7\nO P\n0.8 1.0\nO D\n0.8 1.0\n\
             K G\n1.0 1.0\nEND\nECP\nK nelec 10\nK ul\n2 1.0 0.0\nEND\n"
        )
    };
    let [cartesian, spherical] =
        ["CARTESIAN", "SPHERICAL"].map(|kind| file(&format!("{kind}.nw"), &set(kind)));
    let functions = |basis: &str, flags: &[&str]| {
        let run = [&["--molecule", &plain, "--basis", basis, "--machine", "threads"], flags].concat();
        document(&run)["run"]["functions"].as_u64()
    };
    let found =
        [functions(&cartesian, &[]), functions(&spherical, &[]), functions(&spherical, &["--cartesian"])];
    assert_eq!(found, [Some(12), Some(11), Some(12)]);
}

#[test]
fn an_input_is_read_once_so_that_a_pipe_will_do() {
    let scene = Scene::new("hf-pipe");
    let pipe = scene.file("pipe.xyz", "");
    std::fs::remove_file(&pipe).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let writer = pipe.clone();
    let writing = std::thread::spawn(move || std::fs::write(writer, "2\n\nH 0 0 0\nH 0 0 0.74\n"));
    let found = document(&["--molecule", &pipe.display().to_string(), "--places", "2"]);
    writing.join().unwrap().unwrap();
    assert!((found["energy"].as_f64().unwrap() - -1.116_759_307_5).abs() < 1e-9, "{found}"); // PySCF 2.14
}

#[test]
fn a_file_without_an_end_is_given_up_at_a_bound_that_is_said() {
    let scene = Scene::new("hf-endless");
    let sparse = scene.file("sparse.xyz", "2\n");
    std::fs::File::options().write(true).open(&sparse).and_then(|file| file.set_len(8 << 30)).unwrap();
    for arguments in [["--basis", "/dev/zero"], ["--molecule", &sparse.display().to_string()]] {
        let ended = scene.run(&arguments);
        assert!(ended.refusal().contains("cannot be read: it has more than 16 MiB"), "{ended:?}");
    }
}

#[test]
fn what_cannot_be_computed_is_refused_in_a_line_that_says_what_is_allowed() {
    let scene = Scene::new("hf-refused");
    let file = |name: &str, text: &str| scene.file(name, text).display().to_string();
    let unknown = file("unknown.xyz", "1\n\nXx 0 0 0\n");
    let short = file("short.xyz", "3\nwater\nO 0 0 0\n");
    let close = file("close.xyz", "2\n\nH 0 0 0\nH 0 0 0\n");
    let heavy = file("heavy.xyz", "1\n\nZn 0 0 0\n");
    let neon = file("neon.xyz", "1\n\nNe 0 0 0\n");
    let bad = file("bad.nw", "H S\n1.0 oops\n");
    let hydrogen = file("hydrogen.nw", "H S\n1.0 1.0\n");
    // The number of the primitive stands before it, as GAMESS-US writes it; Psi4 refuses such files (psi4/psi4#2253).
    let numbered = "****\nH 0\nS 3 1.00\n1 3.42525091 0.15432897\n2 0.62391373 0.53532814\n\
                    3 0.16885540 0.44463454\n****\n";
    let numbered = file("numbered.gbs", numbered);
    let cases: [(&[&str], &str); 17] = [
        (&["--molecule", "water"], "--molecule is \"water\"; allowed: h2, h2o"),
        (&["--molecule", &unknown], "line 3: found `Xx 0 0 0`, expected an element from H to Ar"),
        (&["--molecule", &heavy], "line 3: found `Zn 0 0 0`, expected an element from H to Ar"),
        (&["--molecule", &short], "the text ends early: atom 2 of 3 is missing"),
        (&["--molecule", &close], "atoms 1 and 2 are 0.0e0 bohr apart; allowed: at least 1e-2 bohr"),
        (&["--molecule", "nowhere.xyz"], "nowhere.xyz cannot be read"),
        (&["--charge", "1"], "--charge 1 leaves h2o 9 electrons; allowed: an even number"),
        (&["--charge", "10"], "--charge 10 leaves h2o 0 electrons; allowed: a charge that leaves at least 2"),
        (&["--charge", "-10"], "--basis sto-3g has 7 functions for 10 pairs of electrons"),
        (&["--basis", "sto-4g"], "--basis is \"sto-4g\"; allowed: sto-3g, 3-21g, 6-31g*, or a file"),
        (&["--basis", &bad], "line 2: found `1.0 oops`, expected an exponent"),
        (
            &["--molecule", "h2", "--basis", &numbered],
            "line 4: found `1 3.42525091 0.15432897`, expected an exponent from 1e-6 to 1e12 and 1 coefficient",
        ),
        (
            &["--molecule", &neon, "--basis", &hydrogen],
            "has no functions for Ne; allowed: a basis set with functions",
        ),
        (&["--convergence", "1e-20"], "a number from 1e-11 to 0.01"),
        (&["--max-iterations", "0"], "0 is not in 1..=10000"),
        (&["--stable", "--no-stability"], "the argument '--stable' cannot be used with '--no-stability'"),
        (&["--no-stability=yes"], "unexpected value 'yes' for '--no-stability'"),
    ];
    for (arguments, expected) in cases {
        let ended = scene.run(&[&[], arguments].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
}

#[test]
fn a_stretched_bond_converges_and_either_guess_leads_to_one_energy() {
    let scene = Scene::new("hf-stretched");
    let molecule = scene.file("hf.xyz", "2\n2.5 angstrom\nH 0 0 0\nF 0 0 2.5\n").display().to_string();
    // PySCF 2.14: 10 or 11 iterations from each of four guesses.
    for (set, expected) in [("3-21g", -99.136_287_162_3), ("6-31g*", -99.671_353_529_9)] {
        for guess in ["atoms", "core"] {
            let arguments =
                ["--molecule", &molecule, "--basis", set, "--guess", guess, "--machine", "threads"];
            let found = document(&arguments);
            assert!((found["energy"].as_f64().unwrap() - expected).abs() < 1e-9, "{set} {guess}: {found}");
            let iterations = found["iterations"].as_array().unwrap().len();
            assert!(iterations < 16, "{set} {guess}: {iterations} iterations");
        }
    }
}

#[test]
fn a_run_says_whether_a_lower_energy_is_near_and_goes_there_if_it_is_asked_to() {
    let scene = Scene::new("hf-stable");
    let square = scene.file("square.xyz", "4\n\nH 0 0 0\nH 1 0 0\nH 1 1 0\nH 0 1 0\n").display().to_string();
    let run = |flags: &[&str]| {
        let arguments = ["--molecule", &square, "--basis", "6-31g*", "--places", "2"];
        scene.run(&[&arguments, flags].concat())
    };
    // PySCF 2.14 from its own guess, and after it has followed its check of internal stability.
    let plain = run(&[]);
    assert!(plain.stdout.contains("\nenergy     -1.8837662821 hartree"), "{plain:?}");
    assert!(
        plain.stdout.contains("\nstability  it is not a minimum: a lower energy is near (curvature -0.06"),
        "{plain:?}"
    );
    assert!(plain.stdout.contains("; --stable continues to a stable one\n"), "{plain:?}");
    let stable = run(&["--stable"]);
    assert!(stable.stdout.contains("\nenergy     -1.9144315918 hartree"), "{stable:?}");
    assert!(stable.stdout.contains("\nstability  it is a minimum (least curvature 0.06"), "{stable:?}");
    let at = |machine: &str, places: &str| {
        let where_to = ["--machine", machine, "--places", places];
        document(&[&["--molecule", &square, "--basis", "3-21g", "--stable"], &where_to[..]].concat())
    };
    let [one, others, chip] = [at("threads", "1"), at("loopback", "3"), at("chip:scc", "2")];
    for other in [&others, &chip] {
        assert_eq!((answer(other), &other["stability"]), (answer(&one), &one["stability"]));
    }
    // Else the check would be part of the prediction on a modelled chip.
    let chip = document(&["--molecule", &square, "--places", "2", "--machine", "chip:scc"]);
    assert!(chip["stability"].is_null(), "{chip}");
}

#[test]
fn phases_are_named_in_order_where_standard_error_is_a_pipe() {
    let scene = Scene::new("hf-phases");
    let square = scene.file("square.xyz", "4\n\nH 0 0 0\nH 1 0 0\nH 1 1 0\nH 0 1 0\n").display().to_string();
    let run = |flags: &[&str]| {
        let arguments = ["--molecule", &square, "--places", "2", "--json", "/dev/null", "--csv", "/dev/null"];
        let ended = scene.run(&[&arguments, flags].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    };
    let (screening, scf, check) = ("Schwarz screening", "SCF", "stability check");
    for machine in ["threads", "processes", "loopback"] {
        assert_eq!(run(&["--machine", machine]).phases(), [screening, scf, check], "{machine}");
    }
    assert_eq!(run(&["--machine", "chip:scc"]).phases(), [screening, scf]);
    assert_eq!(run(&["--no-stability"]).phases(), [screening, scf]);
    let stable = run(&["--stable", "--basis", "6-31g*"]);
    let phases = stable.phases();
    assert_eq!(phases[..4], [screening, scf, check, "descent"], "{stable:?}");
    assert_eq!(phases.last(), Some(&check), "{stable:?}");
}

#[test]
fn a_run_without_the_check_for_stability_says_so() {
    let scene = Scene::new("hf-unchecked");
    let line = |flags: &[&str]| {
        let ended = scene.run(&[&["--molecule", "h2", "--places", "2"], flags].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let line = ended.stdout.lines().find(|line| line.starts_with("stability "));
        line.unwrap_or_else(|| panic!("{ended:?}")).to_owned()
    };
    assert_eq!(line(&["--no-stability"]), "stability  not checked: --no-stability");
    let chip = line(&["--machine", "chip:scc"]);
    assert_eq!(chip, "stability  not checked: on a modelled chip only --stable checks it");
    assert!(line(&[]).starts_with("stability  it is a minimum"));
    let [without, with] = [&["--no-stability"][..], &[]].map(document);
    assert_eq!((&without["stability"], &without["run"]["no_stability"]), (&Value::Null, &Value::Bool(true)));
    assert_eq!(answer(&without), answer(&with));
}

#[test]
fn a_calculation_that_does_not_converge_fails_with_its_last_energies() {
    let scene = Scene::new("hf-unconverged");
    let ended = scene.run(&["--max-iterations", "3", "--places", "2"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let line = "the energy of h2o in sto-3g did not converge to 1e-10 hartree in 3 iterations: -74.";
    assert!(ended.stderr.contains(line) && ended.stderr.contains("(iteration 3, gradient "), "{ended:?}");
    assert!(!scene.path("out/hf-h2o-sto-3g.json").exists());
}
