//! Tests of generations against populations of another program, of patterns and rules that are read or refused, and of
//! strips against the whole field.

use crate::pattern::{self, BUILT_IN, Pattern};
use crate::rule::Rule;
use crate::strip::{Field, Start, Strip, Sums};
use proptest::prelude::*;

fn field(name: &str, rows: usize, columns: usize) -> Field {
    let text = BUILT_IN.iter().find(|(known, _)| *known == name).unwrap().1;
    let (pattern, rule) = pattern::read(text).unwrap();
    Field { columns, rows, rule: rule.unwrap(), start: Start::Pattern(pattern) }
}

/// Runs one step of strips cut at `cuts`.
fn step(strips: &mut [Strip]) {
    let edges: Vec<_> =
        strips.iter().map(|strip| (strip.row(1).to_vec(), strip.row(strip.rows()).to_vec())).collect();
    let size = strips.len();
    for (index, strip) in strips.iter_mut().enumerate() {
        let rows = strip.rows();
        strip.row_mut(0).copy_from_slice(&edges[(index + size - 1) % size].1);
        strip.row_mut(rows + 1).copy_from_slice(&edges[(index + 1) % size].0);
        strip.split().2.advance();
        strip.finish();
    }
}

fn sums(strips: &[Strip]) -> Sums {
    strips.iter().map(Strip::sums).fold(Sums::default(), Sums::plus)
}

/// The populations are those of `bgolly` 3.3 (Debian 12) on an unbounded plane; no pattern reaches the edges here.
#[test]
fn patterns_have_the_populations_of_golly() {
    for (name, (rows, columns), populations) in [
        ("glider", (64, 64), [(0, 5), (100, 5)].as_slice()),
        ("gosper-gun", (400, 400), &[(0, 36), (600, 136)]),
        ("breeder", (416, 800), &[(0, 4060), (60, 4271)]),
    ] {
        let mut strips = [Strip::new(&field(name, rows, columns), 0..rows)];
        let mut generation = 0;
        for (at, population) in populations {
            while generation < *at {
                step(&mut strips);
                generation += 1;
            }
            assert_eq!(sums(&strips).population, *population, "{name} at {at}");
        }
    }
}

/// Computes a field by the definition: each cell from its eight neighbours.
fn by_definition(cells: &[Vec<bool>], rule: Rule) -> Vec<Vec<bool>> {
    let (rows, columns) = (cells.len(), cells[0].len());
    let neighbors = |row: usize, column: usize| {
        let around = (0..9).filter(|step| *step != 4).map(|step| {
            cells[(row + rows + step / 3 - 1) % rows][(column + columns + step % 3 - 1) % columns]
        });
        around.filter(|lives| *lives).count()
    };
    let row = |row: usize| {
        (0..columns).map(|column| rule.next(cells[row][column], neighbors(row, column))).collect()
    };
    (0..rows).map(row).collect()
}

/// Returns a rule whose digits are the bits of two numbers.
fn rule_text(births: u32, survivals: u32) -> String {
    let digits = |bits: u32| -> String {
        (0..9).filter(|bit| bits >> bit & 1 == 1).map(|bit| bit.to_string()).collect()
    };
    format!("B{}/S{}", digits(births), digits(survivals))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Strips of any heights match the definition, and their sums those of the whole field.
    #[test]
    fn strips_are_what_the_definition_says(
        seed in any::<u64>(),
        heights in prop::collection::vec(1_usize..4, 1..5),
        words in 1_usize..4,
        births in 0_u32..512,
        survivals in 0_u32..512,
    ) {
        let rule: Rule = rule_text(births, survivals).parse().unwrap();
        let (rows, columns) = (heights.iter().sum::<usize>(), 8 * words);
        let field = Field { columns, rows, rule, start: Start::Random(seed) };
        let mut first = 0;
        let mut strips: Vec<Strip> = heights.iter().map(|height| {
            first += height;
            Strip::new(&field, first - height..first)
        }).collect();
        let mut whole = [Strip::new(&field, 0..rows)];
        for _ in 0..3 {
            let own = |strip: &Strip| (1..=strip.rows())
                .map(|row| strip.row(row).iter().map(|cell| *cell == 1).collect::<Vec<_>>())
                .collect::<Vec<_>>();
            let before: Vec<Vec<bool>> = strips.iter().flat_map(own).collect();
            // On a ring of fewer than three rows a neighbour counts twice, also in the definition.
            step(&mut strips);
            step(&mut whole);
            let after: Vec<Vec<bool>> = strips.iter().flat_map(own).collect();
            prop_assert_eq!(&after, &by_definition(&before, rule));
            prop_assert_eq!(sums(&strips), sums(&whole));
            let living = after.iter().flatten().filter(|lives| **lives).count() as u64;
            prop_assert_eq!(sums(&strips).population, living);
        }
    }

    /// Any text is accepted or refused, without a panic.
    #[test]
    fn no_text_of_a_pattern_panics(text in "[#xy=, 0-9bo$!\nrule/BS3]{0,60}") {
        let _ = pattern::read(&text);
    }

    #[test]
    fn a_rule_is_written_as_it_is_read(births in 0_u32..512, survivals in 0_u32..512) {
        let text = rule_text(births, survivals);
        prop_assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
    }
}

#[test]
fn a_fault_of_a_pattern_names_line_and_column() {
    for (text, expected) in [
        ("", "line 1, column 1: the end of the file; allowed: a line such as"),
        ("#C no pattern\n", "line 1, column 1: the end of the file; allowed: a line such as"),
        ("!Name: Glider\n.O.\n", "line 1, column 1: \"!Name: Glider\"; allowed: a line such as"),
        ("#Life 1.06\n0 -1\n1 0\n", "line 2, column 1: \"0 -1\"; allowed: a line such as"),
        ("x = 3", "line 1, column 1: \"x = 3\"; allowed: a line such as"),
        ("x = 3, y = -1", "line 1, column 8: y is \"-1\"; allowed: 0 to 65536"),
        ("x = 3, y = 65537", "line 1, column 8: y is \"65537\"; allowed: 0 to 65536"),
        (
            "x = 3, y = 3, rule = B3/S23:T100,50\n!",
            "line 1, column 15: the rule \"B3/S23:T100\"; allowed: B and",
        ),
        ("x = 1, y = 1, rule = 345/2/4\no!", "line 1, column 15: the rule \"345/2/4\"; allowed: B and S"),
        ("#r WireWorld\nx = 1, y = 1\no!", "line 1, column 1: the rule \"WireWorld\"; allowed: B and S"),
        ("x = 3, y = 3\nAB!", "line 2, column 2: 'B', a cell of a state above 1; allowed: living and dead"),
        ("x = 3, y = 3\nopA!", "line 2, column 2: 'p', a cell of a state above 1; allowed: living and dead"),
        ("x = 3, y = 3\noz!", "line 2, column 2: 'z'; allowed: a number, b, o, $ or !"),
        ("x = 3, y = 3, rule = B9/S", "line 1, column 15: the rule \"B9/S\"; allowed: B and S with digits"),
        ("x = 3, y = 3\nbo$2bz$3o!", "line 2, column 6: 'z'; allowed: a number, b, o, $ or !"),
        (
            "x = 3, y = 3\nbo$\n2b65535o$",
            "line 3, column 8: a cell in column 65537 of row 2; allowed: 65536 columns and rows",
        ),
        (
            "x = 3, y = 1\n65536$o!",
            "line 2, column 7: a cell in column 1 of row 65537; allowed: 65536 columns",
        ),
        ("x = 3, y = 3\n99999o", "line 2, column 5: a run of 99999; allowed: 1 to 65536"),
        ("x = 3, y = 3\nbo", "line 2, column 2: the end of the file; allowed: a `!`"),
    ] {
        let fault = pattern::read(text).unwrap_err().to_string();
        assert!(fault.starts_with(expected), "{fault}");
    }
}

/// As in `readrle` of Golly's `readpattern.cpp`: lines with `#` are skipped anywhere, `#r` is a rule, sizes may be too
/// small, letters from `p` to `y` without a following capital are living cells, and the first line may be missing.
#[test]
fn patterns_are_read_as_golly_reads_them() {
    let glider = [(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)];
    for (text, rule) in [
        ("x = 3, y = 3, rule = B3/S23\n#C behind\nbob$2bo$\n#C between\n3o!\n#C after\n", Some("B3/S23")),
        ("x = 2, y = 2, rule = b3s23,\nbob$2bo$3o!", Some("B3/S23")),
        ("x=3,y=3,rule=23/3\nb1o1b$2bo$\n\n3o!", Some("B3/S23")),
        ("#CXRLE Pos=-1,-1 Gen=4\n#r 36/125\nx = 3, y = 3\nbob$2bo$3o!", Some("B125/S36")),
        ("x = 0, y = 0, rule = Life\n.A.$2.A$3A!", Some("B3/S23")),
        ("#N a name\nbob$2bo$3o!", None),
        ("bob$2bo$3o!", None),
        ("x = 3, y = 3\nbpb$2bx\n$2yo!", None),
    ] {
        let (pattern, found) = pattern::read(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        assert_eq!(found.map(|rule| rule.to_string()).as_deref(), rule, "{text}");
        assert_eq!((pattern.columns, pattern.rows), (3, 3), "{text}");
        let cells =
            pattern.runs.iter().flat_map(|(row, first, run)| (0..*run).map(move |cell| (*row, first + cell)));
        assert_eq!(cells.collect::<Vec<_>>(), glider, "{text}");
    }
    let (empty, _) = pattern::read("x = 0, y = 0, rule = B3/S23\n!").unwrap();
    assert_eq!(empty, Pattern::default());
}

#[test]
fn rules_are_read_as_golly_reads_them() {
    for (text, expected) in [
        ("B36/S23", "B36/S23"),
        ("b36s23", "B36/S23"),
        ("S23/B36", "B36/S23"),
        ("s23b36", "B36/S23"),
        ("23/36", "B36/S23"),
        ("/2", "B2/S"),
        ("b2/s", "B2/S"),
        ("B2S", "B2/S"),
        ("life", "B3/S23"),
    ] {
        assert_eq!(text.parse::<Rule>().map(|rule| rule.to_string()).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        "", "/", "B3", "3", "B3/S9", "B3/23", "3/S23", "B3/S23V", "B3/S23H", "B2n3/S23", "345/2/4", "B3/B23",
        "é",
    ] {
        assert!(text.parse::<Rule>().is_err(), "{text}");
    }
}

#[test]
fn a_pattern_is_read_by_runs() {
    let (pattern, rule) = pattern::read("#N a\nx = 4,y=3, rule = b36/s23\n2o$$b3o!rest").unwrap();
    assert_eq!(pattern, Pattern { columns: 4, rows: 3, runs: vec![(0, 0, 2), (2, 1, 3)] });
    assert_eq!(rule.map(|rule| rule.to_string()).as_deref(), Some("B36/S23"));
}
