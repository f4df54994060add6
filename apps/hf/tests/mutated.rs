//! Files of molecules and basis sets as others write them, and damaged ones: the right energy, or one line.
//!
//! Each round draws a file of each form from a seed. What means the same must give the same bits; what is damaged must
//! end in one line that names it with exit code 2, or be computed as what it says. `ISLES_TEST_SEEDS` says how many.

#[path = "../../../crates/cli/tests/command/scene/damage.rs"]
mod damage;
#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use damage::{Dice, damaged, of_another_system, rounds};
use scene::{Ended, Scene, ended};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-hf");

/// Bytes of address space that a run may take; a file must not make it take more.
const ADDRESS_SPACE: u64 = 4 << 30;

const XYZ: &str = "2\nlithium hydride\nLi 0.0 0.0 0.0\nH 0.0 0.0 1.6\n";
const INP: &str = "lithium hydride\nunits 0.529177210903\nmolecule\nLi 0.0 0.0 0.0\nH 0.0 0.0 1.6\nend\n";
const NWCHEM: &str = "BASIS \"ao basis\" SPHERICAL PRINT\nH S\n0.6 0.4\n0.2 0.7\nLi SP\n9.0 0.2 0.1\n0.5 0.9 0.8\n\
                      Li S\n0.05 1.0\nEND\n";
const GAUSSIAN: &str = "****\nH 0\nS 2 1.00\n0.6 0.4\n0.2 0.7\n****\nLi 0\nSP 2 1.00\n9.0 0.2 0.1\n0.5 0.9 0.8\n\
                        S 1 1.00\n0.05 1.0\n****\n";

/// The forms of molecules and of basis sets, with the endings of their names.
const FORMS: [(&str, &str); 4] = [("a.xyz", XYZ), ("a.inp", INP), ("a.nw", NWCHEM), ("a.gbs", GAUSSIAN)];

/// Returns an equivalent file in another notation.
fn reworded(name: &str, text: &str, dice: &mut Dice) -> String {
    let numbers = |text: &str| text.replace("0.5 0.9", "5.0D-01 +.9").replace(" 1.6", " 16.0d-1");
    let mut text = if dice.below(2) == 0 { numbers(text) } else { text.to_owned() };
    let choices: &[(&str, &str)] = match name {
        "a.xyz" => &[
            ("lithium hydride", "Properties=species:S:1:pos:R:3 pbc=\"F F F\" energy=-7.9"),
            ("0.0 1.6", "0.0 1.6 0.2 T label"),
            ("Li 0.0", "  3\t0"),
            ("1.6\n", "1.6\n\n1341.3 1300.1\n[Li]\tH\n"),
        ],
        "a.inp" => &[("units", "charge 0\nunits"), ("end\n", "end\nscf_max 7\n"), ("H 0.0", " 1  0")],
        "a.nw" => &[
            ("H S", "# a comment\n\nh s # another"),
            ("Li SP", "Rb G\n1.0 1.0\nli L"),
            ("END\n", "END\nECP\nRb nelec 28\nRb ul\n2 1.0 0.0\nEND\n"),
            ("SPHERICAL PRINT", "print spherical nosegment"),
        ],
        _ => &[
            ("****\nH", "\n! a comment\nH"),
            ("S 2 1.00", "S 2 1.0D0 0.000000000000"),
            ("H 0", "-H Og 0"),
            (
                "0.05 1.0\n****\n",
                "0.05 1.0\n****\nRb 0\nG 1 1.0\n1.0 1.0\n****\n\nRB 0\nRB-ECP 0 28\ns\n1\n2 1.0 0.0\n",
            ),
        ],
    };
    for (from, to) in choices {
        // A header that says what the columns are allows no more.
        let is_allowed = !(to.ends_with("label") && text.contains("Properties"));
        if dice.below(2) == 0 && is_allowed {
            text = text.replacen(from, to, 1);
        }
    }
    text
}

/// A run on a file of the form `name`, whose other file is as it should be.
fn run(scene: &Scene, name: &str, bytes: &[u8]) -> Ended {
    let file = |name: &str, bytes: &[u8]| scene.file(name, bytes).display().to_string();
    let is_molecule = name.ends_with("xyz") || name.ends_with("inp");
    let (molecule, basis) = match is_molecule {
        true => (file(name, bytes), file("plain.nw", NWCHEM.as_bytes())),
        false => (file("plain.xyz", XYZ.as_bytes()), file(name, bytes)),
    };
    let flags = [
        "--machine",
        "threads",
        "--places",
        "1",
        "--max-iterations",
        "60",
        "--json",
        "-",
        "--csv",
        "/dev/null",
    ];
    let mut command = scene.program("sh");
    command.args(["-c", "ulimit -v \"$0\"; exec \"$@\"", &(ADDRESS_SPACE >> 10).to_string(), PROGRAM]);
    command.args(["--molecule", &molecule, "--basis", &basis]).args(flags);
    ended(command)
}

/// The bits of the energy that a run tells.
fn energy(ended: &Ended) -> u64 {
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    document["energy"].as_f64().unwrap_or_else(|| panic!("{ended:?}")).to_bits()
}

#[test]
fn files_that_mean_the_same_give_the_same_energy() {
    let scene = Scene::new("hf-reworded");
    let expected = FORMS.map(|(name, text)| energy(&run(&scene, name, text.as_bytes())));
    for seed in 0..rounds(10) {
        for ((name, text), expected) in FORMS.into_iter().zip(expected) {
            let mut dice = Dice::new(seed);
            let text = reworded(name, text, &mut dice);
            let found = run(&scene, name, &of_another_system(&text, &mut dice));
            assert_eq!(energy(&found), expected, "seed {seed}: {text}");
        }
    }
}

#[test]
fn damaged_files_are_refused_in_one_line_or_computed_as_what_they_say() {
    let scene = Scene::new("hf-damaged");
    for seed in 0..rounds(25) {
        for (name, text) in FORMS {
            let mut dice = Dice::new(seed);
            let text = reworded(name, text, &mut dice);
            let bytes = damaged(text.as_bytes(), &mut dice);
            let found = run(&scene, name, &bytes);
            let title = format!("seed {seed}: {} gave {found:?}", String::from_utf8_lossy(&bytes));
            match found.code {
                Some(0) => assert!(f64::from_bits(energy(&found)).is_finite(), "{title}"),
                Some(1) => assert!(found.stderr.contains("did not converge"), "{title}"),
                _ => assert!(found.code == Some(2) && found.refusal().len() < 600, "{title}"),
            }
        }
    }
}
