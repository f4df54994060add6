//! Kernels on generated networks in seeded worlds, their checks on wrong answers, and inputs that are refused.

use super::block;
use super::input::generate::{self, GraphFamily, Recipe};
use super::input::{Input, InputSource, NO_EDGE, read};
use super::kernel::KernelName;
use super::run::{ImSuite, ImSuiteFound};
use super::ship::{ReachableClosure, Ship};
use super::verify;
use isles::{ErrorKind, Place, Plan, PlannedDeath};
use isles_app::frame::{Application, WorkDistributor};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Generates a network of a family, named as on the command line.
fn network(kernel: KernelName, value: &str, seed: u64) -> Result<Input, String> {
    let source = InputSource::Generator(value.to_owned());
    let recipe = Recipe::parse(value).map_err(|fault| fault.to_string())?;
    let committee = 3.min(recipe.size as u32);
    generate::input(kernel, recipe, committee, seed, &source).map_err(|fault| fault.to_string())
}

/// Returns the result of a kernel in a simulated world of `places` places.
fn found(app: &ImSuite, places: u32, plan: Plan) -> ImSuiteFound {
    let input = app.open(places).expect("an input that is allowed");
    let distributor = WorkDistributor::plain::<ImSuite>();
    let outcome = Rc::new(RefCell::new(None));
    let place = Rc::clone(&outcome);
    let (result, ..) = isles::simulate(places, plan, move || async move {
        *place.borrow_mut() = Some(ImSuite::compute(input, distributor).await?.0);
        Ok::<_, isles::Error>(())
    });
    result.unwrap_or_else(|error| panic!("{app:?}, {places} places: {error}"));
    outcome.take().expect("a run without an error has found something")
}

/// Returns a network of `size` nodes for each kernel and each of its families.
fn networks(size: usize) -> impl Iterator<Item = (KernelName, String)> {
    let families = |kernel| GraphFamily::of(kernel).iter().map(move |family| (kernel, family));
    let all = KernelName::ALL.into_iter().flat_map(families);
    all.map(move |(kernel, family)| (kernel, format!("{size},{family}")))
}

#[test]
fn each_kernel_finds_the_same_in_worlds_of_any_order_and_number_of_places() {
    for size in [1, 2, 3, 9] {
        for (kernel, value) in networks(size) {
            let app = ImSuite::generated(kernel, &value, 7, Ship::Minimal);
            let one = found(&app, 1, Plan::adversarial(0));
            let expected = network(kernel, &value, 7).expect("an input that is allowed");
            verify(&expected, one.answers()).unwrap_or_else(|fault| panic!("{kernel} on {value}: {fault}"));
            for (places, seed) in [(2, 1), (3, 2), (5, 3)] {
                let other = found(&app, places, Plan::adversarial(seed));
                assert_eq!(
                    other.answers(),
                    one.answers(),
                    "{kernel} on {value}, {places} places, seed {seed}"
                );
                assert_eq!(other.rounds(), one.rounds());
            }
        }
    }
}

#[test]
fn what_is_shipped_changes_no_answer_and_no_call() {
    for (kernel, value) in networks(8) {
        let run = |ship| found(&ImSuite::generated(kernel, &value, 3, ship), 3, Plan::adversarial(5));
        let (minimal, reachable) = (run(Ship::Minimal), run(Ship::Reachable));
        assert_eq!(minimal.answers(), reachable.answers(), "{kernel} on {value}");
        assert_eq!(minimal.calls(), reachable.calls(), "{kernel} on {value}");
    }
}

#[test]
fn a_place_that_dies_ends_each_kernel_with_an_error_that_names_it() {
    // Only a place knows its own number.
    let victim = Rc::new(Cell::new(None));
    let victim_cell = Rc::clone(&victim);
    let set_victim = move || async move { victim_cell.set(Place::new(2).map(Place::id)) };
    isles::simulate(3, Plan::calm(0), set_victim).0.expect("it only says it");
    let place = victim.get().expect("the last of three places");
    for kernel in KernelName::ALL {
        let mut died = 0;
        for seed in 0..6 {
            let app = ImSuite::generated(kernel, "24", seed, Ship::Minimal);
            let (input, distributor) =
                (app.open(4).expect("an input that is allowed"), WorkDistributor::plain::<ImSuite>());
            let death = PlannedDeath { place, step: 60 + 30 * seed };
            let plan = Plan { losses: vec![death], ..Plan::adversarial(seed) };
            let (result, ..) = isles::simulate(4, plan, || async move {
                ImSuite::compute(input, distributor).await?;
                Ok::<_, isles::Error>(())
            });
            let Err(error) = result else { continue };
            died += 1;
            let is_death = |error: &isles::Error| *error.kind() == ErrorKind::DeadPlace(place);
            assert!(
                is_death(&error) || error.causes().iter().any(is_death),
                "{kernel}, seed {seed}: {error}"
            );
        }
        assert!(died > 3, "{kernel}: only {died} runs were longer than their place lived");
    }
}

#[test]
fn a_wrong_answer_is_found_out_whichever_node_gives_it() {
    for kernel in KernelName::ALL {
        let value = if kernel == KernelName::VC { "12,chain" } else { "12" };
        let app = ImSuite::generated(kernel, value, 2, Ship::Minimal);
        let (found, input) = (found(&app, 2, Plan::adversarial(1)), network(kernel, value, 2).unwrap());
        verify(&input, found.answers()).unwrap();
        for node in 0..12 {
            let mut wrong = found.answers().to_vec();
            // A node that does not exist, or a number that is not allowed.
            wrong[node][0] = 77;
            assert!(verify(&input, &wrong).is_err(), "{kernel}, node {node}");
        }
        let (few, mut many) = (&found.answers()[1..], found.answers().to_vec());
        many[3].push(0);
        assert!(verify(&input, few).is_err(), "{kernel}");
        assert!(kernel == KernelName::DR || verify(&input, &many).is_err(), "{kernel}");
    }
}

#[test]
fn checks_know_what_is_promised_and_not_only_what_is_a_number() {
    let wrong = |kernel, value: &str, answers: &[i64]| {
        let input = network(kernel, value, 1).unwrap();
        let answers: Vec<Vec<i64>> = answers.iter().map(|answer| vec![*answer]).collect();
        verify(&input, &answers).unwrap_err()
    };
    let chain = "4,chain";
    assert_eq!(wrong(KernelName::MIS, chain, &[1, 1, 0, 1]), "the neighbours 0 and 1 are both in the set");
    assert_eq!(wrong(KernelName::MIS, chain, &[1, 0, 0, 0]), "neither node 2 nor a neighbour is in the set");
    assert_eq!(wrong(KernelName::DS, chain, &[0, 0, 0, 1]), "neither node 0 nor a neighbour is in the set");
    assert_eq!(wrong(KernelName::VC, chain, &[0, 1, 1, 2]), "the neighbours 1 and 2 have the same colour");
    assert_eq!(wrong(KernelName::VC, chain, &[0, 1, 3, 2]), "node 2 has the colour 3, not one of three");
    assert_eq!(
        wrong(KernelName::KC, chain, &[0, 0, 0, 0]),
        "node 3 is Some(3) hops from its leader, but K is 3"
    );
    assert_eq!(wrong(KernelName::KC, "4,star", &[0, 0, 0, 0]), "committee 0 has 4 members, but K is 3");
    assert_eq!(
        wrong(KernelName::KC, chain, &[1, 0, -1, -1]),
        "the leader 1 of node 0 is in another committee"
    );
    assert_eq!(wrong(KernelName::BY, chain, &[0, 0, 1, 0]), "node 2 decides for 1, node 0 for 0");
    let input = Input { votes: vec![true; 4], ..network(KernelName::BY, chain, 1).unwrap() };
    let zeros = vec![vec![0]; 4];
    assert!(verify(&input, &zeros).unwrap_err().ends_with("but none of them voted for it"));
    assert!(wrong(KernelName::MST, chain, &[-1, -1, 1, 2]).starts_with("the tree weighs "));
    assert!(wrong(KernelName::MST, chain, &[-1, 0, 0, 2]).starts_with("there is no edge from node 2 "));
}

#[test]
fn a_hand_made_network_has_the_answers_that_arithmetic_gives() {
    // A square with a diagonal; weights: 0-1 is 4, 1-2 is 1, 2-3 is 2, 3-0 is 7, 0-2 is 4.
    let matrix = "0111\n1010\n1101\n1010\n";
    let weights = "2147483647\n4\n4\n7\n4\n2147483647\n1\n0\n4\n1\n2147483647\n2\n7\n0\n2\n2147483647\n";
    let text = format!("4\n{matrix} \n{weights}");
    let source = InputSource::File("square".to_owned());
    for (kernel, answers) in [
        // Edges 1-2, 2-3 and, of the two with weight 4, 0-1, whose nodes are lower.
        (KernelName::MST, None),
        // From 0 to 3: via 2 with 6, not directly with 7; to 2: directly with 4; to 1: directly.
        (KernelName::DR, Some(vec![vec![0, 1, 2, 2], vec![0, 1, 2, 2], vec![0, 1, 2, 3], vec![2, 2, 2, 3]])),
    ] {
        let input = read::input(kernel, &text, 1, &source).unwrap();
        assert_eq!((input.edges(), input.weights[0].clone()), (5, vec![4, 4, 7]));
        let answers = answers.unwrap_or_else(|| vec![vec![1], vec![2], vec![-1], vec![2]]);
        verify(&input, &answers).unwrap_or_else(|fault| panic!("{kernel}: {fault}"));
    }
    let heavier = vec![vec![2], vec![2], vec![-1], vec![2]];
    let input = read::input(KernelName::MST, &text, 1, &source).unwrap();
    verify(&input, &heavier).unwrap_err();
}

#[test]
fn generated_networks_are_what_their_family_says() {
    for seed in 0..20 {
        for size in [1_usize, 2, 5, 32, 128] {
            let edges = |family: &str| {
                let value = format!("{size},{family}");
                network(KernelName::BF, &value, seed).map(|input| input.edges()).unwrap()
            };
            let all = size * (size - 1) / 2;
            let most = (size * size.ilog2() as usize).saturating_sub(1);
            assert_eq!(edges("sparse-min"), size - 1);
            assert_eq!(edges("sparse-max"), most.clamp(size - 1, all));
            assert_eq!(edges("ring"), if size > 2 { size } else { size - 1 });
            assert_eq!((edges("chain"), edges("star")), (size - 1, size - 1));
        }
    }
    // As in the suite's file of 128 nodes.
    let input = network(KernelName::MST, "128,sparse-max", 1).unwrap();
    assert_eq!(input.edges(), 895);
    assert!(input.weights.iter().flatten().all(|weight| (1..NO_EDGE).contains(weight)));
    assert_ne!(input, network(KernelName::MST, "128,sparse-max", 2).unwrap());
    let agreement = network(KernelName::BY, "128", 1).unwrap();
    assert_eq!((agreement.traitors.len(), agreement.votes.len()), (15, 128));
}

#[test]
fn nodes_lie_in_blocks_none_longer_than_another_by_more_than_one() {
    for (places, size) in [(1, 5), (3, 8), (5, 3), (7, 64)] {
        let (result, ..) = isles::simulate(places, Plan::adversarial(1), move || async move {
            let mut counts = vec![0; places as usize];
            let homes: Vec<usize> = (0..size).map(|node| block::home(node, size as usize).index()).collect();
            assert!(homes.is_sorted());
            homes.iter().for_each(|home| counts[*home] += 1);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{counts:?}");
            Ok::<_, isles::Error>(())
        });
        result.unwrap();
    }
}

#[test]
fn the_reachable_closure_has_the_matrix_where_the_suite_has_one() {
    let bytes = |kernel, value: &str| {
        let input = network(kernel, value, 1).unwrap();
        ReachableClosure::of(Ship::Reachable, &input, 8).map(|closure| closure.bytes())
    };
    // Three numbers, and nine of the distribution.
    let scalars = 8 * (3 + 9);
    assert_eq!(bytes(KernelName::MIS, "128"), Some(128 * 128 * 8 + scalars));
    assert_eq!(bytes(KernelName::DP, "128"), Some(128 * 128 * 8 + 128 * 8 + scalars));
    assert_eq!(bytes(KernelName::KC, "128"), Some(128 * 8 + scalars));
    assert_eq!(bytes(KernelName::LCR, "128"), Some(128 * 8 + scalars));
    let input = network(KernelName::MIS, "128", 1).unwrap();
    assert_eq!(ReachableClosure::of(Ship::Minimal, &input, 8), None);
}

/// Returns the one-line message for a text that is not a valid input.
fn refused(kernel: KernelName, text: &str) -> String {
    read::input(kernel, text, 1, &InputSource::File("net".to_owned())).unwrap_err().to_string()
}

/// The matrix of three nodes in a path.
const PATH: &str = "010\n101\n010\n";

/// Checks that each of these texts is refused with its line.
fn all_refused<const N: usize>(cases: [(KernelName, String, &str); N]) {
    for (kernel, text, expected) in cases {
        assert_eq!(refused(kernel, &text), format!("net: {expected}"), "{kernel}, {text:?}");
    }
}

#[test]
fn a_malformed_matrix_is_refused_with_its_line_and_what_was_expected() {
    use KernelName::{BF, KC, MIS};
    let path = PATH;
    all_refused([
        (MIS, String::new(), "line 1: the file ends; allowed: the number of nodes, 1 to 8192"),
        (MIS, "0\n".into(), "line 1: \"0\"; allowed: the number of nodes, 1 to 8192"),
        (MIS, "8193\n".into(), "line 1: \"8193\"; allowed: the number of nodes, 1 to 8192"),
        (
            MIS,
            "3\n010\n1x1\n".into(),
            "line 3: \"1x1\"; allowed: 3 entries of a row of the matrix, each 0 or 1",
        ),
        (
            MIS,
            "3\n010\n101\n".into(),
            "line 4: the file ends; allowed: 3 entries of a row of the matrix, each 0 or 1",
        ),
        (MIS, "3\n0100\n".into(), "line 2: \"0100\"; allowed: 3 entries of a row of the matrix, each 0 or 1"),
        (MIS, format!("3\n{path}7\n"), "line 5: \"7\"; allowed: the end of the file"),
        (
            MIS,
            "2\n01\n00\n".into(),
            "node 0 has an edge to 1, but 1 has none to 0; allowed: a symmetric matrix",
        ),
        (MIS, "2\n10\n00\n".into(), "node 0 has an edge to itself; allowed: edges between two nodes"),
        (BF, format!("3\n3\n{path}"), "line 2: \"3\"; allowed: the root, 0 to 2"),
        (KC, format!("3\n4\n{path}"), "line 2: \"4\"; allowed: K, 1 to 3"),
        (KC, format!("3\n0\n{path}"), "line 2: \"0\"; allowed: K, 1 to 3"),
    ]);
}

#[test]
fn a_malformed_part_is_refused_with_its_line_and_what_was_expected() {
    use KernelName::{BY, DP, DR, LCR, MST, VC};
    let path = PATH;
    all_refused([
        (DP, format!("3\n{path}5\n"), "line 5: \"5\"; allowed: a line of one blank, which ends a part"),
        (DP, format!("3\n{path} \n5\n-6\n"), "line 7: \"-6\"; allowed: an identifier, a whole number"),
        (
            DP,
            format!("3\n{path} \n5\n6\n5\n"),
            "two nodes have the identifier 5; allowed: distinct identifiers",
        ),
        (
            DP,
            "3\n010\n100\n000\n \n5\n6\n7\n".into(),
            "no path leads from node 0 to node 2; allowed for DP: a connected graph",
        ),
        (LCR, "3\n5\n6\n".into(), "line 4: the file ends; allowed: an identifier, a whole number"),
        (LCR, format!("3\n{path}"), "two nodes have the identifier 10; allowed: distinct identifiers"),
        (VC, format!("3\n0\n{path} \n0\n0\n3\n"), "line 9: \"3\"; allowed: a parent, 0 to 2"),
        (
            VC,
            format!("3\n0\n{path} \n0\n0\n0\n"),
            "the parent of node 2 is 0; allowed: 1, by its edges (the parent of the root is the root)",
        ),
        (
            VC,
            "3\n0\n011\n101\n110\n \n0\n0\n0\n".into(),
            "3 nodes with 3 edges; allowed for VC: a tree, with one edge fewer than nodes",
        ),
        (BY, format!("3\n{path} \n012\n"), "line 6: \"012\"; allowed: 3 votes, each 0 or 1"),
        (
            BY,
            format!("3\n{path} \n011\n \n3\n"),
            "line 8: \"3\"; allowed: a traitor, 0 to 2, each of them once",
        ),
        (
            BY,
            format!("3\n{path} \n011\n \n1\n1\n"),
            "line 9: \"1\"; allowed: a traitor, 0 to 2, each of them once",
        ),
        (
            BY,
            format!("3\n{path} \n011\n \n1\n"),
            "1 traitors; allowed: at most 0 among 3 nodes, an eighth of the nodes minus one",
        ),
        (
            DR,
            format!("3\n{path} \n9\n0\n"),
            "line 7: \"0\"; allowed: the weight of the edge 0 to 1, 1 to 2147483646",
        ),
        (MST, format!("3\n{path} \n9\n4\n9\n5\n"), "line 9: \"5\"; allowed: 4, as that of the edge 0 to 1"),
    ]);
}

#[test]
fn a_generated_network_is_refused_where_its_kernel_is_not_defined() {
    for (kernel, value, expected) in [
        (
            KernelName::LCR,
            "8,chain",
            "--generate is \"8,chain\"; LCR is not defined on that family; allowed: ring",
        ),
        (
            KernelName::HS,
            "8,star",
            "--generate is \"8,star\"; HS is not defined on that family; allowed: ring",
        ),
        (
            KernelName::VC,
            "8,ring",
            "--generate is \"8,ring\"; VC is not defined on that family; allowed: sparse-min, chain, star",
        ),
    ] {
        assert_eq!(network(kernel, value, 1).unwrap_err(), expected);
    }
    for value in ["", "0", "8193", "8,", "8,tree", "x", "-1", "8,ring,ring"] {
        let expected = format!(
            "--generate is {value:?}; allowed: N or N,FAMILY with N from 1 to 8192 and FAMILY of sparse-max, \
             sparse-min, ring, chain, star"
        );
        assert_eq!(network(KernelName::BF, value, 1).unwrap_err(), expected);
    }
    let recipe = Recipe { size: 4, family: None };
    for committee in [0, 5] {
        let source = InputSource::Generator("4".to_owned());
        let refused = generate::input(KernelName::KC, recipe, committee, 1, &source).unwrap_err().to_string();
        let expected = format!("--generate is \"4\"; K is {committee}; allowed: 1 to 4, the number of nodes");
        assert_eq!(refused, expected);
    }
}

#[test]
fn a_file_of_each_kernel_is_read_as_it_was_generated() {
    for kernel in KernelName::ALL {
        let input = network(kernel, "6", 9).unwrap();
        let read = read::input(kernel, &text_of(&input), 9, &InputSource::File("net".to_owned()));
        assert_eq!(read.unwrap_or_else(|fault| panic!("{kernel}: {fault}")), input);
    }
}

/// Returns an input in the suite's format.
fn text_of(input: &Input) -> String {
    let size = input.size();
    let lines = |numbers: &[u64]| numbers.iter().map(|number| format!("{number}\n")).collect::<String>();
    let has_edge = |node: usize, other: u32| input.neighbours[node].contains(&other);
    let row = |node: usize| {
        let digits = (0..size as u32).map(|other| if has_edge(node, other) { '1' } else { '0' });
        digits.chain(['\n']).collect::<String>()
    };
    let matrix: String = (0..size).map(row).collect();
    let weight = |node: usize, other: u32| {
        let index = input.neighbours[node].iter().position(|neighbour| *neighbour == other);
        index.map_or(NO_EDGE, |index| input.weights[node][index])
    };
    match input.kernel {
        KernelName::BF | KernelName::DST => format!("{size}\n{}\n{matrix}", input.root),
        KernelName::DS | KernelName::MIS => format!("{size}\n{matrix}"),
        KernelName::HS | KernelName::LCR => format!("{size}\n{}", lines(&input.identifiers)),
        KernelName::DP => format!("{size}\n{matrix} \n{}", lines(&input.identifiers)),
        KernelName::KC => format!("{size}\n{}\n{matrix} \n{}", input.committee_max, lines(&input.ranks)),
        KernelName::VC => {
            let parents: Vec<u64> = input.parents.iter().map(|parent| u64::from(*parent)).collect();
            format!("{size}\n{}\n{matrix} \n{}", input.root, lines(&parents))
        }
        KernelName::BY => {
            let votes: String = input.votes.iter().map(|vote| if *vote { '1' } else { '0' }).collect();
            let traitors: Vec<u64> = input.traitors.iter().map(|traitor| u64::from(*traitor)).collect();
            format!("{size}\n{matrix} \n{votes}\n \n{}", lines(&traitors))
        }
        KernelName::DR | KernelName::MST => {
            let all = (0..size).flat_map(|node| (0..size as u32).map(move |other| weight(node, other)));
            format!("{size}\n{matrix} \n{}", lines(&all.collect::<Vec<_>>()))
        }
    }
}
