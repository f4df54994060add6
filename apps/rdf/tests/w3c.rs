//! The query evaluation tests of the W3C for SPARQL 1.0 and 1.1, on one place and on three.
//!
//! `./test w3c` fetches them and passes their folder in `W3C_SPARQL_TESTS`. A test out of the scope of `isles run rdf`
//! is listed with the reason; all others must pass. Answers are compared as graphs, so that names of blank nodes do not
//! count; numbers are compared by value, because results of arithmetic may be written in several ways.

use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::dataset::CanonicalizationAlgorithm;
use oxigraph::model::{
    BlankNode, Dataset, GraphName, GraphNameRef, Literal, NamedNode, NamedOrBlankNode, Quad, Term,
};
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_isles-rdf");

/// Environment variable with the folder of the tests.
const FOLDER: &str = "W3C_SPARQL_TESTS";

/// Folders of the suites that are about something else than evaluating a query.
const OTHER_FOLDERS: [(&str, &str); 2] = [
    ("entailment", "entailment: nothing here reasons"),
    (
        "service",
        "SERVICE: federated queries are not \
         supported",
    ),
];

const COUNTED: &str = "{n,m} behind a path is not SPARQL 1.1";
const NUMBERS: &str = "the grammar of numbers has changed with SPARQL 1.1";
const DATES: &str = "it asks for a processor that cannot compare xsd:date";
const TWICE: &str = "a graph behind FROM and FROM NAMED is one graph, whose blank nodes are the same in both";
const SIMPLIFIED: &str = "either this test passes or the one that is not simplified, which does";
const EMPTY_GROUP: &str = "no solutions have no group, by an erratum";
const BNODE: &str = "BNODE of one string is one blank node in all solutions, as spareval has it";
const EMPTY_STRING: &str = "the empty string has no language, by an erratum";
const STRINGS: &str = "a simple literal and one of xsd:string are the same term since RDF 1.1";

/// Tests that do not pass, by folder and fragment of their IRI, with the reason.
const KNOWN: &[(&str, &str, &str)] = &[
    ("basic", "term-6", NUMBERS),
    ("basic", "term-7", NUMBERS),
    ("dataset", "dawg-dataset-09", TWICE),
    ("dataset", "dawg-dataset-10", TWICE),
    ("dataset", "dawg-dataset-12", TWICE),
    ("distinct", "distinct-2", STRINGS),
    ("distinct", "distinct-9", STRINGS),
    ("expr-builtin", "dawg-datatype-2", STRINGS),
    ("expr-builtin", "dawg-str-1", STRINGS),
    ("expr-builtin", "dawg-str-2", STRINGS),
    ("open-world", "date-2", DATES),
    ("optional-filter", "dawg-optional-filter-005-simplified", SIMPLIFIED),
    ("aggregates", "agg-empty-group", EMPTY_GROUP),
    ("functions", "bnode01", BNODE),
    ("functions", "strafter01", EMPTY_STRING),
    ("functions", "strbefore01", EMPTY_STRING),
    ("functions", "strdt03", STRINGS),
    ("functions", "strlang03", STRINGS),
    ("property-path", "pp04", COUNTED),
    ("property-path", "pp05", COUNTED),
    ("property-path", "pp13", COUNTED),
    ("property-path", "pp15", COUNTED),
    ("property-path", "pp20", COUNTED),
    ("property-path", "pp22", COUNTED),
    ("property-path", "pp24", COUNTED),
    ("property-path", "pp26", COUNTED),
    ("property-path", "pp27", COUNTED),
    ("property-path", "pp29", COUNTED),
];

/// A test of a manifest.
#[derive(Debug)]
struct Evaluation {
    folder: String,
    name: String,
    query: PathBuf,
    data: Vec<PathBuf>,
    graphs: Vec<PathBuf>,
    result: PathBuf,
    is_lax: bool,
}

/// The solutions or triples that a query has, in a form that can be compared.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Boolean(bool),
    Graph(Vec<String>),
}

fn path(iri: &Term) -> PathBuf {
    let Term::NamedNode(node) = iri else { panic!("{iri} is no file") };
    PathBuf::from(node.as_str().strip_prefix("file://").expect("a file").replace("%20", " "))
}

/// The tests of a manifest.
fn tests(manifest: &Path) -> Vec<Evaluation> {
    let store = Store::new().unwrap();
    let parser = RdfParser::from_format(RdfFormat::Turtle);
    let parser = parser.with_base_iri(format!("file://{}", manifest.display())).unwrap();
    store.load_from_slice(parser, &fs::read(manifest).unwrap()).unwrap();
    let text = "PREFIX mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#>
        PREFIX qt: <http://www.w3.org/2001/sw/DataAccess/tests/test-query#>
        SELECT ?test ?name ?query ?data ?graph ?result ?lax {
            VALUES ?kind { mf:QueryEvaluationTest mf:CSVResultFormatTest }
            ?test a ?kind ; mf:name ?name ; mf:action ?action ; mf:result ?result .
            ?action qt:query ?query
            OPTIONAL { ?action qt:data ?data } OPTIONAL { ?action qt:graphData ?graph }
            BIND(EXISTS { ?test mf:resultCardinality mf:LaxCardinality } AS ?lax)
        } ORDER BY ?test";
    let results = SparqlEvaluator::new().parse_query(text).unwrap().on_store(&store).execute().unwrap();
    let QueryResults::Solutions(solutions) = results else { panic!("no solutions") };
    let folder = manifest.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let mut all: BTreeMap<String, Evaluation> = BTreeMap::new();
    for solution in solutions {
        let solution = solution.unwrap();
        let Some(Term::Literal(name)) = solution.get("name") else { panic!("a test without a name") };
        let iri = solution.get("test").unwrap().to_string();
        let fragment = iri.rsplit_once('#').unwrap().1.trim_end_matches('>');
        let test = all.entry(iri.clone()).or_insert_with(|| Evaluation {
            folder: folder.clone(),
            name: format!("{} ({})", fragment, name.value()),
            query: path(solution.get("query").unwrap()),
            data: Vec::new(),
            graphs: Vec::new(),
            result: path(solution.get("result").unwrap()),
            is_lax: solution.get("lax").is_some_and(|lax| lax.to_string().contains("true")),
        });
        let graph = solution.get("graph").map(path);
        test.graphs.extend(graph.filter(|graph| !test.graphs.contains(graph)));
        let data = solution.get("data").map(path);
        test.data.extend(data.filter(|data| !test.data.contains(data)));
    }
    all.into_values().collect()
}

/// Returns a term with its number in canonical form and its language in lower case.
fn normal(term: Term) -> Term {
    let Term::Literal(literal) = &term else { return term };
    if let Some(language) = literal.language() {
        return Literal::new_language_tagged_literal_unchecked(literal.value(), language.to_lowercase())
            .into();
    }
    let datatype = literal.datatype().into_owned();
    let kind = datatype.as_str().strip_prefix("http://www.w3.org/2001/XMLSchema#").unwrap_or_default();
    let is_number = ["integer", "decimal", "double", "float", "int", "long", "short", "byte"].contains(&kind);
    match literal.value().parse::<f64>() {
        // Twelve digits: of a division the implementations keep more or fewer.
        Ok(value) if is_number => Literal::new_typed_literal(format!("{value:.12e}"), datatype).into(),
        _ => term,
    }
}

/// Returns triples with canonical names of blank nodes.
fn canonical(triples: impl IntoIterator<Item = (NamedOrBlankNode, NamedNode, Term)>) -> Outcome {
    let mut dataset = Dataset::new();
    for (subject, predicate, object) in triples {
        dataset.insert(&Quad::new(subject, predicate, normal(object), GraphName::DefaultGraph));
    }
    dataset.canonicalize(CanonicalizationAlgorithm::Unstable);
    let mut lines: Vec<String> =
        dataset.quads_for_graph_name(GraphNameRef::DefaultGraph).map(|quad| quad.to_string()).collect();
    lines.sort();
    Outcome::Graph(lines)
}

type Solutions = Vec<BTreeMap<String, Term>>;

/// Solutions as triples: a blank node each, with its bindings.
fn of_solutions(mut solutions: Solutions, is_lax: bool) -> Outcome {
    if is_lax {
        let key = |one: &BTreeMap<String, Term>| format!("{one:?}");
        solutions.sort_by_key(key);
        solutions.dedup();
    }
    canonical(solutions.into_iter().flat_map(|solution| {
        let node = BlankNode::default();
        let kind = (node.clone().into(), NamedNode::new_unchecked("row:"), Literal::from(1).into());
        let cells = solution.into_iter().map(move |(name, term)| {
            (NamedOrBlankNode::from(node.clone()), NamedNode::new_unchecked(format!("var:{name}")), term)
        });
        std::iter::once(kind).chain(cells)
    }))
}

/// Parses a file of results in a format of SPARQL.
fn of_results(bytes: &[u8], format: QueryResultsFormat, is_lax: bool) -> Outcome {
    match QueryResultsParser::from_format(format).for_reader(bytes).unwrap() {
        ReaderQueryResultsParserOutput::Boolean(truth) => Outcome::Boolean(truth),
        ReaderQueryResultsParserOutput::Solutions(solutions) => {
            let one = |solution: oxigraph::sparql::QuerySolution| {
                solution.iter().map(|(name, term)| (name.as_str().to_owned(), term.clone())).collect()
            };
            of_solutions(solutions.map(|solution| one(solution.unwrap())).collect(), is_lax)
        }
    }
}

/// Parses a file of triples: a graph, or a set of results in the vocabulary of the suite of SPARQL 1.0.
fn of_triples(bytes: &[u8], format: RdfFormat, base: &Path, is_lax: bool) -> Outcome {
    let parser = RdfParser::from_format(format).with_base_iri(format!("file://{}", base.display())).unwrap();
    let store = Store::new().unwrap();
    store.load_from_slice(parser, bytes).unwrap();
    let ask = |text: &str| {
        let text = format!("PREFIX rs: <http://www.w3.org/2001/sw/DataAccess/tests/result-set#> {text}");
        SparqlEvaluator::new().parse_query(&text).unwrap().on_store(&store).execute().unwrap()
    };
    let QueryResults::Solutions(mut truth) = ask("SELECT ?t { ?s rs:boolean ?t }") else { panic!() };
    if let Some(truth) = truth.next() {
        return Outcome::Boolean(truth.unwrap().get("t").unwrap().to_string().contains("true"));
    }
    let QueryResults::Boolean(is_set) = ask("ASK { ?s a rs:ResultSet }") else { panic!() };
    if !is_set {
        let quads = store.iter().map(Result::unwrap);
        return canonical(quads.map(|quad| (quad.subject, quad.predicate, quad.object)));
    }
    let text = "SELECT ?row ?name ?value { ?set rs:solution ?row
        OPTIONAL { ?row rs:binding [ rs:variable ?name ; rs:value ?value ] } }";
    let QueryResults::Solutions(cells) = ask(text) else { panic!() };
    let mut rows: BTreeMap<String, BTreeMap<String, Term>> = BTreeMap::new();
    for cell in cells.map(Result::unwrap) {
        let row = rows.entry(cell.get("row").unwrap().to_string()).or_default();
        if let (Some(Term::Literal(name)), Some(value)) = (cell.get("name"), cell.get("value")) {
            row.insert(name.value().to_owned(), value.clone());
        }
    }
    of_solutions(rows.into_values().collect(), is_lax)
}

/// The outcome that a test asks for; none if it is a text.
fn expected(test: &Evaluation) -> Option<Outcome> {
    let bytes = fs::read(&test.result).unwrap();
    match test.result.extension().unwrap_or_default().to_str().unwrap_or_default() {
        "srx" => Some(of_results(&bytes, QueryResultsFormat::Xml, test.is_lax)),
        "srj" => Some(of_results(&bytes, QueryResultsFormat::Json, test.is_lax)),
        "tsv" => Some(of_results(&bytes, QueryResultsFormat::Tsv, test.is_lax)),
        "ttl" => Some(of_triples(&bytes, RdfFormat::Turtle, &test.result, test.is_lax)),
        "rdf" => Some(of_triples(&bytes, RdfFormat::RdfXml, &test.result, test.is_lax)),
        _ => None,
    }
}

/// The rows of a file of CSV by the names of their columns, whose order is open; blank nodes have no names.
fn csv_rows(bytes: &[u8]) -> Vec<BTreeMap<String, String>> {
    let cells = |line: &str| {
        let (mut cells, mut is_quoted) = (vec![String::new()], false);
        for character in line.chars() {
            match character {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells.push(String::new()),
                character => cells.last_mut().unwrap().push(character),
            }
        }
        cells.iter().map(|cell| if cell.starts_with("_:") { "_:".to_owned() } else { cell.clone() }).collect()
    };
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut rows = text.lines().map(cells);
    let names: Vec<String> = rows.next().unwrap_or_default();
    let mut all: Vec<_> = rows.map(|row: Vec<String>| names.iter().cloned().zip(row).collect()).collect();
    all.sort();
    all
}

/// Returns the reason why a test is not for this program, if it is not.
fn outside(test: &Evaluation) -> Option<String> {
    let other = OTHER_FOLDERS.iter().find(|(folder, _)| *folder == test.folder).map(|(_, why)| *why);
    other.map(str::to_owned)
}

/// The graphs that a test names: those of its manifest, and the files behind `FROM` that are there.
fn named_graphs(test: &Evaluation, text: &str) -> Vec<PathBuf> {
    let mut all = test.graphs.clone();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("FROM") {
            words.next_if(|word| word.eq_ignore_ascii_case("NAMED"));
            let name = words.peek().and_then(|word| word.split(['<', '>']).nth(1));
            let file = test.query.with_file_name(name.unwrap_or_default());
            if file.is_file() && !all.contains(&file) {
                all.push(file);
            }
        }
    }
    all
}

/// The reason why a test does not pass.
enum Miss {
    /// The program refuses the query, in a line.
    Refused(String),
    /// The program has failed otherwise.
    Program(String),
    /// It has another answer.
    Answer(String),
}

/// Runs a test.
fn run(test: &Evaluation, places: &str, scratch: &Path) -> Result<(), Miss> {
    let empty = scratch.join("empty.ttl");
    fs::write(&empty, "").unwrap();
    let data = if test.data.is_empty() { vec![empty] } else { test.data.clone() };
    let text = fs::read_to_string(&test.query).unwrap();
    let expected = expected(test);
    let is_csv = expected.is_none();
    let format = if is_csv { "csv" } else { "xml" };
    let out = scratch.join("out");
    let mut command = Command::new(PROGRAM);
    let graphs = named_graphs(test, &text);
    if !graphs.is_empty() {
        command.arg("--named-graph").args(&graphs);
    }
    command.arg("--data").args(&data).arg("--query").arg(&test.query).args(["--format", format, "--results"]);
    command.arg(&out).args([
        "--machine",
        "threads",
        "--places",
        places,
        "--json",
        "/dev/null",
        "--csv",
        "/dev/null",
    ]);
    let ended = command.output().unwrap();
    if !ended.status.success() {
        let stderr = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        return Err(if ended.status.code() == Some(2) {
            Miss::Refused(stderr)
        } else {
            Miss::Program(stderr)
        });
    }
    let bytes = fs::read(&out).unwrap();
    let Some(expected) = expected else {
        let (own, wanted) = (csv_rows(&bytes), csv_rows(&fs::read(&test.result).unwrap()));
        let is_same = own == wanted;
        return if is_same { Ok(()) } else { Err(Miss::Answer(format!("{own:?}\n  and not {wanted:?}"))) };
    };
    let is_graph = text.to_uppercase().contains("CONSTRUCT") || text.to_uppercase().contains("DESCRIBE");
    let own = match is_graph {
        true => of_triples(&bytes, RdfFormat::NTriples, &out, false),
        false => of_results(&bytes, QueryResultsFormat::Xml, test.is_lax),
    };
    let is_same = own == expected;
    if is_same { Ok(()) } else { Err(Miss::Answer(format!("{own:?}\n  and not {expected:?}"))) }
}

#[test]
#[ignore = "needs the tests of the W3C, which `./test w3c` fetches"]
fn the_w3c_query_evaluation_tests_pass() {
    let root = PathBuf::from(std::env::var_os(FOLDER).expect("W3C_SPARQL_TESTS says where the tests are"));
    let root = fs::canonicalize(root).unwrap();
    let scratch = std::env::temp_dir().join(format!("isles-w3c-{}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    let mut all = Vec::new();
    for suite in ["dawg-data-r2", "sparql11"] {
        let mut folders: Vec<PathBuf> = fs::read_dir(root.join(suite))
            .unwrap()
            .map(|entry| entry.unwrap().path().join("manifest.ttl"))
            .collect();
        folders.sort();
        all.extend(folders.iter().filter(|manifest| manifest.is_file()).flat_map(|manifest| tests(manifest)));
    }
    let (mut passed, mut known, mut left_out, mut wrong) =
        (0, 0, BTreeMap::<String, Vec<String>>::new(), Vec::new());
    for test in &all {
        let title = format!("{}/{}", test.folder, test.name);
        if !test.query.is_file() {
            left_out.entry("its file is not in the package".to_owned()).or_default().push(title);
            continue;
        }
        if let Some(why) = outside(test) {
            left_out.entry(why).or_default().push(title);
            continue;
        }
        let expected_to_fail = KNOWN
            .iter()
            .find(|(folder, name, _)| *folder == test.folder && test.name.starts_with(&format!("{name} ")));
        for places in ["1", "3"] {
            match (run(test, places, &scratch), expected_to_fail) {
                (Ok(()), None) => passed += 1,
                (Err(Miss::Answer(_) | Miss::Refused(_)), Some((.., why))) => {
                    known += 1;
                    println!("known: {title}, {places} places: {why}");
                }
                (Ok(()), Some(_)) => {
                    wrong.push(format!("{title}, {places} places: passes, and is known to fail"))
                }
                (Err(Miss::Refused(why) | Miss::Program(why) | Miss::Answer(why)), _) => {
                    wrong.push(format!("{title}, {places} places: {why}"))
                }
            }
        }
    }
    let _ = fs::remove_dir_all(&scratch); // what stays is of the folder of temporary files
    for (why, titles) in &left_out {
        println!("left out, {why}: {}", titles.join(", "));
    }
    println!("{} tests: {passed} runs passed, {known} known not to", all.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(passed > 500, "{passed}");
}
