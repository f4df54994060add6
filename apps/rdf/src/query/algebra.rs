//! The algebra that places evaluate together, translated from the parse tree of `spargebra`.
//!
//! Unsupported features (paths, `EXISTS`, aggregates other than counts, orders, functions whose value does not depend
//! on their arguments alone) have no [`Node`]; the first place evaluates them. Invariant: a node has the solutions
//! that SPARQL 1.1, section 18, defines for its pattern, with the same multiplicities.

use super::scan::{Pattern, PatternPart};
use super::table::VariableId;
use crate::store::term::encoded;
use oxrdf::{TermRef, Variable};
use rustc_hash::FxHashMap;
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, Function, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use sparopt::algebra::{Expression as OptimizedExpression, GraphPattern as OptimizedPattern};

/// An expression over variables of a solution.
#[derive(Clone, Debug)]
pub struct BoundExpression {
    /// The expression, as `spareval` evaluates it.
    pub expression: OptimizedExpression,
    /// The variables that it uses.
    pub variables: Vec<(Variable, VariableId)>,
    /// Source text of the expression.
    pub text: String,
}

/// Subject of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Solutions.
    Rows,
    /// Solutions that bind this variable.
    Bound(VariableId),
    /// Different values of this variable.
    Distinct(VariableId),
}

/// A part of a query that places evaluate together.
#[derive(Clone, Debug)]
pub enum Node {
    /// A basic graph pattern, with filters over its variables.
    Triples {
        /// The patterns; a term's slot is its position in [`Translation::terms`].
        patterns: Vec<Pattern>,
        /// Filters that use variables of the patterns only.
        filters: Vec<BoundExpression>,
    },
    /// Compatible solutions of both, joined.
    Join(Box<Node>, Box<Node>),
    /// Solutions of the left, joined to those of the right that are compatible and pass the filter.
    LeftJoin {
        /// Required part.
        left: Box<Node>,
        /// Optional part.
        right: Box<Node>,
        /// Condition that a pair of solutions must pass.
        filter: Option<BoundExpression>,
    },
    /// Solutions of both.
    Union(Box<Node>, Box<Node>),
    /// Solutions of the left, except those that share a variable with a compatible solution of the right.
    Minus(Box<Node>, Box<Node>),
    /// Solutions for which the expression is true.
    Filter(Box<Node>, BoundExpression),
    /// Each solution with a further variable.
    Extend {
        /// The solutions.
        inner: Box<Node>,
        /// The further variable.
        variable: VariableId,
        /// Its value.
        value: BoundExpression,
    },
    /// Solutions given in the query; a number is a position in [`Translation::terms`].
    Values {
        /// The variables.
        variables: Vec<VariableId>,
        /// The solutions.
        rows: Vec<Vec<Option<u32>>>,
    },
    /// The named graphs: a solution for each, or one solution if the graph with this name exists.
    Graphs(PatternPart),
    /// Some variables of each solution.
    Project(Box<Node>, Vec<VariableId>),
    /// The distinct solutions.
    Distinct(Box<Node>),
    /// A solution for each group of solutions with equal keys, with their counts; without keys one for all.
    Count {
        /// The solutions.
        inner: Box<Node>,
        /// Variables on which the solutions of a group agree.
        keys: Vec<VariableId>,
        /// Variable of each count, and its subject.
        counts: Vec<(VariableId, Counted)>,
    },
    /// A slice of the solutions, in a fixed order of all.
    Slice {
        /// The solutions.
        inner: Box<Node>,
        /// Number of leading solutions skipped.
        start: usize,
        /// Maximum number of solutions.
        length: Option<usize>,
    },
}

/// The names and terms that nodes refer to by number.
#[derive(Debug, Default)]
pub struct Translation {
    /// The variables of the query, and the blank nodes of its patterns.
    pub variables: Vec<String>,
    /// The terms of the query, encoded.
    pub terms: Vec<Vec<u8>>,
    /// The position of each term.
    positions: FxHashMap<Vec<u8>, u32>,
    /// The name in the innermost `GRAPH` around the pattern being translated; `None` in the default graph.
    graph: Option<PatternPart>,
    /// The encoded names of all named graphs, if they are known.
    pub graph_names: Option<Vec<Vec<u8>>>,
}

impl Translation {
    /// Returns the node of a pattern, if places can evaluate it together.
    pub fn node(&mut self, pattern: &GraphPattern) -> Option<Node> {
        Some(match pattern {
            GraphPattern::Bgp { patterns } if patterns.is_empty() => self.in_graph(Node::empty()),
            GraphPattern::Bgp { patterns } => {
                let patterns = patterns.iter().map(|pattern| self.pattern(pattern)).collect();
                Node::Triples { patterns, filters: Vec::new() }
            }
            GraphPattern::Join { left, right } => joined(self.node(left)?, self.node(right)?),
            GraphPattern::LeftJoin { left, right, expression } => {
                let (left, right) = (self.boxed(left)?, self.boxed(right)?);
                let filter = expression.as_ref().map(|expression| self.expression(expression));
                let filter = filter.map_or(Some(None), |filter| filter.map(Some))?;
                Node::LeftJoin { left, right, filter }
            }
            GraphPattern::Union { left, right } => Node::Union(self.boxed(left)?, self.boxed(right)?),
            GraphPattern::Minus { left, right } if self.graph_variable().is_none() => {
                Node::Minus(self.boxed(left)?, self.boxed(right)?)
            }
            GraphPattern::Filter { expr, inner } => {
                let mut node = self.node(inner)?;
                for part in conjuncts(expr) {
                    node = filtered(node, self.expression(part)?);
                }
                node
            }
            GraphPattern::Extend { inner, variable, expression } => {
                if matches!(expression, Expression::If(..) | Expression::Coalesce(..)) {
                    return None; // `spareval` keeps a term as it is written there, which a value does not
                }
                let (inner, value) = (self.boxed(inner)?, self.expression(expression)?);
                Node::Extend { inner, variable: self.variable(variable.as_str()), value }
            }
            GraphPattern::Values { variables, bindings } => {
                let variables = variables.iter().map(|variable| self.variable(variable.as_str())).collect();
                let rows = bindings.iter().map(|row| self.ground_row(row)).collect();
                self.in_graph(Node::Values { variables, rows })
            }
            GraphPattern::Project { inner, variables } => {
                let inner = self.boxed(inner)?;
                let kept = variables.iter().map(|one| self.variable(one.as_str()));
                let mut kept: Vec<VariableId> = kept.collect();
                kept.extend(self.graph_variable());
                Node::Project(inner, kept)
            }
            GraphPattern::Distinct { inner } => Node::Distinct(self.boxed(inner)?),
            GraphPattern::Reduced { inner } => self.node(inner)?,
            GraphPattern::Slice { inner, start, length } if self.graph_variable().is_none() => {
                Node::Slice { inner: self.boxed(inner)?, start: *start, length: *length }
            }
            GraphPattern::Group { inner, variables, aggregates } => {
                self.groups(inner, variables, aggregates)?
            }
            GraphPattern::Graph { name, inner } => self.graph(name, inner)?,
            // Within `GRAPH ?g` these are defined separately for each graph.
            GraphPattern::Minus { .. } | GraphPattern::Slice { .. } => return None,
            GraphPattern::Path { .. }
            | GraphPattern::Lateral { .. }
            | GraphPattern::OrderBy { .. }
            | GraphPattern::Service { .. } => return None,
        })
    }

    /// Returns the node of a group, if its aggregates are counts.
    fn groups(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
    ) -> Option<Node> {
        if variables.is_empty() && self.graph_variable().is_some() {
            return None; // each graph has a group, also one without solutions
        }
        let inner = self.boxed(inner)?;
        let mut keys: Vec<VariableId> = Vec::new();
        // A query may repeat a key.
        let graph = self.graph_variable();
        for key in variables.iter().map(|one| self.variable(one.as_str())).chain(graph) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let counts = aggregates.iter().map(|(variable, aggregate)| {
            let counted = self.counted(aggregate)?;
            Some((self.variable(variable.as_str()), counted))
        });
        Some(Node::Count { inner, keys, counts: counts.collect::<Option<_>>()? })
    }

    /// Returns the variable that names the graph around the pattern being translated, if it is a variable.
    fn graph_variable(&self) -> Option<VariableId> {
        self.graph.and_then(PatternPart::variable)
    }

    /// Joins a node that binds no graph with the graphs in whose scope it occurs: within `GRAPH ?g` the solutions of
    /// all graphs are in one table, with `?g` as one more variable.
    fn in_graph(&self, node: Node) -> Node {
        match self.graph_variable() {
            Some(variable) => joined(Node::Graphs(PatternPart::Variable(variable)), node),
            None => node,
        }
    }

    /// Returns the node of `GRAPH`, if places can evaluate it together.
    fn graph(&mut self, name_pattern: &NamedNodePattern, inner: &GraphPattern) -> Option<Node> {
        let name = match name_pattern {
            NamedNodePattern::NamedNode(node) => PatternPart::Term(self.term(node.as_ref().into())),
            // Within the pattern, the variable is not yet bound to the graph.
            NamedNodePattern::Variable(variable) if mentions(inner, variable) => {
                return self.each_graph(variable, inner);
            }
            NamedNodePattern::Variable(variable) => PatternPart::Variable(self.variable(variable.as_str())),
        };
        let node = match (self.within(name, inner), name_pattern) {
            // A match of such a pattern implies that the graph exists.
            (Some(node), _) if node.asks_graph(name) => node,
            (Some(node), _) => joined(Node::Graphs(name), node),
            (None, NamedNodePattern::Variable(variable)) => return self.each_graph(variable, inner),
            (None, NamedNodePattern::NamedNode(_)) => return None,
        };
        Some(self.in_graph(node))
    }

    /// Returns the node of `inner` in the graph with this name.
    fn within(&mut self, name: PatternPart, inner: &GraphPattern) -> Option<Node> {
        let outer = self.graph.replace(name);
        let node = self.node(inner);
        self.graph = outer;
        node
    }

    /// Returns the node of `GRAPH` with a variable as the union over all graphs, which is its definition (SPARQL 1.1,
    /// section 18.6).
    fn each_graph(&mut self, variable: &Variable, inner: &GraphPattern) -> Option<Node> {
        let variable = self.variable(variable.as_str());
        let mut nodes = Vec::new();
        for name in self.graph_names.clone()? {
            let position = self.encoded_term(name);
            let name = Node::Values { variables: vec![variable], rows: vec![vec![Some(position)]] };
            nodes.push(joined(name, self.within(PatternPart::Term(position), inner)?));
        }
        let union = |left, right| Node::Union(Box::new(left), Box::new(right));
        let all = balanced(nodes, union);
        let node = all.unwrap_or(Node::Values { variables: vec![variable], rows: Vec::new() });
        Some(self.in_graph(node))
    }

    /// Returns what an aggregate counts; `None` if it is not a count.
    fn counted(&mut self, aggregate: &AggregateExpression) -> Option<Counted> {
        match aggregate {
            AggregateExpression::CountSolutions { distinct: false } => Some(Counted::Rows),
            AggregateExpression::FunctionCall {
                name: AggregateFunction::Count,
                expr: Expression::Variable(variable),
                distinct,
            } => {
                let variable = self.variable(variable.as_str());
                Some(if *distinct { Counted::Distinct(variable) } else { Counted::Bound(variable) })
            }
            _ => None,
        }
    }

    fn boxed(&mut self, pattern: &GraphPattern) -> Option<Box<Node>> {
        self.node(pattern).map(Box::new)
    }

    /// Returns the number of a variable, or of a blank node whose name begins with `_:`.
    pub fn variable(&mut self, name: &str) -> VariableId {
        let known = self.variables.iter().position(|own| own == name);
        known.unwrap_or_else(|| {
            self.variables.push(name.to_owned());
            self.variables.len() - 1
        })
    }

    /// Returns the position of a term among those of the query.
    pub fn term(&mut self, term: TermRef<'_>) -> u32 {
        self.encoded_term(encoded(term))
    }

    fn encoded_term(&mut self, bytes: Vec<u8>) -> u32 {
        *self.positions.entry(bytes).or_insert_with_key(|bytes| {
            self.terms.push(bytes.clone());
            self.terms.len() as u32 - 1
        })
    }

    fn pattern(&mut self, pattern: &TriplePattern) -> Pattern {
        let TriplePattern { subject, predicate, object } = pattern;
        let predicate = match predicate {
            NamedNodePattern::NamedNode(node) => PatternPart::Term(self.term(node.as_ref().into())),
            NamedNodePattern::Variable(variable) => PatternPart::Variable(self.variable(variable.as_str())),
        };
        Pattern { parts: [self.slot(subject), predicate, self.slot(object)], graph: self.graph }
    }

    fn slot(&mut self, part: &TermPattern) -> PatternPart {
        match part {
            TermPattern::NamedNode(node) => PatternPart::Term(self.term(node.as_ref().into())),
            TermPattern::Literal(literal) => PatternPart::Term(self.term(literal.as_ref().into())),
            TermPattern::BlankNode(node) => PatternPart::Variable(self.variable(&node.to_string())),
            TermPattern::Variable(variable) => PatternPart::Variable(self.variable(variable.as_str())),
        }
    }

    fn ground_row(&mut self, row: &[Option<GroundTerm>]) -> Vec<Option<u32>> {
        let term = |term: &GroundTerm| match term {
            GroundTerm::NamedNode(node) => self.term(node.as_ref().into()),
            GroundTerm::Literal(literal) => self.term(literal.as_ref().into()),
        };
        let mut term = term;
        row.iter().map(|own| own.as_ref().map(&mut term)).collect()
    }

    fn expression(&mut self, expression: &Expression) -> Option<BoundExpression> {
        if !is_decided_by_arguments(expression) {
            return None;
        }
        let optimized = optimized(expression);
        let used = optimized.used_variables();
        let mut variables: Vec<Variable> = used.into_iter().cloned().collect();
        variables.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        let with_number = |variable: Variable| {
            let number = self.variable(variable.as_str());
            (variable, number)
        };
        let variables = variables.into_iter().map(with_number).collect();
        Some(BoundExpression { expression: optimized, variables, text: expression.to_string() })
    }
}

impl Node {
    /// Returns the node of one solution that binds nothing.
    fn empty() -> Node {
        Node::Triples { patterns: Vec::new(), filters: Vec::new() }
    }

    /// Returns `true` if the node is one solution that binds nothing.
    fn is_unit(&self) -> bool {
        matches!(self, Node::Triples { patterns, filters } if patterns.is_empty() && filters.is_empty())
    }

    /// Returns `true` if the node is a basic graph pattern over the graph with this name.
    fn asks_graph(&self, name: PatternPart) -> bool {
        let is_asked = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.graph == Some(name));
        matches!(self, Node::Triples { patterns, .. } if is_asked(patterns))
    }
}

/// Returns `true` if the text of a pattern contains this variable anywhere.
fn mentions(pattern: &GraphPattern, variable: &Variable) -> bool {
    let text = pattern.to_string();
    // Names may have some letters beyond ASCII; treating another one as part of a name only costs time.
    let is_name = |character: char| {
        !character.is_ascii() || character.is_ascii_alphanumeric() || character == '_' || character == '?'
    };
    text.split(|character: char| !is_name(character))
        .any(|word| word.strip_prefix('?') == Some(variable.as_str()))
}

/// Combines parts pairwise into a tree of minimal height, which bounds the recursion over it.
pub(super) fn balanced<T>(mut parts: Vec<T>, combine: impl Fn(T, T) -> T) -> Option<T> {
    while parts.len() > 1 {
        let mut all = parts.into_iter();
        let mut next = Vec::with_capacity(all.len().div_ceil(2));
        while let Some(left) = all.next() {
            next.push(match all.next() {
                Some(right) => combine(left, right),
                None => left,
            });
        }
        parts = next;
    }
    parts.pop()
}

/// Returns an expression in the form that `spareval` evaluates.
fn optimized(expression: &Expression) -> OptimizedExpression {
    // The only public way leads through a pattern.
    let pattern = GraphPattern::Extend {
        inner: Box::default(),
        variable: Variable::new_unchecked("value"),
        expression: expression.clone(),
    };
    match OptimizedPattern::from(&pattern) {
        OptimizedPattern::Extend { expression, .. } => expression,
        other => unreachable!("an extension has become {other:?}"),
    }
}

/// Returns a join; adjacent basic graph patterns become one.
fn joined(left: Node, right: Node) -> Node {
    match (left, right) {
        (
            Node::Triples { mut patterns, mut filters },
            Node::Triples { patterns: more, filters: more_filters },
        ) => {
            patterns.extend(more);
            filters.extend(more_filters);
            Node::Triples { patterns, filters }
        }
        (left, right) if left.is_unit() => right,
        (left, right) if right.is_unit() => left,
        (left, right) => Node::Join(Box::new(left), Box::new(right)),
    }
}

/// Returns a filtered node; the filter moves into a basic graph pattern that binds its variables.
fn filtered(node: Node, filter: BoundExpression) -> Node {
    match node {
        Node::Triples { patterns, mut filters } if binds_all(&patterns, &filter) => {
            filters.push(filter);
            Node::Triples { patterns, filters }
        }
        node => Node::Filter(Box::new(node), filter),
    }
}

fn binds_all(patterns: &[Pattern], filter: &BoundExpression) -> bool {
    let binds = |variable: VariableId| patterns.iter().any(|pattern| pattern.variables().contains(&variable));
    filter.variables.iter().all(|(_, variable)| binds(*variable))
}

/// Returns the parts of a conjunction: a solution passes all of them if and only if it passes the whole.
fn conjuncts(expression: &Expression) -> Vec<&Expression> {
    match expression {
        Expression::And(left, right) => [conjuncts(left), conjuncts(right)].concat(),
        other => vec![other],
    }
}

/// Returns `true` if the value of an expression depends only on the values of its variables.
fn is_decided_by_arguments(expression: &Expression) -> bool {
    let all = |parts: &[Expression]| parts.iter().all(is_decided_by_arguments);
    match expression {
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Bound(_) => true,
        Expression::Exists(_) => false,
        Expression::UnaryPlus(inner) | Expression::UnaryMinus(inner) | Expression::Not(inner) => {
            is_decided_by_arguments(inner)
        }
        Expression::Or(left, right)
        | Expression::And(left, right)
        | Expression::Equal(left, right)
        | Expression::SameTerm(left, right)
        | Expression::Greater(left, right)
        | Expression::GreaterOrEqual(left, right)
        | Expression::Less(left, right)
        | Expression::LessOrEqual(left, right)
        | Expression::Add(left, right)
        | Expression::Subtract(left, right)
        | Expression::Multiply(left, right)
        | Expression::Divide(left, right) => is_decided_by_arguments(left) && is_decided_by_arguments(right),
        Expression::In(left, right) => is_decided_by_arguments(left) && all(right),
        Expression::If(condition, yes, no) => {
            [condition, yes, no].into_iter().all(|part| is_decided_by_arguments(part))
        }
        Expression::Coalesce(parts) => all(parts),
        Expression::FunctionCall(function, parts) => {
            let is_free = matches!(
                function,
                Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode | Function::Now
                    // These need data that only `spareval` has: the base IRI and custom functions.
                    | Function::Iri | Function::Custom(_)
            );
            !is_free && all(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spargebra::{Query, SparqlParser};

    fn node(text: &str) -> Option<Node> {
        let query = format!("PREFIX : <http://a.example/> SELECT * WHERE {{ {text} }}");
        let Query::Select { pattern, .. } = SparqlParser::new().parse_query(&query).unwrap() else {
            panic!()
        };
        let Node::Project(inner, _) = Translation::default().node(&pattern)? else { panic!("{text}") };
        Some(*inner)
    }

    #[test]
    fn filters_go_into_the_basic_graph_pattern_that_binds_their_variables() {
        let Some(Node::Triples { patterns, filters }) =
            node("?s :p ?o . ?o :q ?r FILTER(?o > 3 && ?r != ?s)")
        else {
            panic!()
        };
        assert_eq!((patterns.len(), filters.len()), (2, 2));
        assert!(matches!(node("?s :p ?o FILTER(!BOUND(?other))"), Some(Node::Filter(..))));
        assert!(matches!(node("?s :p ?o FILTER(?other = 1)"), Some(Node::Filter(..))));
    }

    #[test]
    fn a_key_that_is_said_twice_is_one_column() {
        let text = "{ SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s ?s }";
        let Some(Node::Project(inner, _)) = node(text) else { panic!("{text}") };
        let Node::Extend { inner, .. } = *inner else { panic!("{inner:?}") };
        assert!(matches!(*inner, Node::Count { keys, .. } if keys.len() == 1));
    }

    #[test]
    fn a_balanced_tree_keeps_the_order_and_is_as_low_as_can_be() {
        for number in [1_u32, 2, 3, 7, 1_000] {
            let leaves = (0..number).map(|leaf| (vec![leaf], 0_u32)).collect();
            let combine = |left: (Vec<u32>, u32), right: (Vec<u32>, u32)| {
                ([left.0, right.0].concat(), 1 + left.1.max(right.1))
            };
            let (leaves, height) = balanced(leaves, combine).unwrap();
            assert_eq!((leaves, height), ((0..number).collect(), number.next_power_of_two().ilog2()));
        }
        assert_eq!(balanced(Vec::<u32>::new(), |one, _| one), None);
    }

    #[test]
    fn what_one_place_must_evaluate_has_no_node() {
        for text in [
            "?s :p* ?o",
            "?s :p ?o FILTER EXISTS { ?o :q ?r }",
            "?s :p ?o FILTER(RAND() < 2)",
            "{ SELECT (SUM(?o) AS ?n) { ?s :p ?o } }",
            "{ SELECT (COUNT(?o + 1) AS ?n) { ?s :p ?o } }",
            "GRAPH :g { ?s :p* ?o }",
            "GRAPH ?g { ?s :p ?o MINUS { ?s :q ?r } }",
            "GRAPH ?g { ?s :in ?g }",
            "GRAPH ?g\u{b7} { ?s :in ?g\u{b7} }",
            "GRAPH ?e\u{301} { ?s :in ?e\u{301} }",
        ] {
            assert!(node(text).is_none(), "{text}");
        }
        assert!(node("GRAPH :g { ?s :p ?o MINUS { ?s :q ?r } }").is_some());
        assert!(node("?s :p/:q ?o OPTIONAL { ?s :r ?t } MINUS { ?s :v ?t } BIND(?t + 1 AS ?u)").is_some());
    }
}
