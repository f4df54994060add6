//! A generator for the data of the Lehigh University Benchmark: departments with their people, courses and papers.
//!
//! It follows the profile in the appendix of Guo, Pan and Heflin, "LUBM: A benchmark for OWL knowledge base systems"
//! (2005), with its own random numbers, so its counts lie in the published ranges but differ from those of the
//! original generator. It also states the triples implied by the ontology, because there is no reasoner: superclasses,
//! superproperties, inverses, transitive `subOrganizationOf`, `Chair`, and that takers of a course are students.
//! Invariant: a department depends on its numbers only, so any place can generate it.

use super::triples::LocalTriples;
use std::ops::RangeInclusive;

/// The name space of the ontology.
const ONTOLOGY: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Number of universities that grant degrees.
const DEGREE_UNIVERSITIES: u64 = 1000;

/// Number of different research interests.
const INTERESTS: u64 = 30;

/// A kind of faculty: its class, its number per department, and its papers per person.
struct Faculty {
    class: &'static str,
    count: RangeInclusive<u64>,
    papers: RangeInclusive<u64>,
}

const FACULTY: [Faculty; 4] = [
    Faculty { class: "FullProfessor", count: 7..=10, papers: 15..=20 },
    Faculty { class: "AssociateProfessor", count: 10..=14, papers: 10..=18 },
    Faculty { class: "AssistantProfessor", count: 8..=11, papers: 5..=10 },
    Faculty { class: "Lecturer", count: 5..=7, papers: 0..=5 },
];

/// Returns the superclasses of a class in the ontology.
fn superclasses(class: &str) -> &'static [&'static str] {
    match class {
        "FullProfessor" | "AssociateProfessor" | "AssistantProfessor" | "Chair" => {
            &["Professor", "Faculty", "Employee", "Person"]
        }
        "Lecturer" => &["Faculty", "Employee", "Person"],
        // A graduate student is a student because it takes a course.
        "UndergraduateStudent" | "GraduateStudent" => &["Student", "Person"],
        "TeachingAssistant" | "ResearchAssistant" => &["Person"],
        "GraduateCourse" => &["Course", "Work"],
        "Course" => &["Work"],
        "University" | "Department" | "ResearchGroup" => &["Organization"],
        _ => &[],
    }
}

/// Returns the superproperties of a property in the ontology.
fn superproperties(property: &str) -> &'static [&'static str] {
    match property {
        "headOf" => &["worksFor", "memberOf"],
        "worksFor" => &["memberOf"],
        "undergraduateDegreeFrom" | "mastersDegreeFrom" | "doctoralDegreeFrom" => &["degreeFrom"],
        _ => &[],
    }
}

fn inverse(property: &str) -> Option<&'static str> {
    match property {
        "memberOf" => Some("member"),
        "degreeFrom" => Some("hasAlumnus"),
        _ => None,
    }
}

/// Random numbers by SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    fn in_range(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// Draws `count` different numbers below `bound`.
    fn different(&mut self, count: u64, bound: u64) -> Vec<u64> {
        let mut chosen = Vec::new();
        while (chosen.len() as u64) < count.min(bound) {
            let next = self.below(bound);
            if !chosen.contains(&next) {
                chosen.push(next);
            }
        }
        chosen
    }
}

/// Returns the number of departments of a university.
fn departments(university: u64) -> u64 {
    Random(university.wrapping_mul(0x2545_f491_4f6c_dd1d)).in_range(15..=25)
}

/// A department of a university.
#[derive(Clone, Copy)]
pub struct DepartmentId {
    university: u64,
    /// Number of the department in its university.
    department: u64,
}

/// Returns all departments of the first `universities` universities.
pub fn all_departments(universities: u64) -> impl Iterator<Item = DepartmentId> {
    let of_university = |university| {
        (0..departments(university)).map(move |department| DepartmentId { university, department })
    };
    (0..universities).flat_map(of_university)
}

/// Adds the triples of one department, and of its university.
pub fn add_department(out: &mut LocalTriples, id: DepartmentId, is_closed: bool) {
    let DepartmentId { university, department } = id;
    let seed = university * 0x1_0001 + department;
    let random = Random(seed.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let host = format!("Department{department}.University{university}.edu");
    let iri = format!("http://www.{host}");
    let own = out.iri(&iri);
    let mut writer = Department { out, random, host, iri, own, is_closed };
    writer.organization(university, department);
    let faculty = writer.faculty();
    writer.students(&faculty);
}

/// The teachers of a department and their courses.
struct Teachers {
    /// Positions of all teachers.
    all: Vec<u32>,
    /// Positions of the professors among them.
    professors: Vec<u32>,
    /// The number of courses.
    courses: Vec<u32>,
    graduate_courses: Vec<u32>,
    /// Positions of all papers.
    papers: Vec<u32>,
}

struct Department<'a> {
    out: &'a mut LocalTriples,
    random: Random,
    host: String,
    iri: String,
    /// The position of its IRI.
    own: u32,
    is_closed: bool,
}

impl Department<'_> {
    fn term(&mut self, name: &str) -> u32 {
        self.out.iri(&format!("{ONTOLOGY}{name}"))
    }

    fn push(&mut self, subject: u32, property: &str, object: u32) {
        let property = self.term(property);
        self.out.triples.push([subject, property, object]);
    }

    fn add(&mut self, subject: u32, property: &str, object: u32) {
        self.push(subject, property, object);
        if self.is_closed {
            for implied in [property].iter().chain(superproperties(property)) {
                if *implied != property {
                    self.push(subject, implied, object);
                }
                if let Some(inverse) = inverse(implied) {
                    self.push(object, inverse, subject);
                }
            }
        }
    }

    fn add_class(&mut self, subject: u32, class: &str) {
        let above = if self.is_closed { superclasses(class) } else { &[] };
        let property = self.out.iri(TYPE);
        for class in [class].iter().chain(above) {
            let class = self.term(class);
            self.out.triples.push([subject, property, class]);
        }
    }

    fn add_text(&mut self, subject: u32, property: &str, value: &str) {
        let value = self.out.string(value);
        self.push(subject, property, value);
    }

    /// Adds another individual of the department, with its class and name.
    fn thing(&mut self, class: &str, number: u64) -> u32 {
        let iri = format!("{}/{class}{number}", self.iri);
        let own = self.out.iri(&iri);
        self.add_class(own, class);
        own
    }

    fn named_thing(&mut self, class: &str, number: u64) -> u32 {
        let own = self.thing(class, number);
        self.add_text(own, "name", &format!("{class}{number}"));
        own
    }

    fn organization(&mut self, university: u64, department: u64) {
        let name = format!("University{university}");
        let above = self.out.iri(&format!("http://www.{name}.edu"));
        self.add_class(above, "University");
        self.add_text(above, "name", &name);
        let own = self.own;
        self.add_class(own, "Department");
        self.add_text(own, "name", &format!("Department{department}"));
        self.add(own, "subOrganizationOf", above);
        for number in 0..self.random.in_range(10..=20) {
            let group = self.thing("ResearchGroup", number);
            self.add(group, "subOrganizationOf", own);
            if self.is_closed {
                self.push(group, "subOrganizationOf", above);
            }
        }
    }

    fn person(&mut self, class: &str, number: u64) -> u32 {
        let person = self.named_thing(class, number);
        let address = format!("{class}{number}@{}", self.host);
        self.add_text(person, "emailAddress", &address);
        self.add_text(person, "telephone", "xxx-xxx-xxxx");
        person
    }

    fn degree(&mut self, person: u32, property: &str) {
        let number = self.random.below(DEGREE_UNIVERSITIES);
        let university = self.out.iri(&format!("http://www.University{number}.edu"));
        self.add_class(university, "University");
        self.add(person, property, university);
    }

    fn faculty(&mut self) -> Teachers {
        let (mut all, mut professors, mut papers) = (Vec::new(), Vec::new(), Vec::new());
        let (mut courses, mut graduate_courses) = (Vec::new(), Vec::new());
        for Faculty { class, count, papers: own_papers } in FACULTY {
            let count = self.random.in_range(count);
            let head = (class == "FullProfessor").then(|| self.random.below(count));
            for number in 0..count {
                let person = self.person(class, number);
                for degree in ["undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"] {
                    self.degree(person, degree);
                }
                let own = self.own;
                self.add(person, "worksFor", own);
                if head == Some(number) {
                    self.add(person, "headOf", own);
                    if self.is_closed {
                        self.add_class(person, "Chair");
                    }
                }
                if class != "Lecturer" {
                    professors.push(person);
                    let interest = format!("Research{}", self.random.below(INTERESTS));
                    self.add_text(person, "researchInterest", &interest);
                }
                for (class, courses) in [("Course", &mut courses), ("GraduateCourse", &mut graduate_courses)]
                {
                    for _ in 0..self.random.in_range(1..=2) {
                        let course = self.named_thing(class, courses.len() as u64);
                        self.add(person, "teacherOf", course);
                        courses.push(course);
                    }
                }
                for paper in 0..self.random.in_range(own_papers.clone()) {
                    papers.push(self.paper(&format!("{class}{number}"), paper, person));
                }
                all.push(person);
            }
        }
        Teachers { all, professors, courses, graduate_courses, papers }
    }

    fn paper(&mut self, author: &str, number: u64, person: u32) -> u32 {
        let iri = format!("{}/{author}/Publication{number}", self.iri);
        let paper = self.out.iri(&iri);
        self.add_class(paper, "Publication");
        self.add_text(paper, "name", &format!("Publication{number}"));
        self.add(paper, "publicationAuthor", person);
        paper
    }

    fn add_courses(&mut self, student: u32, count: RangeInclusive<u64>, courses: &[u32]) {
        let count = self.random.in_range(count);
        for course in self.random.different(count, courses.len() as u64) {
            self.add(student, "takesCourse", courses[course as usize]);
        }
    }

    fn add_advisor(&mut self, student: u32, professors: &[u32]) {
        let professor = professors[self.random.below(professors.len() as u64) as usize];
        self.add(student, "advisor", professor);
    }

    fn students(&mut self, teachers: &Teachers) {
        let (faculty, own) = (teachers.all.len() as u64, self.own);
        for number in 0..faculty * self.random.in_range(8..=14) {
            let student = self.person("UndergraduateStudent", number);
            self.add(student, "memberOf", own);
            self.add_courses(student, 2..=4, &teachers.courses);
            if self.random.below(5) == 0 {
                self.add_advisor(student, &teachers.professors);
            }
        }
        let graduates = faculty * self.random.in_range(3..=4);
        let share = |random: &mut Random, (least, most): (u64, u64)| {
            random.in_range(graduates / least..=graduates / most)
        };
        let assistants = share(&mut self.random, (5, 4));
        let researchers = share(&mut self.random, (4, 3));
        let assisted = self.random.different(assistants, teachers.courses.len() as u64);
        for number in 0..graduates {
            let student = self.person("GraduateStudent", number);
            self.add(student, "memberOf", own);
            self.degree(student, "undergraduateDegreeFrom");
            self.add_courses(student, 1..=3, &teachers.graduate_courses);
            self.add_advisor(student, &teachers.professors);
            if let Some(course) = assisted.get(number as usize) {
                self.add_class(student, "TeachingAssistant");
                self.add(student, "teachingAssistantOf", teachers.courses[*course as usize]);
            } else if number < assisted.len() as u64 + researchers {
                self.add_class(student, "ResearchAssistant");
            }
            let papers = self.random.in_range(0..=5);
            for paper in self.random.different(papers, teachers.papers.len() as u64) {
                self.add(teachers.papers[paper as usize], "publicationAuthor", student);
            }
        }
    }
}
