//! `isles run rdf`: its output and files, limits, and refusals in one line.

#[path = "../../../crates/cli/tests/command/page_block.rs"]
mod page_block;
#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use page_block::assert_shown;
use scene::{Ended, Scene, words};
use serde_json::Value;

/// The program under test, which the scene starts.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-rdf");

const PEOPLE: &str = include_str!("people.ttl");

/// A scene with the people, and what a run over them ends with.
fn run(name: &str, line: &str, more: &[&str]) -> (Scene, Ended) {
    let scene = Scene::new(name);
    scene.leave("people.ttl", PEOPLE);
    let line = format!("--data people.ttl --places 2 --machine threads {line}");
    let mut all = words(&line);
    all.extend(more);
    let ended = scene.run(&all);
    (scene, ended)
}

#[test]
fn an_answer_is_told_as_a_table_and_its_plan_on_request() {
    let query = "PREFIX : <http://a.example/> SELECT ?s ?n { ?s a :Person ; :name ?n FILTER(?n != \"Dee\") }";
    let (scene, ended) = run("rdf-told", "--verify --explain --csv run.csv", &["-e", query]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let table = "?s                      ?n\n<http://a.example/ann>  \"Anna\"@de\n<http://a.example/ann>  \"Ann\"\n\
                 <http://a.example/bob>  \"Bob\"\n";
    assert!(ended.stdout.contains(table), "{ended:?}");
    assert!(ended.stdout.contains("checked  1 answer is that of spareval\n"), "{ended:?}");
    for operator in [
        "scan ?s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://a.example/Person>",
        "join ?s <http://a.example/name> ?n; rows to the owner of ?s",
        "filter !(?n = \"Dee\")",
    ] {
        assert!(ended.stdout.contains(operator), "{operator}: {ended:?}");
    }
    assert!(scene.result("run.csv").starts_with("query,rows,seconds,digest\nquery,3,"));
}

#[test]
fn answers_alone_go_to_standard_output_in_each_form() {
    let ask = ["-e", "ASK { ?s <http://a.example/age> 41 }"];
    let (_, ended) = run("rdf-json", "--format json", &ask);
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(answer["boolean"], true, "{ended:?}");
    let (_, ended) =
        run("rdf-csv", "--results -", &["-e", "SELECT ?o { <http://a.example/x> <http://a.example/q> ?o }"]);
    assert_eq!(ended.stdout, "o\r\n1\r\n2\r\n3\r\n", "{ended:?}");
    let construct = "CONSTRUCT { ?o <http://a.example/of> ?s } WHERE { ?s <http://a.example/nick> ?o }";
    let (_, ended) = run("rdf-construct", "--format table", &["-e", construct]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "a literal is no subject: {ended:?}");
}

#[test]
fn the_answers_of_lubm_are_confirmed_by_spareval_at_one_place() {
    let scene = Scene::new("rdf-lubm-verify");
    let line = "--data lubm-plain:1 --query lubm:1 --query lubm:2 --query lubm:4 --places 3 --machine threads --verify --explain";
    let ended = scene.run(&words(&format!("{line} --json run.json")));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("checked  3 answers are those of spareval\n"), "{ended:?}");
    assert_shown("rdf.md", "apps/rdf/tests/cli.rs", &ended.stdout);
    let document: Value = serde_json::from_str(&scene.result("run.json")).unwrap();
    // The original generator makes 103,397 triples of one university, with the ontology and other random numbers.
    let triples = document["triples"].as_u64().unwrap();
    assert!((60_000..170_000).contains(&triples), "{triples}");
}

#[test]
fn a_query_beyond_a_limit_ends_and_the_others_go_on() {
    let product = "SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }";
    let small = "ASK { ?s <http://a.example/age> 41 }";
    let (scene, ended) = run("rdf-memory", "--memory 1 --json run.json", &["-e", product, "-e", small]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("1 query of 2 without an answer; query: a table of "), "{ended:?}");
    assert!(ended.stderr.contains(" MiB; allowed by --memory: 1"), "{ended:?}");
    let document: Value = serde_json::from_str(&scene.result("run.json")).unwrap();
    assert_eq!(document["queries"][1]["rows"], 1, "{document}");
    // Far more rows than there is memory: the join ends when it has too many.
    let product = "SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h }";
    let (_, ended) = run("rdf-memory", "--memory 30", &["-e", product]);
    assert!(ended.stderr.contains("query query: a table of ") && ended.code == Some(1), "{ended:?}");
    let (_, ended) = run("rdf-timeout", "--timeout 0.000001", &["-e", small]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("query query: it takes longer than the"), "{ended:?}");
}

const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

/// A ring of 300 nodes by one predicate, and as many numbers by another one.
fn ring(scene: &Scene) {
    let node = |number: u32| format!("<http://a.example/n{}>", number % 300);
    let triples = (0..300).map(|number| {
        let (own, next) = (node(number), node(number + 7));
        format!("{own} <x:p> {next} .\n{own} <x:q> \"{number}\"^^<{INTEGER}> .\n")
    });
    scene.leave("ring.nt", &triples.collect::<String>());
}

#[test]
fn a_limit_in_what_the_first_place_evaluates_ends_the_query_at_all_places() {
    let scene = Scene::new("rdf-rest-limit");
    ring(&scene);
    let path = "SELECT ?s ?o ?x { ?s <x:p>* ?o . ?x <x:q> ?n FILTER(?n < 10) }";
    for places in ["1", "3"] {
        let line = format!("--data ring.nt --memory 1 --places {places} --machine threads --json run.json");
        let all = [&words(&line)[..], &["-e", path, "-e", "SELECT * { ?s <x:q> 7 }"]].concat();
        let ended = scene.run(&all);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("1 query of 2 without an answer; query: a table of "), "{ended:?}");
        let document: Value = serde_json::from_str(&scene.result("run.json")).unwrap();
        assert_eq!(document["queries"][1]["rows"], 1, "{document}");
    }
}

#[test]
fn optional_parts_and_products_keep_to_the_limits_and_a_difference_without_shared_variables_is_the_left() {
    let scene = Scene::new("rdf-bounded");
    for places in ["1", "2"] {
        let line = format!("--data lubm-plain:1 --memory 10 --places {places} --machine threads");
        for query in [
            "SELECT * { ?a ?b ?c OPTIONAL { ?d ?e ?f } }",
            "SELECT * { ?a ?b ?c OPTIONAL { ?d ?e ?f FILTER(?c != ?f) } }",
            "SELECT * { ?a ?b ?c . ?d ?e ?f }",
        ] {
            let ended = scene.run(&[&words(&line)[..], &["-e", query]].concat());
            let text = ended.stderr.split("a table of ").nth(1).unwrap_or_else(|| panic!("{ended:?}"));
            let mib: u64 = text.split(' ').next().unwrap().parse().unwrap();
            assert!(mib <= 100, "{query}: {mib} MiB with {places} places");
        }
        let query = "SELECT (COUNT(*) AS ?n) { ?a a ?c MINUS { ?d ?e ?f } }";
        let all = "SELECT (COUNT(*) AS ?n) { ?a a ?c }";
        let [difference, all] = [query, all].map(|query| {
            let line = format!("{line} --format csv");
            scene.run(&[&words(&line)[..], &["-e", query]].concat()).stdout
        });
        assert!(difference == all && all.starts_with("n\r\n"), "{difference} {all}");
    }
}

#[test]
fn what_is_cut_joined_to_a_text_or_sampled_is_the_same_on_any_number_of_places() {
    let scene = Scene::new("rdf-cut");
    ring(&scene);
    let path = "<http://a.example/n5> <x:p>* ?o";
    for query in [
        format!("SELECT DISTINCT ?o {{ {path} }} LIMIT 4"),
        format!("SELECT ?o {{ {{ SELECT ?o {{ {path} }} LIMIT 4 }} }}"),
        format!("SELECT (GROUP_CONCAT(STR(?o)) AS ?all) {{ {path} }}"),
        format!("SELECT (SAMPLE(?o) AS ?one) {{ {path} }}"),
    ] {
        let [one, two, three] = ["1", "2", "3"].map(|places| {
            let line = format!("--data ring.nt --places {places} --machine threads --format csv");
            let ended = scene.run(&[&words(&line)[..], &["-e", &query]].concat());
            assert_eq!(ended.code, Some(0), "{ended:?}");
            ended.stdout
        });
        assert!(
            one.contains("http://a.example/n") && two == one && three == one,
            "{query}: {one}{two}{three}"
        );
    }
}

#[test]
fn a_graph_that_a_blank_node_names_is_asked_as_the_others_are() {
    let scene = Scene::new("rdf-blank-graph");
    let quad = |number: u32, graph: &str| format!("<x:s> <x:p> \"{number}\"^^<{INTEGER}> {graph} .\n");
    scene.leave("blank.nq", &[quad(1, "_:g"), quad(2, "<x:h>")].concat());
    for places in ["1", "2"] {
        let run = |query: &str| {
            let line = format!("--data blank.nq --places {places} --machine threads --format csv --verify");
            scene.run(&[&words(&line)[..], &["-e", query]].concat())
        };
        let sums = "SELECT (isBlank(?g) AS ?b) ?n { GRAPH ?g { SELECT (SUM(?v) AS ?n) { ?s ?p ?v } } }";
        let ended = run(&format!("{sums} ORDER BY ?n"));
        assert_eq!(ended.stdout, "b,n\r\ntrue,1\r\nfalse,2\r\n", "{ended:?}");
        let ended = run("SELECT ?v { GRAPH ?g { ?s ?p ?v } } ORDER BY ?v");
        assert_eq!(ended.stdout, "v\r\n1\r\n2\r\n", "{ended:?}");
    }
}

#[test]
fn a_triple_of_several_files_counts_once_wherever_it_lies() {
    let scene = Scene::new("rdf-twice");
    let line = |number: u32| format!("<http://a.example/s> <http://a.example/p> {number} .\n");
    for (file, numbers) in [("a.ttl", [1, 2]), ("b.ttl", [2, 3]), ("c.ttl", [3, 2])] {
        scene.leave(file, &numbers.map(line).concat());
    }
    for partition in ["locality", "subject", "file"] {
        let line = format!(
            "--data a.ttl b.ttl c.ttl --places 3 --machine threads --partition {partition} --format csv"
        );
        let ended = scene.run(&[&words(&line)[..], &["-e", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"]].concat());
        assert_eq!(ended.stdout, "n\r\n3\r\n", "{partition}: {ended:?}");
    }
}

#[test]
fn a_file_is_a_named_graph_by_its_iri_and_no_part_of_the_default_graph() {
    let scene = Scene::new("rdf-named");
    scene.leave("people.ttl", PEOPLE);
    scene.leave("more.nt", "<x:a> <x:p> <x:b> .\n<x:a> <x:p> <x:c> .\n");
    scene.leave("none.ttl", "");
    scene.leave(
        "count.rq",
        "SELECT (COUNT(*) AS ?n) FROM <more.nt> FROM NAMED <none.ttl> { <x:a> ?p ?o GRAPH ?g {} }",
    );
    for places in ["1", "3"] {
        let line =
            "--data people.ttl --named-graph more.nt none.ttl --query count.rq --machine threads --verify";
        let ended = scene.run(&words(&format!("{line} --results out.csv --places {places}")));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("named    2 graphs\n"), "{ended:?}");
        assert!(ended.stdout.contains("checked  1 answer is that of spareval\n"), "{ended:?}");
        assert_eq!(scene.result("out.csv"), "n\r\n2\r\n", "{ended:?}");
    }
    // A name without a graph has no solution, whatever the group is (SPARQL 1.1, section 18.6).
    let absent = ["-e", "SELECT * { GRAPH <x:absent> { VALUES ?x { 1 } } }", "--results", "-"];
    let ended =
        scene.run(&[&words("--named-graph more.nt --machine threads --places 2")[..], &absent].concat());
    assert_eq!(ended.stdout, "x\r\n", "{ended:?}");
    // Without --data there is no default graph.
    let ask = ["-e", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "--results", "-"];
    let ended = scene.run(&[&words("--named-graph more.nt --machine threads --places 2")[..], &ask].concat());
    assert_eq!(ended.stdout, "n\r\n0\r\n", "{ended:?}");
}

#[test]
fn a_snapshot_answers_as_the_data_it_was_made_of() {
    let scene = Scene::new("rdf-snapshot");
    scene.leave("people.ttl", PEOPLE);
    scene.leave("more.nq", "<x:a> <x:p> <x:b> <x:g> .\n<x:a> <x:p> <x:c> <x:h> .\n<x:a> <x:p> <x:d> .\n");
    let query = "SELECT ?s ?p ?o ?g (STR(?o) AS ?t) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let answers = |line: &str| {
        let ended = scene.run(&[&words(line)[..], &["-e", query, "--format", "tsv"]].concat());
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        ended.stdout
    };
    let all = answers("--data people.ttl more.nq --machine threads");
    assert!(all.lines().count() > 20 && all.contains("<x:h>"), "{all}");
    for (places, partition) in [(1, "auto"), (2, "locality"), (3, "subject"), (3, "file"), (2, "graph")] {
        let save = format!("--partition {partition} --save {partition}.snap");
        let saved = format!("--data people.ttl more.nq --machine threads --places {places} {save}");
        assert_eq!(answers(&saved), all, "{saved}");
        for machine in ["threads", "processes"] {
            let open = format!("--data {partition}.snap --places {places} --machine {machine}");
            assert_eq!(answers(&open), all, "{open}");
        }
    }
    assert_eq!(answers("--data auto.snap --places 3 --machine processes --mode task"), all);
    let line = "--data locality.snap --places 2 --machine threads --verify -e ASK{?s?p?o}";
    let ended = scene.run(&words(line));
    assert!(ended.stdout.contains("checked  1 answer is that of spareval\n"), "{ended:?}");
}

#[test]
fn a_snapshot_that_is_not_whole_or_not_for_these_places_is_refused() {
    let scene = Scene::new("rdf-snapshot-refused");
    scene.leave("people.ttl", PEOPLE);
    let line = "--data people.ttl --places 2 --machine threads --save whole.snap -e ASK{?s?p?o}";
    assert_eq!(scene.run(&words(line)).code, Some(0));
    let whole = std::fs::read(scene.path("whole.snap")).unwrap();
    let with = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        bytes
    };
    std::fs::write(scene.path("cut.snap"), &whole[..whole.len() - 5]).unwrap();
    std::fs::write(scene.path("head.snap"), with(40)).unwrap();
    std::fs::write(scene.path("part.snap"), with(whole.len() - 9)).unwrap();
    std::fs::write(scene.path("version.snap"), with(8)).unwrap();
    std::fs::write(scene.path("foreign.snap"), PEOPLE).unwrap();
    std::fs::write(scene.path("empty.snap"), "").unwrap();
    for (data, expected) in [
        ("cut.snap", "cut.snap: cut or grown: "),
        ("head.snap", "head.snap: its head is damaged"),
        ("part.snap", "part.snap: damaged: part 2 has another checksum"),
        ("version.snap", "version.snap: a snapshot of version 6; allowed: 2"),
        ("foreign.snap", "foreign.snap: no snapshot of isles run rdf"),
        ("empty.snap", "empty.snap: no snapshot of isles run rdf"),
        ("whole.snap people.ttl", "whole.snap: a snapshot beside other data; allowed: a snapshot alone"),
        ("whole.snap --places 3", "whole.snap: a snapshot of 2 places, not of 3; allowed: --places 2"),
    ] {
        let places = if data.contains("--places") { "--repeat 1" } else { "--places 2" };
        let ended = scene.run(&words(&format!("--data {data} {places} --machine threads -e ASK{{?s?p?o}}")));
        assert_eq!(ended.code, Some(2), "{data}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{data}: {ended:?}");
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{data}: {ended:?}");
    }
}

#[test]
fn bad_input_is_one_line_and_code_2() {
    let scene = Scene::new("rdf-refused");
    scene.leave("people.ttl", PEOPLE);
    scene.leave("quads.nq", "<x:a> <x:b> <x:c> <x:g> .\n");
    scene.leave("prefix.ttl", "@prefix a: <http://a.example/> .\na:b a:c 1 .\na:b d:c 2 .\n");
    scene.leave("cut.nt", "<http://a.a/> <http://b.b/> \"one\" .\n<http://a.a/> <http://b.b/> \"tw");
    scene.leave("wrong.rdf", "<rdf:RDF><a></rdf:RDF>");
    scene.leave("unknown.dat", "");
    scene.leave("prefix.rq", "ASK {\n?s nosuch:b ?o }");
    scene.leave("wrong.rq", "SELECT * {\n  ?s ?p\n}");
    scene.leave("deep.rq", &format!("ASK {}{}", "{".repeat(20_000), "}".repeat(20_000)));
    scene.leave("wide.rq", &format!("ASK {{ {} }}", vec!["{ ?s ?p ?o }"; 3_000].join(" UNION ")));
    for (line, expected) in [
        ("--data nosuch.ttl", "--data: `nosuch.ttl`: no such file; allowed: a file, lubm:N"),
        ("--data unknown.dat", "--data: unknown.dat: unknown extension; allowed: ttl, nt"),
        ("--data lubm:0", "--data is \"lubm:0\"; allowed: lubm:N, N from 1 to 10000"),
        ("--data prefix.ttl", "prefix.ttl, line 3, column 5: "),
        ("--data people.ttl cut.nt", "cut.nt, line 2, column "),
        ("--data cut.nt --mode task", "cut.nt, line 2, column "),
        ("--data wrong.rdf", "wrong.rdf"),
        ("--query wrong.rq", "wrong.rq: line 3, column 2: the end of the line is not SPARQL there; expected"),
        ("--query deep.rq", "deep.rq: line 1, column 261: more than 256 nested brackets"),
        ("--query wide.rq", ": more than 1000 brackets and operators in a group"),
        ("--query prefix.rq", "prefix.rq: line 2, column 12: unknown prefix in `nosuch:b`"),
        ("--query nosuch.rq", "--query: nosuch.rq: No such file"),
        ("--named-graph nosuch.ttl", "--named-graph: `nosuch.ttl`: no such file; allowed: a file"),
        (
            "--named-graph quads.nq",
            "quads.nq: it has named graphs itself; allowed for --named-graph: triples",
        ),
        ("--query lubm:15", "--query is \"lubm:15\"; allowed: a file, lubm:1 to lubm:14"),
        ("--queries nosuch", "--queries: nosuch: No such file"),
        ("-e ASK{?s,a:b,?o}", "-e: line 1, column "),
        ("--partition half", "--partition is \"half\"; allowed: auto, locality, graph, subject, file"),
        ("--mode half", "--mode is \"half\"; allowed: data, task"),
        ("--format pdf", "--format is \"pdf\"; allowed: table, json, csv, tsv, xml"),
        ("--timeout 0", "--timeout is \"0\"; allowed: seconds from"),
    ] {
        for places in ["1", "3"] {
            let mut all = words(line);
            if !line.contains("--data") {
                all.extend(["--data", "people.ttl"]);
            }
            all.extend(["--places", places, "--machine", "threads"]);
            let ended = scene.run(&all);
            assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
            assert!(ended.stderr.contains(expected), "{line}: {ended:?}");
            let last = ended.stderr.trim_end().lines().count();
            assert_eq!(last, 1, "{line}: {ended:?}");
        }
    }
}
