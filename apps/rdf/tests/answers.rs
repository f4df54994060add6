//! Answers of `isles run rdf` against oxigraph: all rows of all queries, on every machine and number of places.
//!
//! Oxigraph has a store, a planner and joins of its own; only parsers are shared. Rows are compared as they are written
//! in TSV, sorted unless the query orders them. Numbers in the data are in their canonical form, because oxigraph keeps
//! values of numbers and not how they are written.

#[path = "../../../crates/cli/tests/command/scene/mod.rs"]
mod scene;

use isles_rdf::load::lubm;
use isles_rdf::load::triples::LocalTriples;
use isles_rdf::store::term;
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::{Quad, Triple};
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use scene::{Scene, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The program under test, which the scene starts.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-rdf");

/// Departments of the data that the queries of LUBM are asked of.
const DEPARTMENTS: usize = 2;

/// The queries of a folder, by name.
fn queries(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<(String, String)> = entries
        .map(|path: PathBuf| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// Returns the answer of oxigraph, as the lines of TSV or N-Triples.
fn expected(store: &Store, text: &str) -> Vec<String> {
    let results = SparqlEvaluator::new().parse_query(text).unwrap().on_store(store).execute().unwrap();
    let written = match results {
        QueryResults::Boolean(truth) => truth.to_string(),
        QueryResults::Graph(triples) => {
            let mut lines: Vec<String> = triples.map(|triple| format!("{} .", triple.unwrap())).collect();
            lines.sort();
            lines.dedup();
            lines.join("\n")
        }
        QueryResults::Solutions(solutions) => {
            let serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Tsv);
            let variables = solutions.variables().to_vec();
            let mut writer = serializer.serialize_solutions_to_writer(Vec::new(), variables).unwrap();
            for solution in solutions {
                writer.serialize(&solution.unwrap()).unwrap();
            }
            String::from_utf8(writer.finish().unwrap()).unwrap()
        }
    };
    lines(text, written.lines())
}

/// Lines of an answer, sorted behind the first unless the query orders them.
fn lines<'a>(query: &str, written: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut lines: Vec<String> = written.map(str::to_owned).collect();
    if !query.contains("ORDER BY") || query.contains("{ SELECT") {
        let is_table = query.contains("SELECT");
        lines[usize::from(is_table)..].sort();
    }
    lines
}

/// A query, and the lines that oxigraph answers it with.
struct Expected {
    name: String,
    text: String,
    lines: Vec<String>,
}

/// Returns the answers of oxigraph to the queries of `folder`, which are left in the scene, over `data` of this format.
fn answered(scene: &Scene, folder: &str, data: &str, format: RdfFormat) -> Vec<Expected> {
    let store = Store::new().unwrap();
    store.load_from_slice(RdfParser::from_format(format), data).unwrap();
    fs::create_dir(scene.path("queries")).unwrap();
    let with_lines = |(name, text): (String, String)| {
        scene.leave(&format!("queries/{name}.rq"), &text);
        let lines = expected(&store, &text);
        Expected { name, text, lines }
    };
    queries(folder).into_iter().map(with_lines).collect()
}

/// Runs the queries of the scene, and compares each answer.
fn compare(scene: &Scene, line: &str, all: &[Expected]) {
    let line =
        format!("--queries queries --format tsv --results out.tsv --json run.json --csv run.csv {line}");
    let ended = scene.run(&words(&line));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let document: Value = serde_json::from_str(&scene.result("run.json")).unwrap();
    let written = scene.result("out.tsv");
    let mut rest = written.lines();
    for (expected, found) in all.iter().zip(document["queries"].as_array().unwrap()) {
        assert_eq!(found["name"], expected.name.as_str(), "{line}");
        let head = usize::from(expected.text.contains("SELECT"));
        let rows = usize::try_from(found["rows"].as_u64().unwrap()).unwrap();
        let own = lines(&expected.text, rest.by_ref().take(head + rows));
        assert_eq!(own, expected.lines, "{line}: {}", expected.name);
    }
    assert_eq!(rest.next(), None, "{line}");
}

/// Machines and numbers of places.
const MACHINES: [&str; 15] = [
    "--machine threads --places 1",
    "--machine threads --places 2",
    "--machine threads --places 3 --partition subject",
    "--machine threads --places 8 --partition locality",
    "--machine processes --places 3 --partition locality",
    "--machine loopback --places 5 --partition locality",
    "--machine loopback --places 4 --partition subject",
    "--machine chip:scc --places 4 --partition locality",
    "--machine chip:scc --places 3 --partition subject",
    "--machine threads --places 2 --mode task",
    "--machine threads --places 3 --partition file",
    "--machine processes --places 2 --partition file",
    "--machine threads --places 3 --partition graph",
    "--machine chip:scc --places 5 --partition graph",
    "--machine threads --places 8 --partition graph",
];

#[test]
fn each_operator_answers_as_oxigraph_on_every_machine() {
    let scene = Scene::new("rdf-operators");
    let data = include_str!("people.ttl");
    // Lines, so that each place reads some of them.
    let parser = RdfParser::from_format(RdfFormat::Turtle).for_slice(data);
    let line = |quad: Quad| format!("{} .\n", Triple::new(quad.subject, quad.predicate, quad.object));
    let written: String = parser.map(|quad| line(quad.unwrap())).collect();
    scene.leave("people.nt", &written);
    let all = answered(&scene, "tests/queries", data, RdfFormat::Turtle);
    assert!(all.iter().filter(|expected| expected.lines.len() > 1).count() > 50);
    for machine in MACHINES {
        compare(&scene, &format!("--data people.nt {machine}"), &all);
    }
}

/// Triples of the default graph, of three named graphs that overlap, and of one that says where graphs are from.
fn quads() -> String {
    use std::fmt::Write as _;
    let mut all = String::new();
    let name = |name: &str, number: u32| format!("<http://a.example/{name}{number}>");
    let mut add = |subject: String, predicate: &str, object: String, graph: &str| {
        writeln!(all, "{subject} <http://a.example/{predicate}> {object} {graph} .").unwrap();
    };
    for n in 0..40 {
        let graph = name("g", n % 3);
        add(name("n", n * 7 % 11), "p", name("n", n * 5 % 8), &graph);
        add(name("n", n * 3 % 13), "q", name("n", n % 9), &name("g", n % 2));
        let number = format!("\"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
        add(name("n", n % 10), "n", number, &graph);
        add(name("n", n % 4), "in", name("g", n % 5), &graph);
        add(name("n", n % 6), "p", name("n", n % 5), "");
    }
    for n in 0..7 {
        let class = "<http://a.example/Thing> .".to_owned();
        writeln!(all, "{} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> {class}", name("n", 2 * n))
            .unwrap();
    }
    for n in 0..4 {
        writeln!(all, "{} <http://a.example/from> {} .", name("g", n), name("who", n % 2)).unwrap();
    }
    all
}

#[test]
fn named_graphs_answer_as_oxigraph_on_every_machine() {
    let scene = Scene::new("rdf-graphs");
    let data = quads();
    scene.leave("quads.nq", &data);
    let all = answered(&scene, "tests/graph-queries", &data, RdfFormat::NQuads);
    let with_rows = all.iter().filter(|expected| expected.lines.len() > 1).count();
    assert!(with_rows > 30, "{with_rows} of {}", all.len());
    for machine in MACHINES {
        compare(&scene, &format!("--data quads.nq {machine}"), &all);
    }
}

/// Sub-queries, and `MINUS` with another use of the graph's name, that `GRAPH ?g` asks of each graph by itself.
const PER_GRAPH: [(&str, &str); 7] = [
    ("?n", "SELECT (COUNT(*) AS ?n) { ?s <http://a.example/q> ?o }"),
    ("?n", "SELECT (SUM(?v) AS ?n) { ?s <http://a.example/n> ?v }"),
    ("?o", "SELECT DISTINCT ?o { ?s <http://a.example/p> ?o }"),
    ("?s\t?n", "SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s"),
    ("?o", "SELECT ?o { <http://a.example/n1> <http://a.example/p> ?o } ORDER BY DESC(?o) LIMIT 1"),
    ("?o", "SELECT DISTINCT ?o { <http://a.example/n1> <http://a.example/p>+ ?o }"),
    ("?s", "SELECT DISTINCT ?s { ?s ?p ?o MINUS { ?s <http://a.example/q> ?r } }"),
];

/// Oxigraph evaluates a sub-query within `GRAPH ?g` over all graphs together, so it is asked of one graph at a time.
#[test]
fn a_sub_query_in_graph_is_asked_of_each_graph_by_itself() {
    let scene = Scene::new("rdf-per-graph");
    let data = quads();
    scene.leave("quads.nq", &data);
    let mut by_graph: BTreeMap<String, String> = BTreeMap::new();
    for quad in RdfParser::from_format(RdfFormat::NQuads).for_slice(&data) {
        let quad = quad.unwrap();
        let line = format!("{} .\n", Triple::new(quad.subject, quad.predicate, quad.object));
        by_graph.entry(quad.graph_name.to_string()).or_default().push_str(&line);
    }
    by_graph.remove("DEFAULT");
    assert_eq!(by_graph.len(), 3);
    fs::create_dir(scene.path("queries")).unwrap();
    let mut all = Vec::new();
    for (number, (variables, inner)) in PER_GRAPH.iter().enumerate() {
        let mut solutions = Vec::new();
        for (graph, triples) in &by_graph {
            let store = Store::new().unwrap();
            store.load_from_slice(RdfFormat::NTriples, triples).unwrap();
            let own = expected(&store, inner);
            assert_eq!(own[0], *variables, "{inner}");
            solutions.extend(own[1..].iter().map(|line| format!("{graph}\t{line}")));
        }
        solutions.sort();
        let text = format!("SELECT ?g {} {{ GRAPH ?g {{ {inner} }} }}", variables.replace('\t', " "));
        scene.leave(&format!("queries/q{number}.rq"), &text);
        let lines = [vec![format!("?g\t{variables}")], solutions].concat();
        all.push(Expected { name: format!("q{number}"), text, lines });
    }
    for machine in MACHINES {
        compare(&scene, &format!("--data quads.nq {machine}"), &all);
    }
}

/// The triples of some departments, as N-Triples.
fn departments() -> String {
    let mut local = LocalTriples::default();
    for department in lubm::all_departments(1).take(DEPARTMENTS) {
        lubm::add_department(&mut local, department, true);
    }
    let term = |position: u32| term::decode(local.dictionary.bytes(position as usize)).to_string();
    let lines = local.triples.iter().map(|parts| parts.map(term).join(" ") + " .\n");
    lines.collect()
}

#[test]
fn the_queries_of_lubm_answer_as_oxigraph_on_every_machine() {
    let scene = Scene::new("rdf-lubm");
    let data = departments();
    scene.leave("departments.nt", &data);
    let all = answered(&scene, "data/lubm", &data, RdfFormat::NTriples);
    // Queries 2 and 13 ask for degrees of the university, one of a thousand, which two departments need not have.
    let empty: Vec<&str> = all
        .iter()
        .filter(|expected| expected.lines.len() < 2)
        .map(|expected| expected.name.as_str())
        .collect();
    assert!(empty.iter().all(|name| ["q02", "q13"].contains(name)), "{empty:?}");
    for machine in MACHINES {
        compare(&scene, &format!("--data departments.nt {machine}"), &all);
    }
}
