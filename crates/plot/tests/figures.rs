//! Tests of complete figures: parsed as XML, counted and measured.
//!
//! They check that all elements are present and in place, and that no data makes drawing fail.

use isles_plot::{
    Arrangement, Axis, BarSeries, Bars, Curve, CurvePoint, Drawing, Figure, Interval, Origin, Parity,
    ParityPoint, Plane, PlanePoint, PlaneSeries, Provenance, Scale, Series,
};
use proptest::prelude::*;
use roxmltree::{Document, Node};

fn provenance() -> Provenance {
    Provenance {
        version: "0.1.0".to_owned(),
        commit: Some("abc1234".to_owned()),
        command: "isles plot run.json --out <figure> & more".to_owned(),
        chip: Some("chip:scc".to_owned()),
        seed: Some(7),
        measured: None,
    }
}

fn drawn(figure: &Figure) -> String {
    let mut bytes = Vec::new();
    Drawing::of(figure).write(&provenance(), &mut bytes).expect("memory takes everything");
    String::from_utf8(bytes).expect("SVG is text")
}

fn has_class(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|other| other == class))
}

/// The marks of the series of that name.
fn marks(document: &Document<'_>, series: &str) -> Vec<(f64, f64)> {
    let groups = document.descendants().filter(|node| node.attribute("data-series") == Some(series));
    groups
        .flat_map(|group| group.children().filter(|node| has_class(node, "mark")))
        .map(|mark| place(&mark))
        .collect()
}

/// Returns the position of a mark.
fn place(mark: &Node<'_, '_>) -> (f64, f64) {
    let moved = mark.attribute("transform").and_then(|text| text.strip_prefix("translate(")).unwrap();
    let (x, y) = moved.split(')').next().unwrap().split_once(' ').unwrap();
    (x.parse().unwrap(), y.parse().unwrap())
}

/// Returns the position of the label of a tick.
fn label_at(document: &Document<'_>, label: &str, anchor: &str) -> (f64, f64) {
    let is_label =
        |node: &Node<'_, '_>| node.text() == Some(label) && node.attribute("text-anchor") == Some(anchor);
    let node = document.descendants().find(is_label).unwrap_or_else(|| panic!("no tick {label}"));
    let number = |name| node.attribute(name).unwrap().parse().unwrap();
    (number("x"), number("y"))
}

/// Checks for required and forbidden parts of a figure.
fn check(text: &str) -> Document<'_> {
    let document = Document::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let root = document.root_element();
    let child = |name: &str| root.children().find(|node| node.has_tag_name(name));
    assert!(
        child("title").is_some() && child("desc").is_some_and(|description| description.text().is_some())
    );
    let metadata = child("metadata").and_then(|node| node.text()).unwrap();
    for part in
        ["version: 0.1.0", "commit: abc1234", "chip: chip:scc", "seed: 7", "command: isles plot run.json"]
    {
        assert!(metadata.contains(part), "{metadata}");
    }
    let view: Vec<f64> =
        root.attribute("viewBox").unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    for node in root.descendants() {
        for attribute in node.attributes().filter(|attribute| !attribute.name().starts_with("data-")) {
            let value = attribute.value();
            assert!(!value.contains("NaN") && !value.contains("inf"), "{}: {value}", attribute.name());
        }
        if has_class(&node, "mark") {
            let (x, y) = place(&node);
            assert!((0.0..=view[2]).contains(&x) && (0.0..=view[3]).contains(&y), "{x} {y}");
        }
    }
    document
}

fn words(document: &Document<'_>) -> String {
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}

/// Left, top, right and bottom of a text, by a mean width of letters.
fn extent(node: &Node<'_, '_>) -> [f64; 4] {
    let number = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let (x, y) = (number("x"), number("y"));
    let size = if has_class(node, "title") { 17.0 } else { 12.0 };
    let wide = node.text().unwrap_or_default().chars().count() as f64 * size * 0.55;
    let left = match node.attribute("text-anchor") {
        None => x,
        Some("middle") => x - wide / 2.0,
        Some(_) => x - wide,
    };
    [left, y - size * 0.72, left + wide, y + size * 0.2]
}

/// Asserts that all text can be read: no part of it beyond the picture, none on another.
fn check_texts(document: &Document<'_>) {
    let view = document.root_element().attribute("viewBox").unwrap();
    let view: Vec<f64> = view.split(' ').map(|word| word.parse().unwrap()).collect();
    let texts: Vec<Node<'_, '_>> = document.descendants().filter(|node| node.has_tag_name("text")).collect();
    for (number, node) in texts.iter().enumerate() {
        let [left, top, right, bottom] = extent(node);
        let label = node.text().unwrap_or_default();
        assert!(
            left >= 0.0 && top >= 0.0 && right <= view[2] && bottom <= view[3],
            "beyond the picture: {label}"
        );
        for other in &texts[..number] {
            let [other_left, other_top, other_right, other_bottom] = extent(other);
            let is_apart =
                right <= other_left || other_right <= left || bottom <= other_top || other_bottom <= top;
            assert!(is_apart, "{label:?} stands on {:?}", other.text());
        }
    }
}

fn series(name: &str, origin: Origin, points: &[(f64, f64)]) -> Series {
    let points = points.iter().map(|(x, y)| CurvePoint::new(*x, *y)).collect();
    Series { name: name.to_owned(), origin, points }
}

fn curve(scale: Scale, series: Vec<Series>) -> Curve {
    Curve {
        title: "Half a ping-pong".to_owned(),
        subtitle: "between two cores".to_owned(),
        x: Axis::new("Length", "B", scale),
        y: Axis::new("Time", "µs", scale),
        series,
        ideal: false,
    }
}

#[test]
fn a_curve_has_its_labels_and_a_mark_for_each_point() {
    let ours = series("RCCE", Origin::Ours, &[(1.0, 2.0), (1024.0, 20.0), (4096.0, 100.0)]);
    let mut theirs = series("RCCE", Origin::Published, &[(1.0, 2.5), (4096.0, 90.0)]);
    theirs.points[1].band = Some(Interval { low: 80.0, high: 100.0 });
    let text = drawn(&Figure::Curve(curve(Scale::Log, vec![ours, theirs])));
    let document = check(&text);
    assert_eq!(marks(&document, "RCCE, Isles").len(), 3);
    assert_eq!(marks(&document, "RCCE, published").len(), 2);
    assert_eq!(document.descendants().filter(|node| has_class(node, "band")).count(), 1);
    let words = words(&document);
    for part in
        ["Half a ping-pong", "between two cores", "RCCE, Isles", "RCCE, published", "Length", "Time", "1 KiB"]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(words.contains("Isles 0.1.0 (abc1234) · chip:scc · seed 7 · isles plot run.json"), "{words}");
}

#[test]
fn values_lie_between_their_ticks() {
    let points = [(1.0, 1.0), (10.0, 30.0), (100.0, 1000.0)];
    let mut figure = curve(Scale::Log, vec![series("a", Origin::Ours, &points)]);
    (figure.x.unit, figure.y.unit) = (String::new(), String::new());
    let text = drawn(&Figure::Curve(figure.clone()));
    let document = check(&text);
    let (x, y) = marks(&document, "a")[1];
    assert!((x - label_at(&document, "10", "middle").0).abs() < 0.02);
    // The label of a tick stands a little below its line.
    let heights = ["10", "100"].map(|label| label_at(&document, label, "end").1 - 12.0 * 0.35);
    let expected = heights[0] + (heights[1] - heights[0]) * 3_f64.log10();
    assert!((y - expected).abs() < 0.05, "{y} {expected}");

    (figure.x.scale, figure.y.scale) = (Scale::Linear, Scale::Linear);
    let text = drawn(&Figure::Curve(figure));
    let document = check(&text);
    let (x, _) = marks(&document, "a")[1];
    let ticks = ["0", "20"].map(|label| label_at(&document, label, "middle").0);
    assert!((x - (ticks[0] + ticks[1]) / 2.0).abs() < 0.05);
}

#[test]
fn the_ideal_of_a_speed_up_is_drawn_if_it_is_asked_for() {
    let mut figure = curve(Scale::Linear, vec![series("a", Origin::Ours, &[(1.0, 1.0), (48.0, 40.0)])]);
    let without = drawn(&Figure::Curve(figure.clone()));
    figure.ideal = true;
    let with = drawn(&Figure::Curve(figure));
    assert!(!words(&check(&without)).contains("ideal") && words(&check(&with)).contains("ideal"));
}

#[test]
fn what_a_logarithmic_axis_cannot_show_is_left_out_and_that_is_said() {
    let points = [(0.0, 1.0), (1.0, 0.0), (2.0, -1.0), (f64::NAN, 1.0), (4.0, 4.0)];
    let text = drawn(&Figure::Curve(curve(Scale::Log, vec![series("a", Origin::Ours, &points)])));
    let document = check(&text);
    assert_eq!(marks(&document, "a").len(), 1);
    assert!(words(&document).contains("4 points were left out: not above zero on a logarithmic axis"));
}

fn bars(arrangement: Arrangement, categories: &[&str]) -> Bars {
    let values =
        |factor: f64| (0..categories.len()).map(|number| Some(factor * (number + 1) as f64)).collect();
    Bars {
        title: "Where the time went".to_owned(),
        subtitle: String::new(),
        categories_label: "Place".to_owned(),
        categories: categories.iter().map(|name| (*name).to_owned()).collect(),
        value: Axis::new("Time", "s", Scale::Linear),
        series: vec![
            BarSeries { name: "work".to_owned(), values: values(1.0) },
            BarSeries { name: "wait".to_owned(), values: values(2.0) },
        ],
        arrangement,
    }
}

/// Left, top, width and height of each bar of a series.
fn boxes(document: &Document<'_>, series: &str) -> Vec<[f64; 4]> {
    let groups = document.descendants().filter(|node| node.attribute("data-series") == Some(series));
    let bars = groups.flat_map(|group| group.children().filter(|node| has_class(node, "bar")));
    let number = |node: Node<'_, '_>, name| node.attribute(name).unwrap().parse().unwrap();
    bars.map(|bar| ["x", "y", "width", "height"].map(|name| number(bar, name))).collect()
}

#[test]
fn stacked_bars_stand_on_each_other_and_are_as_high_as_their_values() {
    let text = drawn(&Figure::Bars(bars(Arrangement::Stacked, &["0", "1", "2"])));
    let document = check(&text);
    let (work, wait) = (boxes(&document, "work"), boxes(&document, "wait"));
    assert_eq!((work.len(), wait.len()), (3, 3));
    for (below, above) in work.iter().zip(&wait) {
        assert!((below[1] - (above[1] + above[3])).abs() < 0.02, "{below:?} {above:?}");
        assert!((above[3] - 2.0 * below[3]).abs() < 0.03);
    }
    assert!((work[2][3] - 3.0 * work[0][3]).abs() < 0.03);
}

#[test]
fn bars_with_long_names_lie_and_have_their_values_written() {
    let names = ["round trip to a neighbour, empty", "barrier of all the places of a host", "spawn at"];
    let text = drawn(&Figure::Bars(bars(Arrangement::Grouped, &names)));
    let document = check(&text);
    let work = boxes(&document, "work");
    assert!(work.iter().all(|bar| (bar[0] - work[0][0]).abs() < 1e-9), "all begin at the foot");
    assert!((work[2][2] - 3.0 * work[0][2]).abs() < 0.03);
    let words = words(&document);
    assert!(
        words.contains("round trip to a neighbour, empty")
            && words.contains("\n6\n")
            && words.contains("Time (s)"),
        "{words}"
    );
}

fn parity(points: &[(f64, f64, f64)]) -> Parity {
    let point = |(number, (published, ours, band)): (usize, &(f64, f64, f64))| ParityPoint {
        label: format!("figure {number}"),
        unit: "ns".to_owned(),
        published: *published,
        ours: *ours,
        allowed: Some(Interval { low: published * (1.0 - band), high: published * (1.0 + band) }),
        series: number % 2,
    };
    Parity {
        title: "Published and ours".to_owned(),
        subtitle: String::new(),
        published: Axis::new("Published", "", Scale::Log),
        ours: Axis::new("Ours", "", Scale::Log),
        ratio: "Ours / published".to_owned(),
        series: vec!["calibrated".to_owned(), "predicted".to_owned()],
        points: points.iter().enumerate().map(point).collect(),
    }
}

#[test]
fn parity_shows_each_figure_twice_and_names_those_out_of_their_bands() {
    let points = [(100.0, 100.0, 0.05), (200.0, 300.0, 0.15), (5.0, 5.1, 0.05), (7.0, 3.0, 0.15)];
    let text = drawn(&Figure::Parity(parity(&points)));
    let document = check(&text);
    assert_eq!((marks(&document, "calibrated").len(), marks(&document, "predicted").len()), (4, 4));
    let words = words(&document);
    for part in [
        "calibrated (2)",
        "predicted (2, 2 out of band)",
        "bands: ±5, ±15 %",
        "figure 3  -57 %",
        "figure 1  +50 %",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(!words.contains("figure 0"));
    // On the diagonal of the upper panel: as far from the left as from below, in shares of the same range.
    let upper = &marks(&document, "calibrated")[..2];
    let ((x0, y0), (x1, y1)) = (upper[0], upper[1]);
    let ticks = [label_at(&document, "10", "end").1, label_at(&document, "100", "end").1];
    let decade = ticks[0] - ticks[1];
    assert!(((y1 - y0) / decade - (100.0_f64 / 5.1).log10()).abs() < 0.01);
    assert!(x0 > x1);
}

#[test]
fn the_plane_labels_the_front_only() {
    let point = |x, y, label: &str| PlanePoint { x, y, label: label.to_owned() };
    let points = vec![point(1.0, 9.0, "fast"), point(5.0, 9.5, "beaten"), point(9.0, 2.0, "frugal")];
    let figure = Figure::Plane(Plane {
        title: "Time and energy".to_owned(),
        subtitle: String::new(),
        x: Axis::new("Time", "s", Scale::Linear),
        y: Axis::new("Energy", "J", Scale::Linear),
        series: vec![PlaneSeries { name: "bc".to_owned(), points }],
    });
    let text = drawn(&figure);
    let document = check(&text);
    assert_eq!(marks(&document, "bc").len(), 3);
    let words = words(&document);
    assert!(words.contains("fast") && words.contains("frugal") && !words.contains("beaten"), "{words}");
    assert_eq!(document.descendants().filter(|node| has_class(node, "front")).count(), 1);
}

#[test]
fn no_text_stands_on_another_or_beyond_the_picture() {
    // Series that end at one point, a dozen of them, long names.
    let together = |count: usize, name: &str| {
        let of =
            |number: usize| series(&format!("{name} {number}"), Origin::Ours, &[(1.0, 1.0), (64.0, 50.0)]);
        Curve { ideal: true, ..curve(Scale::Log, (0..count).map(of).collect()) }
    };
    let long = "a name that is far too long to stand at the end of a line of any picture";
    let names = ["one", "two", "three of them, which is a long name for a category", long, "five"];
    let point = |number: usize| {
        let x = 1.0 + number as f64 * 0.02;
        PlanePoint { x, y: 2.0 - number as f64 * 0.02, label: format!("48 places, setting {number}") }
    };
    let points = (0..30).map(point).collect();
    let plane = Plane {
        title: long.to_owned(),
        subtitle: long.repeat(5),
        x: Axis::new("Time", "s", Scale::Linear),
        y: Axis::new("Energy", "J", Scale::Linear),
        series: vec![PlaneSeries { name: "bc".to_owned(), points }],
    };
    let crowd: Vec<(f64, f64, f64)> =
        (1..60).map(|number| (100.0, 100.0 + f64::from(number), 0.01)).collect();
    let numbers: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    for figure in [
        Figure::Curve(together(5, "s")),
        Figure::Curve(together(12, "series")),
        Figure::Curve(together(3, long)),
        Figure::Bars(bars(Arrangement::Grouped, &names)),
        Figure::Bars(bars(Arrangement::Stacked, &names)),
        Figure::Bars(bars(Arrangement::Grouped, &names[..2])),
        Figure::Bars(bars(Arrangement::Stacked, &numbers)),
        Figure::Parity(parity(&crowd)),
        Figure::Plane(plane),
    ] {
        check_texts(&check(&drawn(&figure)));
    }
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    let figure = Figure::Parity(parity(&[(100.0, 100.0, 0.05), (200.0, 300.0, 0.15)]));
    assert_eq!(drawn(&figure), drawn(&figure.clone()));
}

/// Values of all kinds: ordinary, equal, extreme, none.
fn value() -> BoxedStrategy<f64> {
    prop_oneof![
        4 => 0.001..1000.0,
        1 => Just(1.0),
        1 => Just(0.0),
        1 => -10.0..0.0,
        1 => prop::num::f64::ANY,
        1 => (-300..300).prop_map(|power| 10_f64.powi(power)),
    ]
    .boxed()
}

/// Values that all lie near one number, by a few units in its last place or by its own size, so that their extent is
/// nothing, tiny or huge.
fn values_near_one() -> impl Strategy<Value = BoxedStrategy<f64>> {
    let smallest = f64::from_bits(1);
    let edges = [smallest, f64::MIN_POSITIVE, 1e-280, 1e-279, 1e279, 1e280, f64::MAX, f64::INFINITY];
    let edge = (0..edges.len()).prop_map(move |number| edges[number]);
    prop_oneof![2 => edge, 1 => prop::num::f64::ANY, 1 => (-323..309).prop_map(|power| 10_f64.powi(power))]
        .prop_map(|one| {
            let beside =
                (0_u64..4).prop_map(move |steps| f64::from_bits(one.to_bits().saturating_add(steps)));
            prop_oneof![4 => Just(one), 2 => beside, 1 => Just(one * 2.0), 1 => Just(-one), 1 => Just(0.0)]
                .boxed()
        })
}

fn any_figure(value: &BoxedStrategy<f64>) -> impl Strategy<Value = Figure> + use<> {
    prop_oneof![any_curve(value), any_bars(value), any_parity(value), any_plane(value)]
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![Just(Scale::Linear), Just(Scale::Log)]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![".{0,12}", ".{60,120}", Just("<&\"' \u{1}>".to_owned())]
}

fn axis() -> impl Strategy<Value = Axis> {
    let unit = prop_oneof![Just("s"), Just("µs"), Just("B"), Just("GB/s"), Just(""), Just("places")];
    (name(), unit, scale()).prop_map(|(label, unit, scale)| Axis::new(label, unit, scale))
}

fn any_curve(value: &BoxedStrategy<f64>) -> impl Strategy<Value = Figure> + use<> {
    let band =
        prop::option::of((value.clone(), value.clone()).prop_map(|(low, high)| Interval { low, high }));
    let point = (value.clone(), value.clone(), band).prop_map(|(x, y, band)| CurvePoint { x, y, band });
    let origin = prop_oneof![Just(Origin::Ours), Just(Origin::Published)];
    let series = (name(), origin, prop::collection::vec(point, 0..12));
    let series = series.prop_map(|(name, origin, points)| Series { name, origin, points });
    (name(), axis(), axis(), prop::collection::vec(series, 0..14), any::<bool>()).prop_map(
        |(title, x, y, series, ideal)| {
            Figure::Curve(Curve { subtitle: title.clone(), title, x, y, series, ideal })
        },
    )
}

fn any_bars(value: &BoxedStrategy<f64>) -> impl Strategy<Value = Figure> + use<> {
    let series = (name(), prop::collection::vec(prop::option::of(value.clone()), 0..20));
    let series = series.prop_map(|(name, values)| BarSeries { name, values });
    let names = prop_oneof![
        prop::collection::vec(name(), 0..20),
        (0_usize..60).prop_map(|count| (0..count).map(|number| number.to_string()).collect()),
    ];
    (name(), axis(), names, prop::collection::vec(series, 0..8), any::<bool>()).prop_map(
        |(title, value, categories, series, is_stacked)| {
            let arrangement = if is_stacked { Arrangement::Stacked } else { Arrangement::Grouped };
            let (subtitle, categories_label) = (title.clone(), title.clone());
            Figure::Bars(Bars { title, subtitle, categories_label, categories, value, series, arrangement })
        },
    )
}

fn any_parity(value: &BoxedStrategy<f64>) -> impl Strategy<Value = Figure> + use<> {
    let allowed =
        prop::option::of((value.clone(), value.clone()).prop_map(|(low, high)| Interval { low, high }));
    let point = (name(), value.clone(), value.clone(), allowed, 0_usize..3);
    let point = point.prop_map(|(label, published, ours, allowed, series)| ParityPoint {
        label,
        unit: "ms".to_owned(),
        published,
        ours,
        allowed,
        series,
    });
    (axis(), axis(), prop::collection::vec(point, 0..40)).prop_map(|(published, ours, points)| {
        let series = ["one", "two", "three"].map(str::to_owned).to_vec();
        let (title, subtitle) = ("Parity".to_owned(), String::new());
        {
            let ratio = "Ours / published".to_owned();
            Figure::Parity(Parity { title, subtitle, published, ours, ratio, series, points })
        }
    })
}

fn any_plane(value: &BoxedStrategy<f64>) -> impl Strategy<Value = Figure> + use<> {
    let point = (value.clone(), value.clone(), name()).prop_map(|(x, y, label)| PlanePoint { x, y, label });
    let series =
        (name(), prop::collection::vec(point, 0..20)).prop_map(|(name, points)| PlaneSeries { name, points });
    (axis(), axis(), prop::collection::vec(series, 0..4)).prop_map(|(x, y, series)| {
        Figure::Plane(Plane { title: "Plane".to_owned(), subtitle: String::new(), x, y, series })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_figure_is_well_formed(figure in any_figure(&value())) {
        check(&drawn(&figure));
    }

    #[test]
    fn a_figure_whose_extent_is_nothing_or_tiny_or_huge_is_well_formed(
        figure in values_near_one().prop_flat_map(|value| any_figure(&value)),
    ) {
        let text = drawn(&figure);
        let words = words(&check(&text));
        prop_assert!(!words.contains("NaN") && !words.contains("inf"), "{words}");
    }
}
