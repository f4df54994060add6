//! Both formats of basis sets: the contents read, each error with its line, and arbitrary text.

use super::*;
use proptest::prelude::*;

const GAUSSIAN: &str = "! STO-3G\n****\nH     0\nS   3   1.00\n  3.42525091 0.15432897\n  0.62391373 0.53532814\n  \
    0.16885540D+00 4.4463454D-01\n****\nC 0\nSP 1 1.00\n 2.9 0.5 0.25\n****\n";

/// Returns the set of hydrogen and carbon in a text.
fn of_h_and_c(text: &str) -> Result<BasisSet, InputError> {
    basis_set("f", text, &["H", "C"].map(|symbol| Element::parse(symbol).unwrap()))
}

fn contractions(text: &str, element: &str) -> Vec<Contraction> {
    of_h_and_c(text).unwrap().contractions(Element::parse(element).unwrap()).unwrap()
}

fn message(text: &str) -> String {
    of_h_and_c(text).unwrap_err().to_string()
}

#[test]
fn both_forms_of_a_set_are_one() {
    let nwchem = "# STO-3G\nBASIS \"ao basis\" PRINT\nH S\n3.42525091 0.15432897\n0.62391373 0.53532814\n\
        0.16885540 0.44463454\nC SP\n2.9 0.5 0.25\nEND\n";
    for element in ["H", "C"] {
        assert_eq!(contractions(nwchem, element), contractions(GAUSSIAN, element));
    }
    assert_eq!(contractions(nwchem, "C")[1].primitives, [(2.9, 0.25)]);
}

#[test]
fn several_columns_are_several_contractions_and_a_zero_is_no_primitive() {
    let found = contractions("C P\n9.0 0.1 0.0\n1.0 0.7 1.0\n", "C");
    let expected = [vec![(9.0, 0.1), (1.0, 0.7)], vec![(1.0, 1.0)]];
    assert_eq!(found.iter().map(|one| one.primitives.clone()).collect::<Vec<_>>(), expected);
}

/// Psi4 refuses a numbered row in Gaussian's format (psi4/psi4#2253). Several columns exist only in NWChem's format.
#[test]
fn a_row_with_more_words_than_its_form_is_refused() {
    for (head, row, expected) in [
        ("S", "1 2.0 1.0", "1 coefficient"),
        ("P", "2.0 0.5 0.5", "1 coefficient"),
        ("SP", "1 2.0 0.5 0.25", "2 coefficients"),
        ("L", "2.0 0.5 0.25 x", "2 coefficients"),
    ] {
        let found = message(&format!("****\nC 0\n{head} 1 1.0\n{row}\n****\n"));
        let expected =
            format!("f: line 4: found `{row}`, expected an exponent from 1e-6 to 1e12 and {expected}");
        assert_eq!(found, expected);
    }
    for (text, expected) in [
        (
            "C S\n1 9.0 0.5\n2 3.0 0.5\n",
            "line 2: found `1 9.0 0.5`, expected an exponent in the first column",
        ),
        (
            "C S\n1 9.0 0.5\n",
            "line 2: found `1 9.0 0.5`, expected at most 1 coefficient for 1 primitive, not 2",
        ),
        (
            "C S\n9.0 0.5 0.1 0.1\n3.0 0.5 0.1 0.1\n",
            "line 2: found `9.0 0.5 0.1 0.1`, expected at most 2 coefficients for 2 primitives, not 3",
        ),
        (
            "C SP\n1 9.0 0.5 0.5\n",
            "line 2: found `1 9.0 0.5 0.5`, expected an exponent from 1e-6 to 1e12 and 2",
        ),
        ("C S\n9.0 0.5\nEND all\n", "line 3: found `END all`, expected `END` alone"),
        ("****\nC 0\nS 1 1.0\n9.0 0.5\n**** H 0\n", "line 5: found `**** H 0`, expected `****` alone"),
        ("**** H 0\nS 1 1.0\n9.0 0.5\n****\n", "line 1: found `**** H 0`, expected `****` alone"),
    ] {
        assert!(message(text).contains(expected), "{}", message(text));
    }
}

#[test]
fn what_is_malformed_is_named_with_its_line_and_what_was_expected() {
    assert_eq!(message("# nothing\n"), "f: the text ends early: the first element is missing");
    assert!(message("H S\n1.0 1.0\nQ S\n").starts_with("f: line 3: found `Q S`, expected an element"));
    assert!(message("C F\n1.0 1.0\n").contains("line 1: found `C F`, expected a type of functions"));
    assert!(message("C S\n").contains("an exponent with its coefficients after line 1 is missing"));
    assert!(message("C S\nC P\n").contains("line 2: found `C P`, expected an exponent"));
    for bad in ["1.0", "0.0 1.0", "-1 1", "1.0 x", "1e99 1.0"] {
        assert!(message(&format!("C S\n{bad}\n")).contains("line 2"), "{bad}");
    }
    assert!(message("C S\n1.0 0.0\n").contains("not all zero"));
    assert!(message("C SP\n1.0 0.5\n").contains("and 2 coefficients"));
    assert!(message("****\nH 0\nS 2 1.0\n1.0 1.0\n").contains("primitive 2 of 2 is missing"));
    assert!(message("****\nH 0\nS x\n").contains("line 3: found `S x`, expected a number of primitives"));
}

#[test]
fn a_scale_factor_counts_squared_and_what_is_none_is_refused() {
    let set = |head: &str| format!("****\nH 0\n{head}\n 2.0 1.0\n****\n");
    for (head, exponent) in [("S 1 1.5", 4.5), ("S 1", 2.0), ("S 1 1.50D+00 0.000000000000", 4.5)] {
        assert_eq!(contractions(&set(head), "H")[0].primitives, [(exponent, 1.0)], "{head}");
    }
    for head in ["S 1 0.0", "S 1 -1.0", "S 1 x", "S 1 1.0 1.2", "S 1 1.0 0.0 0.0"] {
        let expected = format!("line 3: found `{head}`, expected a type, a number of primitives and a scale");
        assert!(message(&set(head)).contains(&expected), "{}", message(&set(head)));
    }
}

#[test]
fn a_list_of_elements_and_a_file_without_the_first_separator_lose_nothing() {
    let listed = "C -H O 0\nS 1 1.00\n 2.0 1.0\n****\nH 0\nP 1 1.00\n 0.5 1.0\n****\n";
    assert_eq!(contractions(listed, "C").len(), 1);
    assert_eq!(contractions(listed, "H").iter().map(|one| one.momentum).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(contractions("H 0\nS 1 1.0\n 2.0 1.0\n", "H").len(), 1);
    for head in ["H Q 0", "1 0", "H 1", "0"] {
        let text = format!("****\n{head}\nS 1 1.0\n 2.0 1.0\n****\n");
        assert!(message(&text).contains(&format!("line 2: found `{head}`, expected symbols")), "{head}");
    }
    assert!(message("title\n****\nH 0\nS 1 1.0\n2.0 1.0\n****\n").contains("line 1: found `title`"));
}

#[test]
fn the_word_for_cartesian_functions_counts_where_there_are_d_functions() {
    let kind = |text: &str| of_h_and_c(text).map(|set| set.is_cartesian).map_err(|error| error.to_string());
    let d = "C D\n0.8 1.0\nEND\n";
    assert_eq!(kind(&format!("BASIS \"ao basis\" CARTESIAN PRINT\n{d}")), Ok(true));
    assert_eq!(kind(&format!("basis spherical\n{d}")), Ok(false));
    assert_eq!(kind(d), Ok(false));
    assert_eq!(kind("cartesian\n****\nC 0\nD 1 1.0\n0.8 1.0\n****\n"), Ok(true));
    assert_eq!(kind("basis \"C\" cartesian\nC S\n0.8 1.0\nend\n"), Ok(false));
    let two = format!("basis \"C\" cartesian\n{d}basis \"H\" spherical\nH D\n1.0 1.0\nend\n");
    assert!(kind(&two).unwrap_err().contains("line 6: found `H D`, expected one kind of d functions"));
    for head in ["BASIS \"ao basis\" REL", "BASIS \"ao basis\" x", "BASIS CARTESIAN SPHERICAL"] {
        assert!(kind(&format!("{head}\n{d}")).unwrap_err().contains("line 1: found `BASIS"), "{head}");
    }
}

#[test]
fn only_what_is_wanted_is_judged() {
    let potential = "\nRB 0\nRB-ECP 1 28\np potential\n 1\n2 1.0 0.0\ns-p potential\n 1\n2 1.0 2.0\n";
    let gaussian = format!("H 0\nS 1 1.0\n1.0 1.0\n****\nRb 0\nF 1 1.0\n1.0 1.0\n****\n{potential}");
    assert_eq!(contractions(&gaussian, "H").len(), 1);
    let own = gaussian.replace("RB", "C");
    assert!(
        message(&own).contains("line 11: found `C-ECP 1 28`, expected no core potential"),
        "{}",
        message(&own)
    );
    let nwchem =
        "BASIS\nH S\n1.0 1.0\nRb G\n1.0 1.0\nRb library x\nEND\nECP\nRb nelec 28\nRb ul\n2 1.0 0.0\nEND\n";
    assert_eq!(contractions(nwchem, "H").len(), 1);
    assert!(message(&nwchem.replace("Rb ul", "H ul")).contains("line 10: found `H ul`, expected no core"));
    assert!(message(&nwchem.replace("Rb G", "C G")).contains("line 4: found `C G`, expected a type"));
    assert!(
        message(&nwchem.replace("Rb lib", "C lib")).contains("line 6: found `C library x`, expected an el")
    );
    let again = "basis \"ao basis\"\nH S\n1.0 1.0\nend\nbasis \"cd basis\"\nH S\n2.0 1.0\nend\n";
    assert!(
        message(again).contains("line 6: found `H S`, expected the functions of an element in one block")
    );
}

proptest! {
    #[test]
    fn any_text_gives_a_set_or_an_error(text in "[ -~\n\t]{0,300}") {
        let _ = of_h_and_c(&text);
        let _ = of_h_and_c(&format!("****\n{text}"));
    }

    #[test]
    fn a_damaged_set_gives_a_set_or_an_error(at in 0..GAUSSIAN.len(), byte in any::<u8>()) {
        let mut bytes = GAUSSIAN.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = of_h_and_c(&String::from_utf8_lossy(&bytes));
    }
}
